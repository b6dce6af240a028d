"""Themes: groups of similar lessons, the words they share, and the tags that this suggests."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from simplemem.features.lessons.contradictions import Data, Pair
from simplemem.features.lessons.findings import Priority, lesson_labels, make_finding
from simplemem.features.lessons.lesson import Lesson, plain_text
from simplemem.features.lessons.read_counts import NEVER_READ, ReadCounts
from simplemem.note.words import content_words, words_in_order

_MAX_WORDS: Final = 4
_MIN_ERRORS: Final = 3  # of a theme that is a recurring error
_MIN_LARGE_THEME: Final = 5


class Theme(NamedTuple):
    """Similar lessons, and the words that at least half of them have."""

    words: list[str]  # up to four, the most common first
    members: list[Lesson]  # the central one first


def group_by_theme(
    lessons: Sequence[Lesson],
    similar_pairs: Iterable[Pair],
    counts: ReadCounts,
    *,
    min_size: int,
) -> list[Theme]:
    """Return the themes of some lessons, the largest first. No lesson is in two themes.

    A theme is a central lesson and those that are similar to it: first the lesson that was read
    most, else the most confident, else the newest. A theme has at least `min_size` lessons.
    `similar_pairs` are the positions of similar lessons, and `counts` says how often each was read.
    """
    neighbours = _neighbours(similar_pairs)

    def centrality(position: int) -> tuple[int, float, str, str]:
        """Return a sort key that is greater for a lesson that should be the central one."""
        lesson = lessons[position]
        read = counts.get(lesson.id, NEVER_READ)
        confidence = lesson.confidence or 0.0
        return read.times, confidence, lesson.created, lesson.name

    themes: list[Theme] = []
    ungrouped = set(range(len(lessons)))
    for center in sorted(ungrouped, key=centrality, reverse=True):
        if center not in ungrouped:
            continue
        neighbour_positions = sorted(ungrouped & neighbours[center])
        positions = [center, *neighbour_positions]
        if len(positions) < min_size:
            continue

        ungrouped.difference_update(positions)
        members = [lessons[position] for position in positions]
        words = _shared_words(members)
        themes.append(Theme(words, members))
    return sorted(themes, key=lambda theme: -len(theme.members))


def _neighbours(similar_pairs: Iterable[Pair]) -> dict[int, set[int]]:
    """Return, by the position of each lesson, the positions of those that are similar to it.

    The set of a lesson in no pair is empty.
    """
    neighbours: dict[int, set[int]] = defaultdict(set)
    for one, other in similar_pairs:
        neighbours[one].add(other)
        neighbours[other].add(one)
    return neighbours


def _shared_words(members: Sequence[Lesson]) -> list[str]:
    """Return up to four words that at least two lessons and at least half of them have.

    The most common ones come first. Stop words and words of one or two letters do not count.
    """
    counts: Counter[str] = Counter()
    for lesson in members:
        text = plain_text(lesson.text)
        words = content_words(words_in_order(text))
        counts.update(set(words))

    min_count = max(2, len(members) / 2)
    shared = [word for word, count in counts.items() if count >= min_count and len(word) > 2]

    def rank(word: str) -> tuple[int, str]:
        """Return a sort key: the most common words come first."""
        return -counts[word], word

    shared.sort(key=rank)
    return shared[:_MAX_WORDS]


def theme_cluster(theme: Theme) -> Data:
    """Return a theme as fields: its `words`, its `size`, and the labels of its `entries`."""
    return {
        "words": theme.words,
        "size": len(theme.members),
        "entries": lesson_labels(theme.members),
    }


def theme_finding(theme: Theme) -> Data:
    """Return a theme as a finding of the kind "group", "theme" or "recurring error".

    A theme with three errors is a recurring error, the most urgent kind; else one with five lessons
    is a theme.
    """
    kind = "group"
    priority: Priority = "low"
    error_count = sum(lesson.type == "error" for lesson in theme.members)
    if error_count >= _MIN_ERRORS:
        kind = "recurring error"
        priority = "critical"
    elif len(theme.members) >= _MIN_LARGE_THEME:
        kind = "theme"
        priority = "high"

    sentence = f"{len(theme.members)} entries share a topic"
    if theme.words:
        sentence += f": {', '.join(theme.words)}"
    return make_finding(kind, priority, sentence, theme.members, words=theme.words)


def suggest_tags(themes: Iterable[Theme], spellings: Mapping[str, str]) -> list[Data]:
    """Return the words of themes as tags for the members that lack them.

    Each suggestion has the `tag`, whether the vault has it (`known`), how many members have it
    (`having`) `of` how many, and the labels of those that lack it (`entries`). `spellings` has the
    tags of the vault by their lower-case form: a tag that the vault has is spelled as it is there.
    """
    suggestions: list[Data] = []
    for theme in themes:
        for word in theme.words:
            untagged = [lesson for lesson in theme.members if not _has_tag(lesson, word)]
            if not untagged:
                continue
            suggestions.append(
                {
                    "tag": spellings.get(word, word),
                    "known": word in spellings,
                    "having": len(theme.members) - len(untagged),
                    "of": len(theme.members),
                    "entries": lesson_labels(untagged),
                }
            )
    return suggestions


def _has_tag(lesson: Lesson, word: str) -> bool:
    """Return whether a lesson has a lower-case word as a tag, whatever the case of the tag."""
    return word in (tag.casefold() for tag in lesson.tags)
