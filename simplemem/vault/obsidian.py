"""What an Obsidian vault means: where links lead, how they are written again when a note moves, what `.obsidian/` says.
What is missing or broken in its settings means Obsidian's defaults, and nothing in them widens what may be read."""

from __future__ import annotations

import json
import math
import posixpath
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

from simplemem.errors import SimplememError
from simplemem.note.header import Scalar
from simplemem.note.inline import Link, read_value_link
from simplemem.note.names import compare_key
from simplemem.note.note import Note
from simplemem.note.properties import replace_scalar
from simplemem.note.text_edits import Edit, apply_edits
from simplemem.vault.folder.dir_handles import DirHandles
from simplemem.vault.folder.disk import read_file

LinkFormat = Literal["shortest", "relative", "absolute"]
Named = Callable[[str], Sequence[str]]
"""From the compare key of a file name ("note.md") to the vault paths of all files so called."""

CONVENTION_FILES = (".obsidian/app.json", ".obsidian/templates.json", ".obsidian/daily-notes.json")
_MAX_SETTINGS_BYTES = 1_000_000
_MAX_FILTERS = 200
_MAX_PATTERN = 500  # characters; a filter is a line somebody typed
_MAX_REPEATS = 10_000  # all `{m,n}` of a pattern together: as the engine writes them out, more would fill the memory
_MATCH_SECONDS = 0.1  # a path takes a pattern some microseconds
_COUNT = re.compile(r"(\d{1,9}),?\}")  # of `{n}`, `{m,n}` and `{m,}`
_REFUSED: dict[str, str] = {}  # `/regex/` filters that are not applied, and why
# What other tools put beside notes. Lower case exactly: a person's folder is rather `Build`.
_MACHINE_FOLDERS = frozenset({"node_modules", "vendor", "dist", "build"})


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
    """Where a link with this target in the note `source` leads.

    docs/internals/links.md#which-file-a-link-leads-to has the steps.
    """
    if not target:
        return Resolution(source)
    candidates = _candidates(target, named)
    if target.startswith(("./", "../")):
        wanted = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        return Resolution(_exactly(wanted, candidates))
    if target.startswith("/"):
        return Resolution(_exactly(target.lstrip("/"), candidates))
    exact = (
        candidates[0]
        if "/" not in target and len(candidates) == 1
        else _exactly(target, candidates)
    )
    if exact is not None:
        return Resolution(exact)
    # Step 6: paths that end with the target, those below the source's folder first, then the shortest.
    if "/" in target:
        endings = ("/" + compare_key(target), "/" + compare_key(target) + ".md")
        candidates = [path for path in candidates if compare_key(path).endswith(endings)]
    folder = posixpath.dirname(source)
    below = compare_key(folder) + "/" if folder else ""
    ranked = sorted(
        (not compare_key(path).startswith(below), len(path), path) for path in candidates
    )
    equal = tuple(path for *distance, path in ranked if distance == [*ranked[0][:2]])
    return Resolution(equal[0] if equal else None, equal if len(equal) > 1 else ())


def _candidates(target: str, named: Named) -> Sequence[str]:
    """The files that the name in a target could mean: those called so, or so with `.md`."""
    return named(name_key(target)) or named(name_key(target) + ".md")


def _exactly(wanted: str, candidates: Sequence[str]) -> str | None:
    keys = (compare_key(wanted), compare_key(wanted) + ".md") if candidates else ()
    return next((path for path in candidates if compare_key(path) in keys), None)


_ENDS_TARGET = re.compile(r"[#|\n\r]|\[\[|\]\]")  # no wikilink can hold these in its path
# What would end a destination, or make it code, math or an entity together with what stands around it.
_SPECIAL_IN_ANGLES = "#<>%\\`$|"
_SPECIAL = ' ()"' + _SPECIAL_IN_ANGLES
_ENTITY = re.compile(r"&(?=#?[A-Za-z0-9]+;)")


class Moves(NamedTuple):
    """Files that get other paths in one step, by their paths before, and the paths of files that are new."""

    new_paths: Mapping[str, str]
    created: tuple[str, ...] = ()

    def after(self, path: str) -> str:
        """What a file is called afterwards."""
        return self.new_paths.get(path, path)

    def paths(self) -> list[str]:
        """Every path that a file leaves or comes to."""
        return [*self.new_paths, *self.new_paths.values(), *self.created]


class Aim(NamedTuple):
    """Where a link shall lead. `was` is the path it meant, "" when no file was ever called so."""

    path: str
    was: str = ""


def rewrite_links(
    note: Note,
    source: str,
    moves: Moves,
    before: Named,
    after: Named,
    link_format: LinkFormat,
    *,
    is_unseen: Callable[[str], bool] = lambda _path: False,
) -> str:
    """The text of the note at `source` in which every link means the same file after the moves as before them.

    A relative link to a path that `is_unseen` means that path after the moves too, whether or not a file is there:
    `before` and `after` know no such files, and which links are rewritten must not tell who reads them.
    """
    new_source = moves.after(source)
    unseen = dict[str, list[str]]()  # the paths of such links, by their keys

    def aim_of(link: Link) -> Aim | None:
        aim = _aim_after(link, source, moves, before, after)
        if aim is None and posixpath.dirname(new_source) != posixpath.dirname(source):
            path = _relative_path(link.target, source)
            if (
                path is not None
                and resolve(link.target, source, before).path is None
                and is_unseen(path)
            ):
                unseen.setdefault(name_key(path), []).append(path)
                return Aim(path, path)
        return aim

    def named(key: str) -> Sequence[str]:
        return [*after(key), *unseen.get(key, ())]

    return _rewritten(note, new_source, aim_of, named, link_format)


def _relative_path(target: str, source: str) -> str | None:
    """Return the vault path that a relative target spells in `source`; None for another, or one that leaves the vault."""
    if not target.startswith(("./", "../")):
        return None
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    return None if path == "." or path == ".." or path.startswith("../") else path


def find_changed_links(
    old: Note, new: Note, source: str, moves: Moves, before: Named, after: Named
) -> list[tuple[str, str | None]]:
    """Return what each link of the note at `source` meant that means another file after the moves, and what it means then.

    `old` is the note before the moves, and `new` after them: with the same links, in the same order.
    """
    changed = list[tuple[str, str | None]]()
    for old_link, new_link in zip(old.links, new.links, strict=False):
        meant = resolve(old_link.target, source, before).path if old_link.target else None
        if meant is None:
            continue
        means = resolve(new_link.target, moves.after(source), after).path
        if means != moves.after(meant):
            changed.append((meant, means))
    return changed


def _aim_after(link: Link, source: str, moves: Moves, before: Named, after: Named) -> Aim | None:
    """Return where a link has to lead after the moves so that it means the same file; None if it does already."""
    meant = resolve(link.target, source, before).path
    if not link.target or meant is None:
        return None
    wanted = moves.after(meant)
    is_same = resolve(link.target, moves.after(source), after).path == wanted
    return None if is_same else Aim(wanted, meant)


def lead_links(
    note: Note, source: str, aims: Mapping[str, Aim], named: Named, link_format: LinkFormat
) -> str:
    """The text of the note at `source` in which broken links lead where `aims` says, by their targets. What a reader
    sees follows a file that had another name; where the target never was a file's name, it goes on being shown."""

    def aim_of(link: Link) -> Aim | None:
        aim = aims.get(link.target)
        return aim if aim is not None and resolve(link.target, source, named).path is None else None

    return _rewritten(note, source, aim_of, named, link_format)


def _rewritten(
    note: Note, source: str, aim_of: Callable[[Link], Aim | None], named: Named, form: LinkFormat
) -> str:
    edits, values = list[Edit](), list[tuple[Scalar, str]]()
    for link in note.links:
        aim = aim_of(link)
        written = _target_for(link, aim.path, source, named, form) if aim is not None else None
        if aim is None or written is None:
            continue
        if link.scalar is not None:
            bare, inside = link.scalar.value.strip(), read_value_link(link.scalar.value)
            assert inside is not None
            within = apply_edits(bare, _edits(bare, inside, aim, written, False))
            values.append((link.scalar, link.scalar.value.replace(bare, within)))
        else:
            edits += _edits(note.text, link, aim, written, note.in_table(link.start))
    text = apply_edits(note.text, edits)
    for scalar, value in sorted(values, key=lambda pair: pair[0].start, reverse=True):
        if note.header.problem is None:
            text = replace_scalar(text, scalar, value)
        else:  # nobody will write this; it only says that a link would have to change
            text = apply_edits(text, [(scalar.start, scalar.end, value)])
    return text


def _target_for(
    link: Link, path: str, source: str, named: Named, link_format: LinkFormat
) -> str | None:
    """The best target that means `path` in `source`: relative stays relative, rooted rooted, bare bare if it
    can. The extension comes in where the name without it is another file's; else a path from the root."""
    short = (
        path[:-3] if path.endswith(".md") and not link.target.casefold().endswith(".md") else path
    )
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
            if (link.form != "wiki" or not _ENDS_TARGET.search(target)) and resolve(
                target, source, named
            ).path == path:
                return target
    return None


def _edits(text: str, link: Link, aim: Aim, written: str, bar_ends_cell: bool) -> list[Edit]:
    """The new path, and what the reader sees: a shown text that was the old name follows, a bare name stays one."""
    path = written
    if link.form != "wiki":  # only what would end or change a destination is encoded
        special = _SPECIAL_IN_ANGLES if link.angle else _SPECIAL
        path = "".join(
            f"%{ord(char):02X}" if char in special or ord(char) < 32 else char for char in written
        )
        path = _ENTITY.sub("%26", path)
    edits = [(link.path_start, link.path_end, path)]
    if not aim.was:
        if link.form == "wiki" and link.display_start < 0 and not link.is_embed:
            bar = "\\|" if bar_ends_cell else "|"
            edits.append((link.end - 2, link.end - 2, bar + link.target + _heading_shown(link)))
        return edits
    old, new = (posixpath.basename(path).removesuffix(".md") for path in (aim.was, aim.path))
    if link.display_start >= 0:
        begins_code = link.form == "markdown" and ("`" in new or "$" in new)
        if text[link.display_start : link.display_end] == old and old != new and not begins_code:
            edits.append((link.display_start, link.display_end, new))
    elif (
        link.form == "wiki"
        and "/" in written
        and "/" not in link.target
        and not link.is_embed
        and not bar_ends_cell
    ):
        name = link.target if old == new else posixpath.basename(written)
        edits.append((link.end - 2, link.end - 2, "|" + name + _heading_shown(link)))
    return edits


def _heading_shown(link: Link) -> str:
    """`[[Note#Heading]]` is shown as "Note > Heading" by Obsidian; a path put before it must not change that."""
    return "".join(
        f" > {part}" for part in link.subpath.split("#") if part and not part.startswith("^")
    )


class Conventions(NamedTuple):
    """What `.obsidian/` says. Folders are vault paths without slashes at the ends; "" is the vault's root."""

    link_format: LinkFormat = "shortest"
    trash: Literal["own", "obsidian"] = "own"
    ignore_filters: tuple[str, ...] = ()
    templates_folder: str = (
        ""  # "" when the vault has none: the root itself is never taken for templates
    )
    daily_template: str = ""
    daily_folder: str = ""
    daily_format: str = "YYYY-MM-DD"
    date_format: str = "YYYY-MM-DD"  # of `{{date}}` and `{{time}}` in a template
    time_format: str = "HH:mm"

    def daily_note(self, when: datetime) -> str:
        """The name of the daily note of that day."""
        return f"{self.daily_folder}/{moment(self.daily_format, when)}".lstrip("/")

    def hidden_reason(self, path: str) -> str | None:
        """Why a note is left out of recall, or None when it takes part. As a link it resolves either way."""
        key = (
            compare_key(path)
            if self.ignore_filters or self.templates_folder or self.daily_template
            else ""
        )
        for entry in (
            self.ignore_filters
        ):  # a `/regex/` found anywhere in the path; else, how the path begins
            begins = compare_key(entry.lstrip("/")) or "/"
            if _is_found(entry, path) if _is_regex(entry) else key.startswith(begins):
                return f"excluded in Obsidian's settings ({entry})"
        if self.templates_folder and key.startswith(compare_key(self.templates_folder) + "/"):
            return f"a template (in {self.templates_folder})"
        if self.daily_template and key == compare_key(self.daily_template + ".md"):
            return "the template of daily notes"
        folders, _, name = path.rpartition("/")
        if name.startswith("~$"):  # `~$note.docx` is an office program's
            return "a lock file of an open document"
        if name.casefold().endswith((".icloud", ".icloud.md")):
            return "not downloaded from iCloud"
        return _stray_folder(folders)

    def unread_filters(self) -> dict[str, str]:
        """The `/regex/` filters that are not applied, each with the reason; for people to see."""
        filters = [
            entry for entry in self.ignore_filters if _is_regex(entry) and not _is_found(entry, "")
        ]
        return {entry: _REFUSED[entry] for entry in filters if entry in _REFUSED}


@lru_cache(maxsize=1024)
def _stray_folder(folders: str) -> str | None:
    """Why what lies in these folders is left out. Remembered, since most folders have many files."""
    parts = folders.split("/")
    if not _MACHINE_FOLDERS.isdisjoint(parts):
        return f"in a build or dependency folder ({next(part for part in parts if part in _MACHINE_FOLDERS)})"
    return "a Logseq backup" if ("logseq", "bak") in pairwise(map(str.casefold, parts)) else None


def read_conventions(root: Path) -> Conventions:
    """The conventions of the vault at `root`; defaults for whatever its files don't say."""
    with DirHandles(str(root)) as here:
        app, templates, daily = (_settings(here, name) for name in CONVENTION_FILES)
    written, filters = app.get("newLinkFormat"), app.get("userIgnoreFilters")
    texts = map(_text, filters[:_MAX_FILTERS] if isinstance(filters, list) else ())
    return Conventions(
        link_format=written if written in ("relative", "absolute") else "shortest",
        trash="obsidian" if app.get("trashOption") == "local" else "own",
        ignore_filters=tuple(filter(None, texts)),
        templates_folder=_folder(templates.get("folder")),
        daily_template=_folder(daily.get("template")).removesuffix(".md"),
        daily_folder=_folder(daily.get("folder")),
        daily_format=_folder(daily.get("format")) or "YYYY-MM-DD",
        date_format=_text(templates.get("dateFormat")) or "YYYY-MM-DD",
        time_format=_text(templates.get("timeFormat")) or "HH:mm",
    )


# Moment.js, whose formats Obsidian's settings have, in Python's words. A single letter is the same without its zero.
_MOMENT = re.compile(
    r"\[[^\[\]]*\]|YYYY|YY|GGGG|gggg|MMMM|MMM|Do|DDDD|dddd|ddd|([MDHhWw])\1?|mm|ss|A"
)
_PARTS = {
    "YYYY": "%Y", "YY": "%y", "GGGG": "%G", "gggg": "%G", "MMMM": "%B", "MMM": "%b", "MM": "%m", "DDDD": "%j", "A": "%p",
    "DD": "%d", "dddd": "%A", "ddd": "%a", "HH": "%H", "hh": "%I", "WW": "%V", "ww": "%V", "mm": "%M", "ss": "%S",
}  # fmt: skip
_ENDS = {1: "st", 21: "st", 31: "st", 2: "nd", 22: "nd", 3: "rd", 23: "rd"}
_FIELD = re.compile(r"\{\{\s*(title|date|time)\s*(?::([^{}\n]*))?\}\}")


def moment(form: str, when: datetime) -> str:
    """A moment in a format of Moment.js; days and months in English, weeks as ISO counts them."""

    def part(found: re.Match[str]) -> str:
        word = found[0]
        if word[0] == "[":
            return word[1:-1]
        if word == "Do":
            return f"{when.day}{_ENDS.get(when.day, 'th')}"
        return (
            when.strftime(_PARTS[word])
            if word in _PARTS
            else when.strftime(_PARTS[word * 2]).lstrip("0") or "0"
        )

    return _MOMENT.sub(part, form)


def filled(template: str, title: str, when: datetime, conventions: Conventions) -> str:
    """The text of a template with its title, date and time."""
    usual = {"date": conventions.date_format, "time": conventions.time_format}
    return _FIELD.sub(
        lambda it: title if it[1] == "title" else moment((it[2] or usual[it[1]]).strip(), when),
        template,
    )


def _settings(here: DirHandles, path: str) -> dict[str, Any]:
    """One settings file; nothing when it isn't there, is too large, a link, no JSON, or nested beyond reason."""
    try:
        settings = json.loads(read_file(here, path, _MAX_SETTINGS_BYTES)[0].decode("utf-8-sig"))
    except (OSError, SimplememError, ValueError, RecursionError):
        return {}
    return settings if isinstance(settings, dict) else {}


def _text(value: object) -> str:
    """A setting as one clean line of text, or "": JSON can hold NULs and lone surrogates, paths cannot."""
    if not isinstance(value, str) or len(value) > 1_000:
        return ""
    value = value.replace("\u00a0", " ").strip()
    return "" if any(c < " " or "\ud800" <= c <= "\udfff" for c in value) else value


def _folder(value: object) -> str:
    """A folder as a vault path; "" for the root, and for what would lead out of the vault."""
    parts = [part for part in _text(value).replace("\\", "/").split("/") if part not in ("", ".")]
    return "" if ".." in parts or any(":" in part for part in parts) else "/".join(parts)


def _is_found(entry: str, path: str) -> bool:
    """Whether a `/regex/` filter is found in a path. It may be hostile: one that takes too long is switched off."""
    import regex  # takes 20 ms, and few vaults have such filters

    pattern, where = (unicodedata.normalize("NFC", text) for text in (entry[1:-1], path))
    if (
        len(pattern) > _MAX_PATTERN
        or math.prod(max(1, int(n)) for n in _COUNT.findall(pattern)) > _MAX_REPEATS
    ):
        _REFUSED[entry] = "the pattern is too large"
    try:
        return entry not in _REFUSED and bool(
            regex.search(pattern, where, regex.IGNORECASE, timeout=_MATCH_SECONDS)
        )
    except (regex.error, RecursionError) as error:
        _REFUSED[entry] = f"the pattern is not valid: {error}"
    except (TimeoutError, MemoryError):
        _REFUSED[entry] = "the pattern takes too long to match"
    return False


def _is_regex(entry: str) -> bool:
    return len(entry) > 2 and entry.startswith("/") and entry.endswith("/")
