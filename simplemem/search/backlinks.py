"""Find what leads to a note: notes that link to it, and notes with a similar meaning."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

from simplemem.errors import Invalid
from simplemem.index.api import IndexFilter, IndexQuery, NoteDetails, NoteId, NoteRow, StoredLink
from simplemem.index.service import IndexService
from simplemem.models import Backlink, Mention
from simplemem.note.names import name_of
from simplemem.note.plain_text import plain_text
from simplemem.search import judgement, rank
from simplemem.search.needs import IndexKeeper, NameResolver, NoteReader
from simplemem.search.pipeline import MAX_LIMIT, NoteRanker, checked_limit
from simplemem.search.quality import Quotable

KINDS = ("link", "semantic")

# Texts with a cosine below this have nothing in common.
_MIN_SIMILARITY = 0.35

_MAX_LINE_CHARACTERS = 300  # of the line of a link, as it is quoted
_MAX_PASSAGE_CHARACTERS = 200  # of a similar passage, as it is quoted


@dataclass(frozen=True, slots=True)
class _Source:
    """A note that leads to another one: by its `links` to it, or by its meaning if it has none."""

    note: NoteId
    path: str
    score: float
    links: Sequence[StoredLink] = ()


class BacklinkFinder:
    """Finds what leads to a note of one vault. Guards no state."""

    def __init__(
        self,
        index: IndexService,
        ranker: NoteRanker,
        *,
        keeper: IndexKeeper,
        names: NameResolver,
        notes: NoteReader,
        archive: tuple[str, ...],
    ) -> None:
        """Create a finder. `archive` are the folders whose notes never count as similar."""
        self._index = index
        self._ranker = ranker
        self._keeper = keeper
        self._names = names
        self._notes = notes
        self._archive = archive

    def backlinks(
        self,
        name: str,
        query: str | None,
        limit: int,
        kinds: Sequence[str],
    ) -> tuple[Backlink, ...]:
        """Return the notes that lead to one, each once: by links first, then by similar meaning.

        With a `query` they are in the order of a search for it, and those that it does not find
        come last. `kinds` has one or both of `KINDS`. A limit above 200 is read as 200. Raises
        Invalid for another kind or a limit below 1, and NotFound or Ambiguous for the name.
        """
        self._keeper.prepare(vectors="semantic" in kinds)
        path = self._names.path_of(name)
        limit = checked_limit(limit, MAX_LIMIT, "limit")
        _check_kinds(kinds)

        sources = self._keeper.revalidated(
            lambda: self._find_sources(path, query, limit, kinds),
            lambda sources: [details.row for _, details in sources],
        )
        backlinks: list[Backlink] = []
        for source, details in sources:
            backlink = self._backlink(source, details)
            if backlink is not None:
                backlinks.append(backlink)
        return tuple(backlinks)

    def related(self, name: str, limit: int) -> tuple[str, ...]:
        """Return the names of notes with a similar meaning, the most similar first.

        Notes that link to the note are left out, but count for the limit, so fewer may be returned.
        Returns () if nothing is similar, or if the index has no vectors. Raises NotFound or
        Ambiguous for the name.
        """
        self._keeper.prepare()
        path = self._names.path_of(name)

        def find() -> list[NoteRow]:
            linking = {link.source for link in self._index.links(path)}
            sources = self._similar_sources(path, linking, limit)
            if not sources:
                return []

            similar_paths = [source.path for source in sources]
            rows = self._index.rows(similar_paths)
            return [rows[similar] for similar in similar_paths if similar in rows]

        rows = self._keeper.revalidated(find, lambda rows: rows)
        return tuple(name_of(row.path) for row in rows)

    def _find_sources(
        self,
        path: str,
        query: str | None,
        limit: int,
        kinds: Sequence[str],
    ) -> list[tuple[_Source, NoteDetails]]:
        """Return the best notes that lead to a note, as the index has them, with their details."""
        linking = self._linking_sources(path)
        sources: list[_Source] = []
        if "link" in kinds:
            sources += linking

        # A query may put similar notes before linking ones, so they are needed even if the linking
        # ones reach the limit.
        needs_similar = len(sources) < limit or query
        if "semantic" in kinds and needs_similar:
            linking_paths = {source.path for source in linking}
            # More than the limit: linking notes among them are left out, and a query reorders them.
            sources += self._similar_sources(path, linking_paths, 3 * limit)

        if query and sources:
            sources = self._in_order_of(query, sources, limit)
        best = _with_falling_scores(sources)[:limit]
        if not best:
            return []

        # `best` of the details is then the passage that is most similar, because no place is named.
        notes = [source.note for source in best]
        no_places = dict.fromkeys(notes, 0)
        details = self._index.details(no_places, IndexQuery(like=path))
        return [(source, details[source.note]) for source in best if source.note in details]

    def _linking_sources(self, path: str) -> list[_Source]:
        """Return the notes with links to a note, each with its links and the score 1."""
        # `groupby` needs the links of a note side by side, as the index returns them.
        all_links = self._index.links(path)
        by_source = groupby(all_links, lambda link: link.source)
        sources: list[_Source] = []
        for source_path, links_of_source in by_source:
            links = list(links_of_source)
            source = _Source(
                note=links[0].source_id,
                path=source_path,
                score=1.0,
                links=links,
            )
            sources.append(source)
        return sources

    def _similar_sources(
        self,
        path: str,
        linking: Collection[str],
        limit: int,
    ) -> list[_Source]:
        """Return the notes most similar to the mean of a note's passages, the most similar first.

        The notes at the paths `linking` are left out; they count for the limit. Notes with a
        similarity below 0.35, and those in the archive, are left out too. Returns none if the index
        has no vectors.
        """
        question = IndexQuery(
            like=path,
            max_nearest=4 * limit,
            narrow=IndexFilter(archive=self._archive),
        )
        matches = self._index.ask(question)
        paths = matches.paths
        similar: list[_Source] = []
        if matches.similarities is None:
            return []
        by_passage, _, scores = matches.similarities
        for note, score in scores.items():
            similarity = max(by_passage[note], score)
            if similarity >= _MIN_SIMILARITY and paths[note] != path:
                similar.append(_Source(note, paths[note], similarity))

        similar.sort(key=lambda source: (-round(source.score, 6), source.path))
        return [source for source in similar[:limit] if source.path not in linking]

    def _in_order_of(
        self,
        query: str,
        sources: Sequence[_Source],
        limit: int,
    ) -> list[_Source]:
        """Return notes in the order of a search for a query among them, with its scores.

        The first `limit` notes are the hits of the search. Those that the search does not find come
        last, with the score 0.
        """
        by_path = {source.path: source for source in sources}
        ranking = self._ranker.rank_among(query, tuple(by_path), limit)
        scores_of_hits = {hit.path: hit.score for hit in ranking.hits}
        scores_by_signals = {note.path: note.score for note in ranking.all_notes()}

        # A path keeps its first place: that of a hit, else that by signals, else that in `sources`.
        paths_in_order = (*scores_of_hits, *scores_by_signals, *by_path)
        scores = dict.fromkeys(paths_in_order, 0.0)
        scores |= scores_by_signals
        scores |= scores_of_hits
        return [replace(by_path[path], score=score) for path, score in scores.items()]

    def _backlink(self, source: _Source, details: NoteDetails) -> Backlink | None:
        """Return a note as a backlink, with its text as it is now; None if it was deleted."""
        row = details.row
        text = self._notes.text_of(row.path)
        if text is None:
            return None

        quotable = Quotable.of(text).whole
        if source.links:
            kind: Literal["link", "semantic"] = "link"
            mentions = _mentions_by_links(source.links, quotable)
        else:
            kind = "semantic"
            mentions = [_mention_by_meaning(details, quotable)]

        first = mentions[0]
        return Backlink(
            name=name_of(row.path),
            title=row.title,
            kind=kind,
            form=first.form,
            snippet=first.snippet,
            line=first.line,
            score=round(source.score, 4),
            also=tuple(mentions[1:]),
        )


def _with_falling_scores(sources: Sequence[_Source]) -> list[_Source]:
    """Return the notes with scores of which none is higher than that of the note above."""
    scores = judgement.falling_scores(source.score for source in sources)
    return [replace(source, score=score) for source, score in zip(sources, scores, strict=True)]


def _check_kinds(kinds: Sequence[str]) -> None:
    """Raise Invalid if one of these is no kind of `KINDS`."""
    for kind in kinds:
        if kind not in KINDS:
            raise Invalid(
                f"no kind of backlink called {kind[:40]!r}",
                hint='The kinds are "link" and "semantic".',
            )


def _mentions_by_links(links: Sequence[StoredLink], text: str) -> list[Mention]:
    """Return a mention for each link, with its line as plain text, cut to 300 characters.

    The line is "" if the text no longer has it.
    """
    lines = text.split("\n")
    mentions: list[Mention] = []
    for link in links:
        line = "".join(lines[link.line - 1 : link.line])
        snippet = plain_text(line)[:_MAX_LINE_CHARACTERS]
        mentions.append(Mention(link.form, link.line, snippet))
    return mentions


def _mention_by_meaning(details: NoteDetails, text: str) -> Mention:
    """Return the passage of a note that is most similar; its description if that is not known."""
    passage = details.best
    if passage is None:
        return Mention("", 1, details.row.description)
    snippet = rank.snippet(text, passage, None, _MAX_PASSAGE_CHARACTERS)
    return Mention("", passage.line, snippet)
