"""EnhancedStore: the public API of a vault, which every interface uses."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial, wraps
from itertools import chain
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Self, TypeVar, Unpack

from simplemem.errors import Invalid, Unavailable
from simplemem.index.api import Progress, SyncReport
from simplemem.index.sqlite.engine import open_engine
from simplemem.models import (
    AuthorArgs,
    Backlink,
    BlamedLine,
    ConflictCopy,
    ConflictMerge,
    ConflictMerged,
    Deleted,
    Difference,
    Filter,
    Finding,
    FixPlan,
    FixResult,
    Found,
    HistoryEntry,
    IndexState,
    Memory,
    Moved,
    MovedIndex,
    OwnFile,
    Pack,
    Page,
    Restored,
    Saved,
    Synced,
    Undone,
    UndoneMany,
)
from simplemem.note.names import check_name, compare_key, name_of, path_of
from simplemem.note.words import well_formed
from simplemem.search.pipeline import SearchRequest
from simplemem.settings.find_vault import find_vault
from simplemem.settings.loading import load_settings
from simplemem.settings.model import Settings
from simplemem.store.conflicts import Keep
from simplemem.store.extension import ExtensionAPI
from simplemem.store.factory import StoreParts
from simplemem.store.listeners import ChangeCallback
from simplemem.store.read import NoteText

if TYPE_CHECKING:
    from pydantic import SecretStr

P = ParamSpec("P")
T = TypeVar("T")

# The types of arguments that are checked, by their annotations.
_CHECKED_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "str": str,
    "int": int,
    "str | None": (str, NoneType),
    "int | None": (int, NoneType),
    "Filter | None": (Filter, NoneType),
    "Mapping[str, Any] | None": (dict, Mapping, NoneType),
    "Sequence[Mapping[str, str]] | None": (list, tuple, NoneType),
}

# What to pass, by the annotations whose meaning is not obvious. A wrong value raises Invalid.
_TYPE_HINTS: Final[Mapping[str, str]] = {
    "Filter | None": "Make a filter with Filter.of, for example Filter.of(tags='decision').",
    "Mapping[str, Any] | None": (
        'Give the properties as a mapping, for example {"type": "note", "tags": ["todo"]}.'
    ),
    "Sequence[Mapping[str, str]] | None": (
        'Give a list of edits, for example [{"old": "text", "new": "other text"}].'
    ),
}

# A hash, its beginning, or the two of them that accept a merge.
_HASHES: Final = re.compile(r"[0-9a-fA-F]{12,64}(\+[0-9a-fA-F]{12,64})?")


def open_store(
    path: str | os.PathLike[str] | None = None,
    *,
    settings: Settings | None = None,
    read_only: bool = False,
    person: bool = False,
) -> EnhancedStore:
    """Open a vault; create it if it does not exist.

    Without a path, it is the vault that the settings or the current folder lead to. The history
    records whether changes are made by a `person` or by a program.
    """
    root = find_vault(os.fspath(path) if path is not None else None)
    settings = settings or load_settings(vault=root)
    return EnhancedStore(root, settings, read_only=read_only, person=person)


def _checks_arguments(method: Callable[P, T]) -> Callable[P, T]:
    """Return a method that refuses an argument of another type than its annotation says.

    Raises TypeError for a text or a number, and Invalid for a filter, properties, edits, and a
    `if_sha256` that is no hash. The error names the argument. Other arguments are not checked.
    """
    annotations = method.__annotations__
    expected_types = {
        name: _CHECKED_TYPES[annotation]
        for name, annotation in annotations.items()
        if annotation in _CHECKED_TYPES
    }
    code = method.__code__
    positional_names = code.co_varnames[: code.co_argcount]

    @wraps(method)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        positional = zip(positional_names, args, strict=False)
        for name, value in chain(positional, kwargs.items()):
            expected = expected_types.get(name)
            if expected is not None and not isinstance(value, expected):
                raise _wrong_type(method.__name__, name, annotations[name], value)
        if "if_sha256" in kwargs:
            _check_hash(kwargs["if_sha256"])
        return method(*args, **kwargs)

    return checked


def _wrong_type(method: str, argument: str, annotation: str, value: object) -> Exception:
    """Return the error for an argument of a wrong type."""
    message = f"{method}(): {argument} must be {annotation}, not {type(value).__name__}"
    hint = _TYPE_HINTS.get(annotation)
    return TypeError(message) if hint is None else Invalid(message, hint=hint)


def _check_hash(if_sha256: object) -> None:
    """Raise Invalid if a text cannot be the hash of a note; None is no condition."""
    if isinstance(if_sha256, str) and not _HASHES.fullmatch(if_sha256):
        raise Invalid(
            f"if_sha256 is not a SHA-256 hash: {if_sha256[:80]!r}",
            hint="Pass the `sha256` that `read` returned.",
        )


class EnhancedStore:
    """One vault with its index: read, search, change and undo. A context manager.

    It may be used from several threads, beside other processes on the same vault. Methods that
    change notes take `who` makes the change, with which `tool`, and for which `reason`; the history
    records these. Notes are called by their names, titles, aliases or wikilinks. After `close`,
    every method raises Unavailable.

    Guards whether the store is closed.
    """

    def __init__(
        self,
        root: Path,
        settings: Settings | None = None,
        *,
        read_only: bool = False,
        person: bool = False,
    ) -> None:
        self._parts = StoreParts(root, settings, read_only=read_only, person=person)
        self._is_closed = False
        self.root = self._parts.root
        self.settings = self._parts.settings
        self.read_only = self._parts.read_only
        self.extension = ExtensionAPI(self._parts)

    def __repr__(self) -> str:
        return f"EnhancedStore({os.fspath(self.root)!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop background work, close all files, and commit to git what is due.

        A second call does nothing.
        """
        if not self._is_closed:
            self._is_closed = True
            self._parts.close()

    @property
    def _opened(self) -> StoreParts:
        """The objects of the store. Raises Unavailable if it is closed."""
        if self._is_closed:
            raise Unavailable("this store is closed", hint="Open the vault again with open_store.")
        return self._parts

    # --- The index ---

    def start(self, *, embed: bool = True) -> None:
        """Keep the index up to date from now on, in the background: scan, watch, and embed."""
        self._opened.start(embed=embed)

    def wait_until_settled(self, timeout: float = 60.0) -> bool:
        """Wait for the first scan of the background; return whether it is done."""
        return self._opened.keeper.wait_until_settled(timeout)

    def on_change(self, listener: ChangeCallback) -> None:
        """Call a function with the names of notes that changed, once they are indexed."""
        self._opened.listeners.subscribe(listener)

    def state(self) -> IndexState:
        """Return how far the index can be trusted now."""
        return self._opened.monitor.state()

    @_checks_arguments
    def reach(self, commit: str) -> None:
        """Answer from now on from this commit of the vault's branch, or a later one.

        Does nothing if the vault is a folder. Raises Unavailable if the commit has not arrived.
        """
        self._opened.keeper.reach(commit)

    def commit(self, *, written: bool = False) -> str:
        """Return the commit of the vault's branch that answers are made of.

        If something was just `written`, it is the newest commit, which contains that. Returns "" if
        the vault is a folder, or if the newest commit cannot be read at the moment.
        """
        revisions = self._opened.vault.revisions
        if revisions is None:
            return ""
        if not written:
            return self._opened.index.progress().commit
        with suppress(Unavailable):
            return revisions.current()
        return ""

    def sync(
        self,
        *,
        progress: Progress | None = None,
        embed: bool = True,
        rebuild: bool = False,
        accept_deletions: bool = False,
        begin: bool = True,
    ) -> SyncReport:
        """Index the vault: text first, vectors after it. Returns what has changed.

        `rebuild` makes a new index and then replaces the old one with it. With `accept_deletions`,
        many notes may be gone. Without `begin`, no vectors of another embedder are made, and none
        if many are missing; `state` says how many are.
        """
        return self._opened.indexing.sync(
            progress=progress,
            embed=embed,
            rebuild=rebuild,
            accept_deletions=accept_deletions,
            begin=begin,
        )

    def catch_up(self, *, embed: bool) -> None:
        """Index what was saved up to this moment, for a process that goes on.

        It costs what has changed, by the kernel's list of changed files. With `embed`, a few
        missing vectors are made too.
        """
        self._opened.indexing.catch_up(embed=embed)

    def move_index(
        self, engine: str | SecretStr | Mapping[str, str] | None, progress: Progress | None = None
    ) -> MovedIndex:
        """Build the index in another engine, with the vectors that were paid for here.

        `engine` is as in the setting `index.engine`; None is the SQLite index. If an earlier call
        was interrupted, continue it. The index in use stays as it is, and in use.
        """
        from pydantic import SecretStr  # a command that moves no index does without Pydantic

        secret = SecretStr(engine) if isinstance(engine, str) else engine
        index_settings = self.settings.index.model_copy(update={"engine": secret, "replica": None})
        settings = self.settings.model_copy(update={"index": index_settings})
        parts = self._opened
        with (
            EnhancedStore(self.root, settings, read_only=self.read_only, person=True) as other,
            ExitStack() as opened,
        ):
            source = parts.database
            target = other._parts.database
            is_in_use = target.place == source.place
            sqlite_path = parts.index.path
            if is_in_use and engine and sqlite_path.is_file():
                # The settings were changed first, and the SQLite index is left over.
                source = open_engine(sqlite_path, parts.vault.lock)
                opened.callback(source.close)

            other.sync(progress=progress, embed=False, accept_deletions=True)
            taken_count = 0
            if source.place != target.place:
                taken_count = other._parts.embedding.reuse_vectors(source, target, progress)
            report = other.sync(progress=progress)
            return MovedIndex(
                target.engine,
                target.place,
                other.state().notes,
                taken_count,
                report.embedded,
                is_in_use,
                report.trouble,
            )

    def stats(self) -> dict[str, Any]:
        """Return numbers about the vault and its index."""
        reranker = self._opened.searching.reranker
        return self._opened.statistics.collect(
            reranker=reranker.name if reranker is not None else "none",
            rerank_trouble=self.rerank_trouble,
        )

    def inspect(self) -> dict[str, dict[str, Any]]:
        """Return everything that was read from every note."""
        self._opened.keeper.prepare(vectors=False)
        return self._opened.index.inspection()

    # --- Names ---

    def resolve(self, name: str) -> str:
        """Return the name of the note that a name, title, alias or wikilink means.

        Raises NotFound, with similar names, and Ambiguous if several notes are meant.
        """
        return name_of(self._opened.resolver.path_of(name))

    def has(self, name: str) -> bool:
        """Return whether there is a note of exactly this name, which includes its folder.

        Titles and aliases do not count, and the index is not asked. Raises Invalid or TooLong for
        an illegal name.
        """
        return self._opened.reader.exists(path_of(check_name(name)))

    def names(self, prefix: str = "", limit: int = 100) -> list[str]:
        """Return names that begin with a prefix, for completion; those of past sessions last.

        The prefix may also be that of the file name.
        """
        return [name for name, _ in self._names_with_prefix(prefix, limit)]

    def short_names(self, prefix: str = "", limit: int = 100) -> list[str]:
        """Return what a prefix may be completed to: file names that only one note has, or paths.

        Paths are returned if the prefix has a folder in it, or begins no such file name.
        """
        matches = self._names_with_prefix(prefix, limit)
        file_names = [name.rsplit("/", 1)[-1] for name, is_unique in matches if is_unique]
        key = compare_key(well_formed(prefix))
        short_names = [name for name in file_names if compare_key(name).startswith(key)]
        if "/" in prefix or not short_names:
            return [name for name, _ in matches]
        return short_names

    def _names_with_prefix(self, prefix: str, limit: int) -> list[tuple[str, bool]]:
        """Return names that begin with a prefix, or whose file names do.

        Each comes with whether no other note has the same file name.
        """
        self._opened.keeper.prepare(vectors=False)
        last_folders = self._opened.searching.filters.archive
        matches = self._opened.index.complete_name(well_formed(prefix), limit, last_folders)
        return [(name_of(path), is_unique) for path, is_unique in matches]

    def tags(self) -> dict[str, int]:
        """Return every tag, and how many notes have it."""
        self._opened.keeper.prepare(vectors=False)
        return self._opened.index.tag_counts()

    # --- Reading and searching ---

    @_checks_arguments
    def read(
        self,
        name: str,
        *,
        section: str | None = None,
        version: str | None = None,
        at: str | None = None,
    ) -> Memory:
        """Return a note, or one section of it, now or at a version, date or commit.

        A section is a heading, a path of headings ("A#B"), or a block ("^block"). The id of a
        version alone decides which note is read; `name` counts for a commit, a date and the hash of
        a text, which may be a `version` too. Of both `version` and `at`, a hash or a commit goes
        first, and otherwise `at`.

        Raises NotFound if there was no such note or section, or if its text is no longer kept;
        Ambiguous for a name of several notes; Unreadable or TooLong for a text that cannot be
        returned.
        """
        return self._opened.memories.read(name, section=section, version=version, at=at)

    @_checks_arguments
    def read_text(
        self,
        name: str,
        *,
        version: str | None = None,
        at: str | None = None,
    ) -> NoteText:
        """Return the whole text of a note, now or at a version, date or commit.

        It is quicker than `read`, as links, headings and tokens are not looked for. Raises as
        `read` does.
        """
        return self._opened.memories.read_text(name, version=version, at=at)

    @_checks_arguments
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
        own_scores: bool = False,
    ) -> Found:
        """Return the notes that answer a query, best first; for a query without words, the newest.

        `mode` is "hybrid", "text" or "semantic". `explain` adds the numbers behind the ranking,
        `why` says where one note is in it or why it is missing, `authors` says who changed each
        note last. With `rerank`, a reranker may order the hits, if the settings name one. Scores
        fall from hit to hit; with `own_scores`, each is what the hit has by itself, for a caller
        that filters by it. Raises Invalid for an unknown mode or filter.
        """
        searching = self._opened.searching
        request = SearchRequest(
            query=query,
            filter=filter,
            limit=limit,
            mode=mode,
            rerank=rerank,
            authors=authors,
            own_scores=own_scores,
        )
        search = partial(searching.search.search, request)
        if explain or why:
            search = partial(searching.explained_search.search, request, explain=explain, why=why)
        return self._opened.index.with_retry(search)

    @_checks_arguments
    def context(
        self,
        query: str,
        *,
        budget_tokens: int = 1500,
        filter: Filter | None = None,
    ) -> Pack:
        """Return the best passages for a query, cited, within a budget of tokens."""
        build = partial(self._opened.searching.context.build, query, budget_tokens, filter)
        return self._opened.index.with_retry(build)

    @_checks_arguments
    def backlinks(
        self,
        name: str,
        *,
        query: str | None = None,
        limit: int = 5,
        kinds: Sequence[str] = ("link", "semantic"),
    ) -> tuple[Backlink, ...]:
        """Return notes that link to a note, or are near to it in meaning, each once.

        With a `query`, they are in its order. `kinds` may leave out "link" or "semantic".
        """
        finder = self._opened.searching.backlinks
        backlinks = partial(finder.backlinks, name, query, limit, kinds)
        return self._opened.index.with_retry(backlinks)

    @_checks_arguments
    def related(self, name: str, limit: int = 3) -> tuple[str, ...]:
        """Return the names of notes that are near in meaning to a note, nearest first."""
        related = partial(self._opened.searching.backlinks.related, name, limit)
        return self._opened.index.with_retry(related)

    @property
    def rerank_trouble(self) -> str:
        """Why the reranker did not order the last search; "" if it did, or if there is none."""
        reranker = self._opened.searching.reranker
        return reranker.failure if reranker is not None else ""

    # --- Changes of notes ---

    @_checks_arguments
    def create(
        self,
        name: str,
        content: str,
        metadata: Mapping[str, Any] | None = None,
        *,
        overwrite: bool = False,
        tags_as_map: bool = False,
        if_sha256: str | None = None,
        **by: Unpack[AuthorArgs],
    ) -> Saved:
        """Create a note. The warnings name unresolved links, and notes that say nearly the same.

        With `overwrite`, it replaces the note of that name, and links that the new name would take
        over are rewritten first; otherwise no other note is touched. The replaced text stays in the
        history: `read(name, version=saved.previous_sha256)` returns it, and `undo(saved.version)`
        restores it.

        Raises AlreadyExists if there is such a note, unless a call with the same arguments made it;
        Conflict if it is to be replaced and has another hash than `if_sha256`.
        """
        return self._opened.editor.create(
            name,
            content,
            metadata,
            overwrite=overwrite,
            tags_as_map=tags_as_map,
            if_sha256=if_sha256,
            **by,
        )

    def create_from(self, template: str, name: str, **by: Unpack[AuthorArgs]) -> Saved:
        """Create a note from a template, or an empty one for the template "".

        The text is that of the template, byte for byte, but for `{{title}}`, `{{date}}` and
        `{{time}}`. Raises NotFound for an unknown template, and AlreadyExists.
        """
        return self._opened.templates.create(template, name, **by)

    def daily(self, **by: Unpack[AuthorArgs]) -> Saved:
        """Return today's daily note; create it from its template if it does not exist."""
        return self._opened.templates.daily(**by)

    @_checks_arguments
    def update(
        self,
        name: str,
        *,
        content: str | None = None,
        append: str | None = None,
        edits: Sequence[Mapping[str, str]] | None = None,
        metadata: Mapping[str, Any] | None = None,
        if_sha256: str | None = None,
        **by: Unpack[AuthorArgs],
    ) -> Saved:
        """Change a note's body (one of `content`, `append`, `edits`), its properties, or both.

        `append` becomes a block of its own at the end, or continues the list or table that the note
        ends with. Raises Invalid if the change cannot be made, and Conflict if the note has another
        hash than `if_sha256`.
        """
        return self._opened.editor.update(
            name,
            content=content,
            append=append,
            edits=edits,
            metadata=metadata,
            if_sha256=if_sha256,
            **by,
        )

    @_checks_arguments
    def write_text(
        self, name: str, text: str, *, if_sha256: str, **by: Unpack[AuthorArgs]
    ) -> Saved:
        """Replace a whole note, frontmatter included, byte for byte: for a user's editor.

        Raises Conflict if the note has another hash than `if_sha256`.
        """
        return self._opened.editor.write_text(name, text, if_sha256=if_sha256, **by)

    @_checks_arguments
    def change_tags(
        self, name: str, tags: Any, *, if_sha256: str | None = None, **by: Unpack[AuthorArgs]
    ) -> Saved:
        """Set tags, and remove those that are null, in the notation that the note has.

        Tags in the text stay, and the warnings name their lines. Raises Invalid if no tag is given,
        and Conflict if the note has another hash than `if_sha256`.
        """
        return self._opened.editor.change_tags(name, tags, if_sha256=if_sha256, **by)

    @_checks_arguments
    def move(self, name: str, new_name: str, **by: Unpack[AuthorArgs]) -> Moved:
        """Give a note another name. Links to it and in it keep their targets and forms.

        A repeated call whose answer was lost gives the same answer. Raises NotFound or Ambiguous
        for the name, AlreadyExists if the new name is taken, and Invalid if it is not legal.
        """
        return self._opened.mover.move(name, new_name, **by)

    @_checks_arguments
    def delete(
        self, name: str, *, if_sha256: str | None = None, **by: Unpack[AuthorArgs]
    ) -> Deleted:
        """Move a note to the trash. The answer says how many links are unresolved by that.

        Raises NotFound or Ambiguous for the name, and Conflict if the note has another hash than
        `if_sha256`.
        """
        return self._opened.mover.delete(name, if_sha256=if_sha256, **by)

    @_checks_arguments
    def delete_all(self, names: Iterable[str], **by: Unpack[AuthorArgs]) -> tuple[Deleted, ...]:
        """Move notes to the trash as one change, which one undo takes back.

        All names are looked up first: raises NotFound or Ambiguous, with nothing deleted, if one of
        them means no note. Links among the notes are not counted as unresolved.
        """
        return self._opened.mover.delete_all(names, **by)

    # --- History ---

    @_checks_arguments
    def history(
        self,
        name: str | None = None,
        *,
        limit: int = 20,
        diff: bool = False,
        by: str = "",
        since: str = "",
        until: str = "",
        steps: bool = False,
    ) -> tuple[HistoryEntry, ...]:
        """Return changes of one note, of all, or of the operation of a version, newest first.

        `by`, `since` and `until` (a date or version) narrow them down. Of a note, git commits are
        among them unless they are narrowed down. With `steps`, the changes of all notes have one
        entry per operation. Raises NotFound for an unknown note or version, and Invalid for what is
        no date.
        """
        return self._opened.history.entries(
            name, limit=limit, diff=diff, by=by, since=since, until=until, steps=steps
        )

    @_checks_arguments
    def diff(
        self,
        what: str,
        other: str | None = None,
        *,
        since: str | None = None,
    ) -> tuple[Difference, ...]:
        """Return what a version changed, what lies between two, or what changed in a note.

        `what` is a version or a note. `since` is a version, date or commit; without it, it is the
        last change of the note. Raises NotFound for an unknown version or note.
        """
        return self._opened.history.diff(what, other, since=since)

    @_checks_arguments
    def blame(self, name: str) -> tuple[BlamedLine, ...]:
        """Return who last changed each line of a note, by our own history.

        What the history did not see was written by hand.
        """
        return self._opened.history.blame(name)

    @property
    def git_trouble(self) -> str:
        """Why the history that was asked for last lacks git commits; "" if it does not."""
        return self._opened.commits.trouble

    @_checks_arguments
    def next_to_undo(self, name: str | None = None, *, undone: bool = False) -> str:
        """Return the version to undo next; if `undone`, the undo to take back (redo) next.

        It is of one note or of all. Raises NotFound if there is none. An undo can be taken back
        only if nothing else was changed since.
        """
        return self._opened.undo.next_to_undo(name, undone=undone)

    @_checks_arguments
    def undo(self, version_or_name: str, **by: Unpack[AuthorArgs]) -> Undone:
        """Undo a change by its version, or the last change of a note by the note's name.

        Changes of the same operation, such as the links that a move rewrote, are undone with it. Of
        a note, the last change is undone that was not undone yet. Raises Conflict if one of the
        notes has changed since, NotFound if there is no such change, Invalid for a commit of git,
        and ReadOnly.
        """
        return self._opened.undo.undo(version_or_name, **by)

    @_checks_arguments
    def undo_all(
        self,
        by: str,
        since: str,
        *,
        preview: bool = False,
        expected: str | None = None,
        **change: Unpack[AuthorArgs],
    ) -> UndoneMany:
        """Undo everything that somebody changed since a date or version, as one operation.

        A `preview` changes nothing. If its `plan` is passed as `expected`, the undo is made only if
        it would do what the preview showed; else Conflict is raised. Notes that have to stay as
        they are come back with the reason. Raises NotFound if somebody of this name has changed
        nothing since, Invalid if `by` or `since` is blank, and ReadOnly.
        """
        return self._opened.undo_by_author.undo_all(
            by, since, preview=preview, expected=expected, **change
        )

    @_checks_arguments
    def restore(
        self,
        name: str,
        *,
        at: str | None = None,
        new_name: str | None = None,
        **by: Unpack[AuthorArgs],
    ) -> Restored:
        """Write back the text that a note had at a version, date or commit.

        With `new_name`, it becomes another note. Without `at`, it is the last text of a deleted
        note. Raises AlreadyExists if another note has the name now, NotFound if the note did not
        exist then or its text is no longer kept, and Invalid without `at` if the note exists. The
        result has a warning if the text of that time is uncertain.
        """
        return self._opened.undo.restore(name, at=at, new_name=new_name, **by)

    # --- Conflicts, other machines, and the doctor ---

    @_checks_arguments
    def conflict_copies(self) -> tuple[ConflictCopy, ...]:
        """Return the files that synchronisers and git left beside notes changed in two places."""
        return self._opened.conflicts.copies()

    @_checks_arguments
    def conflict_merges(
        self, name: str | None = None, *, in_sequence: bool = False
    ) -> tuple[ConflictMerge, ...]:
        """Return what merges would make of conflict copies: of a copy, of all of a note, or of all.

        `name` is that of the copy or the note. Each merge is of its copy alone, unless
        `in_sequence`: then the copies of a note are merged one after the other, the text of each
        has what those before it added, and `merge_conflicts` writes them as one change. Raises
        NotFound if `name` has no copy.
        """
        return self._opened.conflicts.previews(name, in_sequence=in_sequence)

    @_checks_arguments
    def merge_conflict(
        self, merge: ConflictMerge, *, keep: Keep = "merge", **by: Unpack[AuthorArgs]
    ) -> ConflictMerged:
        """Write a merge that was shown, and put the copy into the trash.

        It is `merge_conflicts` of one copy.
        """
        return self._opened.conflicts.merge(merge, keep=keep, **by)

    @_checks_arguments
    def merge_conflicts(
        self, merges: Sequence[ConflictMerge], *, keep: Keep = "merge", **by: Unpack[AuthorArgs]
    ) -> tuple[ConflictMerged, ...]:
        """Write what was shown for copies of one note, and put the copies into the trash.

        Several copies must have been merged `in_sequence`. `keep` is "merge", "note" or "copy" for
        one of the texts, or "marked" for both where they differ. It is one change, which one undo
        takes back. Nothing is written if one of the copies cannot be merged as `keep` says
        (Conflict, Unreadable), if the note or a copy has changed since (Conflict), or if `keep` is
        "copy" and the copies differ (Invalid).
        """
        return self._opened.conflicts.merge_all(merges, keep=keep, **by)

    def sync_with_remote(self, **by: Unpack[AuthorArgs]) -> Synced:
        """Exchange changes with the remote of the vault's git repository."""
        return self._opened.remote_sync.sync(**by)

    def doctor(
        self, progress: Progress | None = None, *, only: Collection[str] = ()
    ) -> tuple[Finding, ...]:
        """Return what is wrong with the vault, its index or their disks; changes no note.

        `only` names the checks to make; without it, all are made. Raises Invalid for an unknown
        one.
        """
        return self._opened.doctor.examine(progress, only=only)

    def plan_fixes(
        self, progress: Progress | None = None, *, only: Collection[str] = ()
    ) -> FixPlan:
        """Return what `doctor` finds, and how broken links can be fixed; writes nothing."""
        return self._opened.link_fixer.plan(progress, only=only)

    def fix(self, plan: FixPlan, **by: Unpack[AuthorArgs]) -> FixResult:
        """Carry out a plan: all of it as one change, which one `undo` takes back, or nothing."""
        return self._opened.link_fixer.fix(plan, **by)

    def own_files(self) -> tuple[OwnFile, ...]:
        """Return what is in `.simplemem/` of the vault, and whether it can be rebuilt."""
        from simplemem.store.folder import own_files

        parts = self._opened
        index_path = None if self.settings.index.engine else Path(parts.index.path)
        return own_files(self.root, parts.vault, index_path)

    @_checks_arguments
    def list(  # last: its name hides the type from what follows
        self,
        *,
        filter: Filter | None = None,
        sort: str = "modified",
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page:
        """Return a page of the notes that pass a filter, newest first by default.

        `cursor` is that of the page before. Raises Invalid for an unknown order or cursor.
        """
        list_page = partial(self._opened.searching.lister.list, filter, sort, limit, cursor)
        return self._opened.index.with_retry(list_page)
