"""The embedder of a store, and when vectors are made with it.

A search by words never waits for vectors. One process of a vault makes vectors at a time, so that
no service is paid twice for a text. After a failure, the background thread waits a while before it
tries the embedder again. If the embedder of the settings does not work, no other one is used.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from simplemem.errors import SimplememError, Unavailable
from simplemem.index.api import IndexProgress, Progress, VectorSpace
from simplemem.index.embeddings import EmbeddingJob, copy_vectors, set_embedder
from simplemem.index.engine import Damaged, Engine
from simplemem.index.service import IndexService
from simplemem.index.text import EmbeddingQueue
from simplemem.index.vectors import QueryVector
from simplemem.note.words import without_stop_words
from simplemem.providers.api import Embedder, EmbedderConfig
from simplemem.providers.embeddings import ServiceEmbedder, create_embedder
from simplemem.providers.word_vectors import Multilingual, WordLlama, shared_wordllama
from simplemem.search.judgement import Coverage
from simplemem.settings.model import Settings
from simplemem.vault.folder.lock import FileLock
from simplemem.vault.source import NoteSource

_FIRST_DELAY = 2.0  # seconds until the background thread tries again; doubled with each failure
_MAX_DELAY = 300.0
_TURN_SECONDS = 1.0  # how often the background thread looks whether another process is done
_POLL_SECONDS = 0.1  # the same for a command that waits
_MAX_NOTES_PER_QUERY = 500  # that the bundled word vectors embed in well under a second
_FAILURE_KEY = "embedder_failed"  # in the index's table `meta`: the last failure and its time

_LOG = logging.getLogger(__name__)


class LoadedEmbedder(NamedTuple):
    """The embedder that the settings name. If there is none, `problem` says why."""

    embedder: Embedder | None
    problem: str


class EmbeddedQuery(NamedTuple):
    """The vector of a query, and a sentence for the user about it.

    `problem` says why there is no vector, or why some notes have none; "" if nothing is wrong.
    """

    vector: QueryVector | None
    problem: str


class Embedding:
    """The embedder of one store: loads it, embeds queries, and makes missing vectors.

    Any thread may call it. One thread of one process makes vectors at a time.
    """

    def __init__(self, settings: Settings, vault: NoteSource, index: IndexService) -> None:
        self._settings = settings
        self._vault = vault
        self._index = index

        self._guard = threading.RLock()  # of the loaded embedder
        self._loaded: LoadedEmbedder | None = None
        self._coverage: Coverage | None = None  # made for the first query

        self._making = threading.Lock()  # held by the thread that makes vectors
        self._turn_file = index.path.with_suffix(".embedding")
        self._turn = FileLock(str(self._turn_file.parent), self._turn_file.name)
        self._has_begun = False  # whether this process has made vectors with our embedder

        self._failure = ""  # the last one, until the embedder answers again
        self._delay = _FIRST_DELAY
        self._retry_at = 0.0

    def close(self) -> None:
        """Close the embedder's connections. A later call may load the embedder again."""
        with self._guard:
            loaded = self._loaded
            self._loaded = None
        if loaded is not None and loaded.embedder is not None:
            loaded.embedder.close()

    def load(self) -> LoadedEmbedder:
        """Return the embedder that the settings name, or the problem with it.

        The first call loads it, which may take a moment. Never raises for a bad setting: that is
        logged.
        """
        with self._guard:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _load(self) -> LoadedEmbedder:
        """Create the embedder of the settings. Never raises: logs and returns what is wrong."""
        try:
            embedder = create_embedder(self._settings.embed.provider, choice_of(self._settings))
        except SimplememError as error:
            _LOG.warning("no embedder: %s", error)
            return LoadedEmbedder(None, f"Searching by words only: {error.message}.")
        return LoadedEmbedder(embedder, "")

    def _configured(self) -> tuple[str, bool]:
        """Return the name of the embedder that the settings name, and whether it is remote.

        The name is "" if there is none. Any embedder but the bundled one is loaded for this.
        """
        if self._settings.embed.provider == "wordllama":
            return Multilingual.name, Multilingual.remote
        embedder = self.load().embedder
        if embedder is None:
            return "", False
        return embedder.name, embedder.remote

    def is_available(self) -> bool:
        """Return whether the settings name an embedder that can be loaded.

        Loads any embedder but the bundled one, which may take a moment. Never raises.
        """
        name, _ = self._configured()
        return name != ""

    def is_remote(self) -> bool:
        """Return whether vectors come from a service; False if there is no embedder.

        Loads any embedder but the bundled one, which may take a moment. Never raises.
        """
        _, is_remote = self._configured()
        return is_remote

    def coverage(self) -> Coverage | None:
        """Return how words cover passages by the bundled word vectors.

        Returns None unless the embedder is the bundled or the local one: it is not known how the
        similarities of others compare. Loads the embedder.
        """
        words = self._word_vectors()
        if words is None:
            return None
        if self._coverage is None or self._coverage.vectors is not words:
            self._coverage = Coverage(words)
        return self._coverage

    def _word_vectors(self) -> WordLlama | None:
        """Return the bundled word vectors, if the embedder is the bundled or the local one."""
        embedder = self.load().embedder
        if isinstance(embedder, Multilingual):
            return embedder.wordllama
        if embedder is None or self._settings.embed.provider != "local":
            return None
        return shared_wordllama()

    def embed_query(self, text: str, status: IndexProgress | None = None) -> EmbeddedQuery:
        """Return the vector of a query if the index has vectors of the same embedder.

        Loads the embedder and may call a service. Without a vector, the caller searches by words.
        Does not raise if the embedder fails: the `problem` of the result says so. `status` is the
        progress of the index; None to ask the index.
        """
        embedder, problem = self.load()
        status = status or self._index.progress()
        if embedder is None:
            return EmbeddedQuery(None, problem)
        lack = self._lack_of_vectors(embedder, status)
        if lack is not None:
            return EmbeddedQuery(None, lack)

        if not embedder.reads_sentences:
            text = without_stop_words(text)
        deadline = time.monotonic() + self._settings.embed.query_seconds
        try:
            vector = embedder.query(text, deadline=deadline)
        except Unavailable as error:
            failure = _describe_failure(embedder.name, error)
            return EmbeddedQuery(None, f"{failure}; searched by words only.")

        if len(vector) != status.space.dimension:
            problem = (
                f"The embedder {embedder.name} returns vectors whose dimensions differ from the"
                " index; searched by words only until `simplemem index --rebuild`."
            )
            return EmbeddedQuery(None, problem)
        return EmbeddedQuery(QueryVector(vector, embedder.name), self.trouble())

    def _lack_of_vectors(self, embedder: Embedder, status: IndexProgress) -> str | None:
        """Return why the index has no vectors to compare a query with; None if it has some.

        Returns "" if that is no problem, because no note is waiting for a vector.
        """
        space = status.space
        if space.embedder != embedder.name:
            return self.trouble() or (
                f"Searched by words only: no vectors of {embedder.name} exist yet"
                " (`simplemem index` creates them)."
            )
        if space.dimension:
            return None
        if not status.waiting:
            return ""
        return self.trouble() or "Searched by words only: no note has a vector yet."

    def trouble(self) -> str:
        """Return a sentence with the last failure to make vectors; "" if there is none.

        The next vectors that are made clear the failure.
        """
        if not self._failure:
            return ""
        return f"{self._failure}; new texts are searched by words only until it works again."

    def fill(
        self,
        progress: Progress | None,
        *,
        begin: bool,
        ready: EmbeddingQueue | None,
        into: Engine | None = None,
        work_seconds: float = math.inf,
    ) -> int:
        """Make missing vectors while no other process does, and return for how many notes.

        With `begin`, the user asked for vectors: all are made, also if those in the index are of
        another embedder, and the call waits until other processes are done. Without it, somebody
        waits for the answer to a query: vectors are made for at most `embed.query_seconds`, and
        none if many are missing, those in the index are of another embedder, or another process is
        making vectors.

        Stops after `work_seconds` of CPU time, and keeps the vectors made until then. `ready` has
        texts that need not be read again. `into` is the index to fill, if it is not the current
        one. Returns 0 without an embedder, or if the embedder fails; `trouble` then says why.
        """
        embedder = self.load().embedder
        if embedder is None:
            return 0
        if not begin and not self._is_little_missing(embedder):
            return 0

        deadline = math.inf
        lock_timeout = -1.0  # waits for ever
        if not begin:
            lock_timeout = self._settings.embed.query_seconds
            deadline = time.monotonic() + lock_timeout
        if not self._making.acquire(timeout=lock_timeout):
            return 0  # the background thread of this process is making vectors
        try:
            if not self._wait_for_turn(is_patient=begin):
                return 0
            cpu_deadline = time.process_time() + work_seconds

            def is_late() -> bool:
                """Return whether the time of the clock or of the CPU is used up."""
                return time.monotonic() > deadline or time.process_time() > cpu_deadline

            return self._run(self._job(embedder, progress, is_late, ready, into))
        finally:
            self._making.release()

    def _is_little_missing(self, embedder: Embedder) -> bool:
        """Return whether few vectors are missing, and they may be made while a query waits."""
        if not self._may_begin(embedder, in_background=False):
            return False
        max_notes = embedder.batch if embedder.reads_sentences else _MAX_NOTES_PER_QUERY
        return self.count_pending() <= max_notes

    def _wait_for_turn(self, *, is_patient: bool) -> bool:
        """Take this process's turn to make vectors, and return whether it may make them.

        While another process has the turn, waits if `is_patient`, else returns False.
        """
        # Without a lock file, no process has the turn: the folder of the index cannot be written.
        while not self._turn.acquire_or_keep() and self._turn_file.exists():
            if not is_patient:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def fill_in_background(
        self, ready: EmbeddingQueue | None, stopped: Callable[[], bool]
    ) -> float | None:
        """Make missing vectors for a server. Never waits for another process.

        Ends early once `stopped()` is True. `ready` has texts that need not be read again. If
        another process is making vectors, or the embedder failed, returns in how many seconds to
        try again. Returns None if there is nothing left to do, or no embedder. A failure is logged.
        """
        embedder = self.load().embedder
        if embedder is None:
            return None
        rest = self._retry_at - time.monotonic()
        if rest > 0:
            return rest
        if not self._may_begin(embedder, in_background=True):
            return None

        if not self._making.acquire(blocking=False):
            return _TURN_SECONDS
        try:
            if not self._turn.acquire_or_keep():
                return _TURN_SECONDS if self.count_pending() else None
            self._run(self._job(embedder, None, stopped, ready))
            if self._failure and not stopped():
                _LOG.warning("%s", self._failure)  # a command has it in its answer
        finally:
            self._making.release()

        if not self._failure:
            return None
        return max(0.0, self._retry_at - time.monotonic())

    def reuse_vectors(self, old: Engine, into: Engine, progress: Progress | None = None) -> int:
        """Copy the vectors of the embedder from the index `old`, wherever the text is the same.

        Returns for how many notes. This way, no service is paid twice for a text. Asks the embedder
        for the vector of one word, because the dimension of its vectors may have changed. Returns 0
        if vectors cost neither money nor much time, or if the old ones cannot be read. Those of a
        plug-in count as expensive if it is remote.
        """
        embedder = self.load().embedder
        if embedder is None or not self._is_expensive(embedder):
            return 0

        # Without an answer of the service (None), vectors of any dimension are copied.
        dimension = None
        with suppress(Unavailable):
            deadline = time.monotonic() + self._settings.embed.query_seconds
            dimension = len(embedder.query("memory", deadline=deadline))
        set_embedder(into, embedder)
        with suppress(Damaged):  # vectors that cannot be read are made again
            return copy_vectors(old, into, dimension, progress)
        return 0

    def _is_expensive(self, embedder: Embedder) -> bool:
        """Return whether each vector of the embedder may cost money or much time."""
        is_local = self._settings.embed.provider == "local"
        return embedder.remote or is_local or isinstance(embedder, ServiceEmbedder)

    def _may_begin(self, embedder: Embedder, *, in_background: bool) -> bool:
        """Return whether vectors may be made with an embedder although no user asked for it.

        They may if the index has none of another embedder. Those of another one are replaced in the
        background only, and once per process: otherwise two servers with different settings would
        replace each other's vectors for ever.
        """
        if self._index.progress().space.embedder in ("", embedder.name):
            return True
        return in_background and not self._has_begun

    def _job(
        self,
        embedder: Embedder,
        progress: Progress | None,
        stopped: Callable[[], bool],
        ready: EmbeddingQueue | None,
        into: Engine | None = None,
    ) -> EmbeddingJob:
        """Return the job that makes missing vectors, of the current index or of `into`."""
        return EmbeddingJob(
            vault=self._vault,
            database=into or self._index.database,
            embedder=embedder,
            progress=progress,
            stopped=stopped,
            ready=ready,
            private=self._settings.embed.private,
        )

    def _run(self, job: EmbeddingJob) -> int:
        """Run a job, end this process's turn, and return for how many notes it made vectors.

        If the embedder fails, records the failure and returns 0; otherwise forgets an earlier
        failure.
        """
        self._has_begun = True
        try:
            note_count = job.run()
        except Unavailable as error:
            if not job.stopped():
                self._record_failure(_describe_failure(job.embedder.name, error))
            return 0
        finally:
            self._turn.release()
        self._forget_failure()
        return note_count

    def _record_failure(self, failure: str) -> None:
        """Store the failure, for `stats` of any process, and set when the background may retry.

        The delay doubles with each failure in a row.
        """
        self._failure = failure
        self._retry_at = time.monotonic() + self._delay
        self._delay = min(2 * self._delay, _MAX_DELAY)
        with suppress(SimplememError):
            failed_at = time.strftime("%Y-%m-%dT%H:%M:%S")
            self._index.database.set_meta(_FAILURE_KEY, f"{failed_at}: {failure}")

    def _forget_failure(self) -> None:
        """Clear the last failure, here and in the index, and its delay."""
        if self._index.database.meta(_FAILURE_KEY):
            self._index.database.set_meta(_FAILURE_KEY, "")
        self._failure = ""
        self._delay = _FIRST_DELAY
        self._retry_at = 0.0

    def count_pending(self, status: IndexProgress | None = None) -> int:
        """Return how many notes wait for a vector of the embedder that the settings name.

        It is 0 if there is none. `status` is how far the index is; None to ask it.
        """
        name, is_remote = self._configured()
        if not name:
            return 0
        status = status or self._index.progress()
        if status.space.embedder == name:
            return status.waiting
        return self._index.embedded(name, is_remote).waiting

    def count_private(self) -> int:
        """Return how many notes have no vector because their text is not sent to a service.

        It is 0 for an embedder on this machine.
        """
        if not self.is_remote():
            return 0
        # Notes are private whichever embedder it is, so none needs to be named.
        return self._index.embedded("", False).private

    def report(self) -> dict[str, Any]:
        """Return for `stats` who makes vectors, how many notes have them, and why others do not."""
        embedder, problem = self.load()
        if self._settings.embed.provider == "none":
            problem = ""
        refused = self._index.embedded("", False).refused
        space = self._index.progress().space
        return {
            "wanted": embedder.name if embedder is not None else "none",
            "in_use": space.embedder or "none",
            "dimension": space.dimension,
            "remote": self.is_remote(),
            "notes_with_vectors": self._count_embedded(space),
            "waiting": self.count_pending(),
            "private": self.count_private(),
            "refused": [{"path": path, "why": reason} for path, reason in refused],
            "last_failure": self._index.database.meta(_FAILURE_KEY) or "",
            "trouble": self.trouble() or problem,
        }

    def _count_embedded(self, space: VectorSpace) -> int:
        """Return how many notes have a vector of the embedder of this space; 0 if it has none."""
        if not space.embedder:
            return 0
        counts = self._index.embedded(space.embedder, space.remote)
        return max(0, counts.notes - counts.waiting)


def choice_of(settings: Settings) -> EmbedderConfig:
    """Return the settings `embed.*` as providers take them.

    For Voyage, the settings of the original simplemem, `voyage_ai.*`, fill the gaps.
    """
    embed = settings.embed
    model = embed.model
    api_key = embed.api_key
    if embed.provider == "voyage":
        model = model or settings.voyage_ai.model
        api_key = api_key or settings.voyage_ai.api_key
    return EmbedderConfig(
        model=model,
        url=embed.url,
        api_key=api_key,
        dimensions=embed.dimensions,
        batch=embed.batch,
        timeout_seconds=embed.timeout_seconds,
        query_prefix=embed.query_prefix,
        document_prefix=embed.document_prefix,
        keep_alive=embed.keep_alive,
    )


def _describe_failure(name: str, error: Unavailable) -> str:
    """Return the beginning of a sentence about a failure of the embedder called `name`.

    The name is added only if the message of the error does not begin with it.
    """
    if error.message.startswith(name):
        return f"The embedder {error.message}"
    return f"The embedder {name}: {error.message}"
