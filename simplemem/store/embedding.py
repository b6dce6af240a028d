"""The embedder of a store and its vectors. Words never wait for it; one process of a vault makes vectors at a time, so
that no text is paid for twice; an embedder that fails is left alone for a while and never replaced by another."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from simplemem.config import Settings
from simplemem.errors import SimplememError, Unavailable
from simplemem.index.connection import Tables
from simplemem.index.door import Progress, QueryVector, Standing
from simplemem.index.engine import Damaged
from simplemem.index.sidecar import Sidecar
from simplemem.index.text import Waiting
from simplemem.index.vectors import Filling, adopt, take
from simplemem.note.words import without_stop_words
from simplemem.providers.embed import Choice, Embedder, ServiceEmbedder, embedder_named
from simplemem.providers.wordllama import WordLlama
from simplemem.search.rank import Coverage
from simplemem.vault.folder.lock import FileLock
from simplemem.vault.folder.vault import Vault

_FIRST_WAIT, _LONGEST_WAIT = 2.0, 300.0  # seconds between two tries of the background
_TURN_SECONDS = 1.0  # how often the background looks whether another process is done
_MAX_NOTES_UNASKED = 500  # that the bundled word vectors embed in well under a second
_FAILED = "embedder_failed"  # in the index's notes on itself, until vectors are made again
_LOG = logging.getLogger(__name__)


class Embedding:
    """What a store knows of its embedder. Any thread may ask; vectors are made by one at a time."""

    def __init__(self, settings: Settings, vault: Vault, index: Sidecar) -> None:
        self._settings, self._vault, self._index = settings, vault, index
        self._guard = threading.RLock()
        self._wanted: tuple[Embedder | None, str] | None = None
        self._making = threading.Lock()
        self._turn_file = index.path.with_suffix(".embedding")
        self._turn = FileLock(str(self._turn_file.parent), self._turn_file.name)
        self._begun = False  # whether our embedder has begun while this process lives
        self._waits, self._not_before = _FIRST_WAIT, 0.0
        self._failure = ""  # what the embedder last failed with, until it answers again
        self._coverage: Coverage | None = None  # made for the first question

    def close(self) -> None:
        """Let go of every connection."""
        with self._guard:
            embedder, self._wanted = self._wanted, None
        if embedder is not None and embedder[0] is not None:
            embedder[0].close()

    def _called_for(self) -> tuple[str, bool]:
        """The name of the embedder that the settings ask for, "" for none, and whether it is remote. Loads no model."""
        if self._settings.embed.provider == "wordllama":
            return WordLlama.name, WordLlama.remote
        embedder, _ = self.wanted()
        return (embedder.name, embedder.remote) if embedder is not None else ("", False)

    def is_wanted(self) -> bool:
        """Whether the settings ask for vectors, and there is somebody to make them."""
        return self._called_for()[0] != ""

    def is_remote(self) -> bool:
        """Whether vectors come from a service."""
        return self._called_for()[1]

    def wanted(self) -> tuple[Embedder | None, str]:
        """The embedder that the settings ask for, loaded on first use; or why there is none."""
        with self._guard:
            if self._wanted is None:
                try:
                    self._wanted = (
                        embedder_named(self._settings.embed.provider, choice_of(self._settings)),
                        "",
                    )
                except SimplememError as error:
                    self._wanted = None, f"Searching by words only: {error.message}."
                    _LOG.warning("no embedder: %s", error)
            return self._wanted

    def coverage(self) -> Coverage | None:
        """How words cover passages by our own vectors of words; None with another embedder."""
        embedder = self.wanted()[0]
        if not isinstance(embedder, WordLlama):
            return None
        if self._coverage is None or self._coverage.vectors is not embedder:
            self._coverage = Coverage(embedder)
        return self._coverage

    def question(
        self, text: str, standing: Standing | None = None
    ) -> tuple[QueryVector | None, str]:
        """The vector of a question, where the index has vectors of our embedder; and what lessens it, in a sentence."""
        embedder, why_not = self.wanted()
        standing = standing or self._index.standing()
        if embedder is None:
            return None, why_not
        if (space := standing.space).embedder != embedder.name:
            made = f"Searched by words only: no vectors of {embedder.name} exist yet (`simplemem index` creates them)."
            return None, self.trouble() or made
        if not space.dimension:
            none = "Searched by words only: no note has a vector yet."
            return None, (self.trouble() or none) if standing.waiting else ""
        asked = text if embedder.reads_sentences else without_stop_words(text)
        try:
            vector = embedder.query(
                asked, deadline=time.monotonic() + self._settings.embed.query_seconds
            )
        except Unavailable as error:
            return None, f"{_said(embedder.name, error)}; searched by words only."
        if len(vector) != space.dimension:
            anew = "searched by words only until `simplemem index --rebuild`."
            return (
                None,
                f"The embedder {embedder.name} returns vectors whose dimensions differ from the index; {anew}",
            )
        return QueryVector(vector, embedder.name), self.trouble()

    def trouble(self) -> str:
        """Why vectors are not being made just now; nothing when they are."""
        return (
            f"{self._failure}; new texts are searched by words only until it works again."
            if self._failure
            else ""
        )

    def fill(
        self,
        progress: Progress | None,
        *,
        begin: bool,
        ready: Waiting | None,
        into: Tables | None = None,
        work_seconds: float = float("inf"),
    ) -> int:
        """Make the vectors that are missing, once no other process is at it, and return of how many notes.

        With `begin` a person asked for it: all are made, and a new embedder may begin. Without it somebody waits for
        the answer to a question: only a few vectors are made, for the time of a question, and none where many are
        missing. The question is then answered by words, and says so. In either case it ends after `work_seconds` of CPU
        time, and keeps what it has made.
        """
        embedder, _ = self.wanted()
        if embedder is None or not (begin or self._may_begin(embedder, first=False)):
            return 0
        max_notes = embedder.batch if embedder.reads_sentences else _MAX_NOTES_UNASKED
        if not begin and self.pending() > max_notes:
            return 0
        ends = float("inf") if begin else time.monotonic() + self._settings.embed.query_seconds
        if not self._making.acquire(timeout=-1 if begin else self._settings.embed.query_seconds):
            return 0  # the background of this process is at it
        try:
            while not self._turn.take_or_keep() and self._turn_file.exists():
                if not begin:
                    return 0
                time.sleep(0.1)
            private, database = self._settings.embed.private, into or self._index.database
            work_ends = time.process_time() + work_seconds

            def is_late() -> bool:
                return time.monotonic() > ends or time.process_time() > work_ends

            return self._run(
                Filling(self._vault, database, embedder, progress, is_late, ready, private)
            )
        finally:
            self._making.release()

    def fill_in_background(
        self, ready: Waiting | None, stopped: Callable[[], bool]
    ) -> float | None:
        """Embed what is missing, for a server, which never waits for others; returns when to try again, in seconds."""
        if (embedder := self.wanted()[0]) is None:
            return None
        if (rest := self._not_before - time.monotonic()) > 0:
            return rest
        if not self._may_begin(embedder, first=True):
            return None
        if not self._making.acquire(blocking=False):
            return _TURN_SECONDS
        try:
            if not self._turn.take_or_keep():
                return _TURN_SECONDS if self.pending() else None
            private, database = self._settings.embed.private, self._index.database
            self._run(Filling(self._vault, database, embedder, None, stopped, ready, private))
            if self._failure and not stopped():
                _LOG.warning("%s", self._failure)  # a command says it in its answer
        finally:
            self._making.release()
        return max(0.0, self._not_before - time.monotonic()) if self._failure else None

    def take_over(self, old: Tables, into: Tables, progress: Progress | None = None) -> int:
        """Take what a service made for another index, wherever the text is the same: none is paid for twice. Returns of
        how many notes."""
        if not isinstance(embedder := self.wanted()[0], ServiceEmbedder):
            return 0
        width = None
        with suppress(
            Unavailable
        ):  # what it gives now; a service that is away is believed to be the one it was
            width = len(
                embedder.query(
                    "memory", deadline=time.monotonic() + self._settings.embed.query_seconds
                )
            )
        adopt(into, embedder)
        with suppress(Damaged):  # what cannot be read there is made again
            return take(old, into, width, progress)
        return 0

    def _may_begin(self, embedder: Embedder, *, first: bool) -> bool:
        """Whether vectors may be made unasked. `first`: a new embedder may take another's place, once in a process."""
        return self._index.standing().space.embedder in ("", embedder.name) or (
            first and not self._begun
        )

    def _run(self, filling: Filling) -> int:
        """Make vectors, and give back our turn."""
        self._begun = True
        try:
            done = filling.run()
        except Unavailable as error:
            if not filling.stopped():
                self._failure = _said(filling.embedder.name, error)
                self._not_before = time.monotonic() + self._waits
                self._waits = min(2 * self._waits, _LONGEST_WAIT)
                with suppress(
                    SimplememError
                ):  # for `stats` of another process: what went wrong last, and when
                    self._index.database.set_meta(
                        _FAILED, f"{time.strftime('%Y-%m-%dT%H:%M:%S')}: {self._failure}"
                    )
            return 0
        finally:
            self._turn.release()
        if self._index.database.meta(_FAILED):
            self._index.database.set_meta(_FAILED, "")
        self._failure, self._waits, self._not_before = "", _FIRST_WAIT, 0.0
        return done

    def pending(self, standing: Standing | None = None) -> int:
        """Notes that wait for a vector of the embedder that the settings ask for."""
        name, remote = self._called_for()
        if not name:
            return 0
        standing = standing or self._index.standing()
        return (
            standing.waiting
            if standing.space.embedder == name
            else self._index.embedded(name, remote).waiting
        )

    def kept_private(self) -> int:
        """Notes that have no vector because their text stays on this machine."""
        return self._index.embedded("", False).private if self._called_for()[1] else 0

    def facts(self) -> dict[str, Any]:
        """For `stats`: who makes vectors, how many notes have them, and why others have none."""
        wanted, why_not = self.wanted()
        now = self._index.standing().space
        waiting, total, *_ = (
            self._index.embedded(now.embedder, now.remote) if now.embedder else (0, 0)
        )
        return {
            "wanted": wanted.name if wanted is not None else "none",
            "in_use": now.embedder or "none",
            "dimension": now.dimension,
            "remote": self._called_for()[1],
            "notes_with_vectors": max(0, total - waiting),
            "waiting": self.pending(),
            "private": self.kept_private(),
            "refused": [
                {"path": path, "why": why} for path, why in self._index.embedded("", False).refused
            ],
            "last_failure": self._index.database.meta(_FAILED) or "",
            "trouble": self.trouble()
            or (why_not if self._settings.embed.provider != "none" else ""),
        }


def choice_of(settings: Settings) -> Choice:
    """The settings `embed.*` as the providers take them. What a file of the original says of Voyage still holds."""
    wanted, original = settings.embed, settings.voyage_ai
    model, key = wanted.model, wanted.api_key
    if wanted.provider == "voyage":
        model, key = model or original.model, key or original.api_key
    return Choice(
        model, wanted.url, key, wanted.dimensions, wanted.batch, wanted.timeout_seconds, wanted.query_prefix,
        wanted.document_prefix, wanted.keep_alive,
    )  # fmt: skip


def _said(name: str, error: Unavailable) -> str:
    return f"The embedder {error.message if error.message.startswith(name) else f'{name}: {error.message}'}"
