"""How similar notes are to a question, or which of them answer it, for packages above the store."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from simplemem.index.api import IndexFilter, IndexQuery
from simplemem.index.engine import Engine
from simplemem.index.service import IndexService
from simplemem.search.context import ContextBuilder
from simplemem.search.judgement import ANSWERED
from simplemem.search.packing import Piece
from simplemem.search.pinned import CONSTRAINT
from simplemem.search.pipeline import NoteRanker, degradation_of
from simplemem.search.quality import HitQuality
from simplemem.search.query import read_query
from simplemem.search.ranking import Ranking
from simplemem.store.embedding import Embedding
from simplemem.store.vault_index import IndexKeeper, IndexMonitor

_MAX_CHARACTERS_OF_ALL_PINNED = 4_000
_MAX_CHARACTERS_PER_PINNED = 1_000

_SEARCH_OPERATOR = re.compile(r'["*]|(?<!\S)-|(?<=\w):')


class Likeness(NamedTuple):
    """How similar notes are to a question, by path.

    `meaning` is the cosine of the best block; `words` is the score by words as a share of the best
    one. `missing` says why nothing was compared by meaning, "" if it was.
    """

    meaning: dict[str, float]
    words: dict[str, float]
    missing: str

    def best_paths(self, most: int) -> list[str]:
        """Return the paths of the `most` best notes by meaning, then of as many by words.

        Each path is returned once.
        """
        paths: dict[str, None] = {}
        for scores in (self.meaning, self.words):
            best_first = sorted(scores, key=scores.__getitem__, reverse=True)
            paths |= dict.fromkeys(best_first[:most])
        return list(paths)

    def scores(self, weight: float, least: float) -> dict[str, tuple[float, float, float]]:
        """Return, by path, (score, similarity by meaning, similarity by words), each from 0 to 1.

        The similarity by meaning is (1 + cosine) / 2, and has `weight` in the score; that by words
        has the rest. Notes without a vector are left out, and those whose score and similarity by
        meaning are both below `least`. If nothing was compared by meaning, the score is that by
        words, and only notes without a word of the question are left out.
        """
        scores = {}
        for path in self.words if self.missing else self.meaning:
            similarity = (1 + self.meaning.get(path, -1.0)) / 2
            words = self.words.get(path, 0.0)
            if self.missing:
                scores[path] = (words, similarity, words)
                continue
            score = weight * similarity + (1 - weight) * words
            if max(score, similarity) >= least:
                scores[path] = (score, similarity, words)
        return scores


class Answers(NamedTuple):
    """The notes that answer a question, with their scores, and their passages; both best first.

    The best note has the score 1. `quality` says how good it is in itself, from 0 to 1. `degraded`
    says why the search was less than it could be, `reranker` which one ordered the notes; both are
    "" if there is nothing to say.
    """

    notes: dict[str, float]
    passages: list[Piece]
    only_nearest: bool = False  # no note answers it; these are the nearest
    notice: str = ""  # the sentence that says so
    quality: float = 0.0
    degraded: str = ""
    reranker: str = ""
    by_meaning: bool = False  # not by words alone


class Pinned(NamedTuple):
    """What is relevant to every question: constraints of a user profile, or a pinned note."""

    name: str  # of the note
    text: str
    is_constraint: bool


class NoteSimilarity:
    """Compares notes with questions, and has the vectors of notes. Guards no state of its own."""

    def __init__(
        self,
        index: IndexService,
        database: Engine,
        *,
        keeper: IndexKeeper,
        monitor: IndexMonitor,
        embedding: Embedding,
        ranker: NoteRanker,
        quality: HitQuality,
        context: ContextBuilder,
    ) -> None:
        self._index = index
        self._database = database
        self._keeper = keeper
        self._monitor = monitor
        self._embedding = embedding
        self._ranker = ranker
        self._quality = quality
        self._context = context

    def likeness(self, question: str, paths: Collection[str], most: int = 0) -> Likeness:
        """Return how similar the notes at `paths` are to a question.

        `most` is the number of notes to return, the most similar ones; 0 stands for all. Notes
        without a vector are absent from `meaning`, those without a word of the question from
        `words`. Notes excluded from search are compared too. The index is brought up to date first,
        and the embedder makes the question's vector; if it fails, `missing` says so. Both maps are
        empty if the question has no words. If the index is incomplete, that becomes a notice.
        """
        self._keeper.prepare()
        self._monitor.state_of_answer(self._monitor.state_if_behind())  # only for its notice
        query = read_query(as_words(question))
        if not query.words:
            return Likeness({}, {}, "The query contains no words.")
        vector, problem = self._embedding.embed_query(query.text)
        if not paths:
            return Likeness({}, {}, problem)

        count = most or len(paths)
        index_query = IndexQuery(
            terms=query.terms(),
            vector=vector,
            narrow=IndexFilter(only=tuple(paths), hidden=True),
            notes=count,
            max_nearest=count,
            rescore_depth=0,
        )
        answer = self._index.ask(index_query)

        best_score = _best_of(list(answer.notes.values()))
        words = {}
        for note, score in answer.notes.items():
            path = answer.paths[note]
            words[path] = score / best_score

        meaning = {}
        if answer.similarities is not None:
            for note, similarity in answer.similarities.blocks.items():
                path = answer.paths[note]
                meaning[path] = similarity

        missing = ""
        if not meaning:
            missing = problem or "There are no vectors yet."
        return Likeness(meaning, words, missing)

    def answers(
        self,
        question: str,
        paths: Collection[str],
        limit: int,
        *,
        passages: int = 0,
        rerank: bool = True,
    ) -> Answers:
        """Return the best `limit` of the notes at `paths` for a question, and their best passages.

        At most `passages` passages are returned. The question is read as words only: it has no
        search operators. With `rerank`, the reranker of the settings, if any, orders the best
        notes. The index is brought up to date first. If it is incomplete, `degraded` says so, and
        the reason becomes a notice. Without `paths`, the answer is empty.
        """
        if not paths:
            return Answers({}, [])

        self._keeper.prepare()
        state_behind = self._monitor.state_if_behind()
        words = as_words(question)
        ranking = self._ranker.rank_among(words, tuple(paths), limit, rerank=rerank)
        best_score = _best_of([hit.score for hit in ranking.hits])

        state = self._monitor.state_of_answer(state_behind, ranking.status)
        degraded = degradation_of(ranking)
        if not state.is_ready:
            degraded = f"{degraded} {state.reason}".strip()

        quality = 0.0
        if ranking.hits:
            quality = self._quality.score(ranking, ranking.hits[0])
        # While notes are missing from the index, one of them may be the answer.
        verdict = self._quality.judge(ranking) if state.is_ready else ANSWERED

        reranker = ""
        if ranking.reranking is not None:
            reranker = ranking.reranking.name
        return Answers(
            notes={hit.path: _share(hit.score / best_score) for hit in ranking.hits},
            passages=self._passages_of(ranking, passages, best_score),
            only_nearest=verdict.only_nearest,
            notice=verdict.notice,
            quality=_share(quality),
            degraded=degraded,
            reranker=reranker,
            by_meaning=ranking.mode != "text",
        )

    def always_relevant(self, scope: str | None) -> list[Pinned]:
        """Return what is relevant to every question of a user: constraints, then pinned notes.

        With None, it is that of all users. Each text is cut at 1,000 characters, and all together
        at 4,000. The index is brought up to date first.
        """
        pinned = []
        room = _MAX_CHARACTERS_OF_ALL_PINNED
        for piece in self._context.always_relevant(scope):
            text = piece.quoted.strip()
            text = _cut(text, min(room, _MAX_CHARACTERS_PER_PINNED))
            if text:
                pinned.append(Pinned(piece.name, text, is_constraint=piece.via == CONSTRAINT))
                room -= len(text)
        return pinned

    def _passages_of(self, ranking: Ranking, limit: int, best_score: float) -> list[Piece]:
        """Return the best passages of ranked notes, with their scores as shares of the best.

        At most `limit` are returned.
        """
        if not limit:
            return []
        pieces = []
        for piece in self._context.pieces_of(ranking)[:limit]:
            share = min(1.0, piece.score / best_score)
            pieces.append(replace(piece, text=piece.quoted, score=share))
        return pieces

    @property
    def embedder(self) -> str:
        """The name of the embedder whose vectors are in use, "" if there are none."""
        space = self._index.progress().space
        return space.embedder if space.dimension else ""

    def vector_of(self, path: str) -> tuple[list[float], str] | None:
        """Return the vector of a note and the name of its embedder; None if it has none."""
        embedder = self.embedder
        vectors = self.vectors_of([path])
        if not embedder or path not in vectors:
            return None
        return vectors[path], embedder

    def vectors_of(self, paths: Sequence[str]) -> dict[str, list[float]]:
        """Return the vectors of notes by path: the mean of their passages' vectors, of length one.

        Notes without one are absent; so are all if no embedder has made vectors.
        """
        if not self.embedder:
            return {}
        rows = self._index.rows(paths)
        means = {}
        for path in paths:
            if path in rows:
                vectors = self._index.vectors_of(rows[path].id)
                if vectors:
                    means[path] = _mean_of(vectors)
        return means

    def take_vectors(self, other: NoteSimilarity) -> None:
        """Copy vectors from another store's index into this one, wherever the text is the same.

        Only vectors that an embedding service made are copied; the bundled model makes them anew.
        Nothing is copied if this store's embedder is no service.
        """
        self._embedding.reuse_vectors(other._database, self._database)


def _best_of(scores: Sequence[float]) -> float:
    """Return the best score, by which the others are divided; 1 if there is none above 0."""
    return max(scores, default=0.0) or 1.0


def _cut(text: str, max_characters: int) -> str:
    """Return a text, cut with `…` at the end of a line or a word if it is too long."""
    if len(text) <= max_characters:
        return text
    cut = text[:max_characters]
    end = max(cut.rfind("\n"), cut.rfind(" "))
    return f"{cut[:end].rstrip()}…" if end > 0 else ""


def _share(score: float) -> float:
    """Return a score as a number from 0 to 1."""
    return max(0.0, min(1.0, score))


def _mean_of(vectors: Sequence[bytes]) -> list[float]:
    """Return the mean of int8 vectors, at length one."""
    import numpy as np

    rows = np.array([np.frombuffer(vector, np.int8) for vector in vectors], np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    total = (rows / np.maximum(lengths, 1)).sum(axis=0)
    mean: list[float] = np.round(total / (np.linalg.norm(total) or 1), 6).tolist()
    return mean


def as_words(question: str) -> str:
    """Return a question without the characters that a search takes for operators."""
    return _SEARCH_OPERATOR.sub(" ", question)
