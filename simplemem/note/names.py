"""Names of notes: what a caller means by one, which may be written, and how two are compared. Pure; no disk.

A note's name is its vault path without `.md`. Whatever exists can be read under the name it has; a new name
must be legal on every system that may see the vault, and in a link (obsidian.md §5, durability.md F34, F38).
"""

from __future__ import annotations

import re
import unicodedata
from datetime import date

from simplemem.errors import Invalid, TooLong
from simplemem.note.words import well_formed

MOST_SEGMENT_BYTES = 200
MOST_NAME_CHARACTERS = 240
NAMELESS = "Untitled"

_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$"]
    + [port + digit for port in ("com", "lpt") for digit in "0123456789¹²³"]
)
# What Windows forbids in a file name and what ends a link target.
_FORBIDDEN = '\\/:*?"<>|#^[]'
_FORBIDDEN_RUN = re.compile(r'[\\/:*?"<>|#^\[\]\x00-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]+')
# Percent signs that a careless reader would decode into a path.
_ENCODED_PATH = re.compile(r"%(?=2e|2f|5c|00)", re.IGNORECASE)
_DRIVE = re.compile(r"[A-Za-z]:")


def check_name(name: str) -> str:
    """The name a new note may have: NFC, `/` between folders, no `.md`. Invalid or TooLong with a proposal otherwise."""
    wanted = unicodedata.normalize("NFC", name)
    while (shorter := _without_extension(wanted)) != wanted:  # `x.md.md` as well: as a name, `x.md` would mean `x`
        wanted = shorter
    if (fault := _fault_of_name(wanted)) is not None:
        raise Invalid(f"{_shown(name)} cannot be the name of a note: {fault}.", hint=_proposal(name), name=_shown(name))
    longest = max(len(segment.encode()) for segment in wanted.split("/"))
    if longest > MOST_SEGMENT_BYTES:
        raise TooLong(
            f"{_shown(name)} is too long: a part of a name has at most {MOST_SEGMENT_BYTES} bytes.",
            hint=_proposal(name),
        )
    if len(wanted) > MOST_NAME_CHARACTERS:
        raise TooLong(
            f"{_shown(name)} is too long: with its folders it may have {MOST_NAME_CHARACTERS} characters.",
            hint="Use fewer or shorter folders.",
        )
    return wanted


def _fault_of_name(name: str) -> str | None:
    if not name.strip():
        return "it is empty"
    if "\\" in name:
        return "it has a backslash; folders are written with /"
    if name.startswith("/") or _DRIVE.match(name) or name.split("/")[0] == "~":
        return "it is a path outside the vault; names begin at the vault's root"
    if ".." in name.split("/"):
        return "it leads out of its folder with '..'"
    return next((fault for segment in name.split("/") if (fault := _fault(segment)) is not None), None)


def _fault(segment: str) -> str | None:
    """Why this cannot be the name of a file or folder everywhere, None when it can."""
    if not segment:
        return "there is nothing between two slashes"
    for char in segment:
        if char in _FORBIDDEN:
            return f"it has {char!r}, which not every system or no link allows"
        if (char < " " or char > "~") and (unseen := _unseen(char)) is not None:
            return f"it has {unseen} (U+{ord(char):04X})"
    if "%%" in segment:
        return "it has '%%', which begins a comment in Obsidian"
    if _ENCODED_PATH.search(segment):
        return "it has a percent-encoded part of a path"
    if segment.startswith("."):
        return "a name that begins with a dot is hidden, and hidden files are no notes"
    if segment != segment.strip():
        return "a part of it begins or ends with a space"
    if segment.endswith("."):
        return "a part of it ends with a dot, which Windows drops"
    if is_device(segment):
        return f"{segment!r} is the name of a device on Windows"
    return None


def _unseen(char: str) -> str | None:
    """What is wrong with a character that cannot be seen or typed, None when nothing is."""
    if _FORBIDDEN_RUN.match(char):
        return "a control character"
    return "a space that links cannot have" if char == "\xa0" else _UNSEEN.get(unicodedata.category(char))


_UNSEEN = {
    "Cc": "a control character",
    "Cf": "an invisible character",
    "Cs": "half a character",
    "Zl": "a space that links cannot have",
    "Zp": "a space that links cannot have",
}


def is_device(segment: str) -> bool:
    """Whether Windows takes this name, whatever its extension, for a device."""
    return segment.split(".")[0].rstrip().casefold() in _DEVICES


def legal_name(title: str) -> str:
    """Any title as a name of one part that `check_name` takes. A legal name, given again, stays as it is."""
    name, better = title, _mended(unicodedata.normalize("NFC", title))
    while better != name:
        name, better = better, _mended(better)
    return name


def _mended(name: str) -> str:
    name = "".join(char for char in name if unicodedata.category(char) not in ("Cf", "Cs"))
    name = re.sub(r"\s+", " ", name)
    name = _FORBIDDEN_RUN.sub(lambda run: _bridge(name, run.start(), run.end()), name)
    name = re.sub(r"%{2,}", "%", name)
    name = _ENCODED_PATH.sub("", name)
    name = _shortened(_tidy(unicodedata.normalize("NFC", name)))
    if not name or name == "~":
        return NAMELESS
    if is_device(name):
        stem, dot, rest = name.partition(".")
        name = f"{stem.rstrip()}_{dot}{rest}"
    return name


def _bridge(name: str, start: int, end: int) -> str:
    """What stands for forbidden characters: a hyphen inside a word ("a/b" -> "a-b"), nothing at its edge."""
    inside = start > 0 and end < len(name) and not name[start - 1].isspace() and not name[end].isspace()
    return "-" if inside else ""


def _tidy(name: str) -> str:
    """Without the spaces and dots at the ends, and the extension that every note has anyway."""
    return _without_extension(" ".join(name.split()).lstrip(". ")).rstrip(". ")


def _shortened(name: str) -> str:
    """At most as many bytes as a name may have, cut between words if that costs little, never inside a character."""
    encoded = name.encode()
    if len(encoded) <= MOST_SEGMENT_BYTES:
        return name
    cut = encoded[:MOST_SEGMENT_BYTES].decode("utf-8", "ignore")
    while cut and unicodedata.combining(name[len(cut)]):
        cut = cut[:-1]
    words = cut.rfind(" ")
    return _tidy(cut[:words] if words > len(cut) * 2 // 3 else cut)


def clean_reference(name: str) -> str:
    """What a caller means by a name: without [[ ]], what is shown, a heading, `.md` and a leading slash; NFC.

    It may be the name of a note that exists under a name that nobody could give a new one, so only what could
    lead out of the vault is refused. A hash between letters begins a heading ("Note#Part"); in "C# notes" it
    is part of the name.
    """
    wanted = unicodedata.normalize("NFC", well_formed(name)).strip()
    linked = re.fullmatch(r"!?\[\[(.*)\]\]", wanted, re.DOTALL)
    if linked is not None:
        wanted = linked[1]
    wanted = wanted[:1] + wanted[1:].split("|")[0]
    heading = re.search(r"#" if linked is not None else r"(?<=\S)#(?=[^\s.])", wanted)
    if heading is not None:
        wanted = wanted[: heading.start()]
    wanted = _without_extension(wanted.strip())
    while wanted.startswith(("/", "./")):
        wanted = wanted.lstrip("/").removeprefix("./")
    if not wanted:
        raise Invalid("A name is needed.", hint="Names are paths in the vault without .md, such as 'projects/apollo'.")
    if "\\" in wanted or "\0" in wanted or any(part in ("", ".", "..") for part in wanted.split("/")):
        raise Invalid(f"{_shown(name)} is not the name of a note.", hint=_proposal(name))
    return wanted


def compare_key(path_or_name: str) -> str:
    """The one key by which paths and names are compared, without case and Unicode form: two with the same key are the same
    to some system, and to every rule about paths (what is a note, what is private, what a link means)."""
    if path_or_name.isascii():
        return path_or_name.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path_or_name).casefold())


def name_of(path: str) -> str:
    """`a/b.md` -> `a/b`."""
    return _without_extension(path)


def path_of(name: str) -> str:
    """`a/b` -> `a/b.md`."""
    return name + ".md"


def base_name(path: str) -> str:
    """`a/b.md` -> `b`."""
    return _without_extension(path.rsplit("/", 1)[-1])


def _without_extension(path: str) -> str:
    return path[:-3] if path[-3:].lower() == ".md" else path


def _proposal(name: str) -> str:
    """The hint of a refused name: the nearest legal one."""
    parts = [part for part in _without_extension(name).replace("\\", "/").split("/") if part.strip(" .~")]
    legal = "/".join(legal_name(_DRIVE.sub("", part) if k == 0 else part) for k, part in enumerate(parts)) or NAMELESS
    if len(legal) > MOST_NAME_CHARACTERS:
        return "Use fewer or shorter folders."
    return f"A name that works: {legal}"


def _shown(name: str) -> str:
    """A name in a message: quoted, its unseen characters escaped, and not a screen long."""
    return repr(name[:57] + "...") if len(name) > 60 else ascii(name) if not name.isprintable() else repr(name)


_DATE = re.compile(r"(?<!\d)(\d{4})-?(\d{2})-?(\d{2})(?!\d)")


def date_in(name: str) -> str:
    """The last date in a name, as `2026-01-24`; empty when there is none."""
    for year, month, day in reversed(_DATE.findall(name)):
        try:
            return date(int(year), int(month), int(day)).isoformat()
        except ValueError:
            continue
    return ""
