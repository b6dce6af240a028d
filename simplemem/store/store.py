"""EnhancedStore: the door to one vault.

It knows memories, not protocols: no MCP, no command line, no HTTP. All of it may be used from several threads, and
several processes may have a store on the same vault.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from simplemem.config import Settings, find_vault, load_settings
from simplemem.index.door import Estimate
from simplemem.index.reconcile import Progress, SyncReport
from simplemem.memory import (
    Backlink,
    BlamedLine,
    ConflictCopy,
    ConflictMerge,
    ConflictMerged,
    Deleted,
    Difference,
    Filter,
    Finding,
    Found,
    HistoryEntry,
    IndexState,
    Memory,
    Mended,
    Mending,
    Moved,
    Pack,
    Page,
    Restored,
    Saved,
    Undone,
    UndoneMany,
)
from simplemem.note.names import name_of
from simplemem.note.words import well_formed
from simplemem.store import conflicts, history, packs, undo, write
from simplemem.store.bench import Bench
from simplemem.store.conflicts import Keep
from simplemem.store.core import Core
from simplemem.store.read import read
from simplemem.store.recall import Recall
from simplemem.vault.vault import Change


def open_store(
    path: str | os.PathLike[str] | None = None,
    *,
    settings: Settings | None = None,
    read_only: bool = False,
    person: bool = False,
) -> EnhancedStore:
    """Open a vault, making it when it is not there. Without a path, the one that the settings or this folder lead to. The
    history says of changes made through it whether a `person` makes them, or a program.

    >>> with open_store("notes") as store:          # doctest: +SKIP
    ...     store.create("ideas/tea", "Oolong, [[people/Ada]] says.")
    ...     store.search("oolong").hits[0].name
    'ideas/tea'
    """
    root = find_vault(os.fspath(path) if path is not None else None)
    return EnhancedStore(root, settings or load_settings(vault=root), read_only=read_only, person=person)


class EnhancedStore:
    """One vault. Use it as a context manager, or call `close`.

    Every change takes `who` made it, with which `tool`, and a `reason`; they stand in the history.
    """

    def __init__(
        self, root: Path, settings: Settings | None = None, *, read_only: bool = False, person: bool = False
    ) -> None:
        self._core = Core(root, settings, read_only=read_only, person=person)
        self.root = self._core.root
        self.settings = self._core.settings
        self.read_only = self._core.read_only
        self._recall = Recall(self._core)
        self.bench = Bench(self._core)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the background work and let go of every file."""
        self._recall.close()
        self._core.close()

    # -- in step with the disk

    def sync(
        self,
        *,
        progress: Progress | None = None,
        embed: bool = True,
        rebuild: bool = False,
        believe: bool = False,
        begin: bool = True,
    ) -> SyncReport:
        """Bring the index in step with the vault, text first and vectors after. `rebuild` makes it anew beside itself
        and swaps it in; `believe` accepts that many notes are gone at once. Without `begin` no vectors of another
        embedder are begun, and no more is sent to a remote one than `embed.max_tokens_unasked`."""
        return self._core.sync(progress, embed=embed, rebuild=rebuild, believe=believe, begin=begin)

    @property
    def embeds_remotely(self) -> bool:
        """Whether the embedder that is set is not on this machine, so that texts of notes are sent to it."""
        return self._core.embedding.is_remote

    def estimate(self, *, rebuild: bool = False) -> Estimate:
        """What the embedder would have to be given for every note to have its vectors; with `rebuild`, for all anew."""
        return self._core.embedding.estimate(anew=rebuild)

    def start(self, *, embed: bool = True) -> None:
        """Keep in step from now on, in the background: scan, watch, embed. Returns at once."""
        self._core.start(embed=embed)

    def wait_until_settled(self, timeout: float = 60.0) -> bool:
        """Whether the first scan of the background is done, waiting for it."""
        return self._core.wait_until_settled(timeout)

    def on_change(self, listener: Callable[[frozenset[str]], None]) -> None:
        """Be told the names of memories that changed, whoever changed them, once they are indexed."""
        self._core.on_change(listener)

    def state(self) -> IndexState:
        """How far the index can be trusted just now."""
        return self._core.state()

    # -- names and tags

    def resolve(self, name: str) -> str:
        """The memory that a name, title, alias or wikilink means."""
        return name_of(self._core.path_meant(name))

    def names(self, prefix: str = "", limit: int = 100) -> list[str]:
        """Names that begin so, for completion."""
        return [name_of(path) for path in self._core.index.near_names(well_formed(prefix), limit)]

    def tags(self) -> dict[str, int]:
        """Every tag and how many memories have it."""
        return self._core.index.tag_counts()

    # -- reading

    def read(
        self, name: str, *, section: str | None = None, version: str | None = None, at: str | None = None
    ) -> Memory:
        """One memory, or one section of it (a heading, "A#B", or "^block"); or an earlier version, whatever its name was;
        or as the memory was `at` a version, date or commit."""
        return read(self._core, name, section, version, at)

    def search(
        self,
        query: str,
        *,
        filter: Filter | None = None,
        limit: int | None = None,
        mode: str = "hybrid",
        explain: bool = False,
        why: str = "",
        rerank: bool = True,
        authors: bool = False,
    ) -> Found:
        """Memories that answer a question, best first. An empty query lists the newest that pass the filter. `explain`
        gives the numbers behind it; `why` names a memory, and `Found.why` says where it is or why it is not there. Without
        `rerank` the order is that of words and meaning, whatever reranker the settings name. With `authors`, and with
        a filter by author, a hit says who changed the memory last, and when."""
        wanted = limit if limit is not None else self.settings.search.limit
        asked = filter or Filter()
        return self._core.index.consistently(
            lambda: self._recall.search(
                query, asked, wanted, mode, explain=explain, why=why, rerank=rerank, authors=authors
            )
        )

    def context(self, query: str, *, budget_tokens: int = 1500, filter: Filter | None = None) -> Pack:
        """The best passages for a question within a budget of tokens."""
        return self._core.index.consistently(
            lambda: packs.build(self._core, self._recall, query, budget_tokens, filter or Filter())
        )

    def backlinks(
        self, name: str, *, query: str | None = None, limit: int = 5, kinds: Sequence[str] = ("link", "semantic")
    ) -> tuple[Backlink, ...]:
        """Memories that lead to this one, by a link or by meaning."""
        path = self._core.path_meant(name)
        return self._core.index.consistently(lambda: self._recall.backlinks(path, query, limit, kinds))

    def related(self, name: str, limit: int = 3) -> tuple[Backlink, ...]:
        """Memories near in meaning."""
        return self.backlinks(name, limit=limit, kinds=("semantic",))

    # -- writing

    def create(
        self,
        name: str,
        content: str,
        metadata: Mapping[str, Any] | None = None,
        *,
        overwrite: bool = False,
        tags_as_map: bool = False,
        who: str = "",
        tool: str = "create",
        reason: str = "",
    ) -> Saved:
        """Make a memory. A bare link that the new name would steal is qualified first, so that it keeps its meaning."""
        change = Change(tool, who, reason)
        return write.create(self._core, name, content, metadata or {}, change, overwrite, tags_as_map)

    def update(
        self,
        name: str,
        *,
        content: str | None = None,
        append: str | None = None,
        edits: Sequence[Mapping[str, str]] | None = None,
        metadata: Mapping[str, Any] | None = None,
        if_sha256: str | None = None,
        who: str = "",
        tool: str = "update",
        reason: str = "",
    ) -> Saved:
        """Change a memory's body (one of `content`, `append`, `edits`), its metadata, or both."""
        making = write.updating(content, append, edits, metadata)
        return write.carry_out(self._core, name, making, if_sha256, Change(tool, who, reason))

    def write_text(
        self, name: str, text: str, *, if_sha256: str, who: str = "", tool: str = "edit", reason: str = ""
    ) -> Saved:
        """Put a whole file in place, header included, byte for byte: what a person made in an editor."""
        making = write.Making(lambda _: text, whole=True)
        return write.carry_out(self._core, name, making, if_sha256, Change(tool, who, reason))

    def change_tags(
        self, name: str, tags: Any, *, if_sha256: str | None = None, who: str = "", tool: str = "tag", reason: str = ""
    ) -> Saved:
        """Set tags, and take away those given as null, in the notation the note has."""
        return write.carry_out(self._core, name, write.tagging(tags), if_sha256, Change(tool, who, reason))

    def move(self, name: str, new_name: str, *, who: str = "", tool: str = "move", reason: str = "") -> Moved:
        """Give a memory another name. Every link goes on meaning what it meant, in its own form."""
        return write.move(self._core, name, new_name, Change(tool, who, reason))

    def delete(
        self, name: str, *, if_sha256: str | None = None, who: str = "", tool: str = "delete", reason: str = ""
    ) -> Deleted:
        """Put a memory in the trash. Links to it stay as they are and lead nowhere; `undo` brings it back."""
        return write.delete(self._core, name, if_sha256, Change(tool, who, reason))

    # -- the past

    def history(
        self,
        name: str | None = None,
        *,
        limit: int = 20,
        diff: bool = False,
        by: str = "",
        tool: str = "",
        since: str = "",
        until: str = "",
    ) -> tuple[HistoryEntry, ...]:
        """Changes of one memory, or of all, newest first; of somebody, with a tool, since and until a date or version."""
        return history.history(self._core, name, limit, by=by, tool=tool, since=since, until=until, diff=diff)

    def blame(self, name: str) -> tuple[BlamedLine, ...]:
        """Who last changed each line of a memory, as far as its history and git tell."""
        return history.blame_of(self._core, name)

    def diff(self, what: str, other: str | None = None, *, since: str | None = None) -> tuple[Difference, ...]:
        """What a version changed; what lies between two versions; or what changed in a memory `since` a date or version,
        its last change if that is not said."""
        return history.diff(self._core, what, other, since)

    def restore(
        self,
        name: str,
        *,
        at: str | None = None,
        new_name: str | None = None,
        who: str = "",
        tool: str = "restore",
        reason: str = "",
    ) -> Restored:
        """Bring a memory's text of a version or date back, also of one that was deleted, which needs no `at`. With
        `new_name` it is brought back beside what has its name now."""
        return undo.restore(self._core, name, at, new_name, Change(tool, who, reason))

    def undo(self, version_or_name: str, *, who: str = "", tool: str = "undo", reason: str = "") -> Undone:
        """Take back a change by its version, or the last change of a memory by its name."""
        return undo.undo(self._core, version_or_name, Change(tool, who, reason))

    def undo_all(
        self,
        by: str,
        since: str,
        *,
        preview: bool = False,
        expected: str | None = None,
        who: str = "",
        tool: str = "undo",
        reason: str = "",
    ) -> UndoneMany:
        """Take back everything that somebody changed since a date or version, as one change that can itself be undone. A
        `preview` changes nothing; given its `plan` as `expected`, it is done only if it is still what was shown."""
        change = Change(tool, who, reason)
        return undo.undo_all(self._core, by, since, change, preview=preview, expected=expected)

    # -- conflict copies

    def conflict_copies(self) -> tuple[ConflictCopy, ...]:
        """The files that synchronisers and git left beside notes that were changed in two places."""
        return conflicts.conflict_copies(self._core.index)

    def conflict_merges(self, name: str | None = None) -> tuple[ConflictMerge, ...]:
        """What a merge would make of a conflict copy, or of all those of a note, by its name; without one, of all there
        are. Writes nothing."""
        return conflicts.conflict_merges(self._core, name)

    def merge_conflict(
        self, merge: ConflictMerge, *, keep: Keep = "merge", who: str = "", tool: str = "conflicts", reason: str = ""
    ) -> ConflictMerged:
        """Write what `conflict_merges` has shown, and put the copy into the trash, as one change. `keep` may be "note" or
        "copy" to have only the one, or "marked" to have both where they differ."""
        return conflicts.merge_conflict(self._core, merge, keep, Change(tool, who, reason))

    # -- looking at itself

    def stats(self) -> dict[str, Any]:
        """Numbers about the vault and its index."""
        import apsw

        core = self._core
        embedding = core.embedding.facts()
        reranking = self._recall.reranking()
        reranker, wrong = reranking.name() if reranking is not None else ("none", "")
        unread = core.conventions.unread_filters().items()
        warnings = [f"the excluded-files entry {entry} of Obsidian is not applied: {why}" for entry, why in unread]
        return {
            "vault": str(self.root),
            **core.index.counts(),
            "skipped": [{"path": path, "why": why} for path, why in core.not_indexed()],
            "state": core.state().as_dict(),
            "pending_vectors": embedding["waiting"],
            "embedder": embedding["in_use"],
            "embedding": embedding,
            "reranker": reranker,
            "index_path": str(core.index.path),
            "index_bytes": sum(file.stat().st_size for file in core.index.path.parent.glob(f"{core.index.path.name}*")),
            "sqlite": apsw.sqlite_lib_version(),
            "read_only": self.read_only,
            "git": core.committing.state(),
            "warnings": [*warnings, *filter(None, [wrong])],
        }

    def inspect(self) -> dict[str, dict[str, Any]]:
        """Everything that was read from every note."""
        return self._core.index.inspection()

    def doctor(self, progress: Progress | None = None, *, only: Collection[str] = ()) -> tuple[Finding, ...]:
        """What is wrong with the vault, its index or what they are on, by all checks or those in `only`. Changes no note."""
        from simplemem.store.doctor import examine

        return tuple(examine(self._core, only, progress))

    def plan_mending(self, progress: Progress | None = None, *, only: Collection[str] = ()) -> Mending:
        """What `doctor` finds and the broken links among it that can be mended. Writes nothing; `mend` does."""
        from simplemem.store.mending import plan_mending

        return plan_mending(self._core, self.doctor(progress, only=only), only)

    def mend(self, mending: Mending, *, who: str = "", tool: str = "doctor", reason: str = "") -> Mended:
        """Carry out what was planned: all of it as one change, which one `undo` takes back, or nothing."""
        from simplemem.store.mending import mend

        return mend(self._core, mending, Change(tool, who, reason or "broken links were mended"))

    # -- lists (last, because its name hides the type from what follows)

    def list(
        self, *, filter: Filter | None = None, sort: str = "modified", limit: int = 50, cursor: str | None = None
    ) -> Page:
        """Memories that pass a filter, newest first unless told otherwise."""
        return self._core.index.consistently(lambda: self._recall.page(filter or Filter(), sort, limit, cursor))
