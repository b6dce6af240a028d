"""EnhancedStore: a vault and its index kept in step. Every interface goes through it, and only through it.

It knows memories, not protocols: no MCP, no command line, no HTTP. All of it may be used from several threads, and
several processes may have a store on the same vault.
"""

from __future__ import annotations

import difflib
import hashlib
import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from simplemem import doctor
from simplemem.config import Settings, find_vault, load_settings
from simplemem.editing import (
    Edit,
    append_content,
    apply_edits,
    apply_metadata,
    content_start,
    new_text,
    replace_content,
    stamp_modified,
)
from simplemem.embed import Embedder, embedder_named
from simplemem.errors import AlreadyExists, Ambiguous, Conflict, Invalid, NotFound, ReadOnly, SimplememError
from simplemem.index import fill
from simplemem.index.database import Damaged
from simplemem.index.index import Index
from simplemem.index.sync import Progress, Sync, SyncReport
from simplemem.keeping import Keeper
from simplemem.memory import (
    Backlink,
    Deleted,
    Filter,
    Finding,
    Found,
    HistoryEntry,
    IndexState,
    LinkOut,
    Memory,
    Moved,
    Pack,
    Page,
    Saved,
    Undone,
)
from simplemem.note.body import find_section
from simplemem.note.names import check_name, clean_reference, compare_key, name_of, path_of
from simplemem.note.note import Note, read_note
from simplemem.note.tags import change_tags, parse_tag_request, tag_map, tag_names
from simplemem.note.words import count_tokens
from simplemem.recall import Recall
from simplemem.vault import rewrite
from simplemem.vault.history import Version
from simplemem.vault.links import Named, name_key, resolve
from simplemem.vault.obsidian import read_conventions
from simplemem.vault.vault import Change, Entry, File, Rewrite, Vault, Written

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
_TRIES = 50  # a change that names no hash is applied again to what is there now, so often


def open_store(
    path: str | os.PathLike[str] | None = None, *, settings: Settings | None = None, read_only: bool = False
) -> EnhancedStore:
    """Open a vault, making it when it is not there. Without a path, the one DESIGN §8 finds.

    >>> with open_store("notes") as store:          # doctest: +SKIP
    ...     store.create("ideas/tea", "Oolong, [[people/Ada]] says.")
    ...     store.search("oolong").hits[0].name
    'ideas/tea'
    """
    root = find_vault(os.fspath(path) if path is not None else None)
    return EnhancedStore(root, settings or load_settings(vault=root), read_only=read_only)


class EnhancedStore:
    """One vault. Use it as a context manager, or call `close`."""

    def __init__(self, root: Path, settings: Settings | None = None, *, read_only: bool = False) -> None:
        self.root = root.absolute()
        self.settings = settings or load_settings(vault=self.root)
        self.read_only = read_only or self.settings.read_only
        if not self.root.exists() and not self.read_only:
            self.root.mkdir(parents=True)
        if not self.root.is_dir():
            raise NotFound(f"there is no vault at {self.root}", hint="`simplemem init PATH` makes one.")
        if not os.access(self.root, os.W_OK):
            self.read_only = True  # a read-only disk: reading goes on, the index lies elsewhere
        self._conventions = read_conventions(self.root)
        self.vault = Vault(
            self.root,
            read_only=self.read_only,
            durable=self.settings.write.durability == "full",
            keep_days=self.settings.history.keep_days,
            keep_mb=self.settings.history.keep_mb,
            trash=self._conventions.trash,
        )
        self._index = Index(_index_path(self.root, self.settings, self.vault), self._index_lock)
        self._generation = self._index.generation
        self._sync = Sync(self.vault, self._index.database, self._hidden_reason, self.settings.max_note_bytes)
        self._keeper: Keeper | None = None
        self._embedder: Embedder | None = None
        self._embedder_missing = ""
        self._guard = threading.RLock()
        self._listeners: list[Callable[[frozenset[str]], None]] = []
        self._scanned = self._index.database.meta("scanned") is not None
        self._doubted = 0
        self._owed: set[str] = set()  # paths written but not indexed, because the index failed at that moment
        self._heard_rev = -1
        self._recall = Recall(
            self.vault,
            self._index,
            self.settings,
            self._ready_embedder,
            self.state,
            self._path_of,
            self._recheck,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the background work and let go of every file."""
        if self._keeper is not None:
            self._keeper.stop()
            self._keeper = None
        self._index.close()
        self.vault.close()

    # -- in step with the disk

    def sync(
        self,
        *,
        progress: Progress | None = None,
        embed: bool = True,
        rebuild: bool = False,
        believe: bool = False,
    ) -> SyncReport:
        """Bring the index in step with the vault, text first and vectors after. `rebuild` makes it anew beside itself
        and swaps it in; `believe` accepts that many notes are gone at once."""
        if not self.read_only:
            self.vault.recover()
        if rebuild:
            self._rebuild(progress)
        report = self._healing(lambda: self._scan(progress, believe=believe))
        if embed:
            embedder, _ = self._ready_embedder()
            if embedder is None:
                self._index.adopt(None)
            else:
                report.embedded = fill.fill(
                    self.vault, self._index.database, embedder, progress, ready=self._sync.waiting
                )
        return report

    def _scan(self, progress: Progress | None, *, believe: bool) -> SyncReport:
        report = self._sync.scan(progress, believe=believe)
        self._doubted = report.doubted
        self._owed.clear()
        if not self._scanned:
            self._index.database.set_meta("scanned", "yes")
            self._scanned = True
        self._tell({name_of(path) for path in report.changed()})
        return report

    def _rebuild(self, progress: Progress | None) -> None:
        fresh = self._index.build_beside()
        Sync(self.vault, fresh, self._hidden_reason, self.settings.max_note_bytes).scan(progress)
        embedder, _ = self._ready_embedder()
        if embedder is not None:
            fill.fill(self.vault, fresh, embedder, progress)
        fresh.set_meta("scanned", "yes")
        fresh.close()
        self._index.database.replace_with(fresh.path)

    def start(self, *, embed: bool = True) -> None:
        """Keep in step from now on, in the background: scan, watch, embed. Returns at once."""
        with self._guard:
            if self._keeper is None:
                self._keeper = Keeper(
                    _Background(self, embed=embed),
                    scan_seconds=self.settings.index.scan_minutes * 60,
                    watch=self.settings.index.watch,
                )
                self._keeper.start()

    def wait_until_settled(self, timeout: float = 60.0) -> bool:
        """Whether the first scan of the background is done, waiting for it."""
        return self._keeper is None or self._keeper.settled.wait(timeout)

    def on_change(self, listener: Callable[[frozenset[str]], None]) -> None:
        """Be told the names of memories that changed, whoever changed them, once they are indexed."""
        self._listeners.append(listener)

    def _tell(self, names: Iterable[str]) -> None:
        told = frozenset(names)
        for listener in self._listeners if told else ():
            listener(told)

    def state(self) -> IndexState:
        """How far the index can be trusted just now."""
        notes, pending = self._index.note_count(), self._index.pending()
        if not self._scanned:
            return IndexState("indexing", notes, pending, "The vault is being read for the first time.")
        if self._doubted:
            reason = f"{self._doubted} notes seem to have vanished at once; they are kept until this is confirmed."
            return IndexState("partial", notes, pending, reason)
        if pending and self.settings.embed.provider != "none":
            return IndexState(
                "partial", notes, pending, f"{pending} notes are searchable by words, not yet by meaning."
            )
        return IndexState("ready", notes, 0)

    def _recheck(self, paths: Iterable[str]) -> bool:
        """Look again at notes about to be returned; True when one of them had changed."""
        changed = set(self._owed)
        for path in paths:
            known = self._index.known(path)
            entry = self._entry(path)
            if known is None or entry is None or (entry.size, entry.mtime_ns, entry.ctime_ns) != (
                known.stat.size, known.stat.mtime_ns, known.stat.ctime_ns
            ):  # fmt: skip
                changed.add(path)
        if not changed:
            return False
        self._owed.clear()
        self._tell({name_of(path) for path in self._sync.look_at(changed).changed()})
        return True

    def _entry(self, path: str) -> Entry | None:
        try:
            return self.vault.entry(path)
        except SimplememError:
            return None

    @contextmanager
    def _index_lock(self) -> Iterator[None]:
        """The lock under which the index file is made, swapped and checkpointed; none can be had on a read-only disk."""
        if self.vault.read_only:
            yield
            return
        with self.vault.lock():
            yield

    def _healing(self, ask: Callable[[], T]) -> T:
        """Answer, and if the index turns out to be gone or damaged, make it anew and answer then."""
        generation = self._index_generation()
        if generation != self._generation:
            self._begin_anew(generation)
        try:
            return ask()
        except Damaged as error:
            _LOG.warning("the index is damaged and will be rebuilt: %s", error)
            self._index.database.discard()
            self._begin_anew(self._index.generation)
            return ask()

    def _index_generation(self) -> int:
        try:
            return self._index.generation
        except Damaged:
            self._index.database.discard()
            return self._index.generation

    def _begin_anew(self, generation: int) -> None:
        """Another file lies where our index was. If it is empty, read the vault again."""
        self._generation = generation
        self._scanned = self._index.database.meta("scanned") is not None
        if not self._scanned and self._keeper is not None:
            self._keeper.scan_soon()
        elif not self._scanned:
            self._scan(None, believe=False)

    def _hidden_reason(self, path: str) -> str | None:
        return self._conventions.hidden_reason(path)

    def _ready_embedder(self) -> tuple[Embedder | None, str]:
        """The embedder, loaded on first use; or why there is none."""
        with self._guard:
            if self._embedder is None and not self._embedder_missing:
                try:
                    self._embedder = embedder_named(self.settings.embed.provider)
                except SimplememError as error:
                    self._embedder_missing = f"Searching by words only: {error.message}."
                    _LOG.warning("no embedder: %s", error)
                if self._embedder is None and not self._embedder_missing:
                    self._embedder_missing = "Searching by words only, as the setting embed.provider = none says."
                if self._embedder is not None:
                    self._index.adopt(self._embedder)
                    if self._keeper is not None:
                        self._index.keep_vectors_in_memory(self._embedder.dimension)
            missing = self._embedder_missing if self.settings.embed.provider != "none" else ""
            return self._embedder, missing

    # -- names

    def resolve(self, name: str) -> str:
        """The memory that a name, title, alias or wikilink means."""
        return name_of(self._path_of(name))

    def _path_of(self, name: str) -> str:
        wanted = clean_reference(name)
        if not wanted:
            raise Invalid("a name is needed", hint="Names look like projects/apollo.")
        path = path_of(wanted)
        if self._entry(path) is not None:
            if self._index.known(path) is None:
                self._sync.look_at([path])
            return path
        groups = self._healing(lambda: self._index.paths_named(compare_key(wanted)))
        for kind, found in zip(("path", "name", "title", "alias"), groups, strict=True):
            there = [path for path in found if self._entry(path) is not None]
            if len(there) == 1:
                return there[0]
            if there:
                raise Ambiguous(
                    f"{name!r} is the {kind} of {len(there)} memories",
                    candidates=[name_of(path) for path in there],
                    hint="Use one of the candidates.",
                )
        near = self._near(wanted)
        raise NotFound(
            f"there is no memory called {name!r}",
            candidates=near,
            hint=f"Did you mean {near[0]}?" if near else "Search for it, or list what there is.",
        )

    def _near(self, wanted: str) -> list[str]:
        paths = [name_of(path) for path in self._index.all_paths()]
        by_key = {compare_key(path): path for path in paths}
        by_base = {compare_key(path.rsplit("/", 1)[-1]): path for path in paths}
        key = compare_key(wanted)
        close = difflib.get_close_matches(key, by_key, 3, 0.6)
        close_base = difflib.get_close_matches(key.rsplit("/", 1)[-1], by_base, 3, 0.7)
        return list(dict.fromkeys([by_key[k] for k in close] + [by_base[k] for k in close_base]))[:5]

    def names(self, prefix: str = "", limit: int = 100) -> list[str]:
        """Names that begin so, for completion."""
        return [name_of(path) for path in self._index.near_names(prefix, limit)]

    def tags(self) -> dict[str, int]:
        """Every tag and how many memories have it."""
        return self._healing(self._index.tag_counts)

    # -- reading

    def read(self, name: str, *, section: str | None = None, version: str | None = None) -> Memory:
        """One memory, or one section of it (a heading, "A#B", or "^block"), or an earlier version."""
        if version is not None:
            return self._memory_at(version, section)
        path = self._path_of(name)
        file = self.vault.read(path)
        self._healing(lambda: self._recheck([path]))
        return self._memory(path, read_note(file.data), file.entry.mtime_ns, section)

    def _memory_at(self, version: str, section: str | None) -> Memory:
        found = self.vault.history.find(version)
        kept = found.after if found.after is not None else found.before
        data = None if kept is None else self._bytes_of(found, kept)
        if data is None:
            raise NotFound(f"the text of version {version} is no longer kept")
        return self._memory(found.new_path or found.path, read_note(data), None, section, version)

    def _bytes_of(self, version: Version, sha256: str) -> bytes | None:
        data = self.vault.history.content(sha256)
        if data is None:
            for path in (version.new_path, version.path):
                if path is not None and self._entry(path) is not None and (f := self.vault.read(path)).sha256 == sha256:
                    return f.data
        return data

    def _memory(
        self, path: str, note: Note, mtime_ns: int | None, section: str | None, version: str | None = None
    ) -> Memory:
        from simplemem.index.facts import facts_of

        facts = facts_of(path, note, mtime_ns or 0)
        start, stop = content_start(note), len(note.text)
        if section:
            span = find_section(note.text, note.body, section)
            if span is None:
                raise NotFound(
                    f"{name_of(path)} has no section {section!r}",
                    candidates=[h.text for h in note.body.headings][:50],
                )
            start, stop = span
        content = note.text[start:stop]
        return Memory(
            name=name_of(path),
            path=path,
            title=facts.title,
            description=facts.description,
            type=facts.type or "memory",
            created=facts.created or None,
            modified=facts.modified,
            tags=tuple(tag_names(note.tags)),
            tag_map=tag_map(note.tags, note.header.properties),
            aliases=note.aliases,
            frontmatter=dict(note.header.properties),
            content=content,
            text=note.text,
            sha256=note.sha256,
            links=self._links_out(path, note),
            backlinks=tuple(dict.fromkeys(name_of(link.source) for link in self._index.links_to(path))),
            headings=tuple((h.level, h.text, h.line) for h in note.body.headings),
            tokens=count_tokens(content),
            problem=note.problem,
            version=version,
            content_line=note.text.count("\n", 0, start) + 1,
        )

    def _links_out(self, path: str, note: Note) -> tuple[LinkOut, ...]:
        found = []
        named = self._index.named()
        for link in note.links:
            meant = resolve(link.target, path, named)
            kind = "property" if link.property is not None else "embed" if link.embed else link.form
            shown = name_of(meant.path) if meant.path is not None else link.target
            others = tuple(name_of(p) for p in meant.ambiguous)
            found.append(LinkOut(shown, meant.path is not None, kind, link.line, link.display, others))
        return tuple(found)

    def list(
        self,
        *,
        filter: Filter | None = None,
        sort: str = "modified",
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page:
        """Memories that pass a filter, newest first unless told otherwise."""
        return self._healing(lambda: self._recall.list(filter or Filter(), sort, limit, cursor))

    def search(
        self,
        query: str,
        *,
        filter: Filter | None = None,  # noqa: A002
        limit: int | None = None,
        mode: str = "hybrid",
        explain: bool = False,
    ) -> Found:
        """Memories that answer a question, best first. An empty query lists the newest that pass the filter."""
        wanted = limit if limit is not None else self.settings.search.limit
        return self._healing(lambda: self._recall.search(query, filter or Filter(), wanted, mode, explain))

    def backlinks(
        self,
        name: str,
        *,
        query: str | None = None,
        limit: int = 5,
        kinds: Sequence[str] = ("link", "semantic"),
    ) -> tuple[Backlink, ...]:
        """Memories that lead to this one, by a link or by meaning."""
        path = self._path_of(name)
        self._ready_embedder()
        return self._healing(lambda: self._recall.backlinks(path, query, limit, kinds))

    def related(self, name: str, limit: int = 3) -> tuple[Backlink, ...]:
        """Memories near in meaning."""
        return self.backlinks(name, limit=limit, kinds=("semantic",))

    def context(self, query: str, *, budget_tokens: int = 1500, filter: Filter | None = None) -> Pack:  # noqa: A002
        """The best passages for a question within a budget of tokens."""
        return self._healing(lambda: self._recall.context(query, budget_tokens, filter or Filter()))

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
        self._must_write()
        clean = check_name(name)
        path = path_of(clean)
        data = _encoded(new_text(clean, content, metadata or {}, _now(), tags_as_map=tags_as_map))
        change = Change(tool, who, reason)
        with self.vault.lock():
            there = self._entry(path)
            if there is not None and overwrite:
                old = self.vault.read(path)
                written = self.vault.replace(path, data, old.sha256, change)
                return self._saved(written, data, came=False)
            if there is not None:
                held = self.vault.read(path)
                stamped = read_note(held.data).string("modified")
                if stamped and _encoded(new_text(clean, content, metadata or {}, stamped)) == held.data:
                    return self._saved_as_is(held)  # this very call, whose answer was lost
                raise AlreadyExists(
                    f"there is already a memory called {clean}",
                    hint="Use update_memory to change it, or pass overwrite=true; the old text stays in the history.",
                    name=clean,
                    current_sha256=held.sha256,
                )
            rewrites, warnings = self._rewritten(rewrite.Moved(None, path))
            written = self.vault.create(path, data, change, rewrites=[r for r, _ in rewrites])
            return self._saved(written, data, came=True, rewrites=rewrites, warnings=warnings)

    def update(
        self,
        name: str,
        *,
        content: str | None = None,
        append: str | None = None,
        edits: Sequence[Edit | Mapping[str, str]] | None = None,
        metadata: Mapping[str, Any] | None = None,
        if_sha256: str | None = None,
        who: str = "",
        tool: str = "update",
        reason: str = "",
    ) -> Saved:
        """Change a memory's body (one of `content`, `append`, `edits`), its metadata, or both."""
        if sum(given is not None for given in (content, append, edits)) > 1:
            raise Invalid("give one of content, append and edits, not several")
        if content is None and append is None and not edits and not metadata:
            raise Invalid("nothing to change", hint="Give content, append, edits or metadata.")
        wanted = [edit if isinstance(edit, Edit) else _edit_of(edit) for edit in edits or ()]

        def changed(note: Note) -> str:
            text = note.text
            if content is not None:
                text = replace_content(note, content)
            elif append is not None:
                text = append_content(note, append)
            elif wanted:
                text = apply_edits(note, wanted)
            return apply_metadata(text, metadata) if metadata else text

        return self._change(name, changed, if_sha256, Change(tool, who, reason))

    def write_text(
        self, name: str, text: str, *, if_sha256: str, who: str = "", tool: str = "edit", reason: str = ""
    ) -> Saved:
        """Put a whole file in place, header included, byte for byte: what a person made in an editor."""
        self._must_write()
        path = self._path_of(name)
        data = _encoded(text)
        with self.vault.lock():
            return self._saved(self.vault.replace(path, data, if_sha256, Change(tool, who, reason)), data, came=False)

    def change_tags(
        self,
        name: str,
        tags: Any,
        *,
        if_sha256: str | None = None,
        who: str = "",
        tool: str = "tag",
        reason: str = "",
    ) -> Saved:
        """Set tags, and take away those given as null, in the notation the note has."""
        changes = parse_tag_request(tags)
        if not changes:
            raise Invalid("no tag given", hint='Give tags as {"status": "done", "todo": null}.')
        return self._change(name, lambda note: change_tags(note.text, changes), if_sha256, Change(tool, who, reason))

    def _change(self, name: str, changed: Callable[[Note], str], if_sha256: str | None, change: Change) -> Saved:
        """Read, change, replace; again from the start when somebody else was faster and no hash was named."""
        self._must_write()
        path = self._path_of(name)
        for tries_left in range(_TRIES, -1, -1):
            file = self.vault.read(path)
            if if_sha256 is not None and file.sha256 != if_sha256:
                return self._already_done(file, changed, if_sha256)
            note = read_note(file.data)
            note.must_be_editable(name_of(path))
            text = changed(note)
            data = _encoded(stamp_modified(text, _now()) if text != note.text else text)
            with self.vault.lock():
                try:
                    written = self.vault.replace(path, data, file.sha256, change)
                except Conflict:
                    if if_sha256 is not None or not tries_left:
                        raise
                    continue
                return self._saved(written, data, came=False)
        raise AssertionError("unreachable")

    def _already_done(self, file: File, changed: Callable[[Note], str], if_sha256: str) -> Saved:
        """The note is not what the caller had read. If it is what this very call would have made of that, the call is a
        repetition whose answer was lost, and succeeds (durability.md F66); else a conflict."""
        base = self.vault.history.content(if_sha256)
        if base is not None:
            old = read_note(base)
            try:
                text = changed(old)
            except SimplememError:
                text = None
            if text is not None:
                modified = read_note(file.data).string("modified")
                wanted = stamp_modified(text, modified) if modified and text != old.text else text
                if _encoded(wanted) == file.data:
                    return self._saved_as_is(file)
        raise Conflict(
            f"{name_of(file.path)} has changed since it was read",
            current_sha256=file.sha256,
            diff=_diff(base, file.data),
            hint="Read it again, make the change on what is there now, and pass its sha256.",
        )

    def _saved_as_is(self, file: File) -> Saved:
        note = read_note(file.data)
        tags, mapped = tuple(tag_names(note.tags)), tag_map(note.tags, note.header.properties)
        return Saved(name_of(file.path), file.path, file.sha256, file.sha256, False, "", tags, mapped)

    def _saved(
        self,
        written: Written,
        data: bytes,
        *,
        came: bool,
        rewrites: Sequence[tuple[Rewrite, str]] = (),
        warnings: Sequence[str] = (),
    ) -> Saved:
        """Index what was written, still under the lock, and say what happened."""
        note = read_note(data)
        told = list(warnings)
        entry = written.entry
        if written.changed and entry is not None:
            told += self._indexed(written.path, lambda: self._sync.put_written(written.path, data, entry, came=came))
        self._index_rewrites(rewrites)
        if written.changed:
            self._tell({name_of(written.path), *(name_of(r.path) for r, _ in rewrites)})
            self._fill_soon()
        return Saved(
            name=name_of(written.path),
            path=written.path,
            sha256=written.sha256 or note.sha256,
            previous_sha256=written.previous_sha256,
            changed=written.changed,
            version=written.version,
            tags=tuple(tag_names(note.tags)),
            tag_map=tag_map(note.tags, note.header.properties),
            warnings=tuple(told + [f"links in {r.path} were qualified: {why}" for r, why in rewrites]),
        )

    def _indexed(self, path: str, put: Callable[[], None]) -> list[str]:
        """The file is safe; an index that fails now is caught up with later."""
        try:
            self._healing(put)
        except (SimplememError, Damaged) as error:
            self._owed.add(path)
            return [f"written, but not yet searchable: {error}"]
        return []

    def _index_rewrites(self, rewrites: Iterable[tuple[Rewrite, str]]) -> None:
        for changed, _ in rewrites:
            entry = self._entry(changed.path)
            if entry is not None:
                self._indexed(
                    changed.path,
                    lambda c=changed, e=entry: self._sync.put_written(c.path, c.data, e, came=False),
                )

    def _fill_soon(self) -> None:
        if self._keeper is not None:
            self._keeper.fill_soon()

    def move(self, name: str, new_name: str, *, who: str = "", tool: str = "move", reason: str = "") -> Moved:
        """Give a memory another name. Every link goes on meaning what it meant, in its own form."""
        self._must_write()
        old = self._path_of(name)
        new = path_of(check_name(new_name))
        if old == new:
            raise Invalid(f"{name_of(old)} already has this name")
        moved = rewrite.Moved(old, new)
        with self.vault.lock():
            file = self.vault.read(old)
            rewrites, warnings = self._rewritten(moved)
            own = next((r for r, _ in rewrites if r.path == old), None)
            others = [(r, why) for r, why in rewrites if r.path != old]
            written = self.vault.move(
                old,
                new,
                Change(tool, who, reason),
                rewrites=[r for r, _ in others],
                data=None if own is None else own.data,
                expected_sha256=file.sha256,
            )
            data = file.data if own is None else own.data
            entry = written.entry or self._entry(new)
            if entry is not None:
                there = entry
                warnings += self._indexed(new, lambda: self._sync.move(old, new, data, there))
            self._index_rewrites(others)
            self._tell({name_of(old), name_of(new), *(name_of(r.path) for r, _ in others)})
            self._fill_soon()
        rewritten = tuple(name_of(r.path) for r, _ in others) + ((name_of(new),) if own is not None else ())
        return Moved(
            name_of(new),
            new,
            name_of(old),
            written.sha256 or file.sha256,
            rewritten,
            written.version,
            tuple(warnings),
        )

    def _rewritten(self, moved: rewrite.Moved) -> tuple[list[tuple[Rewrite, str]], list[str]]:
        """The notes whose links must be written again so that the move changes no link's meaning."""
        before = self._index.named()
        after = _named_after(before, moved)
        touched = [path for path in (moved.old, moved.new) if path is not None]
        sources = self._healing(lambda: self._index.sources_that_could_mean(touched))
        if moved.old is not None and moved.old not in sources:
            sources.append(moved.old)
        found: list[tuple[Rewrite, str]] = []
        warnings: list[str] = []
        for path in sources:
            try:
                file = self.vault.read(path)
            except SimplememError:
                continue
            note = read_note(file.data)
            text = rewrite.rewrite_links(note, path, moved, before, after, self._conventions.link_format)
            if text == note.text:
                continue
            if note.problem is not None:
                warnings.append(
                    f"{name_of(path)} has a link that should follow, but it cannot be changed: {note.problem}"
                )
                continue
            found.append((Rewrite(path, file.sha256, _encoded(text)), f"{name_of(moved.new)} has the same name"))
        return found, warnings

    def delete(
        self,
        name: str,
        *,
        if_sha256: str | None = None,
        who: str = "",
        tool: str = "delete",
        reason: str = "",
    ) -> Deleted:
        """Put a memory in the trash. Links to it stay as they are and lead nowhere; `undo` brings it back."""
        self._must_write()
        path = self._path_of(name)
        with self.vault.lock():
            linking = self._healing(lambda: self._index.links_to(path))
            written = self.vault.trash(path, if_sha256, Change(tool, who, reason))
            self._indexed(path, lambda: self._sync.forget(path))
            named = self._index.named()
            left = sum(1 for link in linking if resolve(link.target, link.source, named).path is None)
            self._tell({name_of(path)})
        return Deleted(name_of(path), written.version, left)

    # -- the past

    def history(self, name: str | None = None, *, limit: int = 20, diff: bool = False) -> tuple[HistoryEntry, ...]:
        """Changes of one memory, or of all, newest first."""
        path = None if name is None else self._path_with_a_past(name)
        return tuple(self._entry_of(version, diff) for version in self.vault.history.versions(path, limit))

    def _path_with_a_past(self, name: str) -> str:
        """A memory that is there, or one that was."""
        try:
            return self._path_of(name)
        except NotFound:
            path = path_of(clean_reference(name))
            if self.vault.history.versions(path, 1):
                return path
            raise

    def _entry_of(self, version: Version, diff: bool) -> HistoryEntry:
        shown = None
        if diff:
            before = self._bytes_of(version, version.before) if version.before else b""
            after = self._bytes_of(version, version.after) if version.after else b""
            shown = _diff(before, after) if before is not None and after is not None else None
        return HistoryEntry(
            version=version.id,
            name=name_of(version.path),
            new_name=name_of(version.new_path) if version.new_path else None,
            when=version.when,
            op=version.op,
            who=version.who,
            tool=version.tool,
            reason=version.reason,
            before=version.before,
            sha256=version.after,
            diff=shown,
        )

    def undo(self, version_or_name: str, *, who: str = "", tool: str = "undo", reason: str = "") -> Undone:
        """Take back a change by its version, or the last change of a memory by its name."""
        self._must_write()
        version = self._version_meant(version_or_name)
        with self.vault.lock():
            written = self.vault.undo(version.id, Change(tool, who, reason))
            paths = {
                version.path,
                *([version.new_path] if version.new_path else []),
                *(w.path for w in written),
            }
            for path in paths:
                self._indexed(path, lambda p=path: self._look_at({p}))
            self._fill_soon()
        # Of one operation the first change is what was asked for; links written again because of it came after.
        asked = self.vault.history.find(version.group)
        main = next((w for w in written if w.path in (asked.path, asked.new_path)), written[0])
        what = f"took back the {asked.op} of {name_of(asked.path)}"
        if asked.new_path:
            what += f" to {name_of(asked.new_path)}"
        return Undone(name_of(main.path), main.sha256, main.version, what)

    def _version_meant(self, wanted: str) -> Version:
        try:
            return self.vault.history.find(wanted)
        except SimplememError:
            path = self._path_with_a_past(wanted)
            versions = self.vault.history.versions(path, 1)
            if not versions:
                raise NotFound(f"nothing is known of earlier changes of {name_of(path)}") from None
            return versions[0]

    # -- looking at itself

    def stats(self) -> dict[str, Any]:
        """Numbers about the vault and its index."""
        import apsw

        counted = self._healing(self._index.counts)
        database = self._index.database
        return {
            "vault": str(self.root),
            **counted,
            "skipped": [{"path": path, "why": why} for path, why in sorted(self._sync.skipped.items())],
            "state": self.state().as_dict(),
            "embedder": database.meta("embedder") or self.settings.embed.provider,
            "index_path": str(self._index.path),
            "index_bytes": sum(p.stat().st_size for p in self._index.path.parent.glob(f"{self._index.path.name}*")),
            "sqlite": apsw.sqlite_lib_version(),
            "sqlite_vec": database.vectors_in_sql,
            "read_only": self.read_only,
            "warnings": [
                f"the excluded-files entry {entry} of Obsidian is not applied: {why}"
                for entry, why in self._conventions.unread_filters().items()
            ],
        }

    def inspect(self) -> dict[str, dict[str, Any]]:
        """Everything that was read from every note."""
        return self._healing(self._index.inspection)

    def doctor(self, progress: Progress | None = None) -> tuple[Finding, ...]:
        """What is wrong with the vault or its index. Changes nothing."""
        rebuilt = self._index.build_beside()
        try:
            fresh = Sync(self.vault, rebuilt, self._hidden_reason, self.settings.max_note_bytes)
            return tuple(doctor.examine(self.vault, self._index, rebuilt, fresh, self._ready_embedder()[0], progress))
        finally:
            rebuilt.close()
            for suffix in ("", "-wal", "-shm"):
                Path(f"{rebuilt.path}{suffix}").unlink(missing_ok=True)

    def _look_at(self, paths: set[str]) -> None:
        self._tell({name_of(path) for path in self._sync.look_at(paths).changed()})

    def _must_write(self) -> None:
        if self.read_only or self.vault.read_only:
            raise ReadOnly(f"the vault {self.root} is open for reading only")


class _Background:
    """What the keeper's thread does to a store."""

    def __init__(self, store: EnhancedStore, *, embed: bool) -> None:
        self._store = store
        self._embed = embed
        self.root = store.root

    def catch_up(self) -> None:
        store = self._store
        if not store.read_only:
            store.vault.recover()
        store._healing(lambda: store._scan(None, believe=False))

    def look_at(self, paths: set[str]) -> None:
        store = self._store
        if any(path.startswith(".obsidian/") for path in paths):
            store._conventions = read_conventions(store.root)
            self.catch_up()
        store._healing(lambda: store._look_at({path for path in paths if not path.startswith(".obsidian")}))

    def fill_vectors(self, stopped: Callable[[], bool]) -> None:
        if not self._embed:
            return
        store = self._store
        embedder, _ = store._ready_embedder()
        if embedder is not None:
            database = store._index.database
            store._healing(
                lambda: fill.fill(store.vault, database, embedder, stopped=stopped, ready=store._sync.waiting)
            )

    def tell_what_others_changed(self) -> None:
        store = self._store
        rev, paths = store._healing(lambda: store._index.changed_since(store._heard_rev))
        if store._heard_rev >= 0:
            store._tell({name_of(path) for path in paths})
        store._heard_rev = rev


def _index_path(root: Path, settings: Settings, vault: Vault) -> Path:
    """Beside the notes, unless told otherwise or nothing can be written there."""
    if settings.db is not None:
        return Path(settings.db).expanduser().absolute()
    if not vault.read_only or ((root / ".simplemem" / "index.db").exists() and os.access(root / ".simplemem", os.W_OK)):
        return root / ".simplemem" / "index.db"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "simplemem" / hashlib.sha256(str(root).encode()).hexdigest()[:16] / "index.db"


def _named_after(before: Named, moved: rewrite.Moved) -> Named:
    """Which files have a name once the move is done."""

    def named(key: str) -> Sequence[str]:
        found = [path for path in before(key) if path != moved.old]
        if name_key(moved.new) == key and moved.new not in found:
            found.append(moved.new)
        return sorted(found)

    return named


def _edit_of(given: Mapping[str, str]) -> Edit:
    old, new = given.get("old"), given.get("new")
    if not isinstance(old, str) or not isinstance(new, str):
        raise Invalid("an edit needs `old` and `new`, both text")
    return Edit(old, new)


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Invalid(
            f"the text holds a character that UTF-8 cannot carry (a lone surrogate at {error.start})",
            hint="Leave it out, or send it as a proper pair.",
        ) from error


def _now() -> str:
    return datetime.now().strftime("%Y-%m-%dT%H:%M:%S")  # noqa: DTZ005  (local, as notes are)


def _diff(before: bytes | None, after: bytes) -> str:
    if before is None:
        return ""
    old = before.decode("utf-8", "replace").split("\n")
    new = after.decode("utf-8", "replace").split("\n")
    if len(old) + len(new) > 20_000:
        return "(the texts are too long for a difference to be shown)"
    lines = list(difflib.unified_diff(old, new, "before", "now", n=2, lineterm=""))
    return "\n".join(lines[:400]) + ("\n…" if len(lines) > 400 else "")
