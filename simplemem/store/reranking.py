"""The best notes of a search ordered again by a reranker; when it fails, the order stands and the answer says so."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from itertools import accumulate, islice

from simplemem.errors import SimplememError
from simplemem.index.door import NoteId
from simplemem.note.privacy import is_private_by_rule
from simplemem.providers.rerank import Reranker, from_0_to_1
from simplemem.search.rank import Ranked, passage_around
from simplemem.store.core import Core
from simplemem.store.recall import Ranking

_ORDER_STANDS = "the hits are ranked by words and meaning."
_LOG = logging.getLogger(__name__)


class Reranking:
    """The reranker of one store, asked with patience."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._settings = chosen = core.settings.rerank
        self._reranker: Reranker | None = None
        self.name, self.failure = str(chosen.provider), ""  # what is wrong with it, in a sentence
        model, key, key_setting, voyage = (
            chosen.model,
            chosen.api_key,
            "rerank.api_key",
            core.settings.voyage_ai,
        )
        if chosen.provider == "voyage":  # what a file of the original says of Voyage still holds
            model = model or voyage.rerank_model
            if key is None and voyage.api_key is not None:
                key, key_setting = voyage.api_key, "voyage_ai.api_key"
        try:
            self._reranker = Reranker(
                chosen.provider, url=chosen.url, model=model, key=key, key_setting=key_setting
            )
            self.name = self._reranker.name
        except SimplememError as error:
            self.failure = (
                f"The reranker {chosen.provider} cannot be used ({error.message}); {_ORDER_STANDS}"
            )
            _LOG.warning("no reranker: %s. %s", error.message, error.hint)

    def close(self) -> None:
        if self._reranker is not None:
            self._reranker.close()

    def reordered(self, ranking: Ranking, limit: int) -> Ranking:
        """The ranking in the reranker's order, or as it was and a sentence that says why."""
        as_it_was, reranker = ranking._replace(best=ranking.best[:limit]), self._reranker
        if not ranking.query.words or len(ranking.best) < 2:
            return as_it_was
        if reranker is None:
            return as_it_was._replace(degraded=f"{ranking.degraded} {self.failure}".strip())
        texts, until = (
            self._texts(ranking, remote=reranker.remote),
            time.monotonic() + self._settings.seconds,
        )
        if len(texts) < 2:
            return as_it_was
        try:
            given = reranker.scores(ranking.query.text, list(texts.values()), until)
        except SimplememError as error:
            said = error.message.removeprefix(f"{reranker.name} does not answer: ").removeprefix(
                f"{reranker.name} "
            )
            failure = f"The reranker {reranker.name} does not answer ({said}); {_ORDER_STANDS}"
            if not self.failure:  # the first of several; each answer tells of its own
                _LOG.warning("%s %s", failure, error.hint)
            self.failure = failure
            return as_it_was._replace(degraded=f"{ranking.degraded} {failure}".strip())
        self.failure, scores = "", dict(zip(texts, given, strict=True))
        before = {found.note: place for place, found in enumerate(ranking.best, 1)}
        said_of = {
            note: {"reranker": round(score, 4), "rank_before": before[note]}
            for note, score in scores.items()
        }
        about = {
            "name": reranker.name,
            "remote": reranker.remote,
            "candidates": self._settings.candidates,
        }
        return ranking._replace(
            best=reordered(ranking.best, scores)[:limit], reranked=said_of, reranker=about
        )

    def _texts(self, ranking: Ranking, *, remote: bool) -> dict[NoteId, str]:
        """By note: title, headings and best passage, if the index read them so; of none that is private to a remote."""
        texts: dict[NoteId, str] = {}
        for found in ranking.best[: self._settings.candidates]:
            note = ranking.shown[found.note]
            row = note.row
            try:
                file = self._core.vault.read(row.path)
            except SimplememError:
                continue
            is_private = row.private is not None or is_private_by_rule(
                row.path, self._core.settings.embed.private
            )
            if file.sha256 != row.sha256 or (remote and is_private):
                continue
            text, around = (
                file.data.decode("utf-8", "replace"),
                passage_around(note.passages, note.best),
            )
            headings = [
                heading for heading in (around.headings if around else ()) if heading != row.title
            ]
            passage = text[around.start : around.stop].strip() if around else row.description
            text = "\n".join((" > ".join((row.title, *headings)), passage))
            texts[found.note] = text[:4_000]  # passages are far shorter
        return texts


def reordered(ranked: Sequence[Ranked], scores: Mapping[NoteId, float]) -> list[Ranked]:
    """The notes by their scores, equal ones as they stood; one without a score keeps its place, with one between."""
    shares = dict(zip(scores, from_0_to_1(list(scores.values())), strict=True))
    best = iter(
        sorted(
            (found for found in ranked if found.note in scores),
            key=lambda found: -scores[found.note],
        )
    )
    mixed = [next(best) if found.note in scores else found for found in ranked]
    floor, shown = 0.0, list[float]()
    for found in reversed(mixed):
        floor = shares.get(found.note, floor)
        shown.append(shares.get(found.note, max(floor, found.score)))
    falling = accumulate(reversed(shown), min, initial=1.0)
    return [
        found._replace(score=score)
        for found, score in zip(mixed, islice(falling, 1, None), strict=True)
    ]
