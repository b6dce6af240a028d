"""What leads to a memory: links first, then what is near in meaning."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from simplemem.errors import Invalid
from simplemem.index.door import Narrow, NoteId, Question, Shown
from simplemem.index.links import StoredLink
from simplemem.memory import Backlink, Filter
from simplemem.note.names import name_of
from simplemem.search.excerpt import snippet, squeezed
from simplemem.search.rank import parts_of, rank
from simplemem.store.core import Core
from simplemem.store.recall import MAX_LIMIT, Recall, within

_SEMANTIC_FLOOR = 0.35  # of cosine; below it neighbours are chance


class Backlinks:
    """The memories that lead to one of a vault."""

    def __init__(self, core: Core, recall: Recall) -> None:
        self._core = core
        self._index = core.index
        self._recall = recall

    def find(self, path: str, query: str | None, limit: int, kinds: Sequence[str]) -> tuple[Backlink, ...]:
        """Memories that lead to this one: links first, then those nearest in meaning; by a query when one is given."""
        limit = within(limit, 1, MAX_LIMIT, "limit")
        unknown = [kind for kind in kinds if kind not in ("link", "semantic")]
        if unknown:
            raise Invalid(f"unknown kind of backlink: {unknown[0]!r}", hint="Kinds are: link, semantic.")
        for _ in range(2):
            links = self._index.links_to(path)
            wants_more = "semantic" in kinds and (bool(query) or "link" not in kinds or len(links) < limit)
            near = self._near(path, {link.source for link in links}, 3 * limit) if wants_more else {}
            sources = {link.source_id for link in links} if "link" in kinds else set()
            question = Question(like=path)
            shown = self._index.shown(dict.fromkeys((*sources, *near), 0), question) if sources or near else {}
            if not self._recall.recheck(each.row for each in shown.values()):
                break
        found = self._links(links, shown) if "link" in kinds else []
        enough = 3 * limit if query else limit - len(found)
        found += self._alike(near, shown, enough)
        if query:
            found = self._by_query(found, query)
        return tuple(found[:limit])

    def _links(self, links: Sequence[StoredLink], shown: Mapping[NoteId, Shown]) -> list[Backlink]:
        found: list[Backlink] = []
        texts: dict[str, list[str]] = {}
        for link in links:
            if link.source not in texts:
                texts[link.source] = (self._recall.text(link.source) or "").replace("\r\n", "\n").split("\n")
            lines = texts[link.source]
            line = squeezed(lines[link.line - 1])[:300] if 0 < link.line <= len(lines) else ""
            source = shown.get(link.source_id)
            title = source.row.title if source is not None else name_of(link.source)
            found.append(Backlink(name_of(link.source), title, "link", link.form, line, link.line, 1.0))
        return found

    def _near(self, path: str, linking: Collection[str], limit: int) -> dict[NoteId, float]:
        """The notes nearest to the middle of a note's passages, without those that link to it."""
        answer = self._index.ask(Question(like=path, nearest=4 * limit))
        near = {note: max(each.passage, each.score) for note, each in (answer.near or {}).items()}
        others = [note for note in near if near[note] >= _SEMANTIC_FLOOR and answer.paths[note] != path]
        best = sorted(others, key=lambda note: (-round(near[note], 6), answer.paths[note]))[:limit]
        return {note: near[note] for note in best if answer.paths[note] not in linking}

    def _alike(self, near: dict[NoteId, float], shown: Mapping[NoteId, Shown], limit: int) -> list[Backlink]:
        found: list[Backlink] = []
        for note, score in near.items():
            if len(found) >= limit:
                break
            text = self._recall.text(shown[note].row.path) if note in shown else None
            if text is None:
                continue
            row, place = shown[note].row, shown[note].best
            said = snippet(text, place, None, 200) if place is not None else row.description
            line = place.line if place is not None else 1
            found.append(Backlink(name_of(row.path), row.title, "semantic", "", said, line, round(score, 4)))
        return found

    def _by_query(self, items: Sequence[Backlink], text: str) -> list[Backlink]:
        """Candidates in the order in which a search for the query would give them."""
        asked = self._recall.ask(text, Filter())
        query = asked.query
        if not (query.words and items):
            return [replace(item, score=0.0) for item in items]
        vector, _ = self._recall.vector(query, "hybrid", asked.standing)
        narrow = Narrow(only=tuple(f"{item.name}.md" for item in items), hidden=True)
        answer = self._index.ask(Question(query.terms(), query.side_by_side(), vector, narrow=narrow))
        scores = {found.path: found.score for found in rank(answer, parts_of(answer))}
        scored = [replace(item, score=round(scores.get(f"{item.name}.md", 0.0), 4)) for item in items]
        return sorted(scored, key=lambda item: -scores.get(f"{item.name}.md", 0.0))
