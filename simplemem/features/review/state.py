"""What people have kept, and what they wrote about changes: logs below `.simplemem/state/`.

Each machine appends to a file of its own, and reads those of all machines. Programs that copy
folders between machines, such as Syncthing, therefore never find two versions of one file. `git`
does not copy `.simplemem/`: there, each machine has a log of changes of its own, and its review
belongs to that log.

A version has another number in the log of another machine, or after the log was replaced. A change
is therefore recorded by its fingerprint, which does not contain its number.
"""

from __future__ import annotations

import hashlib
import platform
import threading
from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from simplemem.features.event_log import Event, EventLog
from simplemem.features.review.inbox import Comment
from simplemem.features.review.visits import Visit, extend_visits
from simplemem.note.dates import format_log_time

if TYPE_CHECKING:
    from simplemem.store import ExtensionAPI

_FOLDER: Final = "state"
_PREFIX: Final = "review-"
_TIMEOUT: Final = 5.0  # seconds to wait for another process that writes


class ReviewState:
    """What one file records about each person and each change.

    `kept` has for each person the changes that they kept or reopened: when they last did, and
    whether they kept it. `visits` has for each person when they did something. Changes are
    fingerprints. `events` counts the events so far.
    """

    def __init__(self) -> None:
        self.events = 0
        self.kept: dict[str, dict[str, tuple[str, bool]]] = defaultdict(dict)
        self.comments: dict[str, list[Comment]] = defaultdict(list)
        self.visits: dict[str, list[Visit]] = defaultdict(list)

    def apply(self, event: Event) -> None:
        """Change the state by one event. An event of another form is ignored."""
        self.events += 1
        who = event.get("who")
        when = event.get("when")
        changes = event.get("changes")
        if not isinstance(who, str) or not isinstance(when, str) or not isinstance(changes, list):
            return

        person = _key_of(who)
        fingerprints = [change for change in changes if isinstance(change, str)]
        extend_visits(self.visits[person], when)

        kind = event.get("event")
        text = event.get("text")
        if kind in ("kept", "reopened"):
            standing = (when, kind == "kept")
            self.kept[person].update(dict.fromkeys(fingerprints, standing))
        elif kind == "comment" and isinstance(text, str):
            for fingerprint in fingerprints:
                self.comments[fingerprint].append(Comment(who, when, text))


class PersonalReview:
    """What one person has kept, when they did something, and the comments of everybody.

    Two with the same `revision` are equal, if they are of the same person.
    """

    def __init__(self, person: str, states: Iterable[ReviewState]) -> None:
        self._states = list(states)
        key = _key_of(person)
        self._kept = [state.kept[key] for state in self._states if key in state.kept]
        self.revision = tuple(state.events for state in self._states)
        self.visits = [visit for state in self._states for visit in state.visits.get(key, ())]

    def has_kept(self, fingerprints: Collection[str]) -> bool:
        """Return whether the person has kept all of these changes."""
        if not self._kept:
            return False
        standings = [self._standing_of(fingerprint) for fingerprint in fingerprints]
        return all(is_kept for _, is_kept in standings)

    def decided_at(self, fingerprints: Collection[str]) -> str:
        """Return when the person last kept or reopened one of these changes; "" if never."""
        times = [self._standing_of(fingerprint)[0] for fingerprint in fingerprints]
        return max(times, default="")

    def _standing_of(self, fingerprint: str) -> tuple[str, bool]:
        """Return when the person last kept or reopened a change, and whether it is kept now."""
        standings = [kept[fingerprint] for kept in self._kept if fingerprint in kept]
        return max(standings, default=("", False))

    def comments_on(self, fingerprints: Iterable[str]) -> tuple[Comment, ...]:
        """Return the comments on some changes, the oldest first, each once."""
        comments: list[Comment] = []
        for fingerprint in fingerprints:
            for state in self._states:
                comments += state.comments.get(fingerprint, ())
        unique = dict.fromkeys(comments)
        return tuple(sorted(unique, key=lambda comment: comment.when))


class ReviewLog:
    """Guards the logs of all machines below `.simplemem/state/`. It is thread-safe."""

    def __init__(self, extension: ExtensionAPI, root: Path) -> None:
        """Begin to read the logs of the vault at `root`. Nothing is written yet."""
        self._extension = extension
        self._folder = root / ".simplemem" / _FOLDER
        self._own_name = f"{_PREFIX}{_machine_id()}.jsonl"
        self._logs: dict[str, EventLog[ReviewState]] = {}
        self._guard = threading.Lock()

    def review_of(self, person: str) -> PersonalReview:
        """Return what a person has kept, after all that any process has recorded so far."""
        with self._guard:
            names = {path.name for path in self._folder.glob(f"{_PREFIX}*.jsonl")}
            states = [self._log_called(name).state() for name in sorted(names)]
        return PersonalReview(person, states)

    def record(
        self,
        kind: str,
        who: str,
        versions: Collection[str],
        fingerprints: Collection[str],
        text: str = "",
    ) -> None:
        """Append an event, and sync it to the disk.

        `versions` are only for people who read the log. Raises ReadOnly if the vault may not be
        changed, and Unavailable if another process keeps the log locked for five seconds.
        """
        event = {
            "event": kind,
            "who": who,
            "when": format_log_time(datetime.now(UTC)),
            "versions": list(versions),
            "changes": list(fingerprints),
        }
        if text:
            event["text"] = text
        with self._guard:
            log = self._log_called(self._own_name)
        with log.exclusive(_TIMEOUT) as append:
            append(event)

    def _log_called(self, name: str) -> EventLog[ReviewState]:
        """Return the log in a file of the folder, made when it is first asked for."""
        if name not in self._logs:
            self._logs[name] = EventLog(
                self._extension, f"{_FOLDER}/{name}", ReviewState, ReviewState.apply
            )
        return self._logs[name]


def fingerprint_of(
    when: str, path: str, new_path: str | None, before: str | None, after: str | None
) -> str:
    """Return what identifies a change of one note in the logs of all machines.

    `when` is the time of the change as its log has it; `before` and `after` are hashes of texts.
    """
    fields = "\0".join((when, path, new_path or "", before or "", after or ""))
    digest = hashlib.blake2b(fields.encode("utf-8", "surrogatepass"), digest_size=12)
    return digest.hexdigest()


def _key_of(person: str) -> str:
    """Return the name by which people are told apart: case and repeated blanks do not matter."""
    return " ".join(person.split()).casefold()


def _machine_id() -> str:
    """Return an id of this machine that does not reveal its name."""
    return hashlib.blake2b(platform.node().encode(), digest_size=4).hexdigest()
