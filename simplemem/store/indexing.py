"""Indexing the whole vault for a caller that waits for it, such as `simplemem index`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from simplemem.errors import Unavailable
from simplemem.index.api import Progress, SyncReport
from simplemem.index.engine import Damaged, Engine, StatementFailed
from simplemem.index.service import IndexService
from simplemem.index.updater import IndexUpdater
from simplemem.store.catch_up import CatchUp
from simplemem.store.embedding import Embedding
from simplemem.store.vault_index import SCANNED, IndexKeeper, ObsidianSettingsCache, QuestionVectors


class Indexing:
    """Indexes and embeds a vault. Guards no state of its own."""

    def __init__(
        self,
        index: IndexService,
        database: Engine,
        updater: IndexUpdater,
        make_updater: Callable[[Engine], IndexUpdater],
        *,
        keeper: IndexKeeper,
        obsidian: ObsidianSettingsCache,
        embedding: Embedding,
        vectors: QuestionVectors,
        catching_up: CatchUp,
    ) -> None:
        self._index = index
        self._database = database
        self._updater = updater
        self._make_updater = make_updater
        self._keeper = keeper
        self._obsidian = obsidian
        self._embedding = embedding
        self._vectors = vectors
        self._catching_up = catching_up

    def sync(
        self,
        *,
        progress: Progress | None = None,
        embed: bool = True,
        rebuild: bool = False,
        accept_deletions: bool = False,
        begin: bool = True,
    ) -> SyncReport:
        """Index the vault: text first, vectors after it. Return what has changed.

        `progress` is called as notes are read and embedded. `rebuild` makes a new index and then
        replaces the old one with it. If many notes are gone at once, they stay in the index until a
        later scan, unless `accept_deletions` is set. Vectors are not made without `embed` or an
        embedder. Without `begin`, none are made if many are missing, or if those in the index are
        of another embedder. A failure of the embedder is in `trouble` of the result. Raises
        Unavailable if the vault cannot be read.
        """
        if embed:
            embedder, _ = self._embedding.load()
            embed = embedder is not None
        if not embed:
            self._updater.waiting = None  # it need not collect texts that lack vectors
        if rebuild:
            self._rebuild(progress, embed=embed)

        report = self._keeper.compare_all(progress, accept_deletions=accept_deletions)
        if embed:
            report.embedded = self._fill(progress, begin=begin)
            report.trouble = self._embedding.trouble()
            self._vectors.expect_complete()
        return report

    def catch_up(self, *, embed: bool) -> None:
        """Index what was saved up to this moment; with `embed`, also make a few missing vectors.

        Raises a SimplememError if that fails.
        """
        self._catching_up.catch_up()
        if embed and self._embedding.count_pending():
            self._fill(None, begin=False)

    def _fill(self, progress: Progress | None, *, begin: bool) -> int:
        """Make missing vectors; return for how many notes. `begin` is that of `Embedding.fill`."""
        fill = partial(self._embedding.fill, progress, begin=begin, ready=self._updater.waiting)
        return self._index.with_retry(fill)

    def _rebuild(self, progress: Progress | None, *, embed: bool) -> None:
        """Build a new index, and replace the old one with it; with `embed`, make its vectors too.

        If that fails, the new index is deleted, and the old one stays.
        """
        self._obsidian.follow()
        new_database = self._database.build_replacement()
        try:
            self._fill_replacement(new_database, progress, embed=embed)
            new_database.close()
            self._database.swap_in(new_database)
        except BaseException:
            # If the deletion fails too, the first error is the one to report.
            with suppress(Unavailable, Damaged, StatementFailed, OSError):
                new_database.drop()
            raise

    def _fill_replacement(
        self, new_database: Engine, progress: Progress | None, *, embed: bool
    ) -> None:
        """Index the whole vault into an empty index; with `embed`, make its vectors too.

        Vectors that a service made are copied from the old index.
        """
        updater = self._make_updater(new_database)
        updater.scan(progress)
        if embed:
            self._embedding.reuse_vectors(self._database, new_database)
            self._embedding.fill(progress, begin=True, ready=updater.waiting, into=new_database)
        new_database.set_meta(SCANNED, "yes")
