"""A vault's own conventions, as Obsidian keeps them in `.obsidian/`: links, folders, what recall omits.

Read only, and forgiving: what is missing, broken or of the wrong shape means Obsidian's defaults, never an error.
Nothing here can widen what may be read, or run anything; what recall omits still takes part in link resolution
(obsidian.md §5)."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from simplemem.errors import SimplememError
from simplemem.note.names import compare_key
from simplemem.vault.disk import read_file
from simplemem.vault.paths import Beneath

CONVENTION_FILES = (".obsidian/app.json", ".obsidian/templates.json", ".obsidian/daily-notes.json")
_MAX_SETTINGS_BYTES = 1_000_000
_MAX_FILTERS = 200
_MAX_PATTERN = 500  # characters; a filter is a line somebody typed
_MAX_REPEATS = 10_000  # all `{m,n}` of a pattern together: as the engine writes them out, more would fill the memory
_MATCH_SECONDS = 0.1  # a path takes a pattern some microseconds
_COUNT = re.compile(r"(\d{1,9}),?\}")  # of `{n}`, `{m,n}` and `{m,}`
_REFUSED: dict[str, str] = {}  # `/regex/` filters that are not applied, and why

# obsidian.md §5: what other tools put beside notes. Lower case exactly: a person's folder is rather `Build`.
_MACHINE_FOLDERS = frozenset({"node_modules", "vendor", "dist", "build"})


@dataclass(frozen=True, slots=True)
class Conventions:
    """What `.obsidian/` says. Folders are vault paths without slashes at the ends; "" is the vault's root."""

    link_format: Literal["shortest", "relative", "absolute"] = "shortest"
    trash: Literal["own", "obsidian"] = "own"
    ignore_filters: tuple[str, ...] = ()
    templates_folder: str = ""  # "" when the vault has none: the root itself is never taken for templates
    daily_template: str = ""

    def hidden_reason(self, path: str) -> str | None:
        """Why a note is left out of recall, or None when it takes part. As a link it resolves either way."""
        key = compare_key(path) if self.ignore_filters or self.templates_folder or self.daily_template else ""
        for entry in self.ignore_filters:  # a `/regex/` found anywhere in the path; else, how the path begins
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
        parts = folders.split("/")
        if not _MACHINE_FOLDERS.isdisjoint(parts):
            return f"in a folder of other tools ({next(part for part in parts if part in _MACHINE_FOLDERS)})"
        return "a backup of Logseq" if ("logseq", "bak") in pairwise(map(str.casefold, parts)) else None

    def unread_filters(self) -> dict[str, str]:
        """The `/regex/` filters that are not applied, each with the reason; for people to see."""
        filters = [entry for entry in self.ignore_filters if _is_regex(entry) and not _is_found(entry, "")]
        return {entry: _REFUSED[entry] for entry in filters if entry in _REFUSED}


def read_conventions(root: Path) -> Conventions:
    """The conventions of the vault at `root`; defaults for whatever its files don't say."""
    with Beneath(str(root)) as here:
        app, templates, daily = (_settings(here, name) for name in CONVENTION_FILES)
    written, filters = app.get("newLinkFormat"), app.get("userIgnoreFilters")
    texts = map(_text, filters[:_MAX_FILTERS] if isinstance(filters, list) else ())
    return Conventions(
        link_format=written if written in ("relative", "absolute") else "shortest",
        trash="obsidian" if app.get("trashOption") == "local" else "own",
        ignore_filters=tuple(filter(None, texts)),
        templates_folder=_folder(templates.get("folder")),
        daily_template=_folder(daily.get("template")).removesuffix(".md"),
    )


def _settings(here: Beneath, path: str) -> dict[str, Any]:
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
    """Whether a `/regex/` filter is found anywhere in a path. It comes out of a file in the vault, so it may be hostile
    or merely unlucky: one that takes too long on any path is switched off for as long as this process runs."""
    import regex  # takes 20 ms, and few vaults have such filters

    pattern, where = (unicodedata.normalize("NFC", text) for text in (entry[1:-1], path))
    if len(pattern) > _MAX_PATTERN or math.prod(max(1, int(n)) for n in _COUNT.findall(pattern)) > _MAX_REPEATS:
        _REFUSED[entry] = "The pattern is too large."
    try:
        flags = regex.IGNORECASE
        return entry not in _REFUSED and bool(regex.search(pattern, where, flags, timeout=_MATCH_SECONDS))
    except (regex.error, RecursionError) as error:
        _REFUSED[entry] = f"The pattern cannot be read: {error}."
    except (TimeoutError, MemoryError):
        _REFUSED[entry] = "The pattern takes too long, and was switched off."
    return False


def _is_regex(entry: str) -> bool:
    return len(entry) > 2 and entry.startswith("/") and entry.endswith("/")
