"""The best notes of a search ordered again by a reranker, when the settings name one.

Whatever goes wrong with it, the order of words and meaning stands and the answer says so; a search waits for it no longer
than `rerank.seconds`, and leaves one that keeps failing alone for a while. A private note is never sent anywhere.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from simplemem.config import Settings
from simplemem.errors import SimplememError
from simplemem.index.notes import Row
from simplemem.note.privacy import private_by_rule
from simplemem.search.excerpt import passage_around
from simplemem.search.query import Query
from simplemem.search.rank import Ranked
from simplemem.search.reorder import Reranked, reordered
from simplemem.services.rerank import Reranker, reranker_named
from simplemem.store.core import Core

_MOST_CHARACTERS = 4_000  # of a text that is scored; passages are far shorter
_ORDER_STANDS = "the order is that of words and meaning."
_LOG = logging.getLogger(__name__)


class Reranking:
    """The reranker of one store: loaded when it is first wanted, and asked with patience."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._index = core.index
        self._settings = core.settings.rerank
        self._rules = core.settings.embed.private
        self._guard = threading.Lock()
        self._loader: threading.Thread | None = None
        self._reranker: Reranker | None = None
        self._missing = ""
        self._last_failure = ""

    @property
    def wanted(self) -> bool:
        return self._settings.provider != "none"

    def reach(self, limit: int) -> int:
        """How many notes a search must rank so that the best `limit` can be found among them."""
        return max(limit, self._settings.candidates) if self.wanted else limit

    def reorder(
        self, query: Query, ranked: Sequence[Ranked], rows: Mapping[int, Row], vector: bytes | None
    ) -> tuple[list[Ranked], str]:
        """The notes in the reranker's order, or as they were and a sentence that says why."""
        if not self.wanted or not query.words or len(ranked) < 2:
            return list(ranked), ""
        reranker, why_not = self._loaded()
        if reranker is None:
            return list(ranked), why_not
        texts = self._texts(ranked[: self._settings.candidates], rows, vector, remote=reranker.remote)
        if len(texts) < 2:
            return list(ranked), ""
        try:
            scores = reranker.scores(query.text, list(texts.values()), time.monotonic() + self._settings.seconds)
        except SimplememError as error:
            said = error.message.removeprefix(f"{reranker.name} does not answer: ").removeprefix(f"{reranker.name} ")
            failure = f"The reranker {reranker.name} does not answer ({said}); {_ORDER_STANDS}"
            if not self._last_failure:  # the first of several; each answer tells of its own
                _LOG.warning("%s %s", failure, error.hint)
            self._last_failure = failure
            return list(ranked), failure
        self._last_failure = ""
        return reordered(ranked, dict(zip(texts, scores, strict=True))), ""

    def told(self, ranked: Sequence[Ranked]) -> dict[str, Any]:
        """What an explanation says of the reranker; nothing when the order is not its work."""
        if self._reranker is None or not any(isinstance(found, Reranked) for found in ranked):
            return {}
        about = {"name": self._reranker.name, "remote": self._reranker.remote, "candidates": self._settings.candidates}
        return {"reranker": about}

    def name(self) -> tuple[str, str]:
        """What `stats` says: the reranker, and what is wrong with it. It is not asked anything."""
        if not self.wanted:
            return "none", ""
        reranker, why_not = self._loaded()
        return (reranker.name if reranker is not None else self._settings.provider), why_not or self._last_failure

    def close(self) -> None:
        if self._reranker is not None:
            self._reranker.close()

    # -- loading

    def _loaded(self) -> tuple[Reranker | None, str]:
        """The reranker. A server answers without it while it is loaded; a command has no later, and waits."""
        patience = 0.0  # only the search that began the loading waits for it
        with self._guard:
            if self._reranker is None and not self._missing and self._loader is None:
                if not self._core.long_lived:
                    self._load()
                else:
                    self._loader = threading.Thread(target=self._load, name="simplemem-rerank", daemon=True)
                    self._loader.start()
                    patience = self._settings.seconds
            loader = self._loader
        if loader is not None:
            loader.join(patience)
            if loader.is_alive():
                return None, f"The reranker {self._settings.provider} is still being loaded; {_ORDER_STANDS}"
        return self._reranker, self._missing

    def _load(self) -> None:
        missing = f"The reranker {self._settings.provider} cannot be used ({{}}); {_ORDER_STANDS}"
        try:
            self._reranker = reranker_of(self._core.settings)
        except SimplememError as error:
            self._missing = missing.format(error.message)
            _LOG.warning("no reranker: %s. %s", error.message, error.hint)
        finally:
            if self._reranker is None:
                self._missing = self._missing or missing.format("it failed while it was loaded")

    # -- what is scored

    def _texts(
        self, ranked: Sequence[Ranked], rows: Mapping[int, Row], vector: bytes | None, *, remote: bool
    ) -> dict[int, str]:
        """By note, what is scored: title, headings and the best passage. A note that may not leave has no text here."""
        texts: dict[int, str] = {}
        places = self._index.places({found.place for found in ranked if found.place})
        for found in ranked:
            row = rows[found.note]
            text = self._text(row, remote=remote)
            if text is None:
                continue
            place = places.get(found.place)
            if place is None and vector is not None and (nearest := self._index.nearest_place(found.note, vector)):
                place = self._index.places([nearest]).get(nearest)
            around = passage_around(self._index.passages(found.note), place)
            headings = [heading for heading in (around.headings if around else ()) if heading != row.title]
            passage = text[around.start : around.stop].strip() if around else row.description
            texts[found.note] = "\n".join((" > ".join((row.title, *headings)), passage))[:_MOST_CHARACTERS]
        return texts

    def _text(self, row: Row, *, remote: bool) -> str | None:
        """A note's text, if it may be scored: it must be what the index read, and not private where it would be sent."""
        try:
            file = self._core.vault.read(row.path)
        except SimplememError:
            return None
        if file.sha256 != row.sha256 or (remote and not may_leave(row, self._rules)):
            return None
        return file.data.decode("utf-8", "replace")


def may_leave(row: Row, rules: Sequence[str]) -> bool:
    """Whether a note's text may be sent to another machine: not if it says so itself, nor if a rule does that is newer
    than the index."""
    return row.private is None and not private_by_rule(row.path, rules)


def reranker_of(settings: Settings) -> Reranker | None:
    """The reranker that the settings name."""
    chosen, voyage = settings.rerank, settings.voyage_ai
    key, key_setting, model = chosen.api_key, "rerank.api_key", chosen.model
    if chosen.provider == "voyage":
        model = model or voyage.rerank_model
        if key is None and voyage.api_key is not None:
            key, key_setting = voyage.api_key, "voyage_ai.api_key"
    return reranker_named(chosen.provider, url=chosen.url, model=model, key=key, key_setting=key_setting)
