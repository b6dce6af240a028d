"""What leads to a memory: links first, then what is near in meaning."""

from __future__ import annotations

from collections.abc import Sequence

from simplemem.errors import Invalid
from simplemem.index.filters import Narrow
from simplemem.memory import Backlink
from simplemem.note.names import name_of
from simplemem.search.excerpt import snippet, squeezed
from simplemem.search.rank import rank
from simplemem.store.core import Core
from simplemem.store.recall import MAX_LIMIT, Recall, within
from simplemem.store.showing import nearest_place

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
        self._core.recheck({path, *(link.source for link in self._index.links_to(path))})
        found = self._explicit(path) if "link" in kinds else []
        if "semantic" in kinds and (query or len(found) < limit):
            linking = {item.name for item in self._explicit(path)}
            found += [item for item in self._semantic(path, 3 * limit) if item.name not in linking]
        if query:
            found = self._by_query(found, query)
        return tuple(found[:limit])

    def _explicit(self, path: str) -> list[Backlink]:
        found: list[Backlink] = []
        texts: dict[str, list[str]] = {}
        for link in self._index.links_to(path):
            if link.source not in texts:
                texts[link.source] = (self._recall.text(link.source) or "").replace("\r\n", "\n").split("\n")
            lines = texts[link.source]
            shown = squeezed(lines[link.line - 1])[:300] if 0 < link.line <= len(lines) else ""
            row = self._index.row(link.source)
            title = row.title if row else name_of(link.source)
            found.append(Backlink(name_of(link.source), title, "link", link.form, shown, link.line, 1.0))
        return found

    def _semantic(self, path: str, limit: int) -> list[Backlink]:
        with self._index.snapshot():  # the note's vectors and its neighbours' are of one embedder
            return self._near(path, limit)

    def _near(self, path: str, limit: int) -> list[Backlink]:
        row = self._index.row(path)
        if row is None:
            return []
        vector = _mean(self._index.vectors_of(row.id))
        if vector is None:
            return []
        near = self._index.nearest(vector, None, limit * 4)
        scored = ((max(n.passage, n.score), note) for note, n in near.items() if note != row.id)
        best = sorted((pair for pair in scored if pair[0] >= _SEMANTIC_FLOOR), key=lambda p: (-round(p[0], 6), p[1]))
        rows = self._index.rows(note for _, note in best[: limit * 2])
        found = []
        for score, note_id in best[: limit * 2]:
            other = rows.get(note_id)
            text = self._recall.text(other.path) if other is not None else None
            if other is None or text is None:
                continue
            place = nearest_place(self._index, note_id, vector)
            shown = snippet(text, place, None, 200) if place is not None else other.description
            line = place.line if place is not None else 1
            found.append(Backlink(name_of(other.path), other.title, "semantic", "", shown, line, round(score, 4)))
        return found[:limit]

    def _by_query(self, items: list[Backlink], text: str) -> list[Backlink]:
        """Candidates in the order in which a search for the query would give them."""
        query = self._recall.read(text)
        paths = [f"{item.name}.md" for item in items]
        vector, _ = self._recall.vector(query, "hybrid")
        with self._index.snapshot():
            ids = self._index.ids(Narrow(only=tuple(paths), hidden=True))
            ranked = rank(self._index, query, vector, ids) if query.words else []
            rows = self._index.rows(r.note for r in ranked)
        scores = {name_of(rows[r.note].path): r.score for r in ranked if r.note in rows}
        ordered = sorted(enumerate(items), key=lambda pair: (-scores.get(pair[1].name, 0.0), pair[0]))
        return [
            Backlink(i.name, i.title, i.kind, i.form, i.snippet, i.line, round(scores.get(i.name, 0.0), 4))
            for _, i in ordered
        ]


def _mean(vectors: Sequence[bytes]) -> bytes | None:
    """The middle of a note's passages, as a vector of the same kind."""
    rows = [memoryview(vector).cast("b") for vector in vectors[:64]]
    if not rows:
        return None
    sums = [sum(column) for column in zip(*rows, strict=True)]
    largest = max(map(abs, sums)) or 1
    return bytes((round(value * 127 / largest)) & 0xFF for value in sums)
