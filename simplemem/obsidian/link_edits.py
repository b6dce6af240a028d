"""Rewrite the links of a note, so that they keep their meaning when files move. Pure.

Only the target of a link changes, and where necessary the text that it displays. The new target of
each link is resolved before it is written. The rules are in docs/internals/links.md#moves.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from simplemem.note.body import Link, read_value_link
from simplemem.note.header import Scalar
from simplemem.note.note import Note
from simplemem.note.properties import replace_scalar
from simplemem.note.text_edits import Edit, apply_edits
from simplemem.obsidian.settings import (
    FilesNamed,
    LinkFormat,
    find_candidates,
    join_relative,
    name_key,
    resolve_link,
)

# What no wikilink can contain in its path.
_ENDS_TARGET = re.compile(r"[#|\n\r]|\[\[|\]\]")

# What would end the destination of a Markdown link, or could become code, math or an entity
# together with the text around it.
_SPECIAL_IN_ANGLES = "#<>%\\`$|"
_SPECIAL = ' ()"' + _SPECIAL_IN_ANGLES
_ENTITY = re.compile(r"&(?=#?[A-Za-z0-9]+;)")

_BRACKETS = "]]"  # the end of a wikilink, before which its display text stands


class Moves(NamedTuple):
    """Files that get other paths in one step, by their paths before.

    `created` has the paths of new files, which links may mean afterwards.
    """

    new_paths: Mapping[str, str]
    created: tuple[str, ...] = ()

    def after(self, path: str) -> str:
        """Return the path that a file has after the moves, given that before them.

        A file that is not moved keeps its path.
        """
        return self.new_paths.get(path, path)

    def paths(self) -> list[str]:
        """Return every path that a file leaves or gets, also those of new files."""
        return [*self.new_paths, *self.new_paths.values(), *self.created]


class LinkTarget(NamedTuple):
    """The file that a link has to lead to, and the path of the file that it meant before.

    `old_path` is "" if the target of the link never was the name of a file.
    """

    path: str
    old_path: str = ""


_FindTarget = Callable[[Link], LinkTarget | None]
"""Returns where a link has to lead; None if it stays as it is."""


def rewrite_links(
    note: Note,
    source: str,
    moves: Moves,
    files_before: FilesNamed,
    files_after: FilesNamed,
    link_format: LinkFormat,
    *,
    is_unseen: Callable[[str], bool] = lambda _path: False,
) -> str:
    """Return the text of a note in which every link means the same file after the moves.

    `source` is the path of the note before the moves. Links that have no file, or whose target
    still means the same one, stay as they are, and so does one that no spelling can lead to its
    file. `files_before` and `files_after` lack the files that the reader may not see, and which
    links are rewritten must not tell which of these exist. So if `is_unseen` is true of the path
    that a relative link states, the link keeps that path, whether or not there is a file. Raises
    Unreadable if a link in a property cannot be changed safely.
    """
    new_source = moves.after(source)
    keeps_folder = posixpath.dirname(new_source) == posixpath.dirname(source)
    unseen_paths: dict[str, list[str]] = {}  # of rewritten links, by the keys of their names

    def find_target(link: Link) -> LinkTarget | None:
        target = _target_after_moves(link, source, moves, files_before, files_after)
        if target is not None or keeps_folder:
            return target

        path = _unresolved_relative_path(link, source, files_before)
        if path is None or not is_unseen(path):
            return None
        unseen_paths.setdefault(name_key(path), []).append(path)
        return LinkTarget(path, path)

    def files_named(key: str) -> Sequence[str]:
        return [*files_after(key), *unseen_paths.get(key, ())]

    return _rewrite(note, new_source, find_target, files_named, link_format)


def redirect_links(
    note: Note,
    source: str,
    targets: Mapping[str, LinkTarget],
    files_named: FilesNamed,
    link_format: LinkFormat,
) -> str:
    """Return the text of a note in which unresolved links lead to the files in `targets`.

    The keys of `targets` are the targets of the links; links that mean a file stay as they are. If
    a file had another name, a display text that was that name follows. If the target never was the
    name of a file, it stays displayed. Raises Unreadable if a link in a property cannot be changed
    safely.
    """

    def find_target(link: Link) -> LinkTarget | None:
        target = targets.get(link.target)
        if target is None or resolve_link(link.target, source, files_named).path is not None:
            return None
        return target

    return _rewrite(note, source, find_target, files_named, link_format)


def find_changed_links(
    old: Note,
    new: Note,
    source: str,
    moves: Moves,
    files_before: FilesNamed,
    files_after: FilesNamed,
) -> list[tuple[str, str | None]]:
    """Return the links of a note that mean another file after the moves than they should.

    Each is a pair: the file that the link meant, by its path before the moves, and the file that it
    means after them, None if there is none. `old` is the note before the moves, `new` the note
    after them; both have the same links in the same order. `source` is the path of the note before
    the moves.
    """
    new_source = moves.after(source)
    changed_links: list[tuple[str, str | None]] = []
    for old_link, new_link in zip(old.links, new.links, strict=False):
        old_path = _linked_file(old_link, source, files_before)
        if old_path is None:
            continue
        new_path = resolve_link(new_link.target, new_source, files_after).path
        if new_path != moves.after(old_path):
            changed_links.append((old_path, new_path))
    return changed_links


def _linked_file(link: Link, source: str, files_named: FilesNamed) -> str | None:
    """Return the file that a link means; None for an unresolved link, and one within its note."""
    if not link.target:
        return None
    return resolve_link(link.target, source, files_named).path


def _target_after_moves(
    link: Link,
    source: str,
    moves: Moves,
    files_before: FilesNamed,
    files_after: FilesNamed,
) -> LinkTarget | None:
    """Return where a link has to lead after the moves so that it means the same file.

    Returns None if it does so already, or meant no file before.
    """
    old_path = _linked_file(link, source, files_before)
    if old_path is None:
        return None

    path = moves.after(old_path)
    if resolve_link(link.target, moves.after(source), files_after).path == path:
        return None
    return LinkTarget(path, old_path)


def _unresolved_relative_path(link: Link, source: str, files_named: FilesNamed) -> str | None:
    """Return the path that a relative link without a file states; None for any other link.

    None also if the path leads out of the vault.
    """
    if not link.target.startswith(("./", "../")):
        return None

    path = join_relative(link.target, source)
    if path in (".", "..") or path.startswith("../"):
        return None
    if resolve_link(link.target, source, files_named).path is not None:
        return None
    return path


def _rewrite(
    note: Note,
    source: str,
    find_target: _FindTarget,
    files_named: FilesNamed,
    link_format: LinkFormat,
) -> str:
    """Return the text of a note whose links lead where `find_target` says.

    A link stays as it is if there is no spelling that leads there. `source` is the path that the
    note will have, and `files_named` knows the files of that time. Raises Unreadable if a property
    cannot be changed safely.
    """
    edits: list[Edit] = []
    values: list[tuple[Scalar, str]] = []
    for link in note.links:
        target = find_target(link)
        if target is None:
            continue
        written = _choose_spelling(link, target.path, source, files_named, link_format)
        if written is None:
            continue

        if link.scalar is None:
            is_in_table = note.in_table(link.start)
            edits += _edit_link(note.text, link, target, written, is_in_table=is_in_table)
        else:
            value = _rewrite_value(link.scalar.value, target, written)
            values.append((link.scalar, value))

    text = apply_edits(note.text, edits)
    # The last value comes first, so that the offsets of the values before it stay right.
    values.sort(key=lambda pair: pair[0].start, reverse=True)
    for scalar, value in values:
        if note.header.problem is None:
            text = replace_scalar(text, scalar, value)
        else:
            # Nobody writes this text: it only shows that a link would have to change.
            text = apply_edits(text, [(scalar.start, scalar.end, value)])
    return text


def _rewrite_value(value: str, target: LinkTarget, written: str) -> str:
    """Return the value of a property, which is one link, with the target `written`.

    White space around the link stays.
    """
    link = read_value_link(value)
    assert link is not None
    old_text = value.strip()
    edits = _edit_link(old_text, link, target, written, is_in_table=False)
    new_text = apply_edits(old_text, edits)
    return value.replace(old_text, new_text)


def _choose_spelling(
    link: Link,
    path: str,
    source: str,
    files_named: FilesNamed,
    link_format: LinkFormat,
) -> str | None:
    """Return the best target by which a link in `source` means the file `path`.

    Returns None if there is none. The extension of a note is written if the link had it, or if the
    name without it means another file.
    """
    spellings = [path]
    has_extension = link.target.casefold().endswith(".md")
    if path.endswith(".md") and not has_extension:
        spellings.insert(0, path[:-3])

    for spelling in spellings:
        for target in _possible_targets(link, spelling, source, files_named, link_format):
            if link.form == "wiki" and _ENDS_TARGET.search(target):
                continue
            if resolve_link(target, source, files_named).path == path:
                return target
    return None


def _possible_targets(
    link: Link,
    path: str,
    source: str,
    files_named: FilesNamed,
    link_format: LinkFormat,
) -> list[str]:
    """Return the targets that could mean a path, the preferred ones first. None is checked.

    A relative target stays relative, one that begins with a slash keeps it, and a bare name stays
    bare if it is the name of one file only.
    """
    rooted = f"/{path}"
    relative = posixpath.relpath(path, posixpath.dirname(source) or ".")
    if not relative.startswith("../"):
        relative = f"./{relative}"

    preferred: list[str] = []
    if link.target.startswith(("./", "../")):
        preferred.append(relative)
    elif link.target.startswith("/"):
        preferred.append(rooted)
    elif "/" not in link.target:
        name = posixpath.basename(path)
        if len(find_candidates(name, files_named)) == 1:
            preferred.append(name)
        if link_format == "relative":
            preferred.append(relative)
    return [*preferred, path, relative, rooted]


def _edit_link(
    text: str,
    link: Link,
    target: LinkTarget,
    written: str,
    *,
    is_in_table: bool,
) -> list[Edit]:
    """Return the edits that give a link another target, and change what it displays.

    `written` is the new target as it stands in the link; `target` says which file it is. Offsets
    are those in `text`.
    """
    path = written
    if link.form == "markdown":
        path = _encode_destination(written, in_angles=link.angle)
    edits = [(link.path_start, link.path_end, path)]

    if not target.old_path:
        display_edit = _display_old_target(link, is_in_table=is_in_table)
    elif link.display_start >= 0:
        display_edit = _display_new_name(text, link, target)
    else:
        display_edit = _display_name_of_path(link, target, written, is_in_table=is_in_table)
    if display_edit is not None:
        edits.append(display_edit)
    return edits


def _encode_destination(path: str, *, in_angles: bool) -> str:
    """Return a path as the destination of a Markdown link.

    Only what would end or change the destination is encoded, so that links stay readable.
    """
    special = _SPECIAL_IN_ANGLES if in_angles else _SPECIAL
    characters = []
    for character in path:
        if character in special or ord(character) < 32:
            characters.append(f"%{ord(character):02X}")
        else:
            characters.append(character)
    return _ENTITY.sub("%26", "".join(characters))


def _display_old_target(link: Link, *, is_in_table: bool) -> Edit | None:
    """Return the edit by which a wikilink without display text still displays its target.

    Returns None if nothing has to be inserted: for other links, embeds and links in tables.
    """
    if link.form != "wiki" or link.display_start >= 0 or link.is_embed:
        return None
    bar = "\\|" if is_in_table else "|"
    return _insert_display(link, bar + link.target)


def _display_new_name(text: str, link: Link, target: LinkTarget) -> Edit | None:
    """Return the edit that displays the new name of a file if the old one was displayed.

    Returns None if another text is displayed, or if the new name cannot stand there.
    """
    old_name = _displayed_name(target.old_path)
    new_name = _displayed_name(target.path)
    display = text[link.display_start : link.display_end]
    if display != old_name or old_name == new_name:
        return None

    may_begin_code = "`" in new_name or "$" in new_name
    if may_begin_code and link.form == "markdown":
        return None
    return (link.display_start, link.display_end, new_name)


def _display_name_of_path(
    link: Link,
    target: LinkTarget,
    written: str,
    *,
    is_in_table: bool,
) -> Edit | None:
    """Return the edit by which a wikilink that was a bare name does not display its path.

    Returns None for other links and embeds, and if the new target has no folder. In a table the
    path is displayed, because a bar would end the cell.
    """
    has_new_folder = "/" in written and "/" not in link.target
    if link.form != "wiki" or not has_new_folder or link.is_embed or is_in_table:
        return None

    name = link.target
    if _displayed_name(target.old_path) != _displayed_name(target.path):
        name = posixpath.basename(written)
    return _insert_display(link, f"|{name}")


def _displayed_name(path: str) -> str:
    """Return the last part of a path without `.md`."""
    return posixpath.basename(path).removesuffix(".md")


def _insert_display(link: Link, display: str) -> Edit:
    """Return the edit that inserts `display`, a bar and a text, before the end of a wikilink.

    The heading of the link, if it has one, follows.
    """
    position = link.end - len(_BRACKETS)
    return (position, position, display + _displayed_heading(link))


def _displayed_heading(link: Link) -> str:
    """Return the headings of a link as Obsidian displays them: " > Heading > Sub".

    Block ids are left out. Returns "" if there are none.
    """
    displayed = ""
    for part in link.subpath.split("#"):
        is_heading = part != "" and not part.startswith("^")
        if is_heading:
            displayed += f" > {part}"
    return displayed
