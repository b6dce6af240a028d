"""What leads to a note: links to it, and notes with a similar meaning."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from simplemem.errors import Invalid
from simplemem.index.door import Narrow, NoteId, Question, Row, Shown, StoredLink
from simplemem.index.sidecar import Sidecar
from simplemem.models import Backlink, Mention
from simplemem.note.names import name_of
from simplemem.note.plain_text import plain_text
from simplemem.search import judgement, rank
from simplemem.search.excerpt import Quotable
from simplemem.search.needs import IndexKeeper, NameResolver, NoteReader
from simplemem.search.pipeline import MAX_LIMIT, NoteRanker, checked_limit

KINDS = ("link", "semantic")

# Below this cosine, a similarity is chance.
_MIN_SIMILARITY = 0.35

_MAX_LINE_CHARACTERS = 300  # of the line of a link
_MAX_PASSAGE_CHARACTERS = 200

_LinksBySource = Mapping[str, Sequence[StoredLink]]


@dataclass(frozen=True, slots=True)
class _Similar:
    """A note with a similar meaning, by cosine."""

    note: NoteId
    similarity: float


@dataclass(frozen=True, slots=True)
class _Sources:
    """The notes that lead to another one, best first, each with its score; and the links in them."""

    notes: Sequence[tuple[Shown, float]]
    links: _LinksBySource


class BacklinkFinder:
    """Finds what leads to a note of one vault. Guards no state."""

    def __init__(
        self,
        index: Sidecar,
        ranker: NoteRanker,
        *,
        keeper: IndexKeeper,
        names: NameResolver,
        notes: NoteReader,
        archive: tuple[str, ...],
    ) -> None:
        """`archive` are the folders that are left out of searches by meaning."""
        self._index = index
        self._ranker = ranker
        self._keeper = keeper
        self._names = names
        self._notes = notes
        self._archive = archive

    def backlinks(
        self, name: str, query: str | None, limit: int, kinds: Sequence[str]
    ) -> tuple[Backlink, ...]:
        """Return the notes that lead to one, each once: by links first, then by similar meaning.

        With a query they are in the order of a search for it. Raises Invalid for a kind that is not
        in `KINDS` or a limit below 1, and NotFound or Ambiguous for the name.
        """
        self._keeper.prepare(vectors="semantic" in kinds)
        path = self._names.path_of(name)
        limit = checked_limit(limit, MAX_LIMIT, "limit")
        _check_kinds(kinds)

        sources = self._keeper.fresh(
            lambda: self._find_sources(path, query, limit, kinds),
            lambda sources: [details.row for details, _ in sources.notes],
        )
        backlinks = []
        for details, score in sources.notes:
            links = sources.links.get(details.row.path, ())
            backlink = self._backlink(details, links, score)
            if backlink is not None:
                backlinks.append(backlink)
        return tuple(backlinks)

    def related(self, name: str, limit: int) -> tuple[str, ...]:
        """Return the names of notes with a similar meaning, the most similar first.

        Notes that link to the note are left out. Raises NotFound or Ambiguous for the name.
        """
        self._keeper.prepare()
        path = self._names.path_of(name)

        def find() -> list[Row]:
            linking = {link.source for link in self._index.links(path)}
            similar = self._similar_notes(path, linking, limit)
            known = self._index.known(similar) if similar else {}
            return [known[other] for other in similar if other in known]

        rows = self._keeper.fresh(find, lambda rows: rows)
        return tuple(name_of(row.path) for row in rows)

    def _find_sources(
        self, path: str, query: str | None, limit: int, kinds: Sequence[str]
    ) -> _Sources:
        """Return the best notes that lead to a note, as the index has them."""
        stored_links = self._index.links(path)
        by_source = groupby(stored_links, lambda link: link.source)
        links = {source: list(links_of_source) for source, links_of_source in by_source}

        similar: Mapping[str, _Similar] = {}
        are_links_enough = "link" in kinds and len(links) >= limit and not query
        if "semantic" in kinds and not are_links_enough:
            similar = self._similar_notes(path, links, 3 * limit)
        if "link" not in kinds:
            links = {}

        notes = {source: links_of_source[0].source_id for source, links_of_source in links.items()}
        notes |= {source: other.note for source, other in similar.items()}
        scores = dict.fromkeys(links, 1.0)
        scores |= {source: other.similarity for source, other in similar.items()}
        if query and scores:
            scores = self._scores_for_query(query, scores, limit)

        falling_scores = judgement.falling_scores(scores.values())
        best = list(zip(scores, falling_scores, strict=True))[:limit]
        score_of_note = {notes[source]: score for source, score in best}
        details: Mapping[NoteId, Shown] = {}
        if score_of_note:
            no_places = dict.fromkeys(score_of_note, 0)
            details = self._index.shown(no_places, Question(like=path))
        return _Sources(
            [(details[note], score) for note, score in score_of_note.items() if note in details],
            links,
        )

    def _scores_for_query(
        self, query: str, scores: Mapping[str, float], limit: int
    ) -> dict[str, float]:
        """Return the scores of notes in a search for a query among them, best first.

        Those that the search does not find come last, with the score 0.
        """
        ranking = self._ranker.rank_among(query, tuple(scores), limit)
        hits = {hit.path: hit.score for hit in ranking.hits}
        ranked = {note.path: note.score for note in ranking.all_notes()}
        in_order = dict.fromkeys((*hits, *ranked, *scores), 0.0)
        return in_order | ranked | hits

    def _similar_notes(
        self, path: str, linking: Collection[str], limit: int
    ) -> dict[str, _Similar]:
        """Return the notes most similar to the mean of a note's passages, by path.

        Notes that link to it are left out; they count for the limit.
        """
        question = Question(like=path, nearest=4 * limit, narrow=Narrow(archive=self._archive))
        matches = self._index.ask(question)
        paths = matches.paths
        near = matches.near or {}
        similarities = {
            note: max(similarity.passage, similarity.score) for note, similarity in near.items()
        }
        others = [
            note
            for note, similarity in similarities.items()
            if similarity >= _MIN_SIMILARITY and paths[note] != path
        ]
        others.sort(key=lambda note: (-round(similarities[note], 6), paths[note]))
        return {
            paths[note]: _Similar(note, similarities[note])
            for note in others[:limit]
            if paths[note] not in linking
        }

    def _backlink(
        self, details: Shown, links: Sequence[StoredLink], score: float
    ) -> Backlink | None:
        """Return a note as a backlink; None if it was deleted."""
        row = details.row
        text = self._notes.text_of(row.path)
        if text is None:
            return None

        quotable = Quotable.of(text).whole
        if links:
            first, *others = _mentions_by_links(links, quotable)
        else:
            first, others = _mention_by_meaning(details, quotable), []
        return Backlink(
            name=name_of(row.path),
            title=row.title,
            kind="link" if links else "semantic",
            form=first.form,
            snippet=first.snippet,
            line=first.line,
            score=round(score, 4),
            also=tuple(others),
        )


def _check_kinds(kinds: Sequence[str]) -> None:
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise Invalid(
            f"no kind of backlink called {unknown[0][:40]!r}",
            hint='The kinds are "link" and "semantic".',
        )


def _mentions_by_links(links: Sequence[StoredLink], text: str) -> list[Mention]:
    """Return the links of a note, each with the text of its line."""
    lines = text.split("\n")
    mentions = []
    for link in links:
        line = "".join(lines[link.line - 1 : link.line])
        mentions.append(Mention(link.form, link.line, plain_text(line)[:_MAX_LINE_CHARACTERS]))
    return mentions


def _mention_by_meaning(details: Shown, text: str) -> Mention:
    """Return the passage of a note that is most similar, or its description."""
    passage = details.best
    if passage is None:
        return Mention("", 1, details.row.description)
    snippet = rank.snippet(text, passage, None, _MAX_PASSAGE_CHARACTERS)
    return Mention("", passage.line, snippet)
