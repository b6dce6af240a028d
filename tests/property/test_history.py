"""Any update or delete can be brought back by one command, byte for byte, whatever was done since.

Hypothesis plays an agent, a person at the command line and a hand that edits, deletes and renames files beneath them.
What stood in the vault after each change is remembered; at the end every text of every change in the log is brought
back, and the vault at each moment is what it was, but for what is said to be in doubt.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from simplemem.errors import SimplememError
from simplemem.note.names import name_of
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore
from simplemem.vault.values import sha256

_MEMORY = Path("/dev/shm")
_NAMES = st.sampled_from(["a", "b", "c d", "deep/a", "deep/er/b", "A", "Café"])
_TEXTS = st.sampled_from(
    [
        "one",
        "two [[a]]",
        "three\r\nlines\r\n",
        "[[deep/a]] and [[b|other]]\n",
        "\u2028odd\x0b",
        "x" * 3000,
        "",
    ]
)
_RAW = st.sampled_from(
    [
        b"by hand",
        b"\xef\xbb\xbf---\r\ntags: [x]\r\n---\r\ntext",
        b"\xff\xfe broken",
        b"---\nbad: [\n---\n[[a]]",
        b"",
    ]
)
_WHO = st.sampled_from(["claude-ai 1.2", "command line"])
_ONE = st.integers(0, 10_000)


class Past(RuleBasedStateMachine):
    """One vault, two who change it through simplemem, and a hand that does not."""

    @initialize()
    def begin(self) -> None:
        memory = _MEMORY if os.access(_MEMORY, os.W_OK) else None
        self.room = tempfile.TemporaryDirectory(dir=memory)
        self.vault = Path(self.room.name)
        chosen = {"embed": {"provider": "none"}, "write": {"durability": "fast"}}
        self.store = EnhancedStore(self.vault, Settings.model_validate(chosen))
        self.seen: dict[str, bytes] = {}
        self.states: dict[int, dict[str, bytes]] = {}
        self.by_hand: list[
            tuple[str, int]
        ] = []  # what a hand touched, and the number of the next change

    def files(self) -> dict[str, bytes]:
        found = {}
        for path in self.vault.rglob("*.md"):
            if ".simplemem" not in path.parts:
                found[path.relative_to(self.vault).as_posix()] = path.read_bytes()
        self.seen |= {sha256(data): data for data in found.values()}
        return found

    def do(self, change: str, *args: Any, **keywords: Any) -> None:
        self.files()  # what a hand left, before it is displaced
        log = self.store._parts.vault.history.log
        number = log.next_number()
        with suppress(SimplememError):
            getattr(self.store, change)(*args, **keywords)
        if log.next_number() > number:
            self.states[log.next_number() - 1] = self.files()

    def a_version(self, which: int) -> str:
        return f"v{which % self.store._parts.vault.history.log.next_number()}"

    # -- through simplemem

    @rule(name=_NAMES, text=_TEXTS, who=_WHO, over=st.booleans())
    def create(self, name: str, text: str, who: str, over: bool) -> None:
        self.do("create", name, text, overwrite=over, who=who)

    @rule(name=_NAMES, text=_TEXTS, who=_WHO)
    def update(self, name: str, text: str, who: str) -> None:
        self.do("update", name, content=text, who=who)

    @rule(name=_NAMES, new=_NAMES, who=_WHO)
    def move(self, name: str, new: str, who: str) -> None:
        self.do("move", name, new, who=who)

    @rule(name=_NAMES, who=_WHO)
    def delete(self, name: str, who: str) -> None:
        self.do("delete", name, who=who)

    @rule(which=_ONE, who=_WHO)
    def undo(self, which: int, who: str) -> None:
        self.do("undo", self.a_version(which), who=who)

    @rule(name=_NAMES, which=_ONE, before=st.booleans())
    def restore(self, name: str, which: int, before: bool) -> None:
        self.do(
            "restore",
            name,
            at=f"before {self.a_version(which)}" if before else self.a_version(which),
        )

    @rule(which=_ONE)
    def undo_all(self, which: int) -> None:
        """What was taken back can be done again, and the notes are as they were before both."""
        before = self.files()
        since = self.a_version(which)
        with suppress(SimplememError):
            done = self.store.undo_all("claude-ai", since, who="command line")
            after = self.files()
            left = {f"{each.name}.md" for each in done.left}
            assert {path: before.get(path) for path in left} == {
                path: after.get(path) for path in left
            }
            if done.version:
                assert before != after
                self.store.undo(done.version, who="command line")
                assert self.files() == before
            else:
                assert before == after

    # -- by hand

    @rule(name=_NAMES, data=_RAW)
    def edit(self, name: str, data: bytes) -> None:
        file = self.touched(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)

    @rule(name=_NAMES)
    def unlink(self, name: str) -> None:
        self.touched(name).unlink(missing_ok=True)

    def touched(self, name: str) -> Path:
        self.by_hand.append((f"{name}.md", self.store._parts.vault.history.log.next_number()))
        return self.vault / f"{name}.md"

    def cannot_be_known(self, path: str, number: int) -> bool:
        """Whether a hand touched a path more than once between two changes that name it: one may have undone the
        other."""
        log = self.store._parts.vault.history.log.backwards()
        numbers = [version.number for version in log if path in (version.path, version.new_path)]
        first = max((each for each in numbers if each <= number), default=-1)
        last = min((each for each in numbers if each > number), default=10**9)
        return sum(touched == path and first < at <= last for touched, at in self.by_hand) > 1

    @rule()
    def look(self) -> None:
        self.files()
        self.store.sync()

    @rule()
    def thin(self) -> None:
        self.store._parts.vault.prune_history()

    # -- all of it can come back

    def teardown(self) -> None:
        if not hasattr(self, "store"):
            return
        try:
            self.files()
            self.store.sync()
            self.moments_are_what_they_were()
            self.every_text_comes_back()
        finally:
            self.store.close()
            self.room.cleanup()

    def moments_are_what_they_were(self) -> None:
        now = self.files()
        named = {
            path
            for v in self.store._parts.vault.history.log.backwards()
            for path in (v.path, v.new_path)
            if path
        }
        for number, state in self.states.items():
            if not number:
                continue
            then = list(
                self.store._parts.texts.notes_at(self.store._parts.texts.moment_of(f"v{number}"))
            )
            told = {path: data for path, data in now.items() if path in named}
            for note, differs in then:
                if not differs:
                    continue
                told.pop(note.path, None)
                if note.sha256 is not None:
                    assert note.data is not None and sha256(note.data) == note.sha256
                    told[note.path] = note.data
            certain = {path for path in named - {note.path for note, _ in then if note.doubt}
                       if not self.cannot_be_known(path, number)}  # fmt: skip
            assert {path: told.get(path) for path in certain} == {
                path: state.get(path) for path in certain
            }

    def every_text_comes_back(self) -> None:
        log = self.store._parts.vault.history.log
        for count, version in enumerate(list(log.backwards())):
            for path, sha, at in ((version.path, version.before, f"before {version.id}"),
                                  (version.new_path or version.path, version.after, version.id)):  # fmt: skip
                if sha is None:
                    continue
                text = self.store._parts.vault.history.content(sha)
                assert text is not None and sha256(text) == sha and self.seen.get(sha, text) == text
                if version.op == "recovered":
                    continue
                fresh = f"back/{count} {at}"
                assert self.store.restore(name_of(path), at=at, new_name=fresh).sha256 == sha
                assert (self.vault / f"{fresh}.md").read_bytes() == text


TestPast = Past.TestCase
TestPast.settings = settings(
    max_examples=max(10, settings.default.max_examples // 5),
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
