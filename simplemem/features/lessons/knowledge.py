"""The lessons of one store: saved, found, linked and superseded, each change one step of the history.

How often an entry was read, and when last, is stored in `.simplemem/state/access.jsonl`, never in its note.
"""

from __future__ import annotations

import time
import uuid
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Unpack

from simplemem.errors import Ambiguous, Conflict, Invalid, NotFound
from simplemem.features.collection import ChangeSet, NoteCollection
from simplemem.features.event_log import EventLog
from simplemem.features.lessons.entry import (
    FOLDER,
    LESSON,
    KnowledgeEntry,
    read_entry,
    render_body,
    replace_body,
    slug_of,
    with_relation,
)
from simplemem.features.lessons.note_search import NoteHits, search_notes, with_falling_scores
from simplemem.features.service import FeatureService
from simplemem.features.text import clean_text
from simplemem.models import AuthorArgs
from simplemem.note.properties import remove_property
from simplemem.note.tag_changes import tags_for_new_note
from simplemem.store import now

if TYPE_CHECKING:
    from simplemem.features.lessons.contradictions import Contradiction
    from simplemem.store import EnhancedStore

Related = dict[str, list[tuple[str, KnowledgeEntry]]]
"""The relations of entries, by path: the words of each, and the entry that it leads to."""
Reads = dict[str, tuple[int, str]]
"""How often each entry was read, and when last (UTC), by id."""
NEVER: Final = (0, "")
DEFAULT_CONFIDENCE: Final = 0.7
"""The confidence of a new entry if the caller gives none."""
SUPERSEDING: Final = ("supersedes", "superseded_by")
"""Relations that mark one of two entries as superseded."""

_MAX_CHARACTERS: Final = 10_000
_MIN_SCORE_SHARE: Final = 0.35  # of the best score; a lower hit answers another question
_MIN_ID_PREFIX: Final = 3
_CONFIDENCE_LOSS: Final = 0.3  # of a superseded entry
_MIN_CONFIDENCE: Final = 0.1
_MAX_TIMES: Final = 1000
_STATUS_PROPERTIES: Final = ("status", "superseded_by", "superseded_at", "superseded_reason")


class EntryChange(NamedTuple):
    """New values for the parts of an entry. None leaves a part as it is."""

    content: str | None = None
    context: str | None = None
    confidence: float | None = None
    verified: bool | None = None
    tags: tuple[str, ...] | None = None


class Knowledge(FeatureService):
    """The lessons of one store.

    Guards the entries as they are in the vault, how often each was read, and how long the last
    answers of each tool took (`took`, in milliseconds, in this process).
    """

    def __init__(self, store: EnhancedStore) -> None:
        super().__init__(store)
        self.collection = NoteCollection(store.extension, LESSON)
        self.took: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=_MAX_TIMES))
        self._reads: EventLog[Reads] = EventLog(
            store.extension, "state/access.jsonl", dict, _add_reads
        )

    # Reading

    def entries(self) -> list[KnowledgeEntry]:
        """Return all entries, the oldest first."""
        with self.collection.reading():
            return list(self.collection.in_order())

    def reads(self) -> Reads:
        """Return how often each entry was read, and when last."""
        return self._reads.state()

    def count(self, ids: Collection[str]) -> None:
        """Record that the entries with these ids were read just now."""
        if ids:
            at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            self._reads.add({"at": at, "ids": list(ids)})

    def find(self, ref: str) -> KnowledgeEntry:
        """Return the entry with this id, with an id that begins so, or with this name.

        Raises NotFound if there is none, Ambiguous if there are several.
        """
        return _find_entry(self.entries(), ref)

    def relations_of(self, entries: Sequence[KnowledgeEntry]) -> Related:
        """Return the relations of entries to other entries; an empty list for an entry without any."""
        links = [(entry, relation) for entry in entries for relation in entry.relations]
        targets = self.extension.resolve_links(
            [(relation.link, entry.path) for entry, relation in links]
        )

        related: Related = {entry.path: [] for entry in entries}
        for (entry, relation), path in zip(links, targets, strict=True):
            if path in self.collection.items:
                related[entry.path].append((relation.type, self.collection.items[path]))
        return related

    def describe(self, entries: Sequence[KnowledgeEntry]) -> list[dict[str, Any]]:
        """Return entries as the fields that clients know, with the names of their notes."""
        if not entries:
            return []
        all_entries = self.entries()
        related = self.relations_of(all_entries)
        sentences = _relation_sentences(all_entries, related)
        reads = self.reads()
        return [
            _describe_entry(
                entry,
                reads=reads.get(entry.id, NEVER),
                related_ids=[other.id for _, other in related.get(entry.path, ())],
                relations=sentences.get(entry.path, []),
            )
            for entry in entries
        ]

    def search(
        self, query: str, *, kind: str = "", least_confidence: float = 0.0, limit: int = 10
    ) -> NoteHits[KnowledgeEntry]:
        """Return the entries that answer a query, superseded ones last; all of them for an empty query.

        `kind` is the only type to return, "" for all. Entries far below the best score are left out.
        """
        standing: dict[str, KnowledgeEntry] = {}
        superseded: dict[str, KnowledgeEntry] = {}
        for entry in self.entries():
            is_wanted = kind in ("", entry.type)
            if is_wanted and (entry.confidence or 0.0) >= least_confidence:
                group = superseded if entry.is_superseded else standing
                group[entry.path] = entry

        properties = {"knowledge_type": kind} if kind else {}
        found = search_notes(self.store, LESSON, standing, query, limit, properties)
        hits = found.hits
        missing = limit - len(hits)
        if superseded and missing > 0:
            hits += search_notes(self.store, LESSON, superseded, query, missing, properties).hits

        if query.strip():
            best_score = max((hit.score for _, hit in hits), default=0.0)
            min_score = _MIN_SCORE_SHARE * best_score
            hits = [(entry, hit) for entry, hit in hits if hit.score >= min_score]
        return NoteHits(with_falling_scores(hits), found.method, found.degraded)

    # Saving, correcting, deleting

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
        """Save a lesson as a note, or update the entry that says the same.

        An entry that is not superseded says the same if it has this type and content, and no other
        context. It gets the confidence, `verified` and context that are given, and the tags in
        addition to its own.

        Returns the entry, those that said the same before (as they were), and warnings. Raises
        Invalid for an empty content.
        """
        content = _clean(content, "content")
        context = _clean(context, "context")
        if not content:
            raise Invalid("the content is empty")

        legal_tags, warnings = _legal_tags(tags)
        properties: dict[str, Any] = {
            "tags": legal_tags,
            "id": str(uuid.uuid4()),
            "knowledge_type": kind,
            "confidence": _confidence_value(
                DEFAULT_CONFIDENCE if confidence is None else confidence
            ),
            "verified": bool(verified),
        }
        text = LESSON.render(properties, render_body(content, context), now())
        folder = f"{FOLDER}/{kind}"
        new_entry = read_entry(f"{folder}/x.md", text)
        change = EntryChange(context=context or None, confidence=confidence, verified=verified)

        def draft(change_set: ChangeSet) -> tuple[str, list[KnowledgeEntry]]:
            twins = [entry for entry in self.collection.in_order() if _says_same(entry, new_entry)]
            known = _best_twin(twins, new_entry)
            if known is None:
                stem = f"{folder}/{slug_of(content)}"
                path = self.free_path(change_set, stem, between="-")
                change_set.put(path, text)
                return path, twins

            more_tags = [tag for tag in legal_tags if tag not in known.tags]
            tags_after = (*known.tags, *more_tags) if more_tags else None
            self._apply(change_set, known, change._replace(tags=tags_after))
            return known.path, twins

        author = AuthorArgs(tool="save_knowledge") | by
        (path, twins), result = self.collection.change(draft, author)
        return self.collection.items[path], twins, [*warnings, *result.warnings]

    def update(
        self, ref: str, change: EntryChange, **by: Unpack[AuthorArgs]
    ) -> tuple[KnowledgeEntry, list[str]]:
        """Correct an entry. What is None in the change stays, and so do its id and its relations.

        Returns the entry as it is now, and warnings. Raises Invalid if nothing would change or the
        content would be empty, NotFound or Ambiguous if `ref` does not name one entry.
        """
        if all(value is None for value in change):
            raise Invalid(
                "no change given", hint="Give content, context, confidence, verified or tags."
            )
        change, warnings = _clean_change(change)

        def draft(change_set: ChangeSet) -> str:
            entry = _find_entry(self.collection.in_order(), ref)
            self._apply(change_set, entry, change)
            return entry.path

        author = AuthorArgs(tool="update_knowledge") | by
        path, result = self.collection.change(draft, author)
        return self.collection.items[path], [*warnings, *result.warnings]

    def _apply(self, change_set: ChangeSet, entry: KnowledgeEntry, change: EntryChange) -> None:
        """Write the parts of an entry that differ; nothing if there are none."""
        content = entry.content if change.content is None else change.content
        context = entry.context if change.context is None else change.context
        if (content, context) != (entry.content, entry.context):
            # A person may have written the context as a property.
            text = remove_property(change_set.text(entry.path), "context")
            change_set.put(entry.path, replace_body(text, content, context))

        if change.tags is not None and change.tags != entry.tags:
            change_set.set(entry.path, tags=[*change.tags])
        if change.confidence is not None and change.confidence != entry.confidence:
            change_set.set(entry.path, confidence=_confidence_value(change.confidence))
        if change.verified is not None and change.verified != entry.verified:
            change_set.set(entry.path, verified=change.verified)

    def delete(
        self, ref: str, **by: Unpack[AuthorArgs]
    ) -> tuple[KnowledgeEntry, list[KnowledgeEntry], str]:
        """Move an entry to the trash.

        Returns the entry, those with a relation to it, and the version that undoes the deletion.
        """

        def draft(change_set: ChangeSet) -> tuple[KnowledgeEntry, list[KnowledgeEntry]]:
            entries = self.collection.in_order()
            entry = _find_entry(entries, ref)
            relations = self.relations_of(entries)
            related = [
                other
                for other in entries
                if any(target.path == entry.path for _, target in relations[other.path])
            ]
            change_set.drop(entry.path)
            return entry, related

        author = AuthorArgs(tool="delete_knowledge") | by
        (entry, related), result = self.collection.change(draft, author)
        return entry, related, result.written[0].version

    # Relations and superseded entries

    def link(
        self, source: str, target: str, relationship: str = "relates_to", **by: Unpack[AuthorArgs]
    ) -> tuple[KnowledgeEntry, KnowledgeEntry, bool]:
        """Add a relation from one entry to another. Returns both, and whether anything changed.

        `supersedes` and `superseded_by` also mark the entry that no longer holds as superseded.
        Raises Invalid if both are the same entry.
        """
        words = " ".join(relationship.split()) or "relates_to"
        kind = words.casefold().replace(" ", "_")

        def draft(change_set: ChangeSet) -> tuple[KnowledgeEntry, KnowledgeEntry, bool]:
            one = _find_entry(self.collection.in_order(), source)
            other = _find_entry(self.collection.in_order(), target)
            if one.path == other.path:
                raise Invalid("an entry cannot be related to itself")

            is_new = (words, other) not in self.relations_of([one])[one.path]
            if is_new:
                text = with_relation(change_set.text(one.path), words, other.name)
                change_set.put(one.path, text)
            if kind in SUPERSEDING:
                winner, loser = (one, other) if kind == "supersedes" else (other, one)
                is_new = self._supersede_by_client(change_set, winner, loser) or is_new
            return one, other, is_new

        author = AuthorArgs(tool="link_knowledge") | by
        (one, other, is_new), _ = self.collection.change(draft, author)
        return self.collection.items[one.path], other, is_new

    def _supersede_by_client(
        self, change_set: ChangeSet, winner: KnowledgeEntry, loser: KnowledgeEntry
    ) -> bool:
        """Mark an entry as superseded by another, and return whether it was not before.

        The last call counts: if the loser superseded the winner, the winner holds again.
        """
        if loser.is_superseded and self._path_of_superseder(loser) == winner.path:
            return False
        if winner.is_superseded and self._path_of_superseder(winner) == loser.path:
            change_set.set(winner.path, **dict.fromkeys(_STATUS_PROPERTIES))
        _mark_superseded(change_set, winner, loser, "decided by a client")
        return True

    def _path_of_superseder(self, entry: KnowledgeEntry) -> str | None:
        """Return the path of the entry that superseded another; None if its link is unresolved."""
        [path] = self.extension.resolve_links([(entry.superseded_by, entry.path)])
        return path

    def supersede(self, contradictions: Iterable[Contradiction], **by: Unpack[AuthorArgs]) -> str:
        """Mark the losers of contradictions as superseded, in one step, and return its version.

        Each winner gets a relation to its loser. Contradictions without a verdict are skipped. Raises
        Conflict, and writes nothing, if one of the entries has changed since.
        """
        decided = [
            (*contradiction.verdict, contradiction.data["rule"])
            for contradiction in contradictions
            if contradiction.verdict
        ]

        def draft(change_set: ChangeSet) -> str:
            for winner, loser, _, _ in decided:
                for entry in (winner, loser):
                    if not self._is_unchanged(entry):
                        return entry.name  # and nothing is written

            for winner, loser, reason, rule in decided:
                text = with_relation(change_set.text(winner.path), "supersedes", loser.name)
                change_set.put(winner.path, text)
                _mark_superseded(change_set, winner, loser, f"{rule}: {reason}")
            return ""

        author = AuthorArgs(
            tool="auto_resolve_contradictions", reason=f"{len(decided)} contradictions resolved"
        )
        stale_name, result = self.collection.change(draft, author | by)
        if stale_name:
            raise Conflict(
                f"{stale_name} has changed since it was read",
                current_sha256=None,
                hint="Repeat the call.",
            )
        return result.written[0].version if result.written else ""

    def _is_unchanged(self, entry: KnowledgeEntry) -> bool:
        """Return whether the vault still has an entry as it was read."""
        current = self.collection.items.get(entry.path)
        return current is not None and current.sha256 == entry.sha256


knowledge_of: Final = Knowledge.of


def _find_entry(entries: Sequence[KnowledgeEntry], ref: str) -> KnowledgeEntry:
    """Return the entry with this id, else with this name, else with an id that begins so.

    Raises NotFound if there is none, Ambiguous if there are several.
    """
    wanted = ref.strip()
    key = wanted.removeprefix("[[").removesuffix("]]").removesuffix(".md").casefold()
    matches = [entry for entry in entries if entry.id == wanted]
    if not matches:
        matches = [entry for entry in entries if _has_name(entry, key)]
    if not matches and len(key) >= _MIN_ID_PREFIX:
        matches = [entry for entry in entries if entry.id.casefold().startswith(key)]

    if not matches:
        hint = "Give an id, the first letters of an id, or the name of a note in knowledge/."
        raise NotFound(f"Knowledge entry not found: {wanted[:100]}", hint=hint)
    if len(matches) > 1:
        candidates = [f"{entry.id} ({entry.name})" for entry in matches]
        raise Ambiguous(f"{wanted[:60]} matches {len(matches)} entries", candidates=candidates)
    return matches[0]


def _has_name(entry: KnowledgeEntry, key: str) -> bool:
    """Return whether a lower-case key is the name of an entry, with or without its folder."""
    name = entry.name.casefold()
    return key in (name, name.rpartition("/")[2])


def _says_same(entry: KnowledgeEntry, new_entry: KnowledgeEntry) -> bool:
    """Return whether an entry has the type and content of a new one, and no other context."""
    if not entry.is_own:
        return False
    if (entry.type, entry.content) != (new_entry.type, new_entry.content):
        return False
    return not new_entry.context or entry.context in ("", new_entry.context)


def _best_twin(twins: Sequence[KnowledgeEntry], new_entry: KnowledgeEntry) -> KnowledgeEntry | None:
    """Return the entry to update: one with the same context, else the oldest; none if all are superseded."""
    standing = [entry for entry in twins if not entry.is_superseded]
    for entry in standing:
        if entry.context == new_entry.context:
            return entry
    return standing[0] if standing else None


def _mark_superseded(
    change_set: ChangeSet, winner: KnowledgeEntry, loser: KnowledgeEntry, reason: str
) -> None:
    """Write by which entry another one is superseded, when and why, and lower its confidence."""
    values = ("superseded", f"[[{winner.name}]]", now(), reason)
    change_set.set(loser.path, **dict(zip(_STATUS_PROPERTIES, values, strict=True)))
    if loser.confidence is not None:
        lowered = round(loser.confidence - _CONFIDENCE_LOSS, 4)
        change_set.set(loser.path, confidence=max(_MIN_CONFIDENCE, lowered))


def _relation_sentences(
    entries: Sequence[KnowledgeEntry], related: Related
) -> dict[str, list[str]]:
    """Return the relations from and to each entry as sentences, by path."""
    sentences: dict[str, list[str]] = defaultdict(list)
    for entry in entries:
        for words, other in related.get(entry.path, ()):
            verb = words.replace("_", " ")
            sentences[entry.path].append(f'this {verb} "{other.headline}" ({other.id})')
            sentences[other.path].append(f'"{entry.headline}" ({entry.id}) {verb} this')
    return sentences


def _describe_entry(
    entry: KnowledgeEntry,
    *,
    reads: tuple[int, str],
    related_ids: Iterable[str],
    relations: list[str],
) -> dict[str, Any]:
    """Return an entry as the fields that clients know."""
    count, last = reads
    fields: dict[str, Any] = {
        "id": entry.id,
        "type": entry.type,
        "content": entry.content,
        "context": entry.context,
        "confidence": entry.confidence,
        "verified": entry.verified,
        "tags": list(entry.tags),
        "timestamp": entry.created,
        "accessCount": count,
        "lastAccessed": last or None,
        "relatedIds": list(dict.fromkeys(related_ids)),
        "name": entry.name,
    }
    if relations:
        fields["relations"] = relations
    if entry.is_superseded:
        fields["status"] = "superseded"
        fields["supersededBy"] = entry.superseded_by
    return fields


def _clean_change(change: EntryChange) -> tuple[EntryChange, list[str]]:
    """Return a change with clean texts and legal tags, and warnings. Raises Invalid for an empty content."""
    warnings: list[str] = []
    if change.tags is not None:
        legal_tags, warnings = _legal_tags(change.tags)
        change = change._replace(tags=tuple(legal_tags))
    if change.content is not None:
        change = change._replace(content=_clean(change.content, "content"))
        if not change.content:
            raise Invalid("the content is empty", hint="delete_knowledge removes an entry.")
    if change.context is not None:
        change = change._replace(context=_clean(change.context, "context"))
    return change, warnings


def _legal_tags(tags: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return tags as a note can have them, without repetitions, and a warning per changed tag."""
    legal: list[str] = []
    warnings: list[str] = []
    for tag in tags:
        try:
            new_tags, _ = tags_for_new_note([tag])
            legal += new_tags
        except Invalid as error:
            proposed = str(error.details.get("proposed", "tag"))
            legal.append(proposed)
            warnings.append(
                f"the tag {tag!r} was written as {proposed!r}: a tag has only letters, digits, _, - and /"
            )
    return list(dict.fromkeys(legal)), warnings


def _confidence_value(confidence: float) -> float:
    """Return a confidence as it is written in a note: 1, not 1.0."""
    if confidence in (0, 1):
        return int(confidence)
    return confidence


def _clean(text: str, argument: str) -> str:
    """Return an argument without blanks around it. Raises TooLong if it is too long."""
    hint = "Nothing was saved. Shorten the text, or create several entries and link them."
    return clean_text(text.strip(), argument, _MAX_CHARACTERS, hint)


def _add_reads(reads: Reads, line: Mapping[str, Any]) -> None:
    """Add one line of the log to the counts. Other lines are skipped."""
    ids = line.get("ids")
    at = line.get("at")
    times = line.get("n", 1)
    if not (isinstance(ids, list) and isinstance(at, str) and isinstance(times, int)):
        return
    if not 0 < times < 1 << 53:
        return

    for id_ in ids:
        if isinstance(id_, str):
            count, last = reads.get(id_, NEVER)
            reads[id_] = (count + times, max(last, at))
