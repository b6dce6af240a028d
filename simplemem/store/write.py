"""Create and change single notes: text, properties, tags.

A change is written under the vault's lock and indexed before the call returns. A change that was
based on an earlier text of its note is resolved in `conflicts`; moving and deleting are in `move`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Unpack

from simplemem.errors import (
    AlreadyExists,
    Conflict,
    Hint,
    HintSentence,
    Invalid,
    SimplememError,
)
from simplemem.index.api import IndexQuery, NoteRow, Term
from simplemem.index.engine import Damaged
from simplemem.index.service import IndexService
from simplemem.index.updater import IndexUpdater
from simplemem.models import AuthorArgs, Saved
from simplemem.note.appending import append_content, open_at_end
from simplemem.note.diff import WHAT_YOU_HAD, unified_diff
from simplemem.note.header import find_value, read_header
from simplemem.note.names import check_name, name_of, path_of
from simplemem.note.note import Note, read_note, tag_map
from simplemem.note.scopes import check_scope_is_own
from simplemem.note.tag_changes import change_tags as with_tags
from simplemem.note.tag_requests import parse_tag_request, tags_left_in_text
from simplemem.note.words import content_words, words_in_order
from simplemem.obsidian.link_edits import Moves
from simplemem.obsidian.settings import resolve_link
from simplemem.settings.model import Settings
from simplemem.store.conflicts import LostRaces
from simplemem.store.edits import (
    NoteEdit,
    apply_edits,
    apply_metadata,
    check_text,
    encoded,
    new_note_text,
    now,
    replace_content,
    stamp_modified,
)
from simplemem.store.embedding import Embedding
from simplemem.store.lifetime import Lifetime
from simplemem.store.link_rewrites import LinkRewriter, LinkRewrites
from simplemem.store.unseen import check_new_path
from simplemem.store.vault_index import (
    IndexKeeper,
    NameResolver,
    NoteReader,
    NoteWriter,
    Notices,
    author_of_call,
)
from simplemem.vault.source import NoteSource
from simplemem.vault.values import Author, Entry, File, FileChange, WriteResult

# What a caller can do instead of creating or replacing a note.
_UPDATE = HintSentence("update", "Update the note to change it;")
_UPDATE_INSTEAD = HintSentence("update_instead", "Read the note, and update it.")
_OVERWRITE = HintSentence(
    "overwrite",
    "overwrite=true replaces it, and the old text stays in the history.",
    argument="overwrite",
)
_OVERWRITE_LINKS = HintSentence(
    "overwrite_links",
    "With overwrite=true, those links are rewritten first and keep their targets.",
    argument="overwrite",
)

_MAX_NAMED = 5  # links or notes in one sentence
_MAX_RETRIES = 50  # of a change that names no hash, while others change the same note

# A new note is nearly the same as another one if they share this part of their words.
_DUPLICATE_SHARE = 0.6
_MAX_CHARACTERS_COMPARED = 600
_MIN_WORDS_COMPARED = 4
_MAX_TERMS_ASKED = 5
_MAX_NOTES_COMPARED = 3


class NoteEditor:
    """Creates and changes single notes. Guards no state of its own."""

    def __init__(
        self,
        vault: NoteSource,
        *,
        reader: NoteReader,
        resolver: NameResolver,
        writer: NoteWriter,
        links: LinkRewriter,
        races: LostRaces,
        indexer: WriteIndexer,
        remarks: NewNoteRemarks,
        settings: Settings,
    ) -> None:
        self._vault = vault
        self._access = vault.access
        self._kept_texts = vault.history
        self._reader = reader
        self._resolver = resolver
        self._writer = writer
        self._links = links
        self._races = races
        self._indexer = indexer
        self._remarks = remarks
        self._settings = settings

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
        the original simplemem. The warnings name unresolved links in it, and notes that say nearly
        the same.

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
        self._writer.check_writable()
        metadata = metadata or {}
        clean_name = check_name(name)
        author = author_of_call(by, "create")
        path = path_of(clean_name)
        text = new_note_text(content, metadata, now(), tags_as_map=tags_as_map)
        data = encoded(text)
        check_scope_is_own(path, {}, read_header(text).properties, self._access.hides)

        with self._writer.lock():
            current = self._reader.file(path)
            if current is None:
                saved = self._create_file(path, text, author, overwrite=overwrite)
            elif overwrite:
                saved = self._overwrite_file(current, text, author, if_sha256)
            elif _is_created_already(current, content, metadata, tags_as_map=tags_as_map):
                return self.report_unchanged(current)
            else:
                raise AlreadyExists(
                    f"a note called {clean_name} already exists",
                    hint=Hint(_UPDATE, _OVERWRITE),
                    name=clean_name,
                    current_sha256=current.sha256,
                )

        if current is None:
            # The note is written: a failure to compare it with others is no error of the call.
            with suppress(SimplememError, Damaged):
                remarks = self._remarks.of(path, read_note(data))
                return replace(saved, warnings=(*saved.warnings, *remarks))
        return saved

    def _create_file(self, path: str, text: str, author: Author, *, overwrite: bool) -> Saved:
        """Create a file and index it, while the caller holds the vault's lock.

        Raises AlreadyExists if a link that leads to another note today would lead to the new one,
        unless such links may be rewritten (`overwrite`). Raises ReadOnly if a hidden note has such
        a link, and what `check_text` raises.
        """
        name = name_of(path)
        warnings = check_text(self._settings, "", "", name)  # without a name: the name itself
        warnings += check_text(self._settings, name, "", text)

        rewrites = self._links.rewrites_for(Moves({}, (path,)))
        has_rewrites = bool(rewrites.changes or rewrites.warnings)
        if has_rewrites and not overwrite:
            raise _links_taken_over(name, rewrites)

        check_new_path(self._vault, path)
        data = encoded(text)
        written = self._vault.create(path, data, author, rewrites=rewrites.changes)
        return self.finish_write(written, data, [*warnings, *rewrites.warnings], rewrites.changes)

    def _overwrite_file(
        self,
        current: File,
        text: str,
        author: Author,
        if_sha256: str | None,
    ) -> Saved:
        """Replace the text of a note and index it, while the caller holds the vault's lock.

        Raises ReadOnly if the settings forbid replacing whole texts, Conflict if the note has
        another hash than `if_sha256`, and what `check_text` raises.
        """
        path = current.path
        data = encoded(text)
        self._access.check_deletable(path, instead=Hint(_UPDATE_INSTEAD))
        if if_sha256 is not None:
            self._check_unchanged(current, if_sha256, data)

        old_text = read_note(current.data).text
        warnings = check_text(self._settings, name_of(path), old_text, text)
        written = self._vault.replace(path, data, current.sha256, author)
        return self.finish_write(written, data, warnings)

    def _check_unchanged(self, current: File, if_sha256: str, new_data: bytes) -> None:
        """Raise Conflict if a note is neither what the caller read nor the new text.

        If that text is still kept, the error has its difference from the current one.
        """
        if current.sha256 == if_sha256 or current.data == new_data:
            return
        text_read = self._kept_texts.content(if_sha256) or self._reader.remembered(if_sha256)
        raise Conflict(
            f"{name_of(current.path)} has changed since it was read",
            current_sha256=current.sha256,
            diff=unified_diff(text_read, current.data, WHAT_YOU_HAD),
            hint="Read the note again. If you still want to replace all of it, repeat the call.",
        )

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
        accepts the merge that the error Conflict of an earlier call offered.

        Raises NotFound or Ambiguous for the name, Invalid if the change cannot be made or none is
        given, Unreadable for a note that must not be rewritten, TooLong, ReadOnly, and Conflict if
        the note has another hash than `if_sha256`.
        """
        _check_single_change(content, append, edits)
        if content is None and append is None and not edits and not metadata:
            raise Invalid("no change given", hint="Give content, append, edits or metadata.")

        remarks: list[str] = []

        def apply(note: Note) -> str:
            """Return the note's new text, and keep the remarks on it."""
            text, new_remarks = _changed_text(note, content, append, edits, metadata)
            remarks[:] = new_remarks  # instead of those of a try before another writer's change
            return text

        # An append or an edit can be applied to any text of the note; a body replaces all of it.
        is_rebasable = content is None and not metadata
        edit = NoteEdit(apply, rebasable=is_rebasable)
        saved = self._edit_note(name, edit, if_sha256, author_of_call(by, "update"))
        return replace(saved, warnings=(*saved.warnings, *remarks))

    def create_appended(
        self,
        name: str,
        beginning: bytes,
        append: str,
        metadata: Mapping[str, Any] | None,
        **by: Unpack[AuthorArgs],
    ) -> Saved:
        """Create a note that begins with a text and has another one appended, as one change.

        `metadata` sets properties. The caller holds the vault's lock. Raises AlreadyExists if there
        is such a note, and what `update` raises for a text.
        """
        path = path_of(name)
        note = read_note(beginning)
        note.check_editable(name)
        text, remarks = _changed_text(note, None, append, None, metadata)
        self._check_scope(path, note, text)

        data, warnings = self._encode_changed(path, note, text)
        author = author_of_call(by, "update")
        written = self._vault.create(path, data, author, template=beginning)
        saved = self.finish_write(written, data, warnings)
        return replace(saved, warnings=(*saved.warnings, *remarks))

    def write_text(
        self, name: str, text: str, *, if_sha256: str, **by: Unpack[AuthorArgs]
    ) -> Saved:
        """Replace a whole note, frontmatter included, byte for byte: for a user's editor.

        `modified` is not changed. If the note has this text already, nothing is written (`changed`
        is False). Raises Conflict if the note has another hash than `if_sha256`, NotFound or
        Ambiguous for the name, Invalid or TooLong for the text, and ReadOnly.
        """
        edit = NoteEdit(lambda _: text, verbatim=True)
        return self._edit_note(name, edit, if_sha256, author_of_call(by, "edit"))

    def change_tags(
        self, name: str, tags: Any, *, if_sha256: str | None = None, **by: Unpack[AuthorArgs]
    ) -> Saved:
        """Set tags, and remove those that are null, in the notation that the note has.

        `tags` are a map of tags to values, a list, or a text. Tags in the body stay, and the
        warnings name their lines. Raises Invalid if no tag is given, NotFound or Ambiguous for the
        name, Unreadable for a note that must not be rewritten, ReadOnly, and Conflict if the note
        has another hash than `if_sha256`.
        """
        changes = parse_tag_request(tags)
        if not changes:
            raise Invalid("no tag given", hint='Give tags as {"status": "done", "todo": null}.')

        remarks: list[str] = []

        def apply(note: Note) -> str:
            """Return the note's new text, and collect remarks on it."""
            text = with_tags(note.text, changes)
            remarks[:] = tags_left_in_text(read_note(encoded(text)), changes)
            return text

        author = author_of_call(by, "tag")
        saved = self._edit_note(name, NoteEdit(apply), if_sha256, author)
        return replace(saved, warnings=(*saved.warnings, *remarks))

    def _edit_note(self, name: str, edit: NoteEdit, if_sha256: str | None, author: Author) -> Saved:
        """Read, edit and replace a note. If another writer was faster, start again.

        Sets `modified`, unless the edit is `verbatim`, and indexes the note. If `_apply` returns
        None, writes nothing. Raises Conflict if the note is deleted meanwhile or keeps changing,
        and what `_apply` and `check_text` raise.
        """
        self._writer.check_writable()
        path = self._resolver.path_of(name)

        for retries_left in range(_MAX_RETRIES, -1, -1):
            file = self._vault.read(path)
            note = read_note(file.data, file.sha256)
            text = self._apply(file, note, edit, if_sha256)
            if text is None:
                return self.report_unchanged(file)

            data, warnings = self._encode_changed(path, note, text, verbatim=edit.verbatim)
            with self._writer.lock():
                try:
                    written = self._vault.replace(path, data, file.sha256, author)
                    return self.finish_write(written, data, warnings)
                except Conflict:
                    if not retries_left or self._reader.entry(path) is None:
                        raise
        raise AssertionError("unreachable")

    def _apply(self, file: File, note: Note, edit: NoteEdit, if_sha256: str | None) -> str | None:
        """Return the text that an edit makes of a note; None if the edit was made already.

        If the caller read another text than the current one, returns the merge that `if_sha256`
        accepts, or raises Conflict if it accepts none. Raises Unreadable if the note must not be
        rewritten, and Invalid if the edit cannot be made or the note would get a scope that is not
        its own.
        """
        if if_sha256 is None or if_sha256 == file.sha256:
            if not edit.verbatim:
                note.check_editable(name_of(file.path))
            text = edit.apply(note)
        else:
            merged = self._races.resolve(file, edit, if_sha256)
            if merged is None:
                return None
            text = merged

        # In an editor, a user may write any scope: readers ignore one that is not the note's own.
        if not edit.verbatim:
            self._check_scope(file.path, note, text)
        return text

    def _check_scope(self, path: str, note: Note, text: str) -> None:
        """Raise Invalid if a note would get a scope that is not its own with a new text."""
        old_properties = note.header.properties
        new_properties = read_header(text).properties
        check_scope_is_own(path, old_properties, new_properties, self._access.hides)

    def _encode_changed(
        self, path: str, note: Note, text: str, *, verbatim: bool = False
    ) -> tuple[bytes, list[str]]:
        """Return what is written for the new text of a note, and the warnings about it.

        A text that differs gets a new `modified`, unless it is `verbatim`. Raises Invalid or
        TooLong if it may not be written.
        """
        warnings = check_text(self._settings, name_of(path), note.text, text)
        if text != note.text and not verbatim:
            text = stamp_modified(text, now())
        return encoded(text), warnings

    def finish_write(
        self,
        written: WriteResult,
        data: bytes,
        warnings: Sequence[str],
        rewrites: Sequence[FileChange] = (),
    ) -> Saved:
        """Index a note that was written, and the notes whose links were rewritten for it.

        `data` is the note's new text, `rewrites` are the changes of the other notes. Returns the
        answer for the caller, with `warnings`, those of the index, and one per rewritten note. If
        `written` says that the note had this text already, nothing is indexed.
        """
        name = name_of(written.path)
        note = read_note(data, written.sha256)

        all_warnings = list(warnings)
        if written.changed:
            texts = {written.path: data}
            texts.update((rewrite.path, rewrite.data or b"") for rewrite in rewrites)
            all_warnings += self._indexer.index(texts, [written])
        for rewrite in rewrites:
            all_warnings.append(
                f"links in {rewrite.path} now include a folder, because {name} has the same name"
            )

        return Saved(
            name=name,
            path=written.path,
            sha256=note.sha256,
            previous_sha256=written.previous_sha256,
            changed=written.changed,
            version=written.version,
            tags=tuple(tag.name for tag in note.tags),
            tag_map=tag_map(note.tags, note.header.properties),
            warnings=tuple(all_warnings),
        )

    def report_unchanged(self, file: File) -> Saved:
        """Return the answer for a change that the note had already; writes and indexes nothing."""
        written = WriteResult(file.path, file.sha256, file.sha256, "", file.entry, changed=False)
        return self.finish_write(written, file.data, ())


def _is_created_already(
    current: File,
    content: str,
    metadata: Mapping[str, Any],
    *,
    tags_as_map: bool,
) -> bool:
    """Return whether a note is what this call would have made at the time in its `modified`.

    If it is, this very call made it, and its answer was lost. False for a note without `modified`.
    """
    modified = read_note(current.data).text_property("modified")
    if not modified:
        return False
    text = new_note_text(content, metadata, modified, tags_as_map=tags_as_map)
    return encoded(text) == current.data


def _links_taken_over(name: str, rewrites: LinkRewrites) -> AlreadyExists:
    """Return the error for a new note that links to another note would lead to.

    `rewrites` are what these links need to keep their targets.
    """
    linking = ", ".join(name_of(change.path) for change in rewrites.changes[:_MAX_NAMED])
    return AlreadyExists(
        f"links in {linking or rewrites.warnings[0]} that lead to another note"
        f" would lead to {name}",
        hint=Hint("Choose another name.", _OVERWRITE_LINKS),
        name=name,
    )


def _check_single_change(*body_changes: object) -> None:
    """Raise Invalid if more than one of these changes of a note's body is given."""
    if len([change for change in body_changes if change is not None]) > 1:
        raise Invalid(
            "more than one of content, append and edits given", hint="Give only one of them."
        )


def _changed_text(
    note: Note,
    content: str | None,
    append: str | None,
    edits: Sequence[Mapping[str, str]] | None,
    metadata: Mapping[str, Any] | None,
) -> tuple[str, list[str]]:
    """Return the text of a note after a change, and remarks on it; see `NoteEditor.update`."""
    text = note.text
    remarks: list[str] = []
    if content is not None:
        text = replace_content(note, content)
    elif append is not None:
        text = append_content(note, append)
        remarks += _remarks_on_append(note)
    elif edits:
        text = apply_edits(note, edits)

    if metadata:
        text = apply_metadata(text, metadata)
        if content is None:
            remarks += _tags_left(text, metadata)
    return text, remarks


def _remarks_on_append(note: Note) -> list[str]:
    """Return a warning if a note ends in an open block, such as a code fence; else []."""
    block = open_at_end(note)
    if not block:
        return []
    return [f"the note ends in {block} that is not closed: the appended text is part of it"]


def _tags_left(text: str, metadata: Mapping[str, Any]) -> list[str]:
    """Return warnings about tags that `metadata` removes and that are still in the body.

    A list replaces all tags and names none to remove, so there are no warnings about it.
    """
    tags = find_value(metadata, "tags")
    if tags is None or isinstance(tags, list):
        return []
    return tags_left_in_text(read_note(encoded(text)), parse_tag_request(tags))


class NewNoteRemarks:
    """Warns about what is odd in a new note. Guards no state of its own."""

    def __init__(
        self,
        vault: NoteSource,
        index: IndexService,
        *,
        embedding: Embedding,
        keeper: IndexKeeper,
        lifetime: Lifetime,
    ) -> None:
        self._vault = vault
        self._index = index
        self._embedding = embedding
        self._keeper = keeper
        self._lifetime = lifetime

    def of(self, path: str, note: Note) -> list[str]:
        """Return warnings about a note that was just created: similar notes, and unresolved links.

        Raises a SimplememError or Damaged if the index or a file cannot be read.
        """
        link_warnings = self._unresolved_links(path, note)
        duplicate_warnings = self._near_duplicates(path, note)
        return [*link_warnings, *duplicate_warnings]

    def _unresolved_links(self, path: str, note: Note) -> list[str]:
        """Return a warning that names up to 5 links of a note which lead nowhere; [] without any.

        Returns [] also while the vault is still being compared with the index, as the index may
        lack the notes that the links lead to.
        """
        targets = dict.fromkeys(link.target for link in note.links if link.target)
        unresolved = [
            f"[[{target}]]"
            for target in targets
            if resolve_link(target, path, self._index.files_named).path is None
        ]
        if not unresolved or not self._keeper.wait_until_settled(0):
            return []
        return [f"unresolved links: {', '.join(unresolved[:_MAX_NAMED])}"]

    def _near_duplicates(self, path: str, note: Note) -> list[str]:
        """Return a warning for each note that has nearly the same words at its beginning.

        At most 3 notes are compared, and none if the new note has fewer than 4 words.
        """
        words = _first_words(note)
        if len(words) < _MIN_WORDS_COMPARED:
            return []

        warnings = []
        for other_path in self._nearest_notes(path, note, words):
            other_words = _first_words(read_note(self._vault.read(other_path).data))
            share = len(words & other_words) / len(words | other_words)
            if share >= _DUPLICATE_SHARE:
                warnings.append(
                    f"{name_of(other_path)} is nearly the same ({share:.0%} of the words):"
                    " one of the two may be enough"
                )
        return warnings

    def _nearest_notes(self, path: str, note: Note, words: set[str]) -> list[str]:
        """Return the paths of at most 3 notes that are most like a new one, in order of paths.

        They are compared by meaning in a server with local vectors, else by the longest `words`.
        The new note itself, at `path`, is left out.
        """
        vector = None
        space = self._index.progress().space
        # In a command, a model would have to be loaded for this; a service would have to be paid.
        is_vector_cheap = self._lifetime.is_long and space.embedder and not space.remote
        if is_vector_cheap:
            vector, _ = self._embedding.embed_query(note.content[:_MAX_CHARACTERS_COMPARED])

        terms: tuple[Term, ...] = ()
        if vector is None:
            longest = sorted(words, key=len)[-_MAX_TERMS_ASKED:]
            terms = tuple(Term((word,)) for word in longest)

        query = IndexQuery(
            terms=terms,
            vector=vector,
            notes=_MAX_NOTES_COMPARED,
            blocks=0,
            max_nearest=_MAX_NOTES_COMPARED,
            rescore_depth=0,
        )
        paths = set(self._index.ask(query).paths.values())
        return sorted(paths - {path})


def _first_words(note: Note) -> set[str]:
    """Return the words at the beginning of a note's content that carry meaning."""
    return set(content_words(words_in_order(note.content[:_MAX_CHARACTERS_COMPARED])))


class WriteIndexer:
    """Has the index follow what was written. Guards no state of its own."""

    def __init__(
        self,
        index: IndexService,
        updater: IndexUpdater,
        *,
        reader: NoteReader,
        keeper: IndexKeeper,
        notices: Notices,
    ) -> None:
        self._index = index
        self._updater = updater
        self._reader = reader
        self._keeper = keeper
        self._notices = notices

    def index(
        self,
        texts: Mapping[str, bytes],
        written: Iterable[WriteResult],
        *,
        deleted: Sequence[str] = (),
        moved: Mapping[str, str] = MappingProxyType({}),
    ) -> list[str]:
        """Index notes that were written, deleted or moved, and notify listeners. Return warnings.

        `texts` has the new texts by path, `moved` maps the old path of each note that moved to its
        new one. Each text is indexed with the size and times that its result in `written` has; if
        it has none there, they are read from the disk, and a file that is gone is skipped. Warns of
        a note that is too large or excluded from search, and if the index fails; raises for none of
        these.
        """
        results = list(written)
        entries = {
            result.entry.path: result.entry for result in results if result.entry is not None
        }

        notes = list[tuple[str, Note, Entry]]()
        warnings = list[str]()
        for path, data in texts.items():
            entry = entries.get(path) or self._reader.entry(path)
            if entry is None:
                continue
            notes.append((path, read_note(data), entry))
            if entry.size > self._updater.max_note_bytes:
                warnings.append(
                    "written, but too large to be indexed;"
                    " the setting index.max_note_mb is the limit"
                )

        changed = {*texts, *deleted, *moved, *moved.values()}
        if changed:
            warnings += self._keeper.indexed(
                changed, lambda: self._updater.put(notes, removed=deleted, moved=moved)
            )

        new_paths = [
            result.path
            for result in results
            if result.previous_sha256 is None and result.sha256 is not None
        ]
        return warnings + self._warn_of_hidden([*new_paths, *moved.values()])

    def _warn_of_hidden(self, paths: Collection[str]) -> list[str]:
        """Return a warning for each of these notes that is excluded from search, with the reason.

        Also adds the warnings to the notices. Returns [] if the index cannot be read.
        """
        if not paths:
            return []

        rows: Mapping[str, NoteRow] = {}
        with suppress(SimplememError, Damaged):
            rows = self._index.rows(paths)
        warnings = []
        for path, row in sorted(rows.items()):
            if row.hidden is not None:
                warnings.append(f"{name_of(path)} is not searched: {row.hidden}")
        self._notices.add(warnings)
        return warnings
