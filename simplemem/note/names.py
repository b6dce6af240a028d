"""Names of notes, which are vault paths without `.md`: check, mend and compare them. Pure.

A note that exists is read under its name, whatever that is. A new name must be legal on every
system and in a link (F34, F38 in `tests/faults.md`).
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from simplemem.errors import Invalid, TooLong
from simplemem.note.formatting import well_formed

MAX_SEGMENT_BYTES: Final = 200  # of one folder or file name, in UTF-8
MAX_NAME_CHARACTERS: Final = 240
NAMELESS: Final = "Untitled"

_MAX_SHOWN_CHARACTERS: Final = 60  # of a name in an error message

# The names that Windows takes for devices, whatever their extension.
_DEVICE: Final = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])[ ]*(\..*)?",
    re.IGNORECASE | re.DOTALL,
)
# What Windows forbids in a file name, what ends the target of a link, and what no file name can
# contain, with the white space around it.
_FORBIDDEN: Final = re.compile(
    r'[\s\\/:*?"<>|#^\[\]\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]+'
)
# Percent signs that begin a comment in Obsidian, or that a careless reader would decode to a path.
_PERCENT: Final = re.compile(r"%(?=%|2e|2f|5c|00)", re.IGNORECASE)
_LINK: Final = re.compile(r"!?\[\[(?P<inner>.*)\]\]", re.DOTALL)
# In a link, any hash begins a heading. Elsewhere only a hash between letters does, as in
# `Note#Part`; in `C# notes`, it is part of the name.
_HEADING_IN_LINK: Final = re.compile("#")
_HEADING: Final = re.compile(r"(?<=\S)#(?=[^\s.])")


def check_name(name: str) -> str:
    """Return the name as a new note may have it: in NFC, with `/` between folders, without `.md`.

    Raise TooLong or Invalid if no new note may have it; the hint proposes a legal name.
    """
    normalized = unicodedata.normalize("NFC", name)
    # `x.md.md` becomes `x`, because the name `x.md` would refer to the note `x`.
    while name_of(normalized) != normalized:
        normalized = name_of(normalized)

    segments = normalized.split("/")
    longest = max(len(well_formed(segment).encode()) for segment in segments)
    if longest > MAX_SEGMENT_BYTES or len(normalized) > MAX_NAME_CHARACTERS:
        raise TooLong(
            f"{_quote(name)} is too long for a name; the limits are "
            f"{MAX_NAME_CHARACTERS} characters in all "
            f"and {MAX_SEGMENT_BYTES} bytes per folder or file name",
            hint=_propose(name),
        )

    if any(segment != legal_name(segment) for segment in segments):
        quoted = _quote(name)
        raise Invalid(
            f"{quoted} does not work as a note name on every system and in every link",
            hint=_propose(name),
            name=quoted,
        )
    return normalized


def is_device(segment: str) -> bool:
    """Return whether Windows takes a file name for a device, as it does with `nul.txt`."""
    return _DEVICE.fullmatch(segment) is not None


def legal_name(title: str) -> str:
    """Return the legal name most similar to a title, without folders. Keep a legal name."""
    name = title
    better = _mend(unicodedata.normalize("NFC", title))
    while better != name:
        name = better
        better = _mend(name)
    return name


def _mend(name: str) -> str:
    """Return a name that is closer to a legal one; one change can make another necessary."""
    name = "".join(char for char in name if unicodedata.category(char) != "Cf")
    name = _FORBIDDEN.sub(_replace_forbidden, name)
    name = _PERCENT.sub("", name)
    name = _trim(unicodedata.normalize("NFC", name))
    name = _cut(name)

    if not name or name == "~":
        return NAMELESS
    if is_device(name):
        stem, dot, rest = name.partition(".")
        return f"{stem.rstrip()}_{dot}{rest}"
    return name


def _replace_forbidden(run: re.Match[str]) -> str:
    """Return what replaces a run of forbidden characters.

    It is a hyphen within a word ("a/b" becomes "a-b"), a space between words, nothing at the ends.
    White space alone stays.
    """
    characters = run[0]
    if not characters.strip(" \u3000"):
        return characters

    is_at_end = run.start() == 0 or run.end() == len(run.string)
    if is_at_end:
        return ""
    has_space = any(map(str.isspace, characters))
    return " " if has_space else "-"


def _trim(name: str) -> str:
    """Return a name without spaces and dots at its ends, and without the extension of notes."""
    return name_of(name.strip().lstrip(". ")).rstrip(". ")


def _cut(name: str) -> str:
    """Return the beginning of a name that has too many bytes.

    The cut is between words if that costs less than a third, and never within a character.
    """
    encoded = name.encode()
    if len(encoded) <= MAX_SEGMENT_BYTES:
        return name

    beginning = encoded[:MAX_SEGMENT_BYTES].decode("utf-8", "ignore")
    while beginning and unicodedata.combining(name[len(beginning)]):
        beginning = beginning[:-1]

    last_space = beginning.rfind(" ")
    if last_space > len(beginning) * 2 // 3:
        beginning = beginning[:last_space]
    return _trim(beginning)


def clean_reference(name: str) -> str:
    """Return the name that a caller refers to: `folder/Note` for `[[folder/Note#Part|text]]`.

    Brackets, the displayed text, a heading, `.md` and leading slashes are removed; the result is in
    NFC. It need not be legal for a new note, because notes exist under all kinds of names. Raise
    Invalid only if it is empty or could lead out of the vault.
    """
    reference = unicodedata.normalize("NFC", well_formed(name)).strip()
    heading_pattern = _HEADING
    link = _LINK.fullmatch(reference)
    if link:
        reference = link["inner"]
        heading_pattern = _HEADING_IN_LINK

    # A bar at the very beginning is part of the name.
    reference = reference[:1] + reference[1:].split("|")[0]
    heading = heading_pattern.search(reference)
    if heading:
        reference = reference[: heading.start()]

    reference = name_of(reference.strip())
    while reference.startswith(("/", "./")):
        reference = reference.lstrip("/").removeprefix("./")

    if not reference:
        raise Invalid(
            "no name given",
            hint="Note names are paths in the vault without .md, such as projects/apollo.",
        )
    has_empty_or_dots = any(segment in ("", ".", "..") for segment in reference.split("/"))
    if "\\" in reference or "\0" in reference or has_empty_or_dots:
        raise Invalid(f"{_quote(name)} is not a valid note name", hint=_propose(name))
    return reference


def compare_key(path_or_name: str) -> str:
    """Return the key by which paths and names are compared: those that any system takes for one.

    It ignores letter case and the normal form of Unicode.
    """
    if path_or_name.isascii():
        return path_or_name.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path_or_name).casefold())


def name_of(path: str) -> str:
    """Return the name of a note: `a/b` for `a/b.md`. A path without `.md` stays as it is."""
    if path[-3:].lower() == ".md":
        return path[:-3]
    return path


def path_of(name: str) -> str:
    """Return the path of a note: `a/b.md` for `a/b`."""
    return name + ".md"


def is_named(name: str, reference: str) -> bool:
    """Return whether a reference names a note by its whole name or its last part.

    `people/Ada` is named by `ada`, too. Raise Invalid if the reference is not valid.
    """
    key = compare_key(clean_reference(reference))
    last_part = name.rsplit("/", 1)[-1]
    return key in (compare_key(name), compare_key(last_part))


def base_name(path: str) -> str:
    """Return the last part of the name of a note: `b` for `a/b.md`."""
    return name_of(path.rsplit("/", 1)[-1])


def _propose(name: str) -> str:
    """Return the hint for an illegal name: the most similar legal one."""
    segments = name_of(name).replace("\\", "/").split("/")
    segments = [segment for segment in segments if segment.strip(" .~")]
    legal = "/".join(map(legal_name, segments)) or NAMELESS
    if len(legal) > MAX_NAME_CHARACTERS:
        return "Use fewer or shorter folders."
    return f"Use {legal} instead."


def _quote(name: str) -> str:
    """Return a name for a message: quoted, cut if long, with escapes for invisible characters."""
    if len(name) > _MAX_SHOWN_CHARACTERS:
        return repr(name[: _MAX_SHOWN_CHARACTERS - 3] + "...")
    if not name.isprintable():
        return ascii(name)
    return repr(name)
