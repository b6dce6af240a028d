"""Let a reranker order the best notes of a search.

If it fails, the order stays and the answer says so.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from simplemem.errors import SimplememError
from simplemem.index.api import NoteId
from simplemem.note.scopes import is_private_by_rule
from simplemem.providers.api import Reranker, RerankerConfig
from simplemem.providers.reranking import create_reranker, from_0_to_1
from simplemem.search.judgement import falling_scores
from simplemem.search.needs import NoteReader
from simplemem.search.rank import Ranked, passage_around
from simplemem.search.ranking import Ranking, RerankedNote, Reranking
from simplemem.settings.model import Settings

_MAX_TEXT_CHARACTERS = 4_000  # passages are far shorter
_ORDER_STAYS = "the hits are ranked by words and meaning."
_LOG = logging.getLogger(__name__)


class _Connection(NamedTuple):
    """The client of a reranker, or None and a sentence on why it cannot be used."""

    client: Reranker | None
    failure: str = ""


class NoteReranker:
    """Orders the best notes of a search by the scores of a reranker.

    Guards the connection to the reranker, which is made when it is first needed, and why the
    reranker failed last.
    """

    def __init__(self, notes: NoteReader, settings: Settings) -> None:
        self._notes = notes
        self._settings = settings
        self._connection: _Connection | None = None
        self._last_failure = ""
        self.max_candidates = settings.rerank.candidates

    @property
    def name(self) -> str:
        """The name of the reranker: its model and host, or its provider if it cannot be used."""
        client, _ = self._connect()
        if client is None:
            return self._settings.rerank.provider
        return client.name

    @property
    def failure(self) -> str:
        """What is wrong with the reranker, in a sentence; "" if it worked last."""
        return self._connect().failure or self._last_failure

    def close(self) -> None:
        """Close the connection to the reranker."""
        if self._connection is not None and self._connection.client is not None:
            self._connection.client.close()

    def _connect(self) -> _Connection:
        """Return the connection of this reranker, which is made by the first call."""
        if self._connection is None:
            self._connection = _connection_of(self._settings)
        return self._connection

    def rerank(self, ranking: Ranking, limit: int) -> Ranking:
        """Return a ranking with at most `limit` hits, in the order of the reranker.

        Sends the reranker the query and the best passages of up to `max_candidates` notes; never
        private notes if it is remote. For a query without words, or if there are fewer than two
        notes to send, the order stays. If the reranker fails, the order stays and `degraded` says
        why: no SimplememError is raised.
        """
        in_same_order = replace(ranking, hits=ranking.hits[:limit])
        if not ranking.query.words or len(ranking.hits) < 2:
            return in_same_order

        reranker, failure = self._connect()
        if reranker is None:
            return _with_failure(in_same_order, failure)

        texts_by_note = self._texts_of(ranking, is_remote=reranker.remote)
        if len(texts_by_note) < 2:
            return in_same_order

        texts = list(texts_by_note.values())
        deadline = time.monotonic() + self._settings.rerank.seconds
        try:
            values = reranker.scores(ranking.query.text, texts, deadline)
        except SimplememError as error:
            failure = self._note_failure(reranker, error)
            return _with_failure(in_same_order, failure)

        self._last_failure = ""
        scores = dict(zip(texts_by_note, values, strict=True))
        reranking = Reranking(
            name=reranker.name,
            is_remote=reranker.remote,
            max_candidates=self.max_candidates,
            notes=_reranked_notes(ranking.hits, scores),
        )
        hits = in_order_of(scores, ranking.hits)[:limit]
        return replace(ranking, hits=hits, reranking=reranking)

    def _note_failure(self, reranker: Reranker, error: SimplememError) -> str:
        """Store why the reranker failed, and return it as a sentence.

        Logs a warning, but not for a reranker that failed the last time too.
        """
        # The message may begin with the name, which the sentence has too.
        reason = error.message.removeprefix(f"{reranker.name} does not answer: ")
        reason = reason.removeprefix(f"{reranker.name} ")
        failure = f"The reranker {reranker.name} does not answer ({reason}); {_ORDER_STAYS}"
        if not self._last_failure:
            _LOG.warning("%s %s", failure, error.hint)
        self._last_failure = failure
        return failure

    def _texts_of(self, ranking: Ranking, *, is_remote: bool) -> dict[NoteId, str]:
        """Return the texts to compare with the query, by note.

        Notes that have changed since they were indexed are left out, and private ones if the
        reranker is remote.
        """
        texts: dict[NoteId, str] = {}
        for hit in ranking.hits[: self.max_candidates]:
            text = self._text_of(ranking, hit.note, is_remote=is_remote)
            if text is not None:
                texts[hit.note] = text
        return texts

    def _text_of(
        self,
        ranking: Ranking,
        note: NoteId,
        *,
        is_remote: bool,
    ) -> str | None:
        """Return a note's title, headings and best passage, for the reranker.

        Returns None if the file is gone, cannot be read or has changed since it was ranked, or if
        the note is private and the reranker is remote.
        """
        details = ranking.details[note]
        row = details.row
        try:
            file = self._notes.file(row.path)
        except SimplememError:
            return None
        if file is None or file.sha256 != row.sha256:
            return None

        rules = self._settings.embed.private
        is_private = row.private is not None or is_private_by_rule(row.path, rules)
        if is_remote and is_private:
            return None

        headings: Sequence[str] = ()
        passage = row.description
        position = passage_around(details.passages, details.best)
        if position is not None:
            headings = position.headings
            text = file.data.decode("utf-8", "replace")
            passage = text[position.start : position.stop].strip()

        other_headings = [heading for heading in headings if heading != row.title]
        title = " > ".join([row.title, *other_headings])
        compared_text = f"{title}\n{passage}"
        return compared_text[:_MAX_TEXT_CHARACTERS]


def _connection_of(settings: Settings) -> _Connection:
    """Return the connection that the settings describe.

    Raises no SimplememError: if the reranker cannot be used, logs a warning, and the connection has
    the reason.
    """
    try:
        return _Connection(_reranker_of(settings))
    except SimplememError as error:
        provider = settings.rerank.provider
        _LOG.warning("no reranker: %s. %s", error.message, error.hint)
        reason = f"The reranker {provider} cannot be used ({error.message})"
        return _Connection(None, f"{reason}; {_ORDER_STAYS}")


def _reranker_of(settings: Settings) -> Reranker:
    """Return the reranker of the settings. Raises what `create_reranker` raises."""
    rerank = settings.rerank
    model = rerank.model
    key = rerank.api_key
    key_setting = "rerank.api_key"
    if rerank.provider == "voyage":
        # The settings for Voyage that the original server had are still read.
        model = model or settings.voyage_ai.rerank_model
        if key is None and settings.voyage_ai.api_key is not None:
            key = settings.voyage_ai.api_key
            key_setting = "voyage_ai.api_key"
    config = RerankerConfig(model=model, url=rerank.url, api_key=key, key_setting=key_setting)
    return create_reranker(rerank.provider, config)


def _with_failure(ranking: Ranking, failure: str) -> Ranking:
    """Return a ranking with one more sentence in `degraded`."""
    return replace(ranking, degraded=f"{ranking.degraded} {failure}".strip())


def _reranked_notes(
    hits: Sequence[Ranked],
    scores: Mapping[NoteId, float],
) -> dict[NoteId, RerankedNote]:
    """Return for each scored note its score, and its rank in `hits`, from 1."""
    ranks = {hit.note: rank for rank, hit in enumerate(hits, 1)}
    notes: dict[NoteId, RerankedNote] = {}
    for note, score in scores.items():
        rounded_score = round(score, 4)
        notes[note] = RerankedNote(rounded_score, ranks[note])
    return notes


def in_order_of(
    scores: Mapping[NoteId, float],
    notes: Sequence[Ranked],
) -> list[Ranked]:
    """Return notes in the order of their scores; a note without a score keeps its place.

    Notes with equal scores keep their order. The scores of the result are from 0 to 1, and none is
    higher than that above it: a note without a score keeps the one it had, but is raised to the
    score of the next note that has one, and limited to the one above it.
    """
    ordered = list(notes)
    places = [place for place, note in enumerate(notes) if note.note in scores]
    scored = [notes[place] for place in places]
    scored.sort(key=lambda note: -scores[note.note])
    for place, note in zip(places, scored, strict=True):
        ordered[place] = note

    values = list(scores.values())
    scores_from_0_to_1 = dict(zip(scores, from_0_to_1(values), strict=True))

    # From the last note to the first: `minimum` is the score of the next scored note below.
    minimum = 0.0
    raised_scores: list[float] = []
    for note in reversed(ordered):
        minimum = scores_from_0_to_1.get(note.note, minimum)
        raised_score = max(minimum, note.score)
        raised_scores.append(scores_from_0_to_1.get(note.note, raised_score))

    raised_scores.reverse()
    new_scores = falling_scores(min(score, 1.0) for score in raised_scores)
    return [note._replace(score=score) for note, score in zip(ordered, new_scores, strict=True)]
