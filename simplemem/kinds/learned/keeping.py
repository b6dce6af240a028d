"""The knowledge of one store: kept, found, linked and laid aside. Every change is one step of the history, which one undo
takes back. What is read is what the vault holds now, whoever wrote it.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from simplemem.errors import Conflict, Invalid, TooLong, Unreadable
from simplemem.kinds.learned.access import Access
from simplemem.kinds.learned.contradictions import Verdict
from simplemem.kinds.learned.entries import (
    FOLDER,
    MOST_CHARACTERS,
    SUPERSEDED,
    TYPES,
    Entry,
    body_of,
    clean_text,
    properties_of,
    slug_of,
    with_tie,
)
from simplemem.kinds.learned.shelf import Shelf
from simplemem.kinds.learned.statistics import Latencies
from simplemem.memory import Filter
from simplemem.note.names import path_of
from simplemem.note.properties import set_property
from simplemem.note.tags import tags_for_new_note
from simplemem.store.bench import Carried, Draft, now
from simplemem.store.edit import new_text
from simplemem.store.one_each import OneEach

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

MOST_HITS: Final = 10
_TRIES: Final = 20
_SECTIONS: Final = re.compile(r"## (?:Context|Relations)\b")
_LESS: Final = 0.3  # confidence that what is superseded loses,
_FLOOR: Final = 0.1  # and what is left of it at least


class Hit(NamedTuple):
    """An entry that answers a question, how well, and where in it."""

    entry: Entry
    score: float
    snippet: str


class Found(NamedTuple):
    """The answer to a question. `method` says how it was found; `degraded` what was missing, "" when nothing was."""

    hits: list[Hit]
    method: str
    degraded: str


class Kept(NamedTuple):
    """An entry that was saved. `twins` say the very same and were there before."""

    entry: Entry
    twins: list[Entry]
    warnings: tuple[str, ...]


class Knowledge(Shelf):
    """What is known in one vault. May be used from several threads."""

    def __init__(self, store: EnhancedStore) -> None:
        super().__init__(store)
        self.access = Access(store.root, read_only=store.read_only or store.vault.read_only)
        self.latencies = Latencies()

    # -- finding

    def search(
        self, query: str, *, kind: str = "", least_confidence: float = 0.0, limit: int = MOST_HITS, counted: bool = True
    ) -> Found:
        """The entries that answer a question, best first, those that are superseded behind all others. Each hit counts as
        a read."""
        passing = [
            entry
            for entry in self.entries()
            if (not kind or entry.type == kind)
            and (not least_confidence or (entry.confidence or 0.0) >= least_confidence)
        ]
        hits: list[Hit] = []
        method = degraded = ""
        for some in ([e for e in passing if not e.is_superseded], [e for e in passing if e.is_superseded]):
            if some and len(hits) < limit:
                among = {entry.path: entry for entry in some}
                asked = Filter(among=tuple(among))
                found = self._store.search(query, filter=asked, limit=limit - len(hits))
                method, degraded = method or self._method(found.mode, found.degraded), degraded or found.degraded
                hits += [
                    Hit(among[path_of(hit.name)], hit.score, _SECTIONS.split(hit.snippet)[0].strip())
                    for hit in found.hits
                    if path_of(hit.name) in among
                ]
        if counted:
            self.access.count([hit.entry.id for hit in hits])
        return Found(hits, method or "words and meaning", degraded)

    def _method(self, mode: str, degraded: str) -> str:
        embedder = self.embedder()
        if mode == "text" or not embedder or degraded.startswith("Searched by words only"):
            return "words"
        return f"words and meaning ({embedder})"

    # -- keeping

    def save(
        self,
        kind: str,
        content: str,
        *,
        context: str = "",
        confidence: float,
        verified: bool = False,
        tags: Sequence[str] = (),
        who: str = "",
        tool: str = "save_knowledge",
        reason: str = "",
    ) -> Kept:
        """Keep something that was learned, as a note of its own."""
        said, where = clean_text(content, "content"), clean_text(context, "context")
        _refuse(kind, said, where, confidence)
        body, said, more = body_of(said, where)
        id_ = str(uuid.uuid4())
        legal, told = _legal_tags(tags)
        properties = properties_of(id_, kind, confidence, verified, legal, more)
        twins = [
            entry for entry in self.entries() if entry.type == kind and (entry.content, entry.context) == (said, where)
        ]
        slug = f"{FOLDER}/{kind}/{slug_of(said)}"
        with self._lock, self._bench.alone():
            for number in range(1, 100_000):
                name = slug if number == 1 else f"{slug}-{number}"
                if not self._bench.is_taken(path_of(name)) and not self._is_near(path_of(name)):
                    break
            text = new_text(name, body, properties, now())
            carried = self._write([Draft(path_of(name), text)], who, tool, reason)
        return Kept(self._entries[path_of(name)], twins, (*told, *carried.warnings))

    def _is_near(self, path: str) -> bool:
        """Whether a name differs from one there in nothing but case or the form of its letters."""
        return any(other.casefold() == path.casefold() for other in self._entries)

    def link(
        self,
        source: str,
        target: str,
        relationship: str = "relates_to",
        *,
        who: str = "",
        tool: str = "link_knowledge",
        reason: str = "",
    ) -> tuple[Entry, Entry, bool]:
        """Relate an entry to another. Returns both, and whether that was new."""
        kind = " ".join(relationship.split()) or "relates_to"
        for tries_left in range(_TRIES, -1, -1):
            one, other = self.find(source), self.find(target)
            if one.path == other.path:
                raise Invalid("an entry is not related to itself")
            if any(said == kind and there.path == other.path for said, there in self.leading_to([one])[one.path]):
                return one, other, False
            text = self._text(one)
            try:
                self._write([Draft(one.path, with_tie(text, kind, other.name), text)], who, tool, reason)
            except Conflict:
                if not tries_left:
                    raise
                continue
            return self._entries[one.path], other, True
        raise AssertionError("unreachable")

    def supersede(
        self,
        verdicts: Sequence[Verdict],
        *,
        who: str = "",
        tool: str = "auto_resolve_contradictions",
        reason: str = "",
    ) -> str:
        """Lay the losers aside: each says by what it is superseded, when and why, and is trusted less; each winner says what
        it supersedes. One step; its version."""
        before: dict[str, str] = {}
        after: dict[str, str] = {}
        moment = now()
        with self._lock, self._bench.alone():
            for verdict in verdicts:
                for entry in (verdict.winner, verdict.loser):
                    if entry.path not in before:
                        before[entry.path] = after[entry.path] = self._text(entry)
                winner, loser = verdict.winner, verdict.loser
                after[winner.path] = with_tie(after[winner.path], "supersedes", loser.name)
                why = f"{verdict.contradiction.rule}: {verdict.why}"
                properties = {
                    "status": SUPERSEDED,
                    "superseded_by": f"[[{winner.name}]]",
                    "superseded_at": moment,
                    "superseded_reason": why,
                }
                if loser.confidence is not None:
                    properties["confidence"] = less_sure(loser.confidence)  # type: ignore[assignment]
                for key, value in properties.items():
                    after[loser.path] = set_property(after[loser.path], key, value)
            drafts = [Draft(path, text, before[path]) for path, text in after.items()]
            carried = self._write(drafts, who, tool, reason or f"{len(verdicts)} contradictions resolved")
        return carried.written[0].version if carried.written else ""

    def reset(self, *, who: str = "", tool: str = "reset", reason: str = "") -> tuple[int, str]:
        """Put every entry into the trash, as one step. How many there were, and its version."""
        self._bench.catch_up()
        with self._lock, self._bench.alone():
            self._refresh()
            drafts = [Draft(entry.path, None, self._text(entry)) for entry in self._in_order()]
            if not drafts:
                return 0, ""
            carried = self._write(drafts, who, tool, reason)
        return len(drafts), carried.written[0].version

    # -- how it is written

    def _text(self, entry: Entry) -> str:
        """The note as it is now. It must be what was read of it."""
        read = next(iter(self._bench.read([entry.path])), None)
        if read is None or read.sha256 != entry.sha256:
            with self._lock:
                self._bench.look_at([entry.path])
                self._take([entry.path])
            raise Conflict(f"{entry.name} has changed since it was looked at", current_sha256=None, hint="Ask again.")
        if read.problem or entry.problem:
            raise Unreadable(
                f"{entry.name} cannot be changed: {read.problem or entry.problem}",
                hint="It is read as it is. Mend it in an editor, then try again.",
            )
        return read.text

    def _write(self, drafts: Sequence[Draft], who: str, tool: str, reason: str) -> Carried:
        carried = self._bench.write(drafts, who=who, tool=tool, reason=reason)
        with self._lock:
            self._take(draft.path for draft in drafts)
        return carried


def _legal_tags(tags: Sequence[str]) -> tuple[list[str], list[str]]:
    """Tags as Obsidian takes them, and what is to be said of those that were spelled otherwise."""
    legal: list[str] = []
    told: list[str] = []
    for tag in tags:
        try:
            tags_for_new_note([tag])
            legal.append(tag)
        except Invalid as refused:
            proposed = refused.details.get("proposed")
            if not isinstance(proposed, str):
                raise
            legal.append(proposed)
            told.append(f"the tag {tag!r} is kept as {proposed!r}: a tag has letters, digits, _, - and / only")
    return legal, told


def less_sure(confidence: float) -> float:
    """What is left of the confidence in something that is superseded."""
    return max(_FLOOR, round(confidence - _LESS, 4))


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


_KNOWN = OneEach(Knowledge)


def knowledge_of(store: EnhancedStore) -> Knowledge:
    """The knowledge of a store: one for all who ask."""
    return _KNOWN.of(store)
