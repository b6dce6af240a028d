"""Check the links that a view of a part of a vault cannot follow.

These are links in notes that the view does not show, and links to such notes. A view
(`access.hidden`, `access.only`, a token with folders) has an index without these notes, so the
files of the whole vault are read. A change that would lead such a link elsewhere is refused. The
error says that there is such a link. It names neither the note with the link nor its target.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from simplemem.errors import ReadOnly, SimplememError
from simplemem.index.notes import is_note
from simplemem.note.names import base_name, compare_key, name_of
from simplemem.note.note import Note, read_note
from simplemem.obsidian.link_edits import Moves, find_changed_links
from simplemem.obsidian.settings import FilesNamed, lookup_keys, name_key, resolve_link
from simplemem.vault.source import NoteSource

_MAX_NAMED = 3  # moved notes that an error names
# Up to so many words, it is faster to search the text for each than to split it into its words,
# which takes 0.1 ms per page.
_MAX_WORDS_ONE_BY_ONE = 50
_NO_TEXTS: Mapping[str, bytes] = MappingProxyType({})
# A letter or digit that a link may spell in another way than the name of its file: `%6d`, `&#109;`,
# `&eacute;`.
_ENCODED_LETTER = re.compile(rb"%[3-7][0-9A-Fa-f]|%[89A-Fa-f][0-9A-Fa-f]|&[#A-Za-z]")
_ENCODED_MARK = re.compile(r"%[0-9a-f]{2}")
_BETWEEN_WORDS = re.compile(r"[\W_]+")  # `_` too: a link may have a backslash before it


class _Renaming(NamedTuple):
    """Moves, with the files of the whole vault by their names, before and after them."""

    moves: Moves
    files_before: FilesNamed
    files_after: FilesNamed


def check_unseen_links(
    vault: NoteSource, moves: Moves, new_texts: Mapping[str, bytes] = _NO_TEXTS
) -> None:
    """Raise ReadOnly if moves would lead a link from or to a hidden file elsewhere.

    A file is hidden if the access rules of `vault` do not show it. Checked are all links in hidden
    notes, and those in the moved notes that lead, or would lead, to a hidden file. Notes that
    cannot be read are skipped. Without such rules, no note is read.

    `new_texts` has the texts that moved notes get, by their paths before the moves. Other notes
    keep theirs.
    """
    if would_break_unseen_links(vault, moves, new_texts):
        paths = list(moves.new_paths)[:_MAX_NAMED]
        names = ", ".join(repr(name_of(path)) for path in paths)
        message = f"{names} cannot be moved: it would break a link from or to a hidden folder"
        raise ReadOnly(message, hint="Leave it where it is, or ask the user to move it.")


def would_break_unseen_links(
    vault: NoteSource, moves: Moves, new_texts: Mapping[str, bytes] = _NO_TEXTS
) -> bool:
    """Return whether `check_unseen_links`, with the same arguments, would raise ReadOnly."""
    if not vault.access.is_partial or not moves.new_paths:
        return False

    paths = vault.without_rules().paths()
    new_paths = [moves.after(path) for path in paths]
    renaming = _Renaming(moves, _files_by_name(paths), _files_by_name(new_paths))
    if _breaks_link_from_unseen(vault, _unseen_notes(vault, paths), renaming):
        return True
    return _breaks_link_to_unseen(vault, renaming, new_texts)


def check_new_path(vault: NoteSource, path: str) -> None:
    """Raise ReadOnly if a new note at this path would take over a link to another note.

    Only links in notes that the access rules of `vault` hide are checked. An unresolved link among
    them may lead to the new note. No note is read without such rules, or if no other file has the
    same name. Otherwise, only hidden notes are read that are in folders where a link with that name
    would lead elsewhere.
    """
    if not vault.access.is_partial:
        return

    paths = vault.without_rules().paths()
    namesakes = _files_called(paths, lookup_keys(path))
    if not namesakes:
        return

    renaming = _Renaming(
        moves=Moves({}, (path,)),
        files_before=_files_by_name(namesakes),
        files_after=_files_by_name([*namesakes, path]),
    )
    unseen = _unseen_notes(vault, paths)
    folders = {posixpath.dirname(source) for source in unseen}
    affected_folders = {folder for folder in folders if _takes_links_in(folder, path, renaming)}
    sources = [source for source in unseen if posixpath.dirname(source) in affected_folders]
    if _breaks_link_from_unseen(vault, sources, renaming):
        message = f"{name_of(path)!r} cannot be created: a link in a hidden folder would lead to it"
        raise ReadOnly(message, hint="Choose another name, or ask the user to create it.")


def _files_called(paths: Iterable[str], keys: tuple[str, ...]) -> list[str]:
    """Return the paths whose name has one of these keys, which are results of `lookup_keys`."""
    # `endswith` rules out nearly all paths, in a tenth of the time that making their keys takes.
    likely = [path for path in paths if not path.isascii() or path.lower().endswith(keys)]
    return [path for path in likely if name_key(path) in keys]


def _takes_links_in(folder: str, path: str, renaming: _Renaming) -> bool:
    """Return whether a link in a folder that leads to another file today would lead to `path`.

    Tries all links to the end of `path`: for "a/b/c.md", these are "a/b/c", "b/c" and "c", each
    also with ".md".
    """
    source = posixpath.join(folder, "note.md")  # what a link means depends on the folder alone
    parts = name_of(path).split("/")
    for depth in range(len(parts)):
        name = "/".join(parts[depth:])
        for target in (name, f"{name}.md"):
            old_path = resolve_link(target, source, renaming.files_before).path
            new_path = resolve_link(target, source, renaming.files_after).path
            if old_path is not None and new_path != old_path:
                return True
    return False


def _unseen_notes(vault: NoteSource, paths: Iterable[str]) -> list[str]:
    """Return those of the paths that are notes which the access rules hide."""
    return [path for path in paths if is_note(path) and vault.access.hides(path)]


def _breaks_link_from_unseen(vault: NoteSource, unseen: Sequence[str], renaming: _Renaming) -> bool:
    """Return whether a link in one of these hidden notes would lead elsewhere.

    `unseen` are their paths. Notes that cannot be read count as notes without links.
    """
    moves, files_before, files_after = renaming
    for path, note in _notes_that_may_link(vault, unseen, moves.paths()):
        if find_changed_links(note, note, path, moves, files_before, files_after):
            return True
    return False


def _breaks_link_to_unseen(
    vault: NoteSource, renaming: _Renaming, new_texts: Mapping[str, bytes]
) -> bool:
    """Return whether a link in a moving note would lead elsewhere, from or to a hidden file.

    `new_texts` has the texts that moving notes get, by their old paths. Notes that cannot be read
    are skipped.
    """
    moves, files_before, files_after = renaming
    hides = vault.access.hides
    with vault.reading() as read:
        for path in filter(is_note, moves.new_paths):
            try:
                data = read(path).data
            except SimplememError:  # the move itself meets what is wrong
                continue

            old_note = read_note(data)
            new_note = old_note
            if path in new_texts:
                new_note = read_note(new_texts[path])
            changed_links = find_changed_links(
                old_note, new_note, path, moves, files_before, files_after
            )
            for old_target, new_target in changed_links:
                if hides(old_target) or (new_target is not None and hides(new_target)):
                    return True
    return False


def _notes_that_may_link(
    vault: NoteSource, paths: Iterable[str], targets: Iterable[str]
) -> Iterator[tuple[str, Note]]:
    """Yield the path and parsed text of notes that may contain a link to one of the targets.

    Parsing all notes takes seconds at 10,000 of them, so the text is searched for a word of each
    name first. Notes that cannot be read are skipped.
    """
    words = {_longest_word(base_name(target)) for target in targets}
    with vault.without_rules().reading() as read:
        for path in paths:
            try:
                data = read(path).data
            except SimplememError:  # it is gone, or cannot be read: no link in it is known
                continue
            if _may_contain_link(data, words):
                yield path, read_note(data)


def _longest_word(name: str) -> str:
    """Return the part of a name that every link to it writes in the same way; "" if none.

    Blanks and punctuation may be written differently.
    """
    return max(_BETWEEN_WORDS.split(compare_key(name)), key=len)


def _may_contain_link(data: bytes, words: set[str]) -> bool:
    """Return whether a text may contain a link to a name that has one of these words.

    A word "" may be in any text.
    """
    if b"[" not in data:
        return False
    if "" in words or _ENCODED_LETTER.search(data):
        return True

    text = data.decode("utf-8", "replace")
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    text = compare_key(text)
    if len(words) <= _MAX_WORDS_ONE_BY_ONE:
        return any(word in text for word in words)
    text_words = _BETWEEN_WORDS.split(_ENCODED_MARK.sub(" ", text))
    return not words.isdisjoint(text_words)


def _files_by_name(paths: Iterable[str]) -> FilesNamed:
    """Return a function that returns the files with a name, sorted; it takes a `name_key`."""
    by_key = defaultdict[str, list[str]](list)
    for path in sorted(paths):
        by_key[name_key(path)].append(path)
    return lambda key: by_key.get(key, [])
