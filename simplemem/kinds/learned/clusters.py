"""Entries that belong together, and the tags that this suggests. Pure.

A cluster grows around one entry: the most read first, then the surest, then the newest. Its label is made of its own
words, so that nothing is said of it that no note says.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from simplemem.kinds.learned.access import NEVER, Read
from simplemem.kinds.learned.entries import Entry, plain
from simplemem.kinds.learned.likeness import Likeness
from simplemem.note.names import base_name
from simplemem.note.words import STOP_WORDS, words_in_order

_LABEL_WORDS: Final = 4
_LEAST_FOR_TAGS: Final = 3
_MOST_TAGS: Final = 3
_LOOKED_AT: Final = 20_000  # characters of an entry
_OF_A_NAME: Final = 3
_COMMON: Final = frozenset(
    """use used uses using one two new get set see like way need note add make give file files name example also may via etc
    every each own many much several first last still without within always never should must would could well even
    something anything everything thing things""".split()
)


@dataclass(frozen=True, slots=True)
class Cluster:
    """Some entries, the one in the middle first, and words that are theirs more than the others'."""

    members: tuple[Entry, ...]
    words: tuple[str, ...]

    @property
    def center(self) -> Entry:
        return self.members[0]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A tag, and the entries that lack it; `is_known` when the vault has it already."""

    tag: str
    entries: tuple[Entry, ...]
    having: int
    of: int
    is_known: bool


def clusters(
    entries: Sequence[Entry],
    likeness: Likeness,
    read: Mapping[str, Read],
    *,
    threshold: float = 0.75,
    least: int = 2,
    most: int | None = 10,
) -> list[Cluster]:
    """Groups of entries that are alike, the largest first. No entry is in two of them."""
    order = sorted(range(len(entries)), key=lambda k: _weight(entries[k], read), reverse=True)
    spread = _spread(entries)
    taken: set[int] = set()
    found = []
    for seed in order:
        if seed in taken:
            continue
        near = [k for k in likeness.near(seed, threshold) if k not in taken]
        if len(near) + 1 < least:
            continue
        taken.update((seed, *near))
        scores = likeness.to(seed)
        members = [entries[seed], *(entries[k] for k in sorted(near, key=lambda k: (-scores[k], entries[k].name)))]
        found.append(Cluster(tuple(members), _own_words(members, spread, len(entries))))
    found.sort(key=lambda cluster: (-len(cluster.members), cluster.center.name))
    return found[:most]


def _weight(entry: Entry, read: Mapping[str, Read]) -> tuple[int, float, str, str]:
    return read.get(entry.id, NEVER).count, entry.confidence or 0.0, entry.created, entry.name


def _spread(entries: Sequence[Entry]) -> Counter[str]:
    """How many entries have a word."""
    return Counter(word for entry in entries for word in _telling(entry))


def _telling(entry: Entry) -> Counter[str]:
    """The words of an entry that may say what it is about, and how often each stands there; those of its name count more."""
    counts = Counter(words_in_order(plain(entry.text[:_LOOKED_AT])))
    if not entry.is_knowledge:
        counts.update(words_in_order(base_name(entry.path)) * _OF_A_NAME)
    return Counter({word: count for word, count in counts.items() if _may_tell(word)})


def _is_state(tag: str) -> bool:
    """Whether a tag says how far something is, which is nobody else's."""
    return tag.casefold().split("/")[0] in ("status", "state", "todo", "done")


def _may_tell(word: str) -> bool:
    return word not in STOP_WORDS and word not in _COMMON and len(word) > 2 and not any(map(str.isdigit, word))


def _own_words(members: Sequence[Entry], spread: Mapping[str, int], total: int) -> tuple[str, ...]:
    """Words that at least half of the members have: often said here, and by few others, first."""
    said = [_telling(entry) for entry in members]
    having = Counter(word for counts in said for word in counts)
    weight = {
        word: sum(math.log1p(counts[word]) for counts in said) * math.log(1 + total / spread[word])
        for word, count in having.items()
        if count >= max(2, math.ceil(len(members) / 2))
    }
    return tuple(sorted(weight, key=lambda word: (-weight[word], word))[:_LABEL_WORDS])


def suggest_tags(found: Sequence[Cluster], known: Mapping[str, int]) -> list[Suggestion]:
    """Tags for clusters of three and more: what most members are tagged and some are not, and words that most of them have
    and none is tagged with. `known` are the tags of the vault."""
    spelled = {tag.casefold(): tag for tag in known}
    suggested = []
    for cluster in found:
        members = cluster.members
        if len(members) < _LEAST_FOR_TAGS:
            continue
        tagged = Counter(tag.casefold() for entry in members for tag in entry.tags if not _is_state(tag))
        wanted = [tag for tag, count in tagged.most_common() if len(members) / 2 <= count < len(members)]
        have = {part for tag in tagged for part in tag.split("/")}
        new = [word for word in cluster.words if word not in have and word.rstrip("s") not in have]
        wanted += sorted(new, key=lambda word: word not in spelled)  # a tag that there is comes first
        for tag in wanted[:_MOST_TAGS]:
            holds = {entry.id for entry in members if tag in (each.casefold() for each in entry.tags)}
            says = [entry for entry in members if entry.id not in holds and (holds or tag in _telling(entry))]
            if says:
                name = spelled.get(tag, tag)
                suggested.append(Suggestion(name, tuple(says), len(holds), len(members), tag in spelled))
    return suggested
