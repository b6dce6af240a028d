"""Who wrote a text: a person, or an agent by the name its client gives itself. Pure.

A change says who made it; a text that no change of ours made is a person's, written in an editor or with another program.
Blame goes line by line: a line belongs to whoever last changed it, and a text that comes back brings its authors along.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from simplemem.note.diff import lines_of, matches


@dataclass(frozen=True, slots=True)
class Origin:
    """Who wrote something, and when at the latest (UTC); "" when that is not known."""

    kind: Literal["human", "agent", "unknown"]
    name: str = ""
    when: str = ""

    @property
    def shown(self) -> str:
        return self.name or self.kind


HUMAN, UNKNOWN = Origin("human"), Origin("unknown")


def agent(who: str, tool: str, when: str) -> Origin:
    """An agent by what its client calls itself, which cannot pass for a person."""
    name = who or ("an agent without a name" if "_" in tool else "a program")
    return Origin("agent", f"an agent called {name}" if name.casefold() in ("human", "unknown") else name, when)


def local(when: str) -> str | None:
    """A time of the log as notes say theirs."""
    try:
        moment = datetime.fromisoformat(when).astimezone()
    except (ValueError, OverflowError, OSError):
        return None
    return moment.replace(tzinfo=None).isoformat(timespec="seconds")


def is_called(who: str, wanted: str) -> bool:
    """Whether a name is the one that is asked for, with or without the version a client tells with it; "" asks for any."""
    who, wanted = who.casefold(), " ".join(wanted.split()).casefold()
    name, _, number = who.rpartition(" ")
    return wanted in ("", who) or (wanted == name and any(map(str.isdigit, number)))


@dataclass(frozen=True, slots=True)
class State:
    """A text that a note had: its hash (None: there was no note), and who made it so."""

    sha256: str | None
    by: Origin


def blame(now: bytes, states: Sequence[State], text_of: Callable[[str], bytes | None]) -> list[Origin]:
    """The origin of every line of a text, which is that of the first state; states come newest first. `text_of` gives an
    earlier text by its hash, None when it is not kept: where several could have written a line, nobody is named."""
    lines = _lines(now)
    found = [UNKNOWN] * len(lines)
    oldest = {state.sha256: at for at, state in enumerate(states)}
    places = dict(enumerate(range(len(lines))))  # the lines whose origin is still sought, and where they stood then
    at = 0
    while places and at < len(states):
        at = oldest[states[at].sha256]
        before, earlier = _next_known(states, at, text_of)
        by = _one_of([state.by for state in states[at:before]])
        was = matches(lines, earlier)
        for line, place in places.items():
            if was[place] < 0:
                found[line] = by
        places = {line: was[place] for line, place in places.items() if was[place] >= 0}
        at, lines = before, earlier
    return found


def _next_known(states: Sequence[State], at: int, text_of: Callable[[str], bytes | None]) -> tuple[int, list[str]]:
    """The next older state whose text is known, and its lines. Before the oldest there was nothing."""
    for before in range(at + 1, len(states)):
        sha256 = states[before].sha256
        if sha256 is None:
            return before, []  # a note that was not there has no lines to hand on
        if (text := text_of(sha256)) is not None:
            return before, _lines(text)
    return len(states), []


def _one_of(makers: Sequence[Origin]) -> Origin:
    """What is certain when one of some made a line: who, or at least of what kind."""
    if len({(maker.kind, maker.name) for maker in makers}) == 1:
        return makers[0]
    return Origin(makers[0].kind) if len({maker.kind for maker in makers}) == 1 else UNKNOWN


def _lines(text: bytes) -> list[str]:
    return [line.rstrip() for line in lines_of(text)]
