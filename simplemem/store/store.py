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
    from datetime import datetime

    from pydantic import SecretStr

    from simplemem.note.name_matching import NamedNote

P = ParamSpec("P")
T = TypeVar("T")

# The types of arguments that are checked, by their annotations. These are texts, because this
# module has `from __future__ import annotations`.
_CHECKED_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "str": str,
    "int": int,
    "str | None": (str, NoneType),
    "int | None": (int, NoneType),
    "Filter | None": (Filter, NoneType),
    "Mapping[str, Any] | None": (dict, Mapping, NoneType),
    "Sequence[Mapping[str, str]] | None": (list, tuple, NoneType),
}

# Hints on what to pass, by annotation. A wrong value for one of these raises Invalid with its hint;
# for other annotations, it raises TypeError.
_TYPE_HINTS: Final[Mapping[str, str]] = {
    "Filter | None": "Make a filter with Filter.of, for example Filter.of(tags='decision').",
    "Mapping[str, Any] | None": (
        'Give the properties as a mapping, for example {"type": "note", "tags": ["todo"]}.'
    ),
    "Sequence[Mapping[str, str]] | None": (
        'Give a list of edits, for example [{"old": "text", "new": "other text"}].'
    ),
}

# A SHA-256 hash, or at least 12 digits of it. Two of them, joined by "+", accept a merge.
_HASHES: Final = re.compile(r"[0-9a-fA-F]{12,64}(\+[0-9a-fA-F]{12,64})?")


def open_store(
    path: str | os.PathLike[str] | None = None,
    *,
    settings: Settings | None = None,
    read_only: bool = False,
    person: bool = False,
) -> EnhancedStore:
    """Open a vault and its index; create the vault if it does not exist.

    Without a path, opens the vault that `find_vault` finds: by $SIMPLEMEM_VAULT, the settings, or
    the current folder. Without `settings`, they are loaded from files and the environment. With
    `read_only`, no note is changed and no vault created. The history records changes as those of a
    human if `person` is set, else of an agent. Raises NotFound if there is no such folder and none
    can be created, Invalid for wrong settings or an empty path, and Unavailable if the index cannot
    be opened.
    """
    root = find_vault(os.fspath(path) if path is not None else None)
    settings = settings or load_settings(vault=root)
    return EnhancedStore(root, settings, read_only=read_only, person=person)


def _checks_arguments(method: Callable[P, T]) -> Callable[P, T]:
    """Wrap a method so that an argument of another type than its annotation is refused.

    The wrapper raises TypeError where a text or a number is expected, and Invalid where a filter,
    properties or edits are, or if `if_sha256` is no hash. The error names the argument. Arguments
    with an annotation that is not in `_CHECKED_TYPES` are not checked.
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
    """Return the error for an argument of a wrong type; does not raise it.

    It is Invalid, with a hint, if `_TYPE_HINTS` has one for the annotation, else TypeError.
    """
    message = f"{method}(): {argument} must be {annotation}, not {type(value).__name__}"
    hint = _TYPE_HINTS.get(annotation)
    return TypeError(message) if hint is None else Invalid(message, hint=hint)


def _check_hash(if_sha256: object) -> None:
    """Raise Invalid if a text cannot be the hash of a note. None, no condition, is accepted.

    Two hashes joined by "+" are accepted too.
    """
    if isinstance(if_sha256, str) and not _HASHES.fullmatch(if_sha256):
        raise Invalid(
            f"if_sha256 is not a SHA-256 hash: {if_sha256[:80]!r}",
            hint="Pass the `sha256` that `read` returned.",
        )


class EnhancedStore:
    """One vault with its index: read, search, change and undo. A context manager.

    Several threads may use it, while other processes use the same vault. Methods that change notes
    accept `who`, `tool` and `reason`: who makes the change, with which tool, and why. The history
    records these. A note is named by its name, title, alias or wikilink; an illegal name raises
    Invalid. After `close`, every other method raises Unavailable.

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
        """Open a vault and its index, as `open_store` does for a path. Creates a missing folder."""
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
        """Close the store. An error of the block is not suppressed."""
        self.close()

    def close(self) -> None:
        """Stop background work, close all files, and wait for the pending git commits.

        Waits at most 5 seconds. Commits that take longer go on until the process ends; the rest is
        never committed. A second call does nothing.
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
        """Keep the index up to date from now on: scan and watch the vault in a background thread.

        With `embed`, the thread makes missing vectors too. If the settings ask for it, another
        thread exchanges changes with the git remote at intervals. A second call starts nothing.
        """
        self._opened.start(embed=embed)

    def wait_until_settled(self, timeout: float = 60.0) -> bool:
        """Wait until the background thread has compared the vault with the index.

        Waits for `timeout` seconds at most. Returns whether it is done; True at once if there is no
        such thread.
        """
        return self._opened.keeper.wait_until_settled(timeout)

    def on_change(self, listener: ChangeCallback) -> None:
        """Have a function called with the names of changed notes, once they are indexed.

        It is called from the thread that indexes them, and its errors are logged only. Changes that
        other programs make are noticed after `start`, or when the index is brought up to date.
        """
        self._opened.listeners.subscribe(listener)

    def state(self) -> IndexState:
        """Return how far the index can be trusted now, and why not. Indexes nothing."""
        return self._opened.monitor.state()

    @_checks_arguments
    def reach(self, commit: str) -> None:
        """Make sure that later answers contain this commit of the vault's branch.

        Fetches the commit and indexes its notes if the index does not contain it. Does nothing if
        the vault is a folder and not a branch. Raises Unavailable if the commit has not arrived.
        """
        self._opened.keeper.reach(commit)

    def commit(self, *, written: bool = False) -> str:
        """Return the commit of the vault's branch that the index was made from.

        With `written`, return the newest commit of the branch instead: it contains what this store
        has just written. Returns "" if the vault is a folder and not a branch, or if the newest
        commit cannot be read at the moment.
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

        `progress` is called as notes are read and embedded. Without `embed`, no vectors are made.
        `rebuild` makes a new index and then replaces the old one with it. If many notes are gone at
        once, they stay in the index until a later scan, unless `accept_deletions` is set. Without
        `begin`, no vectors are made if many are missing, or if those in the index are of another
        embedder; `state` says how many are missing. A failure of the embedder is in `trouble` of
        the result. Raises Unavailable if the vault cannot be read.
        """
        return self._opened.indexing.sync(
            progress=progress,
            embed=embed,
            rebuild=rebuild,
            accept_deletions=accept_deletions,
            begin=begin,
        )

    def catch_up(self, *, embed: bool) -> None:
        """Index what was saved up to this moment, for a process that has no background thread.

        With `embed`, a few missing vectors are made too. Reads only the files that the operating
        system reports as changed; if there are no complete reports, compares the whole vault.
        Raises a SimplememError if that fails.
        """
        self._opened.indexing.catch_up(embed=embed)

    def move_index(
        self, engine: str | SecretStr | Mapping[str, str] | None, progress: Progress | None = None
    ) -> MovedIndex:
        """Build the index in another engine, and copy the vectors that a service made for this one.

        `engine` is as in the setting `index.engine`; None is the SQLite index. `progress` is called
        as notes are read and embedded. If an earlier call was interrupted, continues it. The
        current index does not change and stays in use, because the settings are not changed.
        Missing vectors are made, and `trouble` of the result says why some are not. Raises
        Unavailable if the other index cannot be opened.
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
                # The user changed the settings first: the vectors are in the SQLite index that was
                # in use before.
                source = open_engine(sqlite_path, parts.vault.lock)
                opened.callback(source.close)

            # Texts first, without vectors: then the old vectors are copied, and only the vectors
            # that are still missing are made.
            other.sync(progress=progress, embed=False, accept_deletions=True)
            taken_count = 0
            if source.place != target.place:
                taken_count = other._parts.embedding.reuse_vectors(source, target, progress)
            report = other.sync(progress=progress)

            return MovedIndex(
                engine=target.engine,
                place=target.place,
                notes=other.state().notes,
                taken=taken_count,
                made=report.embedded,
                in_use=is_in_use,
                trouble=report.trouble,
            )

    def stats(self) -> dict[str, Any]:
        """Return numbers about the vault and its index, as the command `stats` shows them as JSON.

        The index is not brought up to date first.
        """
        reranker = self._opened.searching.reranker
        return self._opened.statistics.collect(
            reranker=reranker.name if reranker is not None else "none",
            rerank_trouble=self.rerank_trouble,
        )

    def inspect(self) -> dict[str, dict[str, Any]]:
        """Return what the index has read from every note, by path, as JSON values.

        The index is brought up to date first.
        """
        self._opened.keeper.prepare(vectors=False)
        return self._opened.index.inspection()

    # --- Names ---

    def resolve(self, name: str) -> str:
        """Return the name of the note that a name, title, alias or wikilink means.

        "daily" means today's daily note. Raises NotFound, which says what became of the note or
        which names are similar, Ambiguous if several notes are meant, and Invalid for an illegal
        name.
        """
        return name_of(self._opened.resolver.path_of(name))

    def has(self, name: str) -> bool:
        """Return whether there is a note of exactly this name, which includes its folder.

        Titles and aliases do not count, and the index is not asked. Raises Invalid or TooLong for
        an illegal name.
        """
        return self._opened.reader.exists(path_of(check_name(name)))

    def names(self, prefix: str = "", limit: int = 100) -> list[str]:
        """Return up to `limit` names that begin with a prefix, for completion.

        A name counts too if its last part begins with the prefix. Case does not matter. Names in
        the archive folders of the settings are last. The index is brought up to date first.
        """
        return [name for name, _ in self._names_with_prefix(prefix, limit)]

    def short_names(self, prefix: str = "", limit: int = 100) -> list[str]:
        """Return what a prefix may be completed to: file names without folders, or whole names.

        Returns the file names that begin with the prefix and that only one note has. If there are
        none, or if the prefix contains "/", returns whole names, with their folders. At most
        `limit` are returned.
        """
        matches = self._names_with_prefix(prefix, limit)
        file_names = [name.rsplit("/", 1)[-1] for name, is_unique in matches if is_unique]
        key = compare_key(well_formed(prefix))
        short_names = [name for name in file_names if compare_key(name).startswith(key)]
        if "/" in prefix or not short_names:
            return [name for name, _ in matches]
        return short_names

    def _names_with_prefix(self, prefix: str, limit: int) -> list[tuple[str, bool]]:
        """Return up to `limit` names that begin with a prefix, or whose last parts do.

        Each comes with whether no other note has the same file name. Brings the index up to date
        first.
        """
        self._opened.keeper.prepare(vectors=False)
        last_folders = self._opened.searching.filters.archive
        matches = self._opened.index.complete_name(well_formed(prefix), limit, last_folders)
        return [(name_of(path), is_unique) for path, is_unique in matches]

    def find_names(self, typed: str, limit: int = 10) -> list[NamedNote]:
        """Return the notes whose title, file name or alias matches a part of it, best first.

        Wrong letters and letters in between are allowed: see `NameIndex.best_matches`. The index is
        brought up to date first.
        """
        return self._opened.name_finder.find(typed, limit)

    def tags(self) -> dict[str, int]:
        """Return how many notes have each tag, the most used tag first.

        The index is brought up to date first. Hidden notes do not count.
        """
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

        `section` is a heading, a path of headings ("A#B"), or a block ("^block"). `version` is a
        version such as "v12", a commit, or the hash of a text. A version such as "v12" without `at`
        also names the note: `name` is ignored. `at` is a version, date or commit. If both are
        given, `version` is ignored unless it is a commit or a hash. If the text at a moment is
        uncertain, `problem` of the result says why. The index is brought up to date first.

        Raises NotFound if there was no such note, version or section, or if its text is no longer
        kept; Ambiguous for a name of several notes; Invalid if `at` is no date; Unreadable or
        TooLong for a text that cannot be returned.
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

        `version` and `at` are as in `read`, which raises the same errors. Without them, this is
        quicker than `read`, as links, headings and tokens are not looked for.
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
        now: datetime | None = None,
    ) -> Found:
        """Return the notes that answer a query, best first; for a query without words, the newest.

        At most `limit` notes are returned; None stands for the limit of the settings. `mode` is
        "hybrid", "text" or "semantic". With `explain`, the result has the numbers behind the
        ranking. `why` is the name of a note whose rank or absence is to be explained. With
        `authors`, each hit says who changed the note last. With `rerank`, the reranker of the
        settings, if any, may order the hits. Scores fall from hit to hit; with `own_scores`, each
        hit has its own score, even if it is higher than that of a hit above, for a caller that
        filters by scores. `now` is the time that words such as "last week" refer to; None for the
        current time. The index is brought up to date first.

        Raises Invalid for an unknown mode or a limit below 1; Invalid, NotFound or Ambiguous for a
        filter that cannot be resolved; and NotFound or Ambiguous for `why`.
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
            now=now,
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
        """Return the best passages for a query, cited, within a budget of tokens.

        The passages are from the best notes that pass the filter, and from notes linked with these.
        The index is brought up to date first. A budget above 100,000 is read as 100,000. Raises
        Invalid for a budget below 50; and Invalid, NotFound or Ambiguous for a filter that cannot
        be resolved.
        """
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

        Notes with links are first. With a `query`, all notes are in the order of a search for it,
        and notes that the search does not find are last. `kinds` says which notes to return: those
        that link ("link"), those near in meaning ("semantic"), or both. A limit above 200 is read
        as 200. Raises Invalid for an unknown kind or a limit below 1, and NotFound or Ambiguous for
        the name.
        """
        finder = self._opened.searching.backlinks
        backlinks = partial(finder.backlinks, name, query, limit, kinds)
        return self._opened.index.with_retry(backlinks)

    @_checks_arguments
    def related(self, name: str, limit: int = 3) -> tuple[str, ...]:
        """Return the names of at most `limit` notes near in meaning to a note, nearest first.

        Notes that link to the note are left out, but count for the limit, so fewer may be returned.
        Raises NotFound or Ambiguous for the name.
        """
        related = partial(self._opened.searching.backlinks.related, name, limit)
        return self._opened.index.with_retry(related)

    @property
    def rerank_trouble(self) -> str:
        """Why the reranker failed to order the last search; "" if it did not fail or is not set."""
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
        """Create a note, and return what was saved.

        `metadata` are its properties. With `tags_as_map`, its tags are written in the notation of
        the original simplemem. The warnings name unresolved links, and notes that say nearly the
        same.

        With `overwrite`, it replaces the note of that name, and links that the new name would take
        over are rewritten first; otherwise no other note is touched. The replaced text stays in the
        history: `read(name, version=saved.previous_sha256)` returns it, and `undo(saved.version)`
        restores it. `if_sha256` counts only if a note is replaced.

        Without `overwrite`, if an earlier call with the same content and metadata made the note,
        nothing is written (`changed` is False). Otherwise raises AlreadyExists if there is such a
        note, or if links that lead to another note today would lead to the new one. Raises Conflict
        if the note to replace has another hash than `if_sha256`; Invalid or TooLong for a name or
        text that is not allowed; ReadOnly if the vault or the note may not be written.
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

        `template` is a name in Obsidian's template folder, or that of any other note. Its text is
        kept byte for byte, except that `{{title}}`, `{{date}}` and `{{time}}` are filled in, with
        the local time. A field may have a format, as in `{{date:D.M.}}`; without one, Obsidian's
        settings decide. Raises NotFound for an unknown template, Ambiguous if it means several
        notes, AlreadyExists if there is a note called `name`, Invalid or TooLong for an illegal
        name, and ReadOnly.
        """
        return self._opened.templates.create(template, name, **by)

    def daily(self, **by: Unpack[AuthorArgs]) -> Saved:
        """Return today's daily note; create it from its template if it does not exist.

        Its name and template are those of Obsidian's settings; without a template, it is created
        empty. An existing note is not changed (`changed` is False). If the note is missing, raises
        ReadOnly if it may not be created, Invalid or TooLong if the settings give it an illegal
        name, and AlreadyExists if another program creates it meanwhile.
        """
        return self._opened.templates.daily(**by)

    def append_to_daily(
        self, text: str, metadata: Mapping[str, Any] | None = None, **by: Unpack[AuthorArgs]
    ) -> Saved:
        """Append a text to today's daily note; create it from its template if it does not exist.

        That is one change, which one undo takes back. `metadata` sets properties. Raises what
        `daily` and `update` raise.
        """
        return self._opened.templates.append_to_daily(text, metadata, **by)

    def daily_name(self) -> str:
        """Return the name of today's daily note by Obsidian's settings. It need not exist."""
        return self._opened.templates.daily_name()

    def template_names(self) -> list[str]:
        """Return the names in Obsidian's template folder; [] if its settings name no folder."""
        return self._opened.templates.names()

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

        `content` replaces the body. `append` becomes a block of its own at the end, or continues
        the list or table that the note ends with. `edits` are replacements `{"old": ..., "new":
        ...}`. `metadata` sets properties; None removes one. The result's warnings name what is odd,
        such as secrets.

        Without `if_sha256`, the change is applied to whatever the note is now. With it, a repeated
        call whose change was made already writes nothing (`changed` is False), and "BASE+CURRENT"
        accepts the merge that a Conflict offered.

        Raises NotFound or Ambiguous for the name, Invalid if the change cannot be made or none is
        given, Unreadable for a note that must not be rewritten, TooLong, ReadOnly, and Conflict if
        the note has another hash than `if_sha256`.
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

        The property `modified` is not set. If the note has this text already, nothing is written
        (`changed` is False). Raises Conflict if the note has another hash than `if_sha256`,
        NotFound or Ambiguous for the name, Invalid or TooLong for the text, and ReadOnly.
        """
        return self._opened.editor.write_text(name, text, if_sha256=if_sha256, **by)

    @_checks_arguments
    def change_tags(
        self, name: str, tags: Any, *, if_sha256: str | None = None, **by: Unpack[AuthorArgs]
    ) -> Saved:
        """Set tags, and remove those that are null, in the notation that the note has.

        `tags` are a map of tags to values, a list, or a text. Tags in the body stay, and the
        warnings name their lines. Raises Invalid if no tag is given, NotFound or Ambiguous for the
        name, Unreadable for a note that must not be rewritten, ReadOnly, and Conflict if the note
        has another hash than `if_sha256`.
        """
        return self._opened.editor.change_tags(name, tags, if_sha256=if_sha256, **by)

    @_checks_arguments
    def move(self, name: str, new_name: str, **by: Unpack[AuthorArgs]) -> Moved:
        """Give a note another name, which includes its folder: "B" moves "A/B" to the top folder.

        Links to the note and in it keep their targets and forms; they are rewritten in the same
        operation. If `name` is gone because its last change was this very move, nothing is changed
        and the version of that move is returned again. Raises NotFound or Ambiguous for the name,
        AlreadyExists if the new name is taken, Invalid or TooLong if it is not legal, and ReadOnly.
        """
        return self._opened.mover.move(name, new_name, **by)

    @_checks_arguments
    def delete(
        self, name: str, *, if_sha256: str | None = None, **by: Unpack[AuthorArgs]
    ) -> Deleted:
        """Move a note to the trash. Links to it stay as they are, unresolved; `undo` restores it.

        The result counts these links. If the note is gone because its last change was this very
        deletion, a repeated call with the same `if_sha256` deletes nothing and returns that version
        again, with a count of 0. Raises NotFound or Ambiguous for the name, Conflict if the note
        has another hash than `if_sha256`, and ReadOnly.
        """
        return self._opened.mover.delete(name, if_sha256=if_sha256, **by)

    @_checks_arguments
    def delete_all(self, names: Iterable[str], **by: Unpack[AuthorArgs]) -> tuple[Deleted, ...]:
        """Move notes to the trash as one change, which one undo takes back.

        A note that is named twice is deleted once. All names are looked up first: raises NotFound
        or Ambiguous, with nothing deleted, if one of them means no note or several; Conflict if a
        note changes meanwhile; ReadOnly; and Invalid if `names` is a single text, as its letters
        might name notes. Links among the deleted notes are not counted as unresolved. Returns ()
        for no names.
        """
        if isinstance(names, str):
            raise Invalid(
                "delete_all(): names must be several names, not a text",
                hint="Pass a list of names, or call delete for one note.",
            )
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

        `name` is a note, a version such as "v12", or None for all notes. At most `limit` entries
        are returned, but all changes of a version's operation. `by` (an author), `since` and
        `until` (a date or version) narrow the changes down, but not those of a version. Git commits
        are among the changes of a note, unless these are narrowed down; `git_trouble` says why they
        are missing. With `diff`, each entry has its difference. With `steps` and without `diff`,
        the changes of all notes have one entry per operation. Raises NotFound or Ambiguous for the
        note or version, and Invalid for what is no date.
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

        With `other`, both are versions, and the result is the difference between the texts that
        they left. Else `what` is a version, with one difference per change of its operation, or a
        note, with one difference from `since` until now. `since` is a version, date or commit;
        without it, the difference begins before the note's last change. With `since`, `what` is
        always a note. Raises NotFound for an unknown note or version, or a note without recorded
        changes; Ambiguous if several notes have the name; Invalid if `since` is no date.
        """
        return self._opened.history.diff(what, other, since=since)

    @_checks_arguments
    def blame(self, name: str) -> tuple[BlamedLine, ...]:
        """Return who last changed each line of a note, by the change log of simplemem.

        A change that the log does not have counts as made by hand. Raises NotFound or Ambiguous for
        the name.
        """
        return self._opened.history.blame(name)

    @property
    def git_trouble(self) -> str:
        """Why the history that was asked for last lacks git commits; "" if it does not."""
        return self._opened.commits.trouble

    @_checks_arguments
    def next_to_undo(self, name: str | None = None, *, undone: bool = False) -> str:
        """Return the version to undo next; if `undone`, the version of the undo to redo next.

        Considers the changes of one note or, without a name, the latest 1,000 operations of the
        whole vault. Undoes nothing. An undo can be redone only if nothing else was changed since.
        Raises NotFound if there is no such version or note, and Ambiguous for a name of several
        notes.
        """
        return self._opened.undo.next_to_undo(name, undone=undone)

    @_checks_arguments
    def undo(self, version_or_name: str, **by: Unpack[AuthorArgs]) -> Undone:
        """Undo a change by its version, or the last change of a note by the note's name.

        Other changes of the same operation, such as the links that a move rewrote, are undone too.
        For a note's name, undoes the last change that was not undone yet. An undo is itself a
        change, which can be undone (a redo). Raises Conflict if one of the notes has changed since,
        AlreadyExists if the former name of a moved note is in use, NotFound if there is no such
        change or a text is no longer kept, Ambiguous for a name of several notes, Invalid for a
        commit of git or a recovered text, and ReadOnly.
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

        `by` is the author whose changes are undone; `change` says who undoes them. A `preview`
        changes nothing. If its `plan` is passed as `expected`, the undo is made only if it would do
        what the preview showed; otherwise Conflict is raised. `left` of the result has the notes
        that could not be undone, with the reason. An operation is undone as a whole or not at all,
        so `left` also has the other notes of their operations. Raises NotFound if nobody of this
        name has changed anything since or there is no such version, Invalid if `by` or `since` is
        blank or `since` is no date, and ReadOnly.
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

        With `new_name`, the text becomes a note of that name. Without `at`, the note must be
        deleted, and gets the last text that it had. Raises AlreadyExists if another note has the
        name now, NotFound if the note did not exist then or its text is no longer kept, Ambiguous
        for a name of several notes, Invalid without `at` if the note exists, or for what is no
        date, Invalid or TooLong for an illegal new name, and ReadOnly. The result has a warning if
        the text of that time is uncertain.
        """
        return self._opened.undo.restore(name, at=at, new_name=new_name, **by)

    # --- Conflicts, other machines, and the doctor ---

    @_checks_arguments
    def conflict_copies(self) -> tuple[ConflictCopy, ...]:
        """Return the files that synchronisers and git left beside notes changed in two places.

        The files are listed from the index; the disk is not read.
        """
        return self._opened.conflicts.copies()

    @_checks_arguments
    def conflict_merges(
        self, name: str | None = None, *, in_sequence: bool = False
    ) -> tuple[ConflictMerge, ...]:
        """Return what a merge of each conflict copy into its note would make. Writes nothing.

        `name` is that of a copy or of a note with copies; None stands for all copies. Each copy is
        merged with the note as it is now. With `in_sequence`, each is merged with what the merges
        of the note's copies before it made, and `merge_conflicts` can write all of them as one
        change. If a file cannot be read, `problem` of its merge says so. Raises NotFound if no copy
        or note with a copy is called `name`.
        """
        return self._opened.conflicts.previews(name, in_sequence=in_sequence)

    @_checks_arguments
    def merge_conflict(
        self, merge: ConflictMerge, *, keep: Keep = "merge", **by: Unpack[AuthorArgs]
    ) -> ConflictMerged:
        """Write a merge that was shown, and put the copy into the trash.

        It is `merge_conflicts` of one copy, and raises what that raises.
        """
        return self._opened.conflicts.merge(merge, keep=keep, **by)

    @_checks_arguments
    def merge_conflicts(
        self, merges: Sequence[ConflictMerge], *, keep: Keep = "merge", **by: Unpack[AuthorArgs]
    ) -> tuple[ConflictMerged, ...]:
        """Write what was shown for copies of one note, and put the copies into the trash.

        `merges` must not be empty. Several copies must have been merged `in_sequence`. `keep` says
        which text the note gets: "merge" the merged one, "note" its own, "copy" that of the copy,
        and "marked" the merged one with both texts where they differ. It is one change, which one
        undo takes back. Returns one result per copy; the first has the warnings.

        Raises, with nothing written: Conflict or Unreadable if one of the copies cannot be merged
        as `keep` says; Conflict if the note or a copy has changed since, NotFound if it is gone;
        Invalid if `keep` is "copy" and the copies differ; Invalid or TooLong if the text is
        refused; and ReadOnly.
        """
        return self._opened.conflicts.merge_all(merges, keep=keep, **by)

    def sync_with_remote(self, **by: Unpack[AuthorArgs]) -> Synced:
        """Commit the notes' changes, fetch and merge those of the git remote, and push.

        Before that, indexes what was saved. Returns what was exchanged; files that the user has
        staged are not committed, and are listed as `waiting`. Raises NotFound outside a git
        repository, Unavailable, with a reason, if nothing could be exchanged, and ReadOnly.
        """
        return self._opened.remote_sync.sync(**by)

    def doctor(
        self, progress: Progress | None = None, *, only: Collection[str] = ()
    ) -> tuple[Finding, ...]:
        """Return what is wrong with the vault, its index or their disks; changes no note.

        `only` names the checks to make; without it, all are made. `progress` is called while notes
        are read. If the index is damaged, the checks after that one are left out. Raises Invalid
        for an unknown check.
        """
        return self._opened.doctor.examine(progress, only=only)

    def plan_fixes(
        self, progress: Progress | None = None, *, only: Collection[str] = ()
    ) -> FixPlan:
        """Return what `doctor` finds, and how broken links can be fixed; writes no note.

        `only` and `progress` are those of `doctor`; links are fixed only if "links" is among the
        checks. Raises Invalid for an unknown check.
        """
        return self._opened.link_fixer.plan(progress, only=only)

    def fix(self, plan: FixPlan, **by: Unpack[AuthorArgs]) -> FixResult:
        """Carry out a plan: all of it as one change, which one `undo` takes back, or nothing.

        Without changes in the plan, nothing is written, and `version` of the result is "". Raises,
        with nothing changed, Conflict if one of the notes has changed since, NotFound if one is
        gone, and ReadOnly.
        """
        return self._opened.link_fixer.fix(plan, **by)

    def own_files(self) -> tuple[OwnFile, ...]:
        """Return what in `.simplemem/` matters to a user, and whether each can be rebuilt.

        Lock files and the journal are left out. The index is first, if it is a file there. Nothing
        is created or changed.
        """
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

        `cursor` is the `next_cursor` of the page before; None for the first page. A limit above
        1,000 is read as 1,000. If no note passes, `degraded` says which condition no note meets.
        Raises Invalid for an unknown order, a cursor of a list in another order, a limit below 1,
        or a filter that cannot be resolved.
        """
        list_page = partial(self._opened.searching.lister.list, filter, sort, limit, cursor)
        return self._opened.index.with_retry(list_page)
