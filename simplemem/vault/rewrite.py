"""Links written again when a note comes, moves or is renamed, so that each goes on meaning what it meant. Pure.

Only the path of a link changes (and a shown text that was the old name); its form, subpath, title and brackets stay, and
so does every byte outside it. Links that led nowhere are left alone (obsidian.md §1.6).
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from simplemem.note.body import Link
from simplemem.note.frontmatter import replace_scalar
from simplemem.note.note import Note
from simplemem.vault.links import Named, name_key, resolve

LinkFormat = Literal["shortest", "relative", "absolute"]


@dataclass(frozen=True, slots=True)
class Moved:
    """A change of names: `old` became `new`. `old` is None when the note is new, so that only theft is undone."""

    old: str | None
    new: str

    def after(self, path: str | None) -> str | None:
        """What a file is called afterwards."""
        return self.new if path is not None and path == self.old else path


def rewrite_links(
    note: Note, source: str, moved: Moved, before: Named, after: Named, link_format: LinkFormat = "shortest"
) -> str:
    """The text of the note at `source` in which every link means the same file after the move as before it."""
    here = moved.after(source) or source
    splices: list[tuple[int, int, str]] = []
    scalars: list[tuple[Link, str]] = []
    for link in note.links:
        meant = resolve(link.target, source, before).path
        if not link.target or meant is None:
            continue
        wanted = moved.after(meant)
        assert wanted is not None
        if resolve(link.target, here, after).path == wanted:
            continue
        written = _path_for(link, wanted, here, after, link_format)
        if link.scalar is not None:
            scalars.append((link, written))
            continue
        splices.append((link.path_start, link.path_end, _spelled(link, written)))
        splices += _shown(note, link, meant, wanted, written)
    text = note.text
    for start, end, replacement in sorted(splices, reverse=True):
        text = text[:start] + replacement + text[end:]
    for link, written in scalars:
        text = _in_scalar(text, link, written)
    return text


def _path_for(link: Link, path: str, source: str, named: Named, link_format: LinkFormat) -> str:
    """The target written so that it means `path` in `source`: relative stays relative, rooted rooted, bare bare if it can."""
    shown = path
    if path.endswith(".md") and not link.target.casefold().endswith(".md"):
        shown = path[:-3]
    if link.target.startswith(("./", "../")):
        return _relative(shown, source)
    if link.target.startswith("/"):
        return "/" + shown
    if "/" in link.target:
        return shown
    bare = posixpath.basename(shown)
    if len(named_files(bare, named)) == 1:
        return bare
    if link_format == "relative":
        return _relative(shown, source)
    return shown


def named_files(bare: str, named: Named) -> Sequence[str]:
    """The files a bare name could mean (obsidian.md §1.4, step 2)."""
    return named(name_key(bare)) or named(name_key(bare) + ".md")


def _relative(path: str, source: str) -> str:
    written = posixpath.relpath(path, posixpath.dirname(source) or ".")
    return written if written.startswith("../") else "./" + written


def _spelled(link: Link, path: str) -> str:
    return path if link.form == "wiki" else encode_destination(path, angle=link.angle)


def encode_destination(path: str, *, angle: bool) -> str:
    """A path as a Markdown link destination: only what would end or change it is encoded (obsidian.md §1.5)."""
    special = "<>%\\" if angle else ' %<>()#"\\'
    return "".join(f"%{ord(char):02X}" if char in special or ord(char) < 32 else char for char in path)


def _shown(note: Note, link: Link, meant: str, wanted: str, written: str) -> list[tuple[int, int, str]]:
    """What the reader sees: a shown text that was the old name follows it; a path that had been a bare name gets one."""
    old, new = _bare(meant), _bare(wanted)
    if link.display_start >= 0:
        shown = note.text[link.display_start : link.display_end]
        return [(link.display_start, link.display_end, new)] if shown == old and old != new else []
    qualified = "/" in written and "/" not in link.target
    if link.form == "wiki" and qualified and not link.embed and not note.in_table(link.start):
        return [(link.end - 2, link.end - 2, "|" + link.target + _heading_shown(link))]
    return []


def _heading_shown(link: Link) -> str:
    """`[[Note#Heading]]` is shown as "Note > Heading" by Obsidian; a path put before it must not change that."""
    parts = [part for part in link.subpath.split("#") if part]
    return "".join(f" > {part}" for part in parts if not part.startswith("^"))


def _bare(path: str) -> str:
    name = posixpath.basename(path)
    return name.removesuffix(".md")


def _in_scalar(text: str, link: Link, written: str) -> str:
    """A property link whose source is escaped: the whole value is written again in its own quoting."""
    scalar = link.scalar
    assert scalar is not None
    return replace_scalar(text, scalar, scalar.value.replace(link.target, written, 1))
