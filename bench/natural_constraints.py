"""Which constraints and preferences of the natural material get into the user's profile.

All items are stored in one vault in the order of their times, through `store_conversation`, each as
a subject of its own. The profile is read with `get_user_profile` before and after each.
`bench/natural.py` prints the figures.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.natural_figures import Count, content_stems
from bench.natural_material import ConstraintItem
from bench.tool_caller import ToolCaller, open_tools, set_clock

_MIN_SHARED: Final = 2  # content words that an entry shares with what it is an entry of

ArgumentsOf = Callable[[ToolCaller, ConstraintItem], dict[str, Any]]
"""Returns the arguments with which a client stores an item."""


@dataclass(frozen=True)
class ConstraintFigures:
    """What was measured of constraints and preferences.

    An item is *recognised* in a list of the profile if, right after it was stored, the list has an
    entry that it did not have before, and the entry shares two content words (all, if it has fewer)
    with the item's rule or with its text.

    - `constraints`: items of the kind constraint, and how many are recognised in `constraints`.
    - `preferences`: items of the kind preference, and how many are recognised in `preferences` or
      in `constraints`.
    - `neither`: items of the kind neither, and how many add an entry to one of the lists. An item
      that withdraws another one may state what holds now, so it is left out.
    - `withdrawn`: recognised items that a later item withdraws, and how many of their entries are
      no longer in the profile, or marked as disputed there, right after that.
    """

    constraints: Count
    preferences: Count
    neither: Count
    withdrawn: Count


def word_for_word(_call: ToolCaller, item: ConstraintItem) -> dict[str, Any]:
    """Return the text of an item as the message, and nothing that the client understood."""
    return {"message": item.text}


def measure_constraints(
    items: Iterable[ConstraintItem],
    *,
    arguments_of: ArgumentsOf = word_for_word,
    settings: Mapping[str, Any] | None = None,
) -> ConstraintFigures:
    """Store all items in a new vault, and return the figures. The caller restores the clock."""
    recognised: dict[str, list[bool]] = {"constraint": [], "preference": [], "neither": []}
    entries_by_item: dict[str, list[str]] = {}
    withdrawn = []
    with (
        tempfile.TemporaryDirectory() as folder,
        open_tools(Path(folder), "hmlr", settings=settings) as call,
    ):
        before = _Profile.read(call)
        for item in sorted(items, key=_time_key):
            set_clock(item.at)
            call("store_conversation", topic=f"Subject {item.id}", **arguments_of(call, item))
            after = _Profile.read(call)
            new_entries = _new_entries(item, before, after)
            entries_by_item[item.id] = new_entries

            valid_entries = after.valid_entries()
            withdrawn_entries = entries_by_item.get(item.withdraws, [])
            withdrawn += [entry not in valid_entries for entry in withdrawn_entries]
            if item.kind != "neither" or not item.withdraws:
                recognised[item.kind].append(bool(new_entries))
            before = after

    return ConstraintFigures(
        constraints=Count.of(recognised["constraint"]),
        preferences=Count.of(recognised["preference"]),
        neither=Count.of(recognised["neither"]),
        withdrawn=Count.of(withdrawn),
    )


def _time_key(item: ConstraintItem) -> str:
    return item.at.isoformat()


@dataclass(frozen=True)
class _Profile:
    """What the user's profile lists."""

    constraints: tuple[str, ...]
    disputed: frozenset[str]  # constraints and preferences that a later message put in doubt
    preferences: tuple[str, ...]

    @classmethod
    def read(cls, call: ToolCaller) -> _Profile:
        """Return the profile as it is now."""
        profile = call("get_user_profile")["profile"]
        disputed = [row["text"] for row in profile["constraints"] if "disputed" in row]
        preferences = tuple(profile["preferences"].values())
        disputed += [text for text in preferences if "(disputed since" in text]
        return cls(
            constraints=tuple(row["text"] for row in profile["constraints"]),
            disputed=frozenset(disputed),
            preferences=preferences,
        )

    def valid_entries(self) -> list[str]:
        """Return the entries of both lists that nothing puts in doubt."""
        entries = [*self.constraints, *self.preferences]
        return [entry for entry in entries if entry not in self.disputed]


def _new_entries(item: ConstraintItem, before: _Profile, after: _Profile) -> list[str]:
    """Return the entries that an item added to a list in which its kind is recognised."""
    entries = _added(before.constraints, after.constraints)
    if item.kind != "constraint":
        entries += _added(before.preferences, after.preferences)
    if item.kind == "neither":
        return entries
    return [entry for entry in entries if states(entry, item)]


def _added(before: Sequence[str], after: Sequence[str]) -> list[str]:
    return [entry for entry in after if entry not in before]


def states(entry: str, item: ConstraintItem) -> bool:
    """Return whether an entry of a profile has words of an item's rule or of its text."""
    words = content_stems(entry)
    if not words:
        return False
    enough = min(_MIN_SHARED, len(words))
    return any(len(words & content_stems(text)) >= enough for text in (item.rule, item.text))
