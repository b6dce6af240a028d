"""Ask every question in a private copy of the vault, with what it must not see held out, and keep what came of it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from simplemem.config import Settings
from simplemem.errors import SimplememError
from simplemem.evaluate.grep import Grep
from simplemem.evaluate.holding import without
from simplemem.evaluate.pairs import Pair
from simplemem.evaluate.scratch import Agree, Read, scratch
from simplemem.index.reconcile import Progress
from simplemem.note.names import name_of
from simplemem.note.privacy import private_reason
from simplemem.note.words import count_tokens
from simplemem.store import EnhancedStore
from simplemem.store.reranking import reranker_of

GREP = "grep -ic"
Shown = Callable[[EnhancedStore, str], str]
"""What an agent is shown of the five best hits."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one question was answered. Grep has no time: it runs in no process of its own here."""

    kind: str
    recall5: float
    recall10: float
    mrr: float
    ms: float | None
    tokens: float


@dataclass(slots=True)
class Measured:
    """All outcomes, by row and in the order of the pairs that were asked."""

    rows: dict[str, list[Outcome]]
    skipped: int = 0  # pairs whose notes are gone, or cannot be held out any more
    private: int = 0  # pairs that would have to be sent to another machine
    degraded: dict[str, Counter[str]] = field(default_factory=dict)  # by row, why it searched with less than it should


def measure(
    read: Read,
    pairs: Sequence[Pair],
    variants: Mapping[str, Settings],
    shown: Shown,
    *,
    limit: int = 10,
    grep: bool = True,
    progress: Progress | None = None,
    agree: Agree = lambda _: None,
) -> Measured:
    """Ask all pairs of every variant, and of grep."""
    measured = Measured({label: [] for label in [*variants, *([GREP] if grep else [])]})
    texts = {source.name: source.text for source in read.sources}
    lines = Grep(texts) if grep else None
    paths = {source.name: source.path for source in read.sources}
    with scratch(read, variants, progress, agree) as copy:
        private = _private_notes(read, variants) if any(map(_sends_texts, copy.stores)) else _none_is_private
        for number, pair in enumerate(pairs):
            if pair.held_out and private({*pair.gold, *(held.note for held in pair.held_out)}):
                measured.private += 1
                continue
            changed = held_out(pair, number, paths, texts)
            if changed is None:
                measured.skipped += 1
                continue
            copy.hold({path: (now, text.encode("utf-8", "surrogatepass")) for path, (now, text) in changed.items()})
            renamed = {name_of(path): name_of(now) for path, (now, _) in changed.items()}
            gold = frozenset(renamed.get(name, name) for name in pair.gold)
            for label, store in zip(variants, copy.stores, strict=True):
                measured.rows[label].append(
                    _asked(store, pair, gold, shown, limit, measured.degraded.setdefault(label, Counter()))
                )
            if lines is not None:
                now_there = {name_of(path): text for path, (_, text) in changed.items()}
                found = lines.ranked(pair.question, now_there, limit)
                tokens = count_tokens(lines.printed(pair.question, found[:5], {**texts, **now_there}))
                measured.rows[GREP].append(_outcome(pair.kind, found, frozenset(pair.gold), None, tokens))
            if progress is not None:
                progress("asking", number + 1, len(pairs))
    return measured


def _sends_texts(store: EnhancedStore) -> bool:
    """Whether a search of this store gives texts to another machine."""
    settings = store.core.settings
    if store.core.embedding.is_remote:
        return True
    if settings.rerank.provider not in ("http", "voyage"):
        return False
    try:
        reranker = reranker_of(settings)
    except SimplememError:
        return False  # it will not be asked
    return reranker is not None and reranker.remote


def _private_notes(read: Read, variants: Mapping[str, Settings]) -> Callable[[Collection[str]], bool]:
    """Whether one of some notes is private where it lies. Its questions are its own words, and while it is asked for it
    may lie under another name, or without the tag that kept it private."""
    rules = [rule for settings in variants.values() for rule in settings.embed.private]
    by_name = {source.name: source for source in read.sources}

    @cache
    def is_private(name: str) -> bool:
        source = by_name.get(name)
        return source is not None and private_reason(source.path, source.read(), rules) is not None

    return lambda names: any(is_private(name) for name in names)


def _none_is_private(_: Collection[str]) -> bool:
    return False


def held_out(
    pair: Pair, number: int, paths: Mapping[str, str], texts: Mapping[str, str]
) -> dict[str, tuple[str, str]] | None:
    """The notes that are other than they are while a pair is asked: by path, the path and the text they have then. None
    when a note is gone, or what is held out cannot be."""
    concerned = dict.fromkeys([held.note for held in pair.held_out] + list(pair.gold if pair.held_out else ()))
    if any(name not in paths for name in (*concerned, *(pair.gold if pair.held_out else ()))):
        return None
    changed = {}
    for place, name in enumerate(concerned):
        held = [each for each in pair.held_out if each.note == name]
        path = now = paths[name]
        if any(each.what == "title" for each in held):
            now = path[: path.rfind("/") + 1] + f"q{number:05d}x{place}.md"  # no word, and nobody's name
        try:
            text = without(texts[name], held, pair.question, answers=name in pair.gold)
        except SimplememError:
            return None
        if now != path or text != texts[name]:
            changed[path] = (now, text)
    return changed


def _asked(
    store: EnhancedStore,
    pair: Pair,
    gold: frozenset[str],
    shown: Shown,
    limit: int,
    degraded: Counter[str],
) -> Outcome:
    tokens = count_tokens(shown(store, pair.question))  # and whatever is read anew after a change, is read by now
    began = time.process_time()
    found = store.search(pair.question, limit=limit)
    ms = 1000 * (time.process_time() - began)
    if found.degraded:
        degraded[found.degraded] += 1
    return _outcome(pair.kind, [hit.name for hit in found.hits], gold, ms, tokens)


def _outcome(kind: str, found: Sequence[str], gold: frozenset[str], ms: float | None, tokens: int) -> Outcome:
    first = next((place for place, name in enumerate(found, 1) if name in gold), 0)
    five, ten = (len(gold & set(found[:most])) / len(gold) if gold else 0.0 for most in (5, 10))
    return Outcome(kind, five, ten, 1 / first if first else 0.0, ms, tokens)
