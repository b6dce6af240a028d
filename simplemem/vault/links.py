"""What a link means, as Obsidian resolves it, and how links are written again when a note comes, moves or is renamed,
so that each goes on meaning what it meant. Pure: no disk, no SQL.

Of a link only the path is written again (and a shown text that was the old name); every byte outside it stays."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from simplemem.note.body import Link, read_value_link
from simplemem.note.header import Scalar
from simplemem.note.names import compare_key
from simplemem.note.note import Note
from simplemem.note.properties import replace_scalar

LinkFormat = Literal["shortest", "relative", "absolute"]
Named = Callable[[str], Sequence[str]]
"""From the compare key of a file name ("note.md") to the vault paths of all files so called."""


class Resolution(NamedTuple):
    """What a link leads to: a vault path or nothing, and the files it might as well have meant."""

    path: str | None
    ambiguous: tuple[str, ...] = ()


def name_key(path: str) -> str:
    """The key a file is found under: the last segment of its path, compared without case and Unicode form."""
    return compare_key(path.rsplit("/", 1)[-1])


def lookup_keys(path: str) -> tuple[str, ...]:
    """The keys of all links that could mean this file: its name, and for a note its name without the extension."""
    key = name_key(path)
    return (key, key[:-3]) if key.endswith(".md") else (key,)


def resolve(target: str, source: str, named: Named) -> Resolution:
    """Where a link with this target in the note `source` leads. obsidian.md §1.4, step for step."""
    if not target:
        return Resolution(source)
    candidates = _candidates(target, named)
    if target.startswith(("./", "../")):
        wanted = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        return Resolution(_exactly(wanted, candidates))
    if target.startswith("/"):
        return Resolution(_exactly(target.lstrip("/"), candidates))
    exact = candidates[0] if "/" not in target and len(candidates) == 1 else _exactly(target, candidates)
    if exact is not None:
        return Resolution(exact)
    # Step 6: paths that end with the target, those below the source's folder first, then the shortest.
    if "/" in target:
        endings = ("/" + compare_key(target), "/" + compare_key(target) + ".md")
        candidates = [path for path in candidates if compare_key(path).endswith(endings)]
    folder = posixpath.dirname(source)
    below = compare_key(folder) + "/" if folder else ""
    ranked = sorted((not compare_key(path).startswith(below), len(path), path) for path in candidates)
    equal = tuple(path for *distance, path in ranked if distance == [*ranked[0][:2]])
    return Resolution(equal[0] if equal else None, equal if len(equal) > 1 else ())


def _candidates(target: str, named: Named) -> Sequence[str]:
    """The files that the name in a target could mean (obsidian.md §1.4, step 2)."""
    return named(name_key(target)) or named(name_key(target) + ".md")


def _exactly(wanted: str, candidates: Sequence[str]) -> str | None:
    keys = (compare_key(wanted), compare_key(wanted) + ".md") if candidates else ()
    return next((path for path in candidates if compare_key(path) in keys), None)


_Edit = tuple[int, int, str]  # replace text[start:end]

_ENDS_TARGET = re.compile(r"[#|\n\r]|\[\[|\]\]")  # no wikilink can hold these in its path
# What would end a destination, or make it code, math or an entity together with what stands around it.
_SPECIAL_IN_ANGLES = "#<>%\\`$|"
_SPECIAL = ' ()"' + _SPECIAL_IN_ANGLES
_ENTITY = re.compile(r"&(?=#?[A-Za-z0-9]+;)")


class Move(NamedTuple):
    """`old` became `new`. `old` is None when the note is new, so that only theft is undone."""

    old: str | None
    new: str

    def after(self, path: str) -> str:
        """What a file is called afterwards."""
        return self.new if path == self.old else path


class Aim(NamedTuple):
    """Where a link shall lead. `was` is the path it meant, "" when no file was ever called so."""

    path: str
    was: str = ""


def rewrite_links(
    note: Note, source: str, move: Move, before: Named, after: Named, link_format: LinkFormat = "shortest"
) -> str:
    """The text of the note at `source` in which every link means the same file after the move as before it."""
    here = move.after(source)

    def aim_of(link: Link) -> Aim | None:
        meant = resolve(link.target, source, before).path
        if not link.target or meant is None:
            return None
        wanted = move.after(meant)
        return Aim(wanted, meant) if resolve(link.target, here, after).path != wanted else None

    return _rewritten(note, here, aim_of, after, link_format)


def lead_links(
    note: Note, source: str, aims: Mapping[str, Aim], named: Named, link_format: LinkFormat = "shortest"
) -> str:
    """The text of the note at `source` in which broken links lead where `aims` says, by their targets. What a reader
    sees follows a file that had another name; where the target never was a file's name, it goes on being shown."""

    def aim_of(link: Link) -> Aim | None:
        aim = aims.get(link.target)
        return aim if aim is not None and resolve(link.target, source, named).path is None else None

    return _rewritten(note, source, aim_of, named, link_format)


def _rewritten(
    note: Note, source: str, aim_of: Callable[[Link], Aim | None], named: Named, link_format: LinkFormat
) -> str:
    edits: list[_Edit] = []
    values: list[tuple[Scalar, str]] = []
    for link in note.links:
        aim = aim_of(link)
        written = _target_for(link, aim.path, source, named, link_format) if aim is not None else None
        if aim is None or written is None:
            continue
        if link.scalar is not None:
            bare, inside = link.scalar.value.strip(), read_value_link(link.scalar.value)
            assert inside is not None
            within = _applied(bare, _edits(bare, inside, aim, written, False))
            values.append((link.scalar, link.scalar.value.replace(bare, within)))
        else:
            edits += _edits(note.text, link, aim, written, note.in_table(link.start))
    text = _applied(note.text, edits)
    for scalar, value in sorted(values, key=lambda pair: pair[0].start, reverse=True):
        if note.header.problem is None:
            text = replace_scalar(text, scalar, value)
        else:  # nobody will write this; it only says that a link would have to change
            text = _applied(text, [(scalar.start, scalar.end, value)])
    return text


def _applied(text: str, edits: list[_Edit]) -> str:
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text


def _target_for(link: Link, path: str, source: str, named: Named, link_format: LinkFormat) -> str | None:
    """The best target that means `path` in `source`: relative stays relative, rooted rooted, bare bare if it
    can. The extension comes in where the name without it is another file's; else a path from the root."""
    short = path[:-3] if path.endswith(".md") and not link.target.casefold().endswith(".md") else path
    for shown in dict.fromkeys((short, path)):
        bare, rooted = posixpath.basename(shown), "/" + shown
        near = posixpath.relpath(shown, posixpath.dirname(source) or ".")
        near = near if near.startswith("../") else "./" + near
        if link.target.startswith(("./", "../")):
            preferred = [near]
        elif "/" in link.target:
            preferred = [rooted] if link.target.startswith("/") else []
        else:
            preferred = [bare] if len(_candidates(bare, named)) == 1 else []
            preferred += [near] if link_format == "relative" else []
        for target in (*preferred, shown, near, rooted):
            fits = link.form != "wiki" or not _ENDS_TARGET.search(target)
            if fits and resolve(target, source, named).path == path:
                return target
    return None


def _edits(text: str, link: Link, aim: Aim, written: str, bar_ends_cell: bool) -> list[_Edit]:
    """The new path in its place, and what the reader sees: a shown text that was the old name follows it, and a path
    that had been a bare name is shown as that name."""
    path = written
    if link.form != "wiki":  # only what would end or change a destination is encoded (obsidian.md §1.5)
        special = _SPECIAL_IN_ANGLES if link.angle else _SPECIAL
        path = "".join(f"%{ord(char):02X}" if char in special or ord(char) < 32 else char for char in written)
        path = _ENTITY.sub("%26", path)
    edits = [(link.path_start, link.path_end, path)]
    if not aim.was:
        if link.form == "wiki" and link.display_start < 0 and not link.embed:
            bar = "\\|" if bar_ends_cell else "|"
            edits.append((link.end - 2, link.end - 2, bar + link.target + _heading_shown(link)))
        return edits
    old, new = (posixpath.basename(path).removesuffix(".md") for path in (aim.was, aim.path))
    if link.display_start >= 0:
        begins_code = link.form == "markdown" and ("`" in new or "$" in new)
        if text[link.display_start : link.display_end] == old and old != new and not begins_code:
            edits.append((link.display_start, link.display_end, new))
    elif link.form == "wiki" and "/" in written and "/" not in link.target and not link.embed and not bar_ends_cell:
        name = link.target if old == new else posixpath.basename(written)
        edits.append((link.end - 2, link.end - 2, "|" + name + _heading_shown(link)))
    return edits


def _heading_shown(link: Link) -> str:
    """`[[Note#Heading]]` is shown as "Note > Heading" by Obsidian; a path put before it must not change that."""
    return "".join(f" > {part}" for part in link.subpath.split("#") if part and not part.startswith("^"))
