"""The knowledge of one store: saved, found, linked and laid aside. Every change is one step of the history, which one undo
takes back. What is read is what the vault holds now, whoever wrote it.

How often an entry was read, and when last, stands in `.simplemem/state/access.jsonl`, never in a note.
"""

from __future__ import annotations

import re
import time
import uuid
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, Unpack

from simplemem.errors import Ambiguous, Conflict, Invalid, NotFound, TooLong
from simplemem.kinds.kind import By, ChangeSet, change, one_of
from simplemem.kinds.learned import entry as entries
from simplemem.kinds.learned.counts import Latencies
from simplemem.kinds.learned.entry import FOLDER, KIND, LEARNED, MOST_CHARACTERS, SUPERSEDED, TYPES, KnowledgeEntry
from simplemem.kinds.shelf import Shelf
from simplemem.kinds.state_log import StateLog
from simplemem.memory import Filter
from simplemem.note.names import path_of
from simplemem.note.properties import set_property
from simplemem.note.tags import parse_tag_request, tags_for_new_note
from simplemem.store import Carried, now

if TYPE_CHECKING:
    from simplemem.kinds.learned.analysis import Verdict
    from simplemem.store import EnhancedStore

R = TypeVar("R")
MOST_HITS: Final = 10
_LEAST_PREFIX: Final = 3
_SECTIONS: Final = re.compile(r"## (?:Context|Relations)\b")
_LESS: Final = 0.3  # confidence that what is superseded loses,
_FLOOR: Final = 0.1  # and what is left of it at least

Related = dict[str, list[tuple[str, KnowledgeEntry]]]
"""For entries by their paths, their relations: the words, and the entry they lead to."""


@dataclass(frozen=True, slots=True)
class Reads:
    """How often something was read, and when last (UTC); "" for never."""

    count: int = 0
    last: str = ""


NEVER: Final = Reads()


class EntryHit(NamedTuple):
    """An entry that answers a question, how well, and where in it."""

    entry: KnowledgeEntry
    score: float
    snippet: str


class EntriesFound(NamedTuple):
    """The answer to a question. `method` says how it was found; `degraded` what was missing, "" when nothing was."""

    hits: list[EntryHit]
    method: str
    degraded: str


class SavedEntry(NamedTuple):
    """An entry that was saved. `twins` say the very same and were there before."""

    entry: KnowledgeEntry
    twins: list[KnowledgeEntry]
    warnings: tuple[str, ...]


class Knowledge:
    """What is known in one vault. May be used from several threads."""

    def __init__(self, store: EnhancedStore) -> None:
        self._held = weakref.ref(store)  # whoever holds the store may let it go
        self.bench = store.bench
        self.shelf = Shelf(store.bench, LEARNED)
        self.latencies = Latencies()
        self._reads: StateLog[dict[str, Reads]] = StateLog(
            store.bench, "state/access.jsonl", dict, _count_line, lines=_lines_of
        )

    @property
    def _store(self) -> EnhancedStore:
        store = self._held()
        assert store is not None
        return store

    # -- reading

    def entries(self) -> list[KnowledgeEntry]:
        """Every entry, in the order in which they were made."""
        self.bench.catch_up()
        with self.shelf.lock:
            return list(self.shelf.fresh(self.shelf.in_order))

    def reads(self) -> Mapping[str, Reads]:
        """How often each entry was read, by its id."""
        return self._reads.state()

    def count(self, ids: Collection[str]) -> None:
        """Note that these were read just now."""
        if ids:
            self._reads.add({"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "ids": list(ids)})

    def find(self, ref: str) -> KnowledgeEntry:
        """The entry of this id, of an id that begins so, or of this name."""
        return _pick(self.entries(), ref)

    def leading_to(self, some: Sequence[KnowledgeEntry], among: Iterable[KnowledgeEntry] | None = None) -> Related:
        """The relations of some entries to others: all there are, or those `among` some."""
        at = self.shelf.items if among is None else {entry.path: entry for entry in among}
        links = [(entry, tie) for entry in some for tie in entry.ties]
        meant = self.bench.meant([(tie.target, entry.path) for entry, tie in links])
        found: Related = {entry.path: [] for entry in some}
        for (entry, tie), path in zip(links, meant, strict=True):
            if path in at:
                found[entry.path].append((tie.relationship, at[path]))
        return found

    def leading_nowhere(self, some: Sequence[KnowledgeEntry]) -> dict[str, list[str]]:
        """For each entry by its path, what its relations and its header name that is no note."""
        wanted = [(tie.target, entry.path) for entry in some for tie in entry.ties]
        wanted += [(entry.superseded_by, entry.path) for entry in some if entry.superseded_by]
        found: dict[str, list[str]] = {}
        for (target, source), path in zip(wanted, self.bench.meant(wanted), strict=True):
            if path is None:
                found.setdefault(source, []).append(target)
        return found

    def search(
        self, query: str, *, kind: str = "", least_confidence: float = 0.0, limit: int = MOST_HITS
    ) -> EntriesFound:
        """The entries that answer a question, best first, those that are superseded behind all others. Each hit counts as
        a read."""
        every = [entry for entry in self.entries() if kind in ("", entry.type)]
        passing = {
            entry.path: entry
            for entry in every
            if not least_confidence or (entry.confidence or 0.0) >= least_confidence
        }
        told = {"knowledge_type": kind} if kind and all(entry.is_typed for entry in every) else {}
        filters = [Filter(prefix=f"{FOLDER}/", properties=told)]
        if not all(path.startswith(f"{FOLDER}/") for path in passing):
            filters.append(Filter(type=KIND, properties=told))
        method, degraded = "words and meaning", ""
        best: dict[str, EntryHit] = {}
        wanted = min(limit, len(passing))
        for narrowed in filters if wanted else ():
            size = wanted if len(passing) == len(every) else 5 + 3 * wanted * len(every) // len(passing) // 2
            while True:
                found = self._store.search(query, filter=narrowed, limit=size)
                method, degraded = self._method(found.mode, found.degraded), found.degraded
                for hit in found.hits:
                    if (entry := passing.get(path_of(hit.name))) is not None:
                        snippet = _SECTIONS.split(hit.snippet)[0].strip()
                        best.setdefault(entry.path, EntryHit(entry, hit.score, snippet))
                if sum(not hit.entry.is_superseded for hit in best.values()) >= wanted or len(found.hits) < size:
                    break
                size *= 4
        hits = sorted(best.values(), key=lambda hit: hit.entry.is_superseded)[:limit]
        self.count([hit.entry.id for hit in hits])
        return EntriesFound(hits, method, degraded)

    def _method(self, mode: str, degraded: str) -> str:
        embedder = self.bench.embedder
        if mode == "text" or not embedder or degraded.startswith("Searched by words only"):
            return "words"
        return f"words and meaning ({embedder})"

    # -- changing

    def save(
        self,
        kind: str,
        content: str,
        *,
        context: str = "",
        confidence: float,
        verified: bool = False,
        tags: Sequence[str] = (),
        **by: Unpack[By],
    ) -> SavedEntry:
        """Keep something that was learned, as a note of its own."""
        said, where = entries.clean_text(content, "content"), entries.clean_text(context, "context")
        _refuse(kind, said, where, confidence)
        body, said, more = entries.body_of(said, where)
        legal, warnings = _legal_tags(tags)
        properties = entries.properties_of(str(uuid.uuid4()), kind, confidence, verified, legal)
        slug = f"{FOLDER}/{kind}/{entries.slug_of(said)}"

        def draft(step: ChangeSet) -> tuple[str, list[KnowledgeEntry]]:
            taken = {path.casefold() for path in self.shelf.items}
            paths = (path_of(slug if number == 1 else f"{slug}-{number}") for number in range(1, 100_000))
            path = next(path for path in paths if path.casefold() not in taken and not self.bench.is_taken(path))
            step.put(path, LEARNED.render(properties | more, body, now()))
            every = self.shelf.in_order()
            return path, [e for e in every if (e.type, e.content, e.context) == (kind, said, where)]

        (path, twins), carried = self._change(draft, By(tool="save_knowledge") | by)
        return SavedEntry(self.shelf.items[path], twins, (*warnings, *carried.warnings))

    def link(
        self,
        source: str,
        target: str,
        relationship: str = "relates_to",
        **by: Unpack[By],
    ) -> tuple[KnowledgeEntry, KnowledgeEntry, bool]:
        """Relate an entry to another. Returns both, and whether that was new."""
        kind = " ".join(relationship.split()) or "relates_to"

        def draft(step: ChangeSet) -> tuple[KnowledgeEntry, KnowledgeEntry, bool]:
            one, other = (_pick(self.shelf.in_order(), ref) for ref in (source, target))
            if one.path == other.path:
                raise Invalid("an entry is not related to itself")
            related = self.leading_to([one])[one.path]
            is_new = all(said != kind or there.path != other.path for said, there in related)
            if is_new:
                step.put(one.path, entries.with_tie(step.text(one.path), kind, other.name))
            return one, other, is_new

        (one, other, is_new), _ = self._change(draft, By(tool="link_knowledge") | by)
        return self.shelf.items[one.path], other, is_new

    def supersede(
        self,
        verdicts: Sequence[Verdict],
        **by: Unpack[By],
    ) -> str:
        """Lay the losers aside: each says by what it is superseded, when and why, and is trusted less; each winner says what
        it supersedes. One step; its version."""
        moment = now()

        def draft(step: ChangeSet) -> str:
            """The name of an entry that is another than the verdicts are about; nothing is written then."""
            for entry in (entry for verdict in verdicts for entry in (verdict.winner, verdict.loser)):
                there = self.shelf.items.get(entry.path)
                if there is None or there.sha256 != entry.sha256:
                    return entry.name
            for verdict in verdicts:
                winner, loser = verdict.winner, verdict.loser
                step.put(winner.path, entries.with_tie(step.text(winner.path), "supersedes", loser.name))
                properties: dict[str, Any] = {
                    "status": SUPERSEDED,
                    "superseded_by": f"[[{winner.name}]]",
                    "superseded_at": moment,
                    "superseded_reason": f"{verdict.contradiction.rule}: {verdict.why}",
                }
                if loser.confidence is not None:
                    properties["confidence"] = less_sure(loser.confidence)
                for key, value in properties.items():
                    step.put(loser.path, set_property(step.text(loser.path), key, value))
            return ""

        why = f"{len(verdicts)} contradictions resolved"
        stale, carried = self._change(draft, By(tool="auto_resolve_contradictions", reason=why) | by)
        if stale:
            raise Conflict(f"{stale} has changed since it was looked at", current_sha256=None, hint="Ask again.")
        return carried.written[0].version if carried.written else ""

    def reset(self, **by: Unpack[By]) -> tuple[int, str]:
        """Put every entry into the trash, as one step. How many there were, and its version."""

        def draft(step: ChangeSet) -> int:
            for path in self.shelf.items:
                step.drop(path)
            return len(self.shelf.items)

        count, carried = self._change(draft, By(tool="reset") | by)
        return count, carried.written[0].version if carried.written else ""

    def _change(self, draft: Callable[[ChangeSet], R], by: By) -> tuple[R, Carried]:
        return change([self.shelf], lambda: ChangeSet(self.bench), draft, by)


def _pick(every: Sequence[KnowledgeEntry], ref: str) -> KnowledgeEntry:
    """The entry that an id, the beginning of one, or a name means."""
    wanted = ref.strip()
    if not wanted:
        raise Invalid("an id is needed")
    key = wanted.removeprefix("[[").removesuffix("]]").removesuffix(".md").casefold()
    found = [entry for entry in every if entry.id == wanted]
    found = found or [entry for entry in every if key in (name := entry.name.casefold(), name.rsplit("/", 1)[-1])]
    if not found and len(wanted) >= _LEAST_PREFIX:
        found = [entry for entry in every if entry.id.casefold().startswith(wanted.casefold())]
    if not found:
        raise NotFound(
            f"Knowledge entry not found: {wanted[:100]}",
            hint="An id, the first letters of one, or the name of a note in knowledge/.",
        )
    if len(found) > 1:
        raise Ambiguous(
            f"{wanted[:60]} may be any of {len(found)} entries",
            candidates=[f"{entry.id} ({entry.name})" for entry in found],
        )
    return found[0]


def _legal_tags(tags: Sequence[str]) -> tuple[list[str], list[str]]:
    """Tags as Obsidian takes them, and what is to be said of those that were spelled otherwise."""
    legal: list[str] = []
    warnings: list[str] = []
    for tag in tags:
        try:
            tags_for_new_note([tag])
            legal.append(tag)
        except Invalid as refused:
            proposed = refused.details.get("proposed")
            if not isinstance(proposed, str):
                raise
            legal.append(proposed)
            warnings.append(f"the tag {tag!r} is kept as {proposed!r}: a tag has letters, digits, _, - and / only")
    return tags_for_new_note(parse_tag_request(legal))[0] if legal else [], warnings


def _refuse(kind: str, content: str, context: str, confidence: float) -> None:
    if kind not in TYPES:
        raise Invalid(f"there is no type {kind[:40]!r}", hint=f"Types are: {', '.join(TYPES)}.")
    if not content:
        raise Invalid("the content is empty")
    if not 0 <= confidence <= 1:
        raise Invalid(f"a confidence is a number from 0 to 1, not {confidence:g}")
    for what, text in (("content", content), ("context", context)):
        if len(text) > MOST_CHARACTERS:
            raise TooLong(
                f"the {what} has {len(text):,} characters; {MOST_CHARACTERS:,} are allowed",
                hint="Nothing was saved or cut. Keep the point, or make several entries and link them.",
            )


def less_sure(confidence: float) -> float:
    """What is left of the confidence in something that is superseded."""
    return max(_FLOOR, round(confidence - _LESS, 4))


def _count_line(counts: dict[str, Reads], line: Mapping[str, Any]) -> None:
    """Take one line of the log in. What is not one of ours is passed over."""
    ids, when, times = line.get("ids"), line.get("at"), line.get("n", 1)
    if not isinstance(ids, list) or not isinstance(when, str) or not isinstance(times, int) or not 0 < times < 1 << 53:
        return
    for id_ in ids:
        if isinstance(id_, str):
            known = counts.get(id_, NEVER)
            counts[id_] = Reads(known.count + times, max(known.last, when))


def _lines_of(counts: Mapping[str, Reads]) -> Iterable[Mapping[str, Any]]:
    return ({"at": reads.last, "ids": [id_], "n": reads.count} for id_, reads in counts.items())


def knowledge_of(store: EnhancedStore) -> Knowledge:
    """The knowledge of a store: one for all who ask."""
    return one_of(store, Knowledge)
