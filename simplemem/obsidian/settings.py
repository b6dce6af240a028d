"""Obsidian's rules for the files of a vault: its settings, and which file a link means.

Everything here is pure: `simplemem/vault/obsidian.py` reads the files of the settings. A setting
that is missing or broken has Obsidian's default, and no setting widens what may be read.
docs/internals/links.md states how links resolve. Names are compared by `compare_key`, so letter
case and the normal form of Unicode make no difference.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from simplemem.note.names import compare_key
from simplemem.obsidian.exclusion import is_excluded, is_expression, refusal_of
from simplemem.obsidian.moment_format import format_date

# -- settings

# The files in the order of the arguments of `parse_obsidian_settings`.
SETTINGS_FILES: Final = (
    ".obsidian/app.json",
    ".obsidian/templates.json",
    ".obsidian/daily-notes.json",
)

_MAX_FILTERS: Final = 200
_MAX_TEXT_CHARACTERS: Final = 1_000
_DEFAULT_DATE_FORMAT: Final = "YYYY-MM-DD"
_DEFAULT_TIME_FORMAT: Final = "HH:mm"

# Folders of other programs. Only lower case counts: a person would rather name a folder `Build`.
_MACHINE_FOLDERS: Final = frozenset({"node_modules", "vendor", "dist", "build"})


LinkFormat = Literal["shortest", "relative", "absolute"]
"""How a vault writes new links, as Obsidian's setting `newLinkFormat` has it."""


class ObsidianSettings(NamedTuple):
    """The settings of a vault. Folders are vault paths; "" is the root of the vault."""

    link_format: LinkFormat = "shortest"
    trash: Literal["own", "obsidian"] = "own"
    ignore_filters: tuple[str, ...] = ()
    templates_folder: str = ""  # "" if the vault has none: the root is never a templates folder
    daily_template: str = ""
    daily_folder: str = ""
    daily_format: str = _DEFAULT_DATE_FORMAT
    date_format: str = _DEFAULT_DATE_FORMAT  # of `{{date}}` in a template
    time_format: str = _DEFAULT_TIME_FORMAT  # of `{{time}}` in a template

    def daily_note(self, moment: datetime) -> str:
        """Return the name of the daily note of a day: its path without `.md`.

        The note need not exist.
        """
        name = format_date(self.daily_format, moment)
        return f"{self.daily_folder}/{name}".lstrip("/")

    def hidden_reason(self, path: str) -> str | None:
        """Return why a note is hidden from search, as a text to show; None if it is not.

        It is hidden if it is among the user's excluded files, is a template, or has a name or
        folder that shows that a program made it. Its text does not matter. Links may still lead to
        hidden notes.
        """
        if self.ignore_filters or self.templates_folder or self.daily_template:
            reason = self._excluded_reason(path)
            if reason is not None:
                return reason
        return _stray_file_reason(path)

    def refused_filters(self) -> dict[str, str]:
        """Return the filters that are not applied, with the reason of each.

        Only regular expressions can be refused: see `refusal_of`.
        """
        refusals = {}
        for entry in self.ignore_filters:
            refusal = refusal_of(entry) if is_expression(entry) else None
            if refusal is not None:
                refusals[entry] = refusal
        return refusals

    def _excluded_reason(self, path: str) -> str | None:
        """Return why these settings hide a path from search; None if they do not."""
        path_key = compare_key(path)
        for entry in self.ignore_filters:
            if is_excluded(entry, path, path_key):
                return f"excluded in Obsidian's settings ({entry})"

        return self.template_reason(path)

    def template_reason(self, path: str) -> str | None:
        """Return which template a path is, as a text to show; None if it is none."""
        path_key = compare_key(path)
        folder = self.templates_folder
        if folder and path_key.startswith(f"{compare_key(folder)}/"):
            return f"a template (in {folder})"
        if self.daily_template and path_key == compare_key(f"{self.daily_template}.md"):
            return "the template of daily notes"
        return None


def _stray_file_reason(path: str) -> str | None:
    """Return why a file is not a note of a person, by its name and folders; None if it may be.

    Such files are locks, placeholders, backups, and files in folders of dependencies.
    """
    folders, _, name = path.rpartition("/")
    if name.startswith("~$"):
        return "a lock file of an open document"
    if name.casefold().endswith((".icloud", ".icloud.md")):
        return "not downloaded from iCloud"
    return _stray_folder_reason(folders)


@lru_cache(maxsize=1024)  # most folders have many files
def _stray_folder_reason(folders: str) -> str | None:
    """Return why the files in these folders are hidden from search; None if they are not."""
    parts = folders.split("/")
    for part in parts:
        if part in _MACHINE_FOLDERS:
            return f"in a build or dependency folder ({part})"

    folded_parts = map(str.casefold, parts)
    if ("logseq", "bak") in pairwise(folded_parts):
        return "a Logseq backup"
    return None


def parse_obsidian_settings(
    app: Mapping[str, object], templates: Mapping[str, object], daily: Mapping[str, object]
) -> ObsidianSettings:
    """Return the settings that the contents of the three settings files state.

    They are `app.json`, `templates.json` and `daily-notes.json`. A value that is missing or of the
    wrong form has Obsidian's default. Never raises.
    """
    link_format = _parse_link_format(app.get("newLinkFormat"))
    uses_obsidian_trash = app.get("trashOption") == "local"
    return ObsidianSettings(
        link_format=link_format,
        trash="obsidian" if uses_obsidian_trash else "own",
        ignore_filters=_parse_filters(app.get("userIgnoreFilters")),
        templates_folder=_parse_path(templates.get("folder")),
        daily_template=_parse_path(daily.get("template")).removesuffix(".md"),
        daily_folder=_parse_path(daily.get("folder")),
        daily_format=_parse_path(daily.get("format")) or _DEFAULT_DATE_FORMAT,
        date_format=_parse_text(templates.get("dateFormat")) or _DEFAULT_DATE_FORMAT,
        time_format=_parse_text(templates.get("timeFormat")) or _DEFAULT_TIME_FORMAT,
    )


def _parse_link_format(value: object) -> LinkFormat:
    """Return how new links are written; "shortest" for a value that is unknown."""
    if value == "relative":
        return "relative"
    if value == "absolute":
        return "absolute"
    return "shortest"


def _parse_filters(value: object) -> tuple[str, ...]:
    """Return the texts among the first 200 items of a list; () if the value is no list."""
    if not isinstance(value, list):
        return ()
    filters = map(_parse_text, value[:_MAX_FILTERS])
    return tuple(filter(None, filters))


def _parse_text(value: object) -> str:
    """Return a setting as a line of text; "" if it is none, or has over 1,000 characters.

    Spaces around it are removed, and no-break spaces become ordinary ones. JSON can contain null
    characters and lone surrogates, which no path can contain.
    """
    if not isinstance(value, str) or len(value) > _MAX_TEXT_CHARACTERS:
        return ""

    text = value.replace("\u00a0", " ").strip()
    if any(char < " " or "\ud800" <= char <= "\udfff" for char in text):
        return ""
    return text


def _parse_path(value: object) -> str:
    """Return a setting as a vault path; "" for the root, and for one with `..` or a colon."""
    parts = _parse_text(value).replace("\\", "/").split("/")
    parts = [part for part in parts if part not in ("", ".")]
    if any(part == ".." or ":" in part for part in parts):
        return ""
    return "/".join(parts)


# -- links

FilesNamed = Callable[[str], Sequence[str]]
"""Returns the vault paths of all files with a name, by the key of the name ("note.md")."""


class Resolution(NamedTuple):
    """The file that a link means, None if there is none.

    `ambiguous` has the files that it could mean equally, the chosen one included; it is empty if
    the choice was clear.
    """

    path: str | None
    ambiguous: tuple[str, ...] = ()


def name_key(path: str) -> str:
    """Return the key by which a file is found: the compare key of the last part of its path."""
    return compare_key(path.rsplit("/", 1)[-1])


def lookup_keys(path: str) -> tuple[str, ...]:
    """Return the keys of all links that could mean a file.

    These are the key of its name and, for a note, the key of its name without `.md`.
    """
    key = name_key(path)
    if key.endswith(".md"):
        return (key, key[:-3])
    return (key,)


def resolve_link(target: str, source: str, files_named: FilesNamed) -> Resolution:
    """Return which file a link with this target means in the note `source`.

    `target` is the path of the link without heading. An empty one means the note itself. The file
    may be a note or an attachment.
    """
    if not target:
        return Resolution(source)

    candidates = find_candidates(target, files_named)
    if target.startswith(("./", "../")):
        return Resolution(_find_path(join_relative(target, source), candidates))
    if target.startswith("/"):
        return Resolution(_find_path(target.lstrip("/"), candidates))
    if "/" not in target and len(candidates) == 1:
        return Resolution(candidates[0])

    path = _find_path(target, candidates)
    if path is not None:
        return Resolution(path)
    return _find_nearest(target, source, candidates)


def find_candidates(target: str, files_named: FilesNamed) -> Sequence[str]:
    """Return the files that have the name of a target, else those with `.md` behind it.

    The name is the last part of the target; its folders do not matter.
    """
    key = name_key(target)
    return files_named(key) or files_named(key + ".md")


def join_relative(target: str, source: str) -> str:
    """Return the path that a relative target states in the note `source`.

    It begins with `..` if it leads out of the vault.
    """
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), target))


def _find_path(path: str, candidates: Sequence[str]) -> str | None:
    """Return the candidate that has exactly this path, with or without `.md`; None if none has.

    Letter case does not matter.
    """
    if not candidates:
        return None

    key = compare_key(path)
    keys = (key, key + ".md")
    return next((candidate for candidate in candidates if compare_key(candidate) in keys), None)


def _find_nearest(target: str, source: str, candidates: Sequence[str]) -> Resolution:
    """Return the nearest of the candidates whose path ends with the target.

    Those below the folder of the source are nearer than others, and then those with shorter paths.
    If several are equally near, they are `ambiguous`, and the first in the order of paths is
    chosen.
    """
    if "/" in target:
        ending = f"/{compare_key(target)}"
        endings = (ending, f"{ending}.md")
        candidates = [path for path in candidates if compare_key(path).endswith(endings)]
    if not candidates:
        return Resolution(None)

    folder = posixpath.dirname(source)
    folder_key = f"{compare_key(folder)}/" if folder else ""
    ranked = sorted((_distance(path, folder_key), path) for path in candidates)
    least_distance, best = ranked[0]
    equally_near = tuple([path for distance, path in ranked if distance == least_distance])
    if len(equally_near) == 1:
        return Resolution(best)
    return Resolution(best, equally_near)


def _distance(path: str, folder_key: str) -> tuple[bool, int]:
    """Return a key by which paths are sorted, the nearest to a folder first.

    `folder_key` is the compare key of the folder, with a slash at its end, or "".
    """
    is_outside = not compare_key(path).startswith(folder_key)
    return is_outside, len(path)
