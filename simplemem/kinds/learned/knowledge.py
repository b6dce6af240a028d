"""The knowledge of one store: saved, found, linked and superseded, each change one step of the history. How often an
entry was read, and when last, stands in `.simplemem/state/access.jsonl`, never in a note."""

from __future__ import annotations

import time
import uuid
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar, Unpack

from simplemem.errors import Ambiguous, Conflict, Invalid, NotFound
from simplemem.kinds.kind import ChangeSet, Keeper, Kind, Shelf, StateLog, clean_text
from simplemem.kinds.learned import entry as entries
from simplemem.kinds.learned.entry import FOLDER, LEARNED, KnowledgeEntry
from simplemem.memory import By, Filter, Hit
from simplemem.note.names import path_of
from simplemem.note.properties import set_property
from simplemem.note.tags import tags_for_new_note
from simplemem.store import falling_scores, now

if TYPE_CHECKING:
    from simplemem.kinds.learned.analysis import Contradiction
    from simplemem.store import EnhancedStore

T = TypeVar("T")
_MOST_CHARACTERS: Final = 10_000
_FLOOR: Final = 0.35  # of the best score; what is below answers another question
_LEAST_PREFIX: Final = 3  # letters of an id
Found = tuple[list[tuple[T, Hit]], str, str]
"""What a search found, best first; how, and what was missing."""
Related = dict[str, list[tuple[str, KnowledgeEntry]]]
"""For entries by their paths, their relations: the words, and the entry they lead to."""
Reads = dict[str, tuple[int, str]]
"""By the ids of entries, how often each was read, and when last (UTC)."""
NEVER: Final = (0, "")


class Knowledge(Keeper):
    """What is known in one vault."""

    def __init__(self, store: EnhancedStore) -> None:
        super().__init__(store)
        self.shelf = Shelf(store.bench, LEARNED)
        self.took: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=1000))
        """Milliseconds of the last answers of each tool in this process."""
        self._reads: StateLog[Reads] = StateLog(store.bench, "state/access.jsonl", dict, _count_line)

    def entries(self) -> list[KnowledgeEntry]:
        """Every entry, the oldest first."""
        with self.shelf.reading():
            return list(self.shelf.in_order())

    def reads(self) -> Reads:
        """How often each entry was read."""
        return self._reads.state()

    def count(self, ids: Collection[str]) -> None:
        """Note that these were read just now."""
        if ids:
            self._reads.add({"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "ids": list(ids)})

    def find(self, ref: str) -> KnowledgeEntry:
        """The entry of this id, of an id that begins so, or of this name."""
        return _pick(self.entries(), ref)

    def leading_to(self, some: Sequence[KnowledgeEntry]) -> Related:
        """The relations of some entries to others."""
        links = [(entry, tie) for entry in some for tie in entry.ties]
        meant = self.bench.meant([(tie.link, entry.path) for entry, tie in links])
        found: Related = {entry.path: [] for entry in some}
        for (entry, tie), path in zip(links, meant, strict=True):
            if path in self.shelf.items:
                found[entry.path].append((tie.type, self.shelf.items[path]))
        return found

    def shown(self, some: Sequence[KnowledgeEntry]) -> list[dict[str, Any]]:
        """Entries with the fields that clients know, and the names of their notes."""
        reads, related, shown = self.reads(), self.leading_to(self.entries()), list[dict[str, Any]]()
        said: dict[str, list[str]] = defaultdict(list)
        for one in self.entries() if some else ():
            for words, other in related.get(one.path, ()):
                said[one.path].append(f'this {words.replace("_", " ")} "{other.headline}" ({other.id})')
                said[other.path].append(f'"{one.headline}" ({one.id}) {words.replace("_", " ")} this')
        for e in some:
            count, last = reads.get(e.id, NEVER)
            others = dict.fromkeys(other.id for _, other in related.get(e.path, ()))
            facts: dict[str, Any] = {"id": e.id, "type": e.type, "content": e.content, "context": e.context}
            facts |= {"confidence": e.confidence, "verified": e.verified, "tags": list(e.tags)}
            facts |= {"timestamp": e.created, "accessCount": count, "lastAccessed": last or None}
            facts |= {"relatedIds": list(others), "name": e.name}
            facts |= {"relations": said[e.path]} if e.path in said else {}
            shown.append(facts | ({"status": "superseded", "supersededBy": e.superseded_by} if e.is_superseded else {}))
        return shown

    def search(
        self, query: str, *, kind: str = "", least_confidence: float = 0.0, limit: int = 10
    ) -> Found[KnowledgeEntry]:
        """The entries that answer a question, superseded ones behind all others: none that is far from the best."""
        standing, superseded = dict[str, KnowledgeEntry](), dict[str, KnowledgeEntry]()
        for each in self.entries():
            if kind in ("", each.type) and (each.confidence or 0.0) >= least_confidence:
                (superseded if each.is_superseded else standing)[each.path] = each
        told = {"knowledge_type": kind} if kind else {}
        hits, method, degraded = hits_of_kind(self.store, LEARNED, standing, query, limit, told)
        if superseded and len(hits) < limit:
            hits += hits_of_kind(self.store, LEARNED, superseded, query, limit - len(hits), told)[0]
        least = _FLOOR * max((hit.score for _, hit in hits), default=0.0) if query.strip() else 0.0
        answers = [(entry, hit) for entry, hit in hits if hit.score >= least]
        return with_falling_scores(answers), method, degraded

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
    ) -> tuple[KnowledgeEntry, list[KnowledgeEntry], list[str]]:
        """Keep what was learned, as a note. Returns the entry, those that said the same before, and warnings."""
        said, where = _clean(content, "content"), _clean(context, "context")
        if not said:
            raise Invalid("the content is empty")
        legal, warnings = list[str](), list[str]()
        for tag in tags:
            try:
                legal += tags_for_new_note([tag])[0]
            except Invalid as refused:
                legal.append(str(refused.details.get("proposed", "tag")))
                warnings.append(f"the tag {tag!r} is kept as {legal[-1]!r}: a tag has letters, digits, _, - and / only")
        legal = list(dict.fromkeys(legal))
        properties: dict[str, Any] = {"tags": legal, "id": str(uuid.uuid4()), "knowledge_type": kind}
        properties |= {"confidence": int(confidence) if confidence in (0, 1) else confidence, "verified": verified}
        text = LEARNED.render(properties, entries.body_of(said, where), now())
        slug, new = f"{FOLDER}/{kind}/{entries.slug_of(said)}", entries.read_entry(f"{FOLDER}/{kind}/x.md", text)

        def draft(step: ChangeSet) -> tuple[str, list[KnowledgeEntry]]:
            path = self.free(step, slug, between="-")
            step.put(path, text)
            every = self.shelf.in_order()
            return path, [e for e in every if (e.type, e.content, e.context) == (kind, new.content, new.context)]

        (path, twins), carried = self.shelf.change(draft, By(tool="save_knowledge") | by)
        return self.shelf.items[path], twins, [*warnings, *carried.warnings]

    def link(
        self, source: str, target: str, relationship: str = "relates_to", **by: Unpack[By]
    ) -> tuple[KnowledgeEntry, KnowledgeEntry, bool]:
        """Relate an entry to another. Returns both, and whether that was new."""
        kind = " ".join(relationship.split()) or "relates_to"

        def draft(step: ChangeSet) -> tuple[KnowledgeEntry, KnowledgeEntry, bool]:
            one, other = (_pick(self.shelf.in_order(), ref) for ref in (source, target))
            if one.path == other.path:
                raise Invalid("an entry is not related to itself")
            is_new = (kind, other) not in self.leading_to([one])[one.path]
            if is_new:
                step.put(one.path, entries.with_tie(step.text(one.path), kind, other.name))
            return one, other, is_new

        (one, other, is_new), _ = self.shelf.change(draft, By(tool="link_knowledge") | by)
        return self.shelf.items[one.path], other, is_new

    def supersede(self, found: Iterable[Contradiction], **by: Unpack[By]) -> str:
        """Lay the losers aside as one step; its version. Loser and winner name each other, and when and why."""
        moment, decided = now(), [(*each.verdict, each.data["rule"]) for each in found if each.verdict]

        def draft(step: ChangeSet) -> str:
            for entry in (entry for pair in decided for entry in pair[:2]):
                there = self.shelf.items.get(entry.path)
                if there is None or there.sha256 != entry.sha256:
                    return entry.name  # and nothing is written
            for winner, loser, why, rule in decided:
                step.put(winner.path, entries.with_tie(step.text(winner.path), "supersedes", loser.name))
                properties: dict[str, Any] = {"status": "superseded", "superseded_by": f"[[{winner.name}]]"}
                properties |= {"superseded_at": moment, "superseded_reason": f"{rule}: {why}"}
                if loser.confidence is not None:
                    properties["confidence"] = max(0.1, round(loser.confidence - 0.3, 4))
                for key, value in properties.items():
                    step.put(loser.path, set_property(step.text(loser.path), key, value))
            return ""

        reason = f"{len(decided)} contradictions resolved"
        stale, carried = self.shelf.change(draft, By(tool="auto_resolve_contradictions", reason=reason) | by)
        if stale:
            raise Conflict(f"{stale} has changed since it was looked at", current_sha256=None, hint="Ask again.")
        return carried.written[0].version if carried.written else ""


knowledge_of: Final = Knowledge.of


def hits_of_kind(
    store: EnhancedStore,
    kind: Kind[Any],
    items: Mapping[str, T],
    query: str,
    limit: int,
    told: Mapping[str, str] | None = None,
) -> Found[T]:
    """Which of the `items` (by path) answer a question: those whose headers say what is `told`, then all others.

    Each has the score it has by itself: `with_falling_scores` makes them ready to be shown.
    """
    if not items:
        return [], "words", ""
    hits: dict[str, tuple[T, Hit]] = {}
    notices: list[str] = []  # of each search, "" where it found an answer
    folder, enough = Filter(prefix=f"{kind.folder}/"), min(limit, len(items))
    for narrowed in (*([replace(folder, properties=told)] if told else []), folder, Filter(type=kind.type)):
        size, is_more = limit, True
        while is_more:
            found = store.search(query, filter=narrowed, limit=size, own_scores=True)
            notices += [found.notice] if found.hits else []
            there = {path_of(hit.name): hit for hit in found.hits}
            hits |= {path: (items[path], hit) for path, hit in there.items() if path in items and path not in hits}
            is_more = len(hits) < enough and len(found.hits) >= size
            size *= 4
        if len(hits) >= enough:
            break
    embedder = store.bench.embedder
    method = f"words and meaning ({embedder})" if found.mode != "text" and embedder else "words"
    degraded = found.degraded
    if hits and all(notices):
        degraded = f"{notices[0]} {degraded}".strip()
    return list(hits.values())[:limit], method, degraded


def with_falling_scores(hits: Sequence[tuple[T, Hit]]) -> list[tuple[T, Hit]]:
    """The same hits in the same order, none with a higher score than the one above it."""
    scores = falling_scores(hit.score for _, hit in hits)
    return [(item, replace(hit, score=score)) for (item, hit), score in zip(hits, scores, strict=True)]


def _pick(every: Sequence[KnowledgeEntry], ref: str) -> KnowledgeEntry:
    """The entry that an id, the beginning of one, or a name means."""
    wanted = ref.strip()
    key = wanted.removeprefix("[[").removesuffix("]]").removesuffix(".md").casefold()
    found = (
        [each for each in every if each.id == wanted]
        or [each for each in every if key in (name := each.name.casefold(), name.rpartition("/")[2])]
        or [each for each in every if len(key) >= _LEAST_PREFIX and each.id.casefold().startswith(key)]
    )
    if not found:
        hint = "An id, the first letters of one, or the name of a note in knowledge/."
        raise NotFound(f"Knowledge entry not found: {wanted[:100]}", hint=hint)
    if len(found) > 1:
        candidates = [f"{each.id} ({each.name})" for each in found]
        raise Ambiguous(f"{wanted[:60]} may be any of {len(found)} entries", candidates=candidates)
    return found[0]


def _clean(text: str, what: str) -> str:
    hint = "Nothing was saved or cut. Keep the point, or make several entries and link them."
    return clean_text(text.strip(), what, _MOST_CHARACTERS, hint)


def _count_line(counts: Reads, line: Mapping[str, Any]) -> None:
    """Take one line of the log in. What is not one of ours is passed over."""
    ids, when, times = line.get("ids"), line.get("at"), line.get("n", 1)
    if isinstance(ids, list) and isinstance(when, str) and isinstance(times, int) and 0 < times < 1 << 53:
        for id_ in filter(lambda each: isinstance(each, str), ids):
            count, last = counts.get(id_, NEVER)
            counts[id_] = count + times, max(last, when)
