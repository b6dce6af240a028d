"""Rewrite the links of a note, so that they keep their meaning when files move. Pure.

Only the target of a link changes, and where necessary the text that it displays. The spelling of a
link is the target as the link has it, such as `Note`, `./Note` or `/folder/Note.md`. A new spelling
is written only if it resolves to the right file. The rules are in docs/internals/links.md#moves.
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
    """Files that get other paths in one step.

    `new_paths` has the path of each after the step, by its path before. `created` has the paths of
    new files, which links may mean afterwards.
    """

    new_paths: Mapping[str, str]
    created: tuple[str, ...] = ()

    def after(self, path: str) -> str:
        """Return the path after the moves of the file that is at `path` before them.

        It is the same if the file is not moved.
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

    `source` is the path of the note before the moves. A link stays as it is if it is unresolved, if
    it still means the same file, or if no spelling leads to its file. Raises Unreadable if a link
    in a property cannot be changed safely.

    `files_before` and `files_after` lack the files that the caller may not see. `is_unseen` tests
    whether the caller may not see files at a path, which may lack its `.md`. The result must not
    reveal which of them exist. So an unresolved relative link to such a path is rewritten to lead
    to the same path from the new folder, whether or not there is a file.
    """
    new_source = moves.after(source)
    keeps_folder = posixpath.dirname(new_source) == posixpath.dirname(source)
    unseen_paths: dict[str, list[str]] = {}  # those that links are to lead to, by `name_key`

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

    The keys of `targets` are the spellings of the links; links that mean a file stay as they are. A
    display text that was the old name of the file becomes its new name. If the spelling never was
    the name of a file, the link goes on to display it. Raises Unreadable if a link in a property
    cannot be changed safely.
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
    """Return the links of a note that mean another file after the moves than before.

    Each is a pair: the path before the moves of the file that the link meant, and the path of the
    file that it means after them, None if there is none. `old` is the note before the moves, `new`
    the note after them; both have the same links in the same order. `source` is the path of the
    note before the moves.
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
    """Return where a link has to lead after the moves to mean the same file.

    Returns None if the link leads there as it is, or meant no file before.
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

    A link stays as it is if no spelling leads there. `source` is the path of the note after the
    change, and `files_named` has the files after it. Raises Unreadable if a property cannot be
    changed safely.
    """
    edits: list[Edit] = []
    values: list[tuple[Scalar, str]] = []
    for link in note.links:
        target = find_target(link)
        if target is None:
            continue
        spelling = _choose_spelling(link, target.path, source, files_named, link_format)
        if spelling is None:
            continue

        if link.scalar is None:
            is_in_table = note.in_table(link.start)
            edits += _edit_link(note.text, link, target, spelling, is_in_table=is_in_table)
        else:
            value = _rewrite_value(link.scalar.value, target, spelling)
            values.append((link.scalar, value))

    text = apply_edits(note.text, edits)
    # The last value comes first, so that the offsets of the values before it stay right.
    values.sort(key=lambda pair: pair[0].start, reverse=True)
    for scalar, value in values:
        if note.header.problem is None:
            text = replace_scalar(text, scalar, value)
        else:
            # The header is broken. This text is never written: callers only see by it that a link
            # would have to change.
            text = apply_edits(text, [(scalar.start, scalar.end, value)])
    return text


def _rewrite_value(value: str, target: LinkTarget, spelling: str) -> str:
    """Return the value of a property, which must be one link, with a new spelling of its target.

    `spelling` is that of the target as the link states it; `target` says which file it is. The text
    that the link displays changes as in `_edit_link`. White space around the link stays.
    """
    link = read_value_link(value)
    assert link is not None
    old_text = value.strip()
    edits = _edit_link(old_text, link, target, spelling, is_in_table=False)
    new_text = apply_edits(old_text, edits)
    return value.replace(old_text, new_text)


def _choose_spelling(
    link: Link,
    path: str,
    source: str,
    files_named: FilesNamed,
    link_format: LinkFormat,
) -> str | None:
    """Return the best spelling by which a link in `source` means the file `path`.

    Returns None if there is none. The extension of a note is written if the link had it, or if the
    name without it means another file.
    """
    names = [path]
    has_extension = link.target.casefold().endswith(".md")
    if path.endswith(".md") and not has_extension:
        names.insert(0, path[:-3])

    for name in names:
        for spelling in _possible_spellings(link, name, source, files_named, link_format):
            if link.form == "wiki" and _ENDS_TARGET.search(spelling):
                continue
            if resolve_link(spelling, source, files_named).path == path:
                return spelling
    return None


def _possible_spellings(
    link: Link,
    path: str,
    source: str,
    files_named: FilesNamed,
    link_format: LinkFormat,
) -> list[str]:
    """Return the spellings that could mean a path, the preferred ones first.

    The caller has to resolve them. A relative one stays relative, one that begins with a slash
    keeps it, and a bare name stays bare if it is the name of one file only. Else it becomes
    relative if `link_format` says so. A spelling may occur twice.
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
    spelling: str,
    *,
    is_in_table: bool,
) -> list[Edit]:
    """Return the edits that give a link in `text` a new spelling, and change what it displays.

    `target` is the file that the spelling leads to.
    """
    new_text = spelling
    if link.form == "markdown":
        new_text = _encode_destination(spelling, in_angles=link.angle)
    edits = [(link.path_start, link.path_end, new_text)]

    if not target.old_path:
        display_edit = _display_old_target(link, is_in_table=is_in_table)
    elif link.display_start >= 0:
        display_edit = _display_new_name(text, link, target)
    else:
        display_edit = _display_bare_name(link, target, spelling, is_in_table=is_in_table)
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

    Returns None for a Markdown link, for an embed, and for a link that has a display text.
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


def _display_bare_name(
    link: Link,
    target: LinkTarget,
    spelling: str,
    *,
    is_in_table: bool,
) -> Edit | None:
    """Return the edit by which a wikilink that was a bare name still displays a bare name.

    Returns None if the new spelling is a bare name too, for other links, and for embeds. Returns
    None too in a table: a bar would end the cell, so the path is displayed there.
    """
    has_new_folder = "/" in spelling and "/" not in link.target
    if link.form != "wiki" or not has_new_folder or link.is_embed or is_in_table:
        return None

    name = link.target
    if _displayed_name(target.old_path) != _displayed_name(target.path):
        name = posixpath.basename(spelling)
    return _insert_display(link, f"|{name}")


def _displayed_name(path: str) -> str:
    """Return the last part of a path without `.md`."""
    return posixpath.basename(path).removesuffix(".md")


def _insert_display(link: Link, display: str) -> Edit:
    """Return the edit that inserts `display`, a bar and a text, before the end of a wikilink.

    The heading of the link, if it has one, is added to the text, as Obsidian displays it.
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
