"""Links that a view of part of a vault cannot follow: those in notes that it does not show, and those to such notes.

A view (`access.hidden`, `access.only`, a token with folders) has an index without these notes, so the files of the
whole vault are read. A change that would lead such a link elsewhere is refused. The error says that there is such a
link, and names neither the note that it stands in nor the file that it leads to.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from simplemem.errors import ReadOnly, SimplememError
from simplemem.index.notes import is_note
from simplemem.note.names import base_name, compare_key, name_of
from simplemem.note.note import Note, read_note
from simplemem.obsidian.link_edits import Moves, find_changed_links
from simplemem.obsidian.links import FilesNamed, lookup_keys, name_key, resolve_link
from simplemem.vault.source import NoteSource

_MAX_NAMED = 3  # moved notes that an error names
_FEW_WORDS = (
    50  # so many are found sooner one by one than by splitting the text, which takes 0.1 ms a page
)
_NO_TEXTS: Mapping[str, bytes] = MappingProxyType({})
# A letter or digit that a link may spell in another way than the name of its file: `%6d`, `&#109;`, `&eacute;`.
_ENCODED_LETTER = re.compile(rb"%[3-7][0-9A-Fa-f]|%[89A-Fa-f][0-9A-Fa-f]|&[#A-Za-z]")
_ENCODED_MARK = re.compile(r"%[0-9a-f]{2}")
_BETWEEN_WORDS = re.compile(r"[\W_]+")  # `_` too: a link may have a backslash before it


def check_unseen_links(
    vault: NoteSource, moves: Moves, new_texts: Mapping[str, bytes] = _NO_TEXTS
) -> None:
    """Raise ReadOnly if the moves would lead a link elsewhere that this view cannot follow.

    `new_texts` has what moved notes will say, by their paths before the moves; the others keep their texts.
    """
    if would_break_unseen_links(vault, moves, new_texts):
        names = ", ".join(repr(name_of(path)) for path in list(moves.new_paths)[:_MAX_NAMED])
        message = f"{names} cannot be moved: it would break a link from or to a hidden folder"
        raise ReadOnly(message, hint="Leave it where it is, or ask the user to move it.")


def would_break_unseen_links(
    vault: NoteSource, moves: Moves, new_texts: Mapping[str, bytes] = _NO_TEXTS
) -> bool:
    """Return whether `check_unseen_links` would raise ReadOnly."""
    if not vault.access.is_partial or not moves.new_paths:
        return False

    paths = vault.without_rules().paths()
    before = _named_among(paths)
    after = _named_among(map(moves.after, paths))
    if _breaks_link_from_unseen(vault, _unseen_notes(vault, paths), moves, before, after):
        return True
    return _breaks_link_to_unseen(vault, moves, new_texts, before, after)


def check_new_path(vault: NoteSource, path: str) -> None:
    """Raise ReadOnly if a note at this new path would take a link from the note that it leads to today.

    This is about links in notes that the view does not show. An unresolved link among them may lead to the new note:
    that is what it waits for. Unless another file has the same name, no note is read. If one has, only notes are read
    that lie in folders where a link by that name would lead elsewhere.
    """
    if not vault.access.is_partial:
        return

    paths = vault.without_rules().paths()
    rivals = _files_called(paths, lookup_keys(path))
    if not rivals:
        return

    moves = Moves({}, (path,))
    before = _named_among(rivals)
    after = _named_among([*rivals, path])
    unseen = _unseen_notes(vault, paths)
    folders = {posixpath.dirname(source) for source in unseen}
    concerned = {folder for folder in folders if _takes_links_in(folder, path, before, after)}
    sources = [source for source in unseen if posixpath.dirname(source) in concerned]
    if _breaks_link_from_unseen(vault, sources, moves, before, after):
        message = f"{name_of(path)!r} cannot be created: a link in a hidden folder would lead to it"
        raise ReadOnly(message, hint="Choose another name, or ask the user to create it.")


def _files_called(paths: Iterable[str], keys: tuple[str, ...]) -> list[str]:
    """Return the paths whose name has one of these keys."""
    # Of 10,000 paths, `endswith` rules out nearly all in a tenth of the time that their keys take.
    likely = [path for path in paths if not path.isascii() or path.lower().endswith(keys)]
    return [path for path in likely if name_key(path) in keys]


def _takes_links_in(folder: str, path: str, before: FilesNamed, after: FilesNamed) -> bool:
    """Whether a link in this folder that spells the end of `path` would lead there, and leads to another file today."""
    source = posixpath.join(folder, "note.md")  # what a link means depends on the folder alone
    parts = name_of(path).split("/")
    for depth in range(len(parts)):
        name = "/".join(parts[depth:])
        for target in (name, f"{name}.md"):
            meant = resolve_link(target, source, before).path
            if meant is not None and resolve_link(target, source, after).path != meant:
                return True
    return False


def _unseen_notes(vault: NoteSource, paths: Iterable[str]) -> list[str]:
    """Return those of the paths that are notes which the view does not show."""
    return [path for path in paths if is_note(path) and vault.access.hides(path)]


def _breaks_link_from_unseen(
    vault: NoteSource, unseen: Sequence[str], moves: Moves, before: FilesNamed, after: FilesNamed
) -> bool:
    """Whether a link in one of these notes, which the view does not show, would lead elsewhere."""
    notes = _notes_that_may_link(vault, unseen, moves.paths())
    return any(find_changed_links(note, note, path, moves, before, after) for path, note in notes)


def _breaks_link_to_unseen(
    vault: NoteSource,
    moves: Moves,
    new_texts: Mapping[str, bytes],
    before: FilesNamed,
    after: FilesNamed,
) -> bool:
    """Whether a link in a note that moves would lead elsewhere, from or to a file that the view does not show."""
    hides = vault.access.hides
    with vault.reading() as read:
        for path in filter(is_note, moves.new_paths):
            try:
                data = read(path).data
            except SimplememError:  # whoever moves it finds out
                continue
            old_note = read_note(data)
            new_note = read_note(new_texts[path]) if path in new_texts else old_note
            for meant, means in find_changed_links(old_note, new_note, path, moves, before, after):
                if hides(meant) or (means is not None and hides(means)):
                    return True
    return False


def _notes_that_may_link(
    vault: NoteSource, paths: Iterable[str], targets: Iterable[str]
) -> Iterator[tuple[str, Note]]:
    """Yield those of some notes whose text may hold a link to one of the targets.

    To parse every note takes seconds at 10,000 notes, so the text is searched for a word of each name first.
    """
    words = {_longest_word(base_name(target)) for target in targets}
    with vault.without_rules().reading() as read:
        for path in paths:
            try:
                data = read(path).data
            except SimplememError:  # it is gone, or cannot be read: no link of it is known
                continue
            if _may_hold_link(data, words):
                yield path, read_note(data)


def _longest_word(name: str) -> str:
    """Return the longest word of a name: every link to it contains the word as it is.

    Returns "" for a name without words.
    """
    return max(_BETWEEN_WORDS.split(compare_key(name)), key=len)


def _may_hold_link(data: bytes, words: set[str]) -> bool:
    """Whether a text may hold a link to a name that has one of these words."""
    if b"[" not in data:
        return False
    if "" in words or _ENCODED_LETTER.search(data):
        return True

    text = data.decode("utf-8", "replace")
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    text = compare_key(text)
    if len(words) <= _FEW_WORDS:
        return any(word in text for word in words)
    return not words.isdisjoint(_BETWEEN_WORDS.split(_ENCODED_MARK.sub(" ", text)))


def _named_among(paths: Iterable[str]) -> FilesNamed:
    """Return which of the files have a name, as links look it up."""
    by_key = defaultdict[str, list[str]](list)
    for path in sorted(paths):
        by_key[name_key(path)].append(path)
    return lambda key: by_key.get(key, [])
