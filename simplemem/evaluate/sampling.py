"""Questions out of a vault, without a model: each kind as often as the others, the same ones for the same seed. Pure."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from simplemem.errors import SimplememError
from simplemem.evaluate.holding import without
from simplemem.evaluate.mentions import (
    Mention,
    Source,
    Vocabulary,
    asks_something,
    mentions,
    names_in_files,
    telling_sentences,
)
from simplemem.evaluate.pairs import KINDS, Pair, Questions
from simplemem.evaluate.sentences import key_of, plain, sentences, stems_of
from simplemem.index.reconcile import Progress
from simplemem.note.words import words_in_order
from simplemem.search.query import read_query

_MOST_GOLD = 3  # a question that names more notes names none
_LEAST_LEFT = 10  # words that a note must keep, so that it can be found at all
_OF_A_NOTE = 3  # sentences
_STRENGTH = {kind: k for k, kind in enumerate(("title", "alias", "description", "heading", "link", "sentence"))}

Group = Sequence[Mention]
"""Mentions that are one question, the strongest first."""


def sample(
    sources: Sequence[Source], files: Sequence[str], size: int, seed: int, progress: Progress | None = None
) -> Questions:
    """As many questions as there are, at most `size`. `files` are the paths of all files, for links to resolve among."""
    sources = sorted(sources, key=lambda source: source.name)
    chance = random.Random(seed)  # noqa: S311  (repeatable, not secret)
    vocabulary = Vocabulary(sources)
    waiting: dict[str, list[Group]] = {kind: [] for kind in KINDS}
    for group in _named(sources, files, vocabulary, progress):
        waiting[group[0].kind].append(group)
    waiting["sentence"] = list(_said(sources, vocabulary, chance, 3 * size))
    for groups in waiting.values():
        chance.shuffle(groups)
    pairs = sorted(_balanced(waiting, sources, vocabulary, size), key=_in_order)
    return Questions(tuple(pairs), len(sources), seed)


def _in_order(pair: Pair) -> tuple[int, str, str]:
    return KINDS.index(pair.kind), pair.gold[0], pair.question


def _named(
    sources: Sequence[Source], files: Sequence[str], vocabulary: Vocabulary, progress: Progress | None
) -> Iterator[Group]:
    """Titles, aliases, headings, links and descriptions, those that say the same together."""
    by_path = {source.path: source for source in sources}
    by_name = {source.name: source for source in sources}
    named = names_in_files(files)
    groups: dict[str, list[Mention]] = {}
    for done, source in enumerate(sources, 1):
        for mention in mentions(source, named, by_path):
            groups.setdefault(key_of(mention.text), []).append(mention)
        if progress is not None and (done % 50 == 0 or done == len(sources)):
            progress("choosing", done, len(sources))
    for group in groups.values():
        group.sort(key=lambda mention: _STRENGTH[mention.kind])
        first = group[0]
        if len({mention.gold for mention in group}) <= _MOST_GOLD and asks_something(
            first, by_name[first.gold], vocabulary
        ):
            yield group


def _said(sources: Sequence[Source], vocabulary: Vocabulary, chance: random.Random, most: int) -> Iterator[Group]:
    """A few sentences of each note, until there are enough to choose from."""
    by_name = {source.name: source for source in sources}

    @lru_cache(maxsize=2_000)
    def said(name: str) -> list[frozenset[str]]:
        note = by_name[name].read()
        return [stems_of(plain(note.text[start:end])) for _, start, end in sentences(note)]

    found = 0
    for source in chance.sample(sources, len(sources)):
        telling = list(telling_sentences(source, vocabulary, said))
        for mention in chance.sample(telling, min(_OF_A_NOTE, len(telling))):
            yield [mention]
            found += 1
        if found >= most:
            return


def _balanced(
    waiting: Mapping[str, list[Group]], sources: Sequence[Source], vocabulary: Vocabulary, size: int
) -> Iterator[Pair]:
    """The kinds in turn, each time the question whose note was asked for least."""
    by_name = {source.name: source for source in sources}
    asked: dict[str, int] = {}
    most = dict.fromkeys(waiting, -(-3 * size // (2 * len(KINDS))))  # half as many again as its share
    queues = {
        kind: [(0, number, group) for number, group in enumerate(groups)] for kind, groups in waiting.items() if groups
    }
    done = 0
    while queues and done < size:
        for kind in list(queues):
            pair = _next(queues[kind], asked, by_name, vocabulary) if most[kind] else None
            if pair is None:
                del queues[kind]
            elif done < size:
                for name in pair.gold:
                    asked[name] = asked.get(name, 0) + 1
                done += 1
                most[kind] -= 1
                yield pair


def _next(
    queue: list[tuple[int, int, Group]], asked: dict[str, int], by_name: Mapping[str, Source], vocabulary: Vocabulary
) -> Pair | None:
    while queue:
        times, number, group = heapq.heappop(queue)
        now = asked.get(group[0].gold, 0)
        if now > times:
            heapq.heappush(queue, (now, number, group))
        elif (pair := _pair(group, by_name, vocabulary)) is not None:
            return pair
    return None


def _pair(group: Group, by_name: Mapping[str, Source], vocabulary: Vocabulary) -> Pair | None:
    """The question that mentions make; None where it cannot be held out, or nothing would be left to find."""
    kind, question = group[0].kind, group[0].text
    if _narrows(question):
        return None  # a sentence that quotes something does not mean to filter by it
    gold = tuple(sorted({mention.gold for mention in group}))
    held = [mention.held for mention in group if mention.kind != "link" or kind == "link"]
    held = list(dict.fromkeys(held))
    for name in gold:
        try:
            left = without(by_name[name].text, [each for each in held if each.note == name], question, answers=True)
        except SimplememError:
            return None
        if len(words_in_order(left)) < _LEAST_LEFT:
            return None
        shared = stems_of(question) & stems_of(left)
        if kind in ("title", "alias") and not shared:
            return None  # nothing but the name itself tied the name to the note
        if kind == "sentence" and not vocabulary.rare(shared):
            return None  # the note is about something else
    return Pair(kind, question, gold, tuple(held))


def _narrows(question: str) -> bool:
    """Whether a search would take part of it for a filter: a phrase in quotation marks, `-word`, `tag:x`."""
    query = read_query(question)
    return bool(query.phrases or query.without or query.tags or query.type or query.prefix)
