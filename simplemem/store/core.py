"""The objects of a store, as functions of `store/` that are not yet rewritten receive them."""

from __future__ import annotations

from simplemem.obsidian.settings import Conventions
from simplemem.store.background import Background
from simplemem.store.factory import Parts
from simplemem.store.listeners import Listener
from simplemem.store.vault_index import change_by

__all__ = ["Core", "change_by"]


class Core:
    """One vault with its index. Safe to use from several threads, beside other processes."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.root = parts.root
        self.settings = parts.settings
        self.read_only = parts.read_only
        self.vault = parts.vault
        self.index = parts.index
        self.rows = parts.rows
        self.sync_of = parts.sync_of
        self.changes = parts.changes
        self.embedding = parts.embedding
        self.committing = parts.committing
        self.listeners = parts.listeners
        self.searching = parts.searching
        self.notices = parts.notices

        self.follow_obsidian = parts.obsidian.follow
        self.entry = parts.reader.entry
        self.file = parts.reader.file
        self.bytes_of = parts.reader.bytes_of
        self.remember = parts.reader.remember
        self.remembered = parts.reader.remembered
        self.must_be_writable = parts.writer.check_writable
        self.path_meant = parts.resolver.path_of
        self.find_former_note = parts.resolver.find_former_note

        self.prepare = parts.keeper.prepare
        self.wait_until_settled = parts.keeper.wait_until_settled
        self.compare_all = parts.keeper.compare_all
        self.look_at = parts.keeper.look_at
        self.fresh = parts.keeper.fresh
        self.indexed = parts.keeper.indexed
        self.prune_history = parts.keeper.prune_history
        self.reach = parts.keeper.reach
        self.state = parts.monitor.state
        self.state_if_behind = parts.monitor.state_if_behind
        self.state_of_answer = parts.monitor.state_of_answer
        self.state_of_list = parts.monitor.state_of_list
        self.not_indexed = parts.monitor.not_indexed

        self._background: Background | None = None
        self.on_close = parts.lifetime.on_close
        self.catch_up = parts.catching_up.catch_up

    @property
    def conventions(self) -> Conventions:
        return self.parts.obsidian.current

    @property
    def compared_at(self) -> float:
        return self.parts.keeper.compared_at

    @property
    def is_in_doubt(self) -> bool:
        return self.parts.monitor.is_in_doubt

    @property
    def is_behind(self) -> bool:
        return self.parts.monitor.is_behind

    def close(self) -> None:
        """End the background work and let go of every file."""
        self.parts.lifetime.end()
        self.rows.stop.set()
        if self._background is not None:
            self._background.stop()
        self.parts.catching_up.end()
        self.embedding.close()
        if self.searching.reranker is not None:
            self.searching.reranker.close()
        self.index.close()
        self.committing.close(
            0.5 if self.parts.lifetime.is_long else 5.0
        )  # seconds for a last commit

    def start(self, *, embed: bool = True) -> None:
        """Keep in step from now on, in the background: scan, watch, embed. Returns at once."""
        self.parts.lifetime.expect_more()
        if self._background is None:
            parts = self.parts
            self._background = Background(
                parts.vault,
                parts.index,
                parts.database,
                parts.rows,
                keeper=parts.keeper,
                embedding=parts.embedding,
                listeners=parts.listeners,
                settings=parts.settings.index,
                embed=embed,
            )
            self.parts.keeper.attach(self._background)
            if self.settings.sync.every and not self.read_only:
                from simplemem.store.syncing import Syncing

                self.on_close(Syncing(self).end)

    def on_change(self, listener: Listener) -> None:
        """Call a function with the names of notes that changed, once they are indexed."""
        self.listeners.subscribers.append(listener)
