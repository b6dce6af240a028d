"""Count the notes that meet the conditions of a filter, and explain which ones no note meets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from simplemem.index.api import IndexFilter
from simplemem.index.service import IndexService, lets_all_pass
from simplemem.note.names import compare_key
from simplemem.search.needs import IndexMonitor

# The label of the condition that leaves past sessions out. The one that asks for them is "archive".
PAST_SESSIONS_LABEL = "outside of"

# The fields of `IndexFilter` that are conditions, with their labels.
_LABELS = {
    "tags": "tag",
    "all_tags": "tag",
    "properties": "property",
    "type": "type",
    "prefix": "path",
    "since": "since",
    "until": "until",
    "link_to": "link_to",
    "linked_by": "linked_by",
    "author": "author",
    "phrases": "phrase",
    "without": "without",
    "archive": PAST_SESSIONS_LABEL,
}

# For some of these fields, the field that says how they are meant. A condition has both.
_MODIFIERS = {"tags": "require_all", "without": "without_forms", "archive": "archived"}

_MAX_SUGGESTIONS = 3
_MAX_SUGGESTION_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a filter, with its label and its value as people read it."""

    label: str
    value: str
    fields: Mapping[str, Any]  # of `IndexFilter`, with their values

    def added_to(self, filter: IndexFilter) -> IndexFilter:
        """Return a copy of a filter with this condition in it."""
        return replace(filter, **self.fields)

    def __str__(self) -> str:
        return f"{self.label}={self.value}"


class ConditionChecker:
    """Counts the notes that meet the conditions of filters. Guards no state."""

    def __init__(self, index: IndexService, monitor: IndexMonitor) -> None:
        self._index = index
        self._monitor = monitor

    def count(self, filter: IndexFilter) -> int:
        """Return how many notes pass a filter."""
        return self._index.page(filter, "modified", 0).total

    def conditions_of(self, filter: IndexFilter) -> list[Condition]:
        """Return the conditions of a filter. Archives that leave out no note are no condition."""
        archive = filter.archive
        if not filter.archived:
            archive = self._index.folders_with_notes(archive)
        return list(_conditions_of(replace(filter, archive=archive)))

    def unmet(self, filter: IndexFilter) -> str:
        """Return sentences on the conditions that no note meets, with similar or existing values.

        There is none if a note passes the filter, or if notes may be missing from the index. If
        past sessions were left out, a sentence says so in any case. Returns "" without sentences.
        """
        sentences = []
        if not filter.archived and self._index.folders_with_notes(filter.archive):
            sentences.append("Past sessions were not searched; `archive:` includes them.")

        # The phrases and excluded words of a query are not explained here.
        checked = replace(filter, phrases=(), without=(), without_forms=())
        # That past sessions are left out is a setting, and has its sentence already.
        set_by_caller = checked if filter.archived else replace(checked, archive=())
        is_uncertain = self._monitor.is_in_doubt or self._monitor.is_behind
        if is_uncertain or lets_all_pass(set_by_caller) or self.count(checked):
            return " ".join(sentences)

        conditions = list(_conditions_of(set_by_caller))
        sentences += self._unmet_tags(set_by_caller)
        sentences += self._unmet_fields(conditions)
        if not sentences:
            all_conditions = ", ".join(map(str, conditions))
            sentences.append(f"No note matches all of {all_conditions}.")
        return " ".join(sentences)

    def _unmet_tags(self, filter: IndexFilter) -> Iterator[str]:
        """Yield a sentence with suggestions for each tag of a filter that no note has."""
        for key, value in {**filter.tags, **filter.all_tags}.items():
            if self.count(IndexFilter(tags={key: value})):
                continue
            tag = f"{key}/{value}" if value else key
            suggestions = _suggestions(tag, self._index.tag_counts(), mark="#")
            yield f"No note has #{tag}{suggestions}."

    def _unmet_fields(self, conditions: Iterable[Condition]) -> Iterator[str]:
        """Yield a sentence for each condition that no note meets; tags are left out."""
        for condition in conditions:
            if condition.label == "tag" or self.count(condition.added_to(IndexFilter())):
                continue
            suggestions = _suggestions(condition.value, self._existing_values(condition.label))
            yield f"No note matches {condition}{suggestions}."

    def _existing_values(self, label: str) -> list[str]:
        """Return the types or the folders of all notes, by the label; nothing for another label."""
        values: set[str] = set()
        if label == "type":
            values = {row.type for row in self._index.rows().values()}
        elif label == "path":
            paths = [row.path for row in self._index.rows().values()]
            values = {f"{path.rpartition('/')[0]}/" for path in paths}
        return sorted(values - {"", "/"})


def _conditions_of(filter: IndexFilter) -> Iterator[Condition]:
    """Yield the conditions of a filter: its fields that are not empty."""
    for field, label in _LABELS.items():
        value = getattr(filter, field)
        if not value:
            continue
        # The field itself if it has no modifier, so that `fields` has one item.
        modifier = _MODIFIERS.get(field, field)
        is_searched_archive = field == "archive" and filter.archived
        yield Condition(
            label=field if is_searched_archive else label,
            value=_as_text(field, value, requires_all=filter.require_all),
            fields={field: value, modifier: getattr(filter, modifier)},
        )


def _as_text(field: str, value: Any, *, requires_all: bool) -> str:
    """Return the value of a field of a filter as people read it."""
    if isinstance(value, str):
        return value

    parts: Iterable[str] = value
    if isinstance(value, Mapping):
        parts = [_pair_as_text(key, text) for key, text in value.items()]
    is_any_enough = field in ("without", "archive") or (field == "tags" and not requires_all)
    return (" or " if is_any_enough else " and ").join(parts)


def _pair_as_text(key: str, value: str) -> str:
    """Return a tag or property as people read it. The value "" stands for any value."""
    return f"{key}={value}" if value else key


def _suggestions(value: str, names: Iterable[str], *, mark: str = "") -> str:
    """Return the end of a sentence, with up to 3 of the names, each with `mark` before it.

    They are names similar to `value`, else names that begin with its first folder, else any. The
    result is "" without names.
    """
    names_by_key = {compare_key(name): name for name in names}
    key_of_value = compare_key(value)
    similar = get_close_matches(key_of_value, names_by_key, _MAX_SUGGESTIONS, 0.6)
    if not similar:
        beginning = key_of_value.partition("/")[0]
        similar = [key for key in names_by_key if key.startswith(beginning)]

    keys = similar or list(names_by_key)
    if not keys:
        return ""
    shown_names = [names_by_key[key][:_MAX_SUGGESTION_CHARACTERS] for key in keys]
    listed = ", ".join(f"{mark}{name}" for name in shown_names[:_MAX_SUGGESTIONS])
    return f"; {'similar' if similar else 'existing'}: {listed}"
