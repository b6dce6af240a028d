"""EnhancedStore: the door to one vault, for several threads and processes. It knows memories, no protocols."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, suppress
from functools import partial, wraps
from itertools import chain
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

from simplemem.errors import NotFound, Unavailable
from simplemem.index.database import open_database
from simplemem.index.door import Progress, SyncReport
from simplemem.models import (
    By,
    Finding,
    IndexState,
    Mended,
    Mending,
    MovedIndex,
    OwnFile,
    Saved,
    Synced,
)
from simplemem.note.dates import local
from simplemem.note.formatting import well_formed
from simplemem.note.names import check_name, compare_key, name_of, path_of
from simplemem.obsidian.templates import fill_template
from simplemem.settings.find_vault import find_vault
from simplemem.settings.loading import load_settings
from simplemem.settings.model import Settings
from simplemem.store import (
    conflicts,
    history,
    move,
    packs,
    read,
    recall,
    undo,
    undo_by_author,
    write,
)
from simplemem.store.bench import Bench
from simplemem.store.core import Core, change_by
from simplemem.store.listeners import Listener

if TYPE_CHECKING:
    from pydantic import SecretStr

_MAX_TEMPLATES = 20  # that are named where one is not found

P = ParamSpec("P")
T = TypeVar("T")


def open_store(
    path: str | os.PathLike[str] | None = None,
    *,
    settings: Settings | None = None,
    read_only: bool = False,
    person: bool = False,
) -> EnhancedStore:
    """Open a vault, making it when it is not there. Without a path, the one that the settings or this folder lead to.
    The history says of changes made through it whether a `person` makes them, or a program."""
    root = find_vault(os.fspath(path) if path is not None else None)
    return EnhancedStore(
        root, settings or load_settings(vault=root), read_only=read_only, person=person
    )


# Arguments of these types are checked, by the text of the annotation.
_CHECKED_TYPES: dict[str, type | tuple[type, ...]] = {
    "str": str,
    "int": int,
    "str | None": (str, NoneType),
    "int | None": (int, NoneType),
}


def _method(
    do: Callable[Concatenate[Core, P], T], *, asks: bool = False
) -> Callable[Concatenate[EnhancedStore, P], T]:
    """Return a function of the core as a method of the store. If it only `asks`, it is repeated after index damage.

    The method raises TypeError, which names the argument, if a text or a number is of another type.
    """
    expected = {
        name: _CHECKED_TYPES[kind]
        for name, kind in do.__annotations__.items()
        if kind in _CHECKED_TYPES
    }
    positional = do.__code__.co_varnames[1 : do.__code__.co_argcount]

    @wraps(do)
    def method(store: EnhancedStore, *args: P.args, **kwargs: P.kwargs) -> T:
        core = store._opened  # noqa: SLF001
        for name, value in chain(zip(positional, args, strict=False), kwargs.items()):
            if name in expected and not isinstance(value, expected[name]):
                wanted = do.__annotations__[name]
                raise TypeError(
                    f"{do.__name__}(): {name} must be {wanted}, not {type(value).__name__}"
                )
        if asks:
            return core.index.consistently(lambda: do(core, *args, **kwargs))
        return do(core, *args, **kwargs)

    return method  # type: ignore[return-value]  # it is called as a method


class EnhancedStore:
    """One vault; a context manager. Every change takes `who` made it, with which `tool`, and a `reason`: history.

    After `close`, every method raises Unavailable.
    """

    def __init__(
        self,
        root: Path,
        settings: Settings | None = None,
        *,
        read_only: bool = False,
        person: bool = False,
    ) -> None:
        core = self._core = Core(root, settings, read_only=read_only, person=person)
        self._is_closed = False
        self.root, self.settings, self.read_only = core.root, core.settings, core.read_only
        self.bench = Bench(core)

    @property
    def _opened(self) -> Core:
        if self._is_closed:
            raise Unavailable("this store is closed", hint="Open the vault again with open_store.")
        return self._core

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop background work, close all files and commit to git what is due. A second call does nothing."""
        if not self._is_closed:
            self._is_closed = True
            self._core.close()

    def start(self, *, embed: bool = True) -> None:
        """Keep the index up to date from now on, in the background: scan, watch, and embed."""
        self._opened.start(embed=embed)

    def wait_until_settled(self, timeout: float = 60.0) -> bool:
        """Wait for the first scan of the background; return whether it is done."""
        return self._opened.wait_until_settled(timeout)

    def on_change(self, listener: Listener) -> None:
        """Call a function with the names of notes that changed, once they are indexed."""
        self._opened.on_change(listener)

    def state(self) -> IndexState:
        """Return how far the index can be trusted now."""
        return self._opened.state()

    def reach(self, commit: str) -> None:
        """Answer from now on from this commit of the vault's branch, or a later one.

        Does nothing if the vault is a folder. Raises Unavailable if the commit has not arrived.
        """
        self._opened.reach(commit)

    def sync(
        self,
        *,
        progress: Progress | None = None,
        embed: bool = True,
        rebuild: bool = False,
        believe: bool = False,
        begin: bool = True,
    ) -> SyncReport:
        """Index the vault, text first, vectors after. `rebuild` makes it anew beside itself; `believe` accepts that
        many notes are gone; without `begin` no vectors of another embedder are begun, and none where many are missing:
        `state` says how many are."""
        core = self._opened
        embed = embed and core.embedding.load()[0] is not None
        if not embed:
            core.rows.waiting = None
        if rebuild:
            core.follow_obsidian()
            fresh = core.index.database.beside()
            rows = core.sync_of(fresh)
            rows.scan(progress)
            if embed:
                core.embedding.reuse_vectors(core.index.database, fresh)
                core.embedding.fill(progress, begin=True, ready=rows.waiting, into=fresh)
            fresh.set_meta("scanned", "yes")
            fresh.close()
            core.index.database.replace_with(fresh)
        report = core.compare_all(progress, believe=believe)
        if embed:
            fill = partial(core.embedding.fill, progress, begin=begin, ready=core.rows.waiting)
            report.embedded = core.index.consistently(fill)
            core.parts.vectors.expect_complete()
            report.trouble = core.embedding.trouble()
        return report

    def catch_up(self, *, embed: bool) -> None:
        """Index what was saved up to this moment, for a process that stays: by the kernel's list of what changed.

        With `embed` the vectors of a few changed notes are made too, as `sync` makes them for a question.
        """
        core = self._opened
        core.catch_up()
        if embed and core.embedding.count_pending():
            fill = partial(core.embedding.fill, None, begin=False, ready=core.rows.waiting)
            core.index.consistently(fill)

    def resolve(self, name: str) -> str:
        """The memory that a name, title, alias or wikilink means."""
        return name_of(self._opened.path_meant(name))

    def has(self, name: str) -> bool:
        """Whether there is a memory of just this name; quicker than `resolve`, which looks for what it may have meant."""
        return self._opened.entry(path_of(check_name(name))) is not None

    def names(self, prefix: str = "", limit: int = 100) -> list[str]:
        """Names that begin so, for completion; those of past sessions last."""
        return [name for name, _ in self._near_names(prefix, limit)]

    def short_names(self, prefix: str = "", limit: int = 100) -> list[str]:
        """Return what a prefix may be completed to: file names that only one note has, or paths.

        Paths are returned if the prefix has a folder in it, or begins no such file name.
        """
        found = self._near_names(prefix, limit)
        start = compare_key(well_formed(prefix))
        file_names = [name.rsplit("/", 1)[-1] for name, is_unique in found if is_unique]
        short = [name for name in file_names if compare_key(name).startswith(start)]
        if "/" in prefix or not short:
            return [name for name, _ in found]
        return short

    def _near_names(self, prefix: str, limit: int) -> list[tuple[str, bool]]:
        """The names that begin so, or whose file name does, each with whether it is the only note of that file name."""
        self._opened.prepare(vectors=False)
        last = recall.archive_of(self._opened)
        found = self._opened.index.near_names(well_formed(prefix), limit, last)
        return [(name_of(path), is_unique) for path, is_unique in found]

    def tags(self) -> dict[str, int]:
        """Every tag and how many memories have it."""
        self._opened.prepare(vectors=False)
        return self._opened.index.tag_counts()

    read_text = _method(read.read_text)
    read = _method(read.read)
    search = _method(recall.search, asks=True)
    context = _method(packs.context, asks=True)
    backlinks = _method(recall.backlinks, asks=True)
    related = _method(recall.related, asks=True)

    create = _method(write.create)

    def daily(self, **by: Unpack[By]) -> Saved:
        """The note of today, made of the template for daily notes where it is not there yet."""
        core, obsidian = self._opened, self._opened.conventions
        if (file := core.file(path_of(name := obsidian.daily_note(local())))) is not None:
            return write.report_unchanged(core, file)
        template = obsidian.daily_template
        is_there = (
            template and core.entry(path_of(template)) is not None
        )  # without it Obsidian makes an empty note
        return self.create_from(template if is_there else "", name, **by)

    def create_from(self, template: str, name: str, **by: Unpack[By]) -> Saved:
        """Make a note of a template, to the byte but for its `{{title}}`, `{{date}}` and `{{time}}`."""
        core = self._opened
        core.must_be_writable()
        path = path_of(check_name(name))
        source = self._template_path(template) if template else ""
        text = core.vault.read(source).data.decode("utf-8", "surrogateescape") if source else ""
        text = fill_template(text, name.rsplit("/", 1)[-1], local(), core.conventions)
        data = text.encode("utf-8", "surrogateescape")
        with core.vault.lock():
            return write.finish_write(
                core, core.vault.create(path, data, change_by(by, "create")), data, ()
            )

    def _template_path(self, template: str) -> str:
        """The path of a template by its name in Obsidian's folder for templates, or of any note by its name."""
        core = self._opened
        folder = core.conventions.templates_folder
        path = path_of(f"{folder}/{template}".lstrip("/"))
        if core.entry(path) is not None:
            return path
        try:
            return core.path_meant(template)
        except NotFound:
            raise self._no_template(template) from None

    def _no_template(self, template: str) -> NotFound:
        folder = self._opened.conventions.templates_folder
        paths = self._opened.vault.entries_below(folder) if folder else []
        names = [
            name_of(entry.path).removeprefix(f"{folder}/")
            for entry in paths
            if entry.path.endswith(".md")
        ]
        hint = f"The templates are {', '.join(names[:_MAX_TEMPLATES])}."
        if not names:
            hint = "No template folder is set in Obsidian. Any note can serve as a template: give its name."
        return NotFound(
            f"no template called {template!r}", candidates=names[:_MAX_TEMPLATES], hint=hint
        )

    update = _method(write.update)
    write_text = _method(write.write_text)
    change_tags = _method(write.change_tags)
    delete = _method(move.delete)
    delete_all = _method(move.delete_all)
    move = _method(move.move)

    blame = _method(history.blame_of)
    diff = _method(history.diff)
    history, last_step = _method(history.history), _method(undo.last_step)
    restore = _method(undo.restore)
    undo_all = _method(undo_by_author.undo_all)
    undo = _method(undo.undo)

    def sync_with_remote(self, **by: Unpack[By]) -> Synced:
        """Exchange changes with the remote of the vault's git repository."""
        from simplemem.store.syncing import sync

        return sync(self._opened, **by)

    def commit(self, *, written: bool = False) -> str:
        """The commit of the vault's branch that answers are of, or that holds what was just `written`; "" where the
        vault is a folder, or where that cannot be told just now: what was written is there all the same."""
        vault = self._opened.vault
        if vault.is_branch and not written:
            return self._opened.index.standing().commit
        with suppress(Unavailable):
            return vault.newest() if vault.is_branch else ""
        return ""

    def move_index(
        self, engine: str | SecretStr | Mapping[str, str] | None, progress: Progress | None = None
    ) -> MovedIndex:
        """Build the index in another engine (as `index.engine` names one; None is the sidecar), with the vectors that
        were paid for here, or go on where a former call was interrupted. The one in use stays as it is, and in use."""
        from pydantic import SecretStr  # a command that moves no index does without Pydantic

        named = SecretStr(engine) if isinstance(engine, str) else engine
        index = self.settings.index.model_copy(update={"engine": named, "replica": None})
        settings, core = self.settings.model_copy(update={"index": index}), self._opened
        with (
            EnhancedStore(self.root, settings, read_only=self.read_only, person=True) as there,
            ExitStack() as opened,
        ):
            source, built = core.index.database, there._opened.index.database
            is_used = built.place == source.place
            if (
                is_used and engine and core.index.path.is_file()
            ):  # the settings were first, and the sidecar is left
                source = open_database(core.index.path, core.vault.lock)
                opened.callback(source.close)
            there.sync(progress=progress, embed=False, believe=True)
            taken = (
                there._opened.embedding.reuse_vectors(source, built, progress)
                if source.place != built.place
                else 0
            )
            done = there.sync(progress=progress)
            notes = there.state().notes
            return MovedIndex(
                built.engine, built.place, notes, taken, done.embedded, is_used, done.trouble
            )

    conflict_copies = _method(conflicts.conflict_copies)
    conflict_merges = _method(conflicts.conflict_merges)
    merge_conflict = _method(conflicts.merge_conflict)
    merge_conflicts = _method(conflicts.merge_conflicts)

    def stats(self) -> dict[str, Any]:
        """Numbers about the vault and its index."""
        core = self._opened
        embedding = core.embedding.report()
        reranking = core.reranking()
        unread = core.conventions.unread_filters().items()
        warnings = [
            f"Obsidian's excluded-files entry {entry} is not applied: {why}"
            for entry, why in unread
        ]
        warnings += filter(None, [self.rerank_trouble])
        return {
            "vault": str(self.root),
            **(
                {"branch": core.vault.place, "commit": self.commit()}
                if core.vault.is_branch
                else {}
            ),
            **core.index.counts(),
            "skipped": [{"path": path, "why": why} for path, why in core.not_indexed()],
            "state": core.state().as_dict(),
            "pending_vectors": embedding["waiting"],
            "embedder": embedding["in_use"],
            "embedding": embedding,
            "reranker": reranking.name if reranking is not None else "none",
            "index_path": core.index.database.place,
            "index_bytes": core.index.database.size(),
            "engine": core.index.database.engine,
            "lag_seconds": round(time.monotonic() - core.compared_at) if core.compared_at else None,
            "read_only": self.read_only,
            "git": core.committing.state(),
            "warnings": warnings,
        }

    @property
    def git_trouble(self) -> str:
        """Why the history that was asked for last lacks what git knows; "" when it does not."""
        return self._opened.git_trouble

    @property
    def rerank_trouble(self) -> str:
        """Why the reranker did not order what was asked for last; "" when it did, or there is none."""
        reranking = self._opened.reranking()
        return reranking.failure if reranking is not None else ""

    def inspect(self) -> dict[str, dict[str, Any]]:
        """Everything that was read from every note."""
        self._opened.prepare(vectors=False)
        return self._opened.index.inspection()

    def doctor(
        self, progress: Progress | None = None, *, only: Collection[str] = ()
    ) -> tuple[Finding, ...]:
        """What is wrong with the vault, its index or what they are on, by all checks or some. Changes no note."""
        from simplemem.store.doctor import examine  # few who open a store ask for it

        return examine(self._opened, progress, only=only)

    def own_files(self) -> tuple[OwnFile, ...]:
        """What is in `.simplemem/` of the vault, and which of it can be made again from the notes: only the index."""
        from simplemem.store.folder import own_files

        return own_files(self._opened)

    def plan_mending(
        self, progress: Progress | None = None, *, only: Collection[str] = ()
    ) -> Mending:
        """What `doctor` finds and the broken links among it that can be mended. Writes nothing; `mend` does."""
        from simplemem.store.doctor import plan_mending

        return plan_mending(self._opened, progress, only=only)

    def mend(self, mending: Mending, **by: Unpack[By]) -> Mended:
        """Carry out what was planned: all of it as one change, which one `undo` takes back, or nothing."""
        from simplemem.store.doctor import mend

        return mend(self._opened, mending, **by)

    list = _method(recall.list_page, asks=True)  # last: its name hides the type from what follows
