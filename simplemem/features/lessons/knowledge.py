"""The knowledge of one store: saved, found, linked and superseded, each change one step of the history. How often an
entry was read, and when last, stands in `.simplemem/state/access.jsonl`, never in a note."""

from __future__ import annotations

import time
import uuid
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, Unpack

from simplemem.errors import Ambiguous, Conflict, Invalid, NotFound
from simplemem.features.collection import ChangeSet, NoteCollection
from simplemem.features.event_log import EventLog
from simplemem.features.lessons import entry as entries
from simplemem.features.lessons.entry import FOLDER, LEARNED, KnowledgeEntry
from simplemem.features.note_type import NoteType
from simplemem.features.service import FeatureService
from simplemem.features.text import clean_text
from simplemem.models import AuthorArgs, Filter, Hit
from simplemem.note.names import path_of
from simplemem.note.properties import remove_property
from simplemem.note.tag_changes import tags_for_new_note
from simplemem.store import falling_scores, now

if TYPE_CHECKING:
    from simplemem.features.lessons.contradictions import Contradiction
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


DEFAULT_CONFIDENCE: Final = 0.7
"""Of a new entry whose confidence nobody gave."""
SUPERSEDING: Final = ("supersedes", "superseded_by")
"""Relations after which one of two entries no longer holds."""
_MARKS: Final = ("status", "superseded_by", "superseded_at", "superseded_reason")


class EntryChange(NamedTuple):
    """What of an entry is to be another. None stays as it is."""

    content: str | None = None
    context: str | None = None
    confidence: float | None = None
    verified: bool | None = None
    tags: tuple[str, ...] | None = None


class Knowledge(FeatureService):
    """What is known in one vault."""

    def __init__(self, store: EnhancedStore) -> None:
        super().__init__(store)
        self.collection = NoteCollection(store.extension, LEARNED)
        self.took: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=1000))
        """Milliseconds of the last answers of each tool in this process."""
        self._reads: EventLog[Reads] = EventLog(
            store.extension, "state/access.jsonl", dict, _count_line
        )

    def entries(self) -> list[KnowledgeEntry]:
        """Every entry, the oldest first."""
        with self.collection.reading():
            return list(self.collection.in_order())

    def reads(self) -> Reads:
        """How often each entry was read."""
        return self._reads.state()

    def count(self, ids: Collection[str]) -> None:
        """Note that these were read just now."""
        if ids:
            self._reads.add(
                {"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "ids": list(ids)}
            )

    def find(self, ref: str) -> KnowledgeEntry:
        """The entry of this id, of an id that begins so, or of this name."""
        return _pick(self.entries(), ref)

    def leading_to(self, some: Sequence[KnowledgeEntry]) -> Related:
        """The relations of some entries to others."""
        links = [(entry, tie) for entry in some for tie in entry.ties]
        meant = self.extension.resolve_links([(tie.link, entry.path) for entry, tie in links])
        found: Related = {entry.path: [] for entry in some}
        for (entry, tie), path in zip(links, meant, strict=True):
            if path in self.collection.items:
                found[entry.path].append((tie.type, self.collection.items[path]))
        return found

    def shown(self, some: Sequence[KnowledgeEntry]) -> list[dict[str, Any]]:
        """Entries with the fields that clients know, and the names of their notes."""
        reads, related, shown = (
            self.reads(),
            self.leading_to(self.entries()),
            list[dict[str, Any]](),
        )
        said: dict[str, list[str]] = defaultdict(list)
        for one in self.entries() if some else ():
            for words, other in related.get(one.path, ()):
                said[one.path].append(
                    f'this {words.replace("_", " ")} "{other.headline}" ({other.id})'
                )
                said[other.path].append(
                    f'"{one.headline}" ({one.id}) {words.replace("_", " ")} this'
                )
        for e in some:
            count, last = reads.get(e.id, NEVER)
            others = dict.fromkeys(other.id for _, other in related.get(e.path, ()))
            facts: dict[str, Any] = {
                "id": e.id,
                "type": e.type,
                "content": e.content,
                "context": e.context,
            }
            facts |= {"confidence": e.confidence, "verified": e.verified, "tags": list(e.tags)}
            facts |= {"timestamp": e.created, "accessCount": count, "lastAccessed": last or None}
            facts |= {"relatedIds": list(others), "name": e.name}
            facts |= {"relations": said[e.path]} if e.path in said else {}
            shown.append(
                facts
                | (
                    {"status": "superseded", "supersededBy": e.superseded_by}
                    if e.is_superseded
                    else {}
                )
            )
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
        confidence: float | None = None,
        verified: bool | None = None,
        tags: Sequence[str] = (),
        **by: Unpack[AuthorArgs],
    ) -> tuple[KnowledgeEntry, list[KnowledgeEntry], list[str]]:
        """Keep what was learned, as a note, or bring the entry up to date that says the same.

        An entry that holds says the same if its type and content are these, and its context is not
        another one. It then gets the confidence, `verified` and context that are given, and the tags
        beside its own.

        Returns the entry, those that said the same before (as they were), and warnings.
        """
        said, where = _clean(content, "content"), _clean(context, "context")
        if not said:
            raise Invalid("the content is empty")
        legal, warnings = _legal_tags(tags)
        properties: dict[str, Any] = {
            "tags": legal,
            "id": str(uuid.uuid4()),
            "knowledge_type": kind,
        }
        properties["confidence"] = _as_number(
            DEFAULT_CONFIDENCE if confidence is None else confidence
        )
        properties["verified"] = bool(verified)
        text = LEARNED.render(properties, entries.body_of(said, where), now())
        slug, new = (
            f"{FOLDER}/{kind}/{entries.slug_of(said)}",
            entries.read_entry(f"{FOLDER}/{kind}/x.md", text),
        )

        def draft(step: ChangeSet) -> tuple[str, list[KnowledgeEntry]]:
            twins = [
                entry
                for entry in self.collection.in_order()
                if entry.is_own
                and (entry.type, entry.content) == (kind, new.content)
                and (not new.context or entry.context in ("", new.context))
            ]
            standing = [entry for entry in twins if not entry.is_superseded]
            if not standing:
                path = self.free_path(step, slug, between="-")
                step.put(path, text)
                return path, twins

            known = next((entry for entry in standing if entry.context == new.context), standing[0])
            more_tags = [tag for tag in legal if tag not in known.tags]
            change = EntryChange(
                context=where or None,
                confidence=confidence,
                verified=verified,
                tags=(*known.tags, *more_tags) if more_tags else None,
            )
            self._apply(step, known, change)
            return known.path, twins

        (path, twins), carried = self.collection.change(
            draft, AuthorArgs(tool="save_knowledge") | by
        )
        return self.collection.items[path], twins, [*warnings, *carried.warnings]

    def update(
        self, ref: str, change: EntryChange, **by: Unpack[AuthorArgs]
    ) -> tuple[KnowledgeEntry, list[str]]:
        """Correct an entry: what is None in the change stays. Its id and its relations stay too.

        Returns the entry as it is now, and warnings.
        """
        if all(value is None for value in change):
            raise Invalid(
                "no change given", hint="Give content, context, confidence, verified or tags."
            )
        warnings = list[str]()
        if change.tags is not None:
            legal, warnings = _legal_tags(change.tags)
            change = change._replace(tags=tuple(legal))
        if change.content is not None:
            change = change._replace(content=_clean(change.content, "content"))
            if not change.content:
                raise Invalid("the content is empty", hint="delete_knowledge removes an entry.")
        if change.context is not None:
            change = change._replace(context=_clean(change.context, "context"))

        def draft(step: ChangeSet) -> str:
            entry = _pick(self.collection.in_order(), ref)
            self._apply(step, entry, change)
            return entry.path

        path, carried = self.collection.change(draft, AuthorArgs(tool="update_knowledge") | by)
        return self.collection.items[path], [*warnings, *carried.warnings]

    def _apply(self, step: ChangeSet, entry: KnowledgeEntry, change: EntryChange) -> None:
        """Write the changed parts of an entry; nothing where all is as it was."""
        content = entry.content if change.content is None else change.content
        context = entry.context if change.context is None else change.context
        if (content, context) != (entry.content, entry.context):
            text = remove_property(
                step.text(entry.path), "context"
            )  # where a person may have put it
            step.put(entry.path, entries.reworded(text, content, context))
        if change.tags is not None and change.tags != entry.tags:
            step.set(entry.path, tags=[*change.tags])
        if change.confidence is not None and change.confidence != entry.confidence:
            step.set(entry.path, confidence=_as_number(change.confidence))
        if change.verified is not None and change.verified != entry.verified:
            step.set(entry.path, verified=change.verified)

    def delete(
        self, ref: str, **by: Unpack[AuthorArgs]
    ) -> tuple[KnowledgeEntry, list[KnowledgeEntry], str]:
        """Put an entry into the trash.

        Returns the entry, those that have a relation to it, and the version that undoes the deletion.
        """

        def draft(step: ChangeSet) -> tuple[KnowledgeEntry, list[KnowledgeEntry]]:
            every = self.collection.in_order()
            entry = _pick(every, ref)
            leading = self.leading_to(every)
            related = [
                other
                for other in every
                if any(to.path == entry.path for _, to in leading[other.path])
            ]
            step.drop(entry.path)
            return entry, related

        (entry, related), carried = self.collection.change(
            draft, AuthorArgs(tool="delete_knowledge") | by
        )
        return entry, related, carried.written[0].version

    def link(
        self, source: str, target: str, relationship: str = "relates_to", **by: Unpack[AuthorArgs]
    ) -> tuple[KnowledgeEntry, KnowledgeEntry, bool]:
        """Relate an entry to another. Returns both, and whether that was new.

        `supersedes` and `superseded_by` also mark the entry that no longer holds as superseded.
        """
        kind = " ".join(relationship.split()) or "relates_to"
        word = kind.casefold().replace(" ", "_")

        def draft(step: ChangeSet) -> tuple[KnowledgeEntry, KnowledgeEntry, bool]:
            one, other = (_pick(self.collection.in_order(), ref) for ref in (source, target))
            if one.path == other.path:
                raise Invalid("an entry cannot be related to itself")
            is_new = (kind, other) not in self.leading_to([one])[one.path]
            if is_new:
                step.put(one.path, entries.with_tie(step.text(one.path), kind, other.name))
            if word in SUPERSEDING:
                winner, loser = (one, other) if word == "supersedes" else (other, one)
                is_new = self._decide(step, winner, loser) or is_new
            return one, other, is_new

        (one, other, is_new), _ = self.collection.change(
            draft, AuthorArgs(tool="link_knowledge") | by
        )
        return self.collection.items[one.path], other, is_new

    def _decide(self, step: ChangeSet, winner: KnowledgeEntry, loser: KnowledgeEntry) -> bool:
        """Mark an entry as superseded by another, as a client decided. Whether that was new."""
        if loser.is_superseded and self._superseder_of(loser) == winner.path:
            return False
        if (
            winner.is_superseded and self._superseder_of(winner) == loser.path
        ):  # the last word counts
            step.set(winner.path, **dict.fromkeys(_MARKS))
        self._lay_aside(step, winner, loser, "decided by a client")
        return True

    def _superseder_of(self, entry: KnowledgeEntry) -> str | None:
        """The path of the entry that took the place of another."""
        [path] = self.extension.resolve_links([(entry.superseded_by, entry.path)])
        return path

    @staticmethod
    def _lay_aside(
        step: ChangeSet, winner: KnowledgeEntry, loser: KnowledgeEntry, reason: str
    ) -> None:
        """Mark an entry as superseded: by which, when and why. It is less sure then."""
        values = ("superseded", f"[[{winner.name}]]", now(), reason)
        step.set(loser.path, **dict(zip(_MARKS, values, strict=True)))
        if loser.confidence is not None:
            step.set(loser.path, confidence=max(0.1, round(loser.confidence - 0.3, 4)))

    def supersede(self, found: Iterable[Contradiction], **by: Unpack[AuthorArgs]) -> str:
        """Lay the losers aside as one step; its version. Loser and winner name each other, and when and why."""
        decided = [(*each.verdict, each.data["rule"]) for each in found if each.verdict]

        def draft(step: ChangeSet) -> str:
            for entry in (entry for pair in decided for entry in pair[:2]):
                there = self.collection.items.get(entry.path)
                if there is None or there.sha256 != entry.sha256:
                    return entry.name  # and nothing is written
            for winner, loser, why, rule in decided:
                step.put(
                    winner.path, entries.with_tie(step.text(winner.path), "supersedes", loser.name)
                )
                self._lay_aside(step, winner, loser, f"{rule}: {why}")
            return ""

        reason = f"{len(decided)} contradictions resolved"
        stale, carried = self.collection.change(
            draft, AuthorArgs(tool="auto_resolve_contradictions", reason=reason) | by
        )
        if stale:
            raise Conflict(
                f"{stale} has changed since it was read",
                current_sha256=None,
                hint="Repeat the call.",
            )
        return carried.written[0].version if carried.written else ""


knowledge_of: Final = Knowledge.of


def hits_of_kind(
    store: EnhancedStore,
    kind: NoteType[Any],
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
    for narrowed in (
        *([replace(folder, properties=told)] if told else []),
        folder,
        Filter(type=kind.type),
    ):
        size, is_more = limit, True
        while is_more:
            found = store.search(query, filter=narrowed, limit=size, own_scores=True)
            notices += [found.notice] if found.hits else []
            there = {path_of(hit.name): hit for hit in found.hits}
            hits |= {
                path: (items[path], hit)
                for path, hit in there.items()
                if path in items and path not in hits
            }
            is_more = len(hits) < enough and len(found.hits) >= size
            size *= 4
        if len(hits) >= enough:
            break
    embedder = store.extension.embedder
    method = f"words and meaning ({embedder})" if found.mode != "text" and embedder else "words"
    degraded = found.degraded
    if hits and all(notices):
        degraded = f"{notices[0]} {degraded}".strip()
    return list(hits.values())[:limit], method, degraded


def with_falling_scores(hits: Sequence[tuple[T, Hit]]) -> list[tuple[T, Hit]]:
    """The same hits in the same order, none with a higher score than the one above it."""
    scores = falling_scores(hit.score for _, hit in hits)
    return [
        (item, replace(hit, score=score)) for (item, hit), score in zip(hits, scores, strict=True)
    ]


def _pick(every: Sequence[KnowledgeEntry], ref: str) -> KnowledgeEntry:
    """The entry that an id, the beginning of one, or a name means."""
    wanted = ref.strip()
    key = wanted.removeprefix("[[").removesuffix("]]").removesuffix(".md").casefold()
    found = (
        [each for each in every if each.id == wanted]
        or [
            each for each in every if key in (name := each.name.casefold(), name.rpartition("/")[2])
        ]
        or [
            each
            for each in every
            if len(key) >= _LEAST_PREFIX and each.id.casefold().startswith(key)
        ]
    )
    if not found:
        hint = "Give an id, the first letters of an id, or the name of a note in knowledge/."
        raise NotFound(f"Knowledge entry not found: {wanted[:100]}", hint=hint)
    if len(found) > 1:
        candidates = [f"{each.id} ({each.name})" for each in found]
        raise Ambiguous(f"{wanted[:60]} matches {len(found)} entries", candidates=candidates)
    return found[0]


def _legal_tags(tags: Sequence[str]) -> tuple[list[str], list[str]]:
    """Tags as a note can have them, each once, and a warning for each that had to be changed."""
    legal, warnings = list[str](), list[str]()
    for tag in tags:
        try:
            legal += tags_for_new_note([tag])[0]
        except Invalid as refused:
            legal.append(str(refused.details.get("proposed", "tag")))
            warnings.append(
                f"the tag {tag!r} was written as {legal[-1]!r}: a tag has only letters, digits, _, - and /"
            )
    return list(dict.fromkeys(legal)), warnings


def _as_number(share: float) -> float:
    """A confidence as a note has it: 1, not 1.0."""
    return int(share) if share in (0, 1) else share


def _clean(text: str, what: str) -> str:
    hint = "Nothing was saved. Shorten the text, or create several entries and link them."
    return clean_text(text.strip(), what, _MOST_CHARACTERS, hint)


def _count_line(counts: Reads, line: Mapping[str, Any]) -> None:
    """Take one line of the log in. What is not one of ours is passed over."""
    ids, when, times = line.get("ids"), line.get("at"), line.get("n", 1)
    if (
        isinstance(ids, list)
        and isinstance(when, str)
        and isinstance(times, int)
        and 0 < times < 1 << 53
    ):
        for id_ in filter(lambda each: isinstance(each, str), ids):
            count, last = counts.get(id_, NEVER)
            counts[id_] = count + times, max(last, when)
