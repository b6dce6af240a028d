"""Names and paths of notes, and the names of conflict copies. Pure.

A name is the path of a note in the vault without its ending. A path has `/` between its parts, in
Unicode form NFC. If two devices changed a note at the same time, a synchroniser keeps both
versions, one of them under a name similar to that of the note: a conflict copy.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from simplemem.errors import Invalid, TooLong
from simplemem.note.header import read_header
from simplemem.note.words import well_formed

# -- names

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
    """Return the name as a new note may have it: NFC, `/` between folders, without `.md`.

    An illegal name is never repaired. Raises TooLong or Invalid if no new note may have the name;
    the hint proposes a legal one. Does not look whether a note of this name exists.
    """
    normalized = unicodedata.normalize("NFC", name)
    # `x.md.md` becomes `x`, because the name `x.md` would refer to the note `x`.
    while name_of(normalized) != normalized:
        normalized = name_of(normalized)

    segments = normalized.split("/")
    if _leads_out(segments):
        quoted = _quote(name)
        raise Invalid(f"the path {quoted} leads out of the vault", hint=_propose(name), name=quoted)
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
    """Return whether Windows takes a file name for a device, as it does with `nul.txt`.

    `segment` is one part of a path. The answer is the same on every system.
    """
    return _DEVICE.fullmatch(segment) is not None


def legal_name(title: str) -> str:
    """Return the legal name most similar to a title, for one file or folder.

    Slashes are replaced too. A legal name stays as it is. Returns "Untitled" if nothing of the
    title can be used. Never raises.
    """
    name = title
    better = _usable_name(unicodedata.normalize("NFC", title))
    while better != name:
        name = better
        better = _usable_name(name)
    return name


def _usable_name(name: str) -> str:
    """Return a name that is closer to a legal one; one change can make another necessary.

    Returns a legal name unchanged. `legal_name` calls it until nothing changes.
    """
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
    """Return what replaces a run of forbidden characters and the white space around them.

    It is a hyphen within a word ("a/b" becomes "a-b"), a space between words, nothing at the ends
    of the name. A run of only spaces stays; tabs and line ends do not.
    """
    characters = run[0]
    if not characters.strip(" \u3000"):  # the ordinary space and that of Chinese and Japanese
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
    """Return the beginning of a name that has more than `MAX_SEGMENT_BYTES`.

    A shorter name stays as it is. The cut is between words if that costs less than a third, and
    never within a character.
    """
    encoded = name.encode()
    if len(encoded) <= MAX_SEGMENT_BYTES:
        return name

    beginning = encoded[:MAX_SEGMENT_BYTES].decode("utf-8", "ignore")
    # A letter and the accents that follow it as characters of their own stay together.
    while beginning and unicodedata.combining(name[len(beginning)]):
        beginning = beginning[:-1]

    last_space = beginning.rfind(" ")
    if last_space > len(beginning) * 2 // 3:
        beginning = beginning[:last_space]
    return _trim(beginning)


def clean_reference(name: str) -> str:
    """Return the name that a caller refers to: `folder/Note` for `[[folder/Note#Part|text]]`.

    Brackets, the displayed text, a heading, `.md` and leading slashes are removed. Outside
    brackets, `#` begins a heading only if nothing around it is a space: `C# notes` is a name. The
    result is in NFC. It need not be legal for a new note, because notes exist under all kinds of
    names. Does not look whether a note has it. Raises Invalid if it is empty, has a backslash, a
    NUL, an empty part or one of dots, or leads out of the vault.
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
    segments = reference.split("/")
    if _leads_out(segments):
        message = f"the path {_quote(name)} leads out of the vault"
        raise Invalid(message, hint=_propose(name))

    has_empty_or_dots = any(segment in ("", ".", "..") for segment in segments)
    if "\\" in reference or "\0" in reference or has_empty_or_dots:
        raise Invalid(f"{_quote(name)} is not a valid note name", hint=_propose(name))
    return reference


def compare_key(path_or_name: str) -> str:
    """Return the key by which paths and names are compared, which is not for display.

    Names that any system takes for the same one have the same key: it ignores letter case and the
    normal form of Unicode. It keeps slashes and `.md`.
    """
    if path_or_name.isascii():
        return path_or_name.lower()

    composed = unicodedata.normalize("NFC", path_or_name)
    # casefold() takes some characters apart again, such as the accented letter ǰ.
    return unicodedata.normalize("NFC", composed.casefold())


def name_of(path: str) -> str:
    """Return the name of a note: `a/b` for `a/b.md`. A path without `.md` stays as it is.

    `.MD` is removed too.
    """
    if path[-3:].lower() == ".md":
        return path[:-3]
    return path


def path_of(name: str) -> str:
    """Return the path of a note: `a/b.md` for `a/b`."""
    return name + ".md"


def is_named(name: str, reference: str) -> bool:
    """Return whether a reference names a note by its whole name or its last part.

    `people/Ada` is named by `ada` and `[[Ada]]`, too. Does not look whether the reference names
    other notes as well. Raises Invalid if the reference is not valid.
    """
    key = compare_key(clean_reference(reference))
    last_part = name.rsplit("/", 1)[-1]
    return key in (compare_key(name), compare_key(last_part))


def base_name(path: str) -> str:
    """Return the last part of the name of a note: `b` for `a/b.md`."""
    return name_of(path.rsplit("/", 1)[-1])


def _leads_out(segments: Sequence[str]) -> bool:
    """Return whether a path leads out of the vault, by its `..`.

    It does even if it leads back in: `../vault/note`.
    """
    depth = 0
    for segment in segments:
        if segment == "..":
            depth -= 1
        elif segment not in ("", "."):
            depth += 1
        if depth < 0:
            return True
    return False


def _propose(name: str) -> str:
    """Return the hint for an illegal name: a sentence with the most similar legal one.

    If that would be too long, the hint asks for fewer or shorter folders.
    """
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


# -- paths

Parts = tuple[str, ...]
"""The components of a path, outermost folder first; () is the vault itself."""

MAX_PATH_PARTS = 128  # a folder vault keeps each folder on the way open

_CONTROL_CHARACTERS = frozenset(map(chr, range(32)))
_NOT_ON_WINDOWS = frozenset('<>:"|?*') | _CONTROL_CHARACTERS


def check_path(path: str, *, windows: bool = sys.platform == "win32") -> Parts:
    """Return the components of the path of a note or attachment.

    Raises Invalid if the path could lead out of the vault, or to a hidden file, or has more than
    128 parts. With `windows`, also if Windows would read it as something else. Reads no file:
    whether it exists does not matter.
    """
    parts = tuple(path.split("/"))
    problem = _problem_with(path, parts, windows)
    if problem:
        hint = "Give a path inside the vault, such as folder/note.md."
        message = f"{path[:200]!r} is not a valid path in the vault: {problem}"
        raise Invalid(message, hint=hint)
    return parts


def _problem_with(path: str, parts: Parts, windows: bool) -> str:
    """Return why a path is not valid, as the end of a message; "" if it is.

    `parts` are its components; with `windows`, what Windows forbids is a problem too.
    """
    if "\0" in path or "\\" in path:
        return "it contains a NUL or a backslash"
    if "" in parts:
        return "it is empty, is absolute or has an empty part"
    if len(parts) > MAX_PATH_PARTS:
        return "it has too many nested folders"
    if path[0] == "." or "/." in path:
        return "a part of it starts with a dot, and the vault does not include such files"
    if not is_unicode(path):
        return "it is not valid Unicode"
    if windows and not all(map(_is_windows_name, parts)):
        return (
            "Windows does not allow a part of it as a name, "
            "or reads it as a device, a stream or another file"
        )
    return ""


def _is_windows_name(name: str) -> bool:
    """Return whether Windows takes a name for exactly the file of this name.

    `name` is one part of a path, not empty.
    """
    ends_well = name[-1] not in ". "
    return ends_well and _NOT_ON_WINDOWS.isdisjoint(name) and not is_device(name)


def is_path(path: str) -> bool:
    """Return whether `check_path` accepts a path on this system. Never raises."""
    parts = tuple(path.split("/"))
    return not _problem_with(path, parts, sys.platform == "win32")


def parent(path: str) -> Parts:
    """Return the folder of a vault path as its components, () for the root."""
    return tuple(path.split("/")[:-1])


def is_unicode(text: str) -> bool:
    """Return whether a text is valid Unicode: whether it has no lone surrogates.

    Python keeps the invalid bytes of file names as lone surrogates.
    """
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# -- conflict copies

COPY_REASON: Final = "a conflict copy made by "
_MIN_SHARED: Final = 0.75  # of the characters of both bodies


class ConflictName(NamedTuple):
    """What the name of a conflict copy tells: which note it is a copy of, and who made it.

    `certain` is False if people give such names as well.
    """

    original: str  # the path of the note that it is a copy of
    maker: str  # the program that gives copies such a name
    certain: bool  # False if people give such names as well

    @property
    def reason(self) -> str:
        """Why the copy is hidden from search, as a text to show."""
        return COPY_REASON + self.maker


def is_copy_reason(hidden: str | None) -> bool:
    """Return whether a note is hidden from search because it is a conflict copy.

    `hidden` is the reason why it is hidden, as the index has it; None if it is not.
    """
    return hidden is not None and hidden.startswith(COPY_REASON)


class _CopyPattern(NamedTuple):
    """How a program names its conflict copies; `pattern` matches the file name without `.md`."""

    maker: str
    is_certain: bool
    pattern: re.Pattern[str]


# Dropbox translates the term into the language of the computer. These occurred in real folders.
_CONFLICTED_COPY: Final = (
    "(?i:conflicted copy|conflict copy|in konflikt stehende kopie|konfliktkopie"
    "|copie en conflit|copia en conflicto|copia conflictiva|còpia en conflicte"
    "|copia in conflitto|cópia em conflito"
    "|конфликтующая копия|の競合コピー|冲突副本)"
)
_TEXT: Final = r"[^()]*(?:\([^()]*\)[^()]*)?"  # the name of a device may be `MacBook Pro (2)`

# The first pattern that matches decides.
_COPY_PATTERNS: Final = (
    _CopyPattern(
        maker="Syncthing",
        is_certain=True,
        pattern=re.compile(r"(?P<stem>.+)\.sync-conflict-\d{8}-\d{6}(?:-[A-Z0-9]{5,8})?"),
    ),
    _CopyPattern(
        maker="Obsidian Sync",
        is_certain=True,
        pattern=re.compile(rf"(?P<stem>.*\S) \((?i:conflicted copy) {_TEXT}\d{{12}}\)"),
    ),
    _CopyPattern(
        maker="Nextcloud",
        is_certain=True,
        pattern=re.compile(rf"(?P<stem>.*\S) \({_CONFLICTED_COPY} \d{{4}}-\d\d-\d\d \d{{6}}\)"),
    ),
    _CopyPattern(
        maker="Dropbox",
        is_certain=True,
        pattern=re.compile(rf"(?P<stem>.*\S) \({_TEXT}{_CONFLICTED_COPY}{_TEXT}\)(?:-\d+)?"),
    ),
    _CopyPattern(
        maker="Dropbox",
        is_certain=True,
        pattern=re.compile(
            r"(?P<stem>.*\S) \((?:Case|Selective Sync|Unicode Encoding|Whitespace) Conflict"
            r"(?: \(?\d+\)?)?\)"
        ),
    ),
    _CopyPattern(
        maker="Seafile",
        is_certain=True,
        pattern=re.compile(r"(?P<stem>.*\S) \(SFConflict [^()]+\)"),
    ),
    _CopyPattern(
        maker="pCloud",
        is_certain=True,
        pattern=re.compile(r"(?P<stem>.*\S) (?:\(conflicted(?: \d+)?\)|\[conflicted(?: \d+)?\])"),
    ),
    _CopyPattern(
        maker="ownCloud",
        is_certain=True,
        pattern=re.compile(r"(?P<stem>.+)_conflict-\d{8}-\d{6}"),
    ),
    _CopyPattern(
        maker="git",
        is_certain=True,
        pattern=re.compile(r"(?P<stem>.+)[_.](?:BACKUP|BASE|LOCAL|REMOTE)[_.]\d+"),
    ),
    _CopyPattern(
        maker="OneDrive",
        is_certain=False,
        pattern=re.compile(r"(?P<stem>.*\S)-(?:DESKTOP|LAPTOP|WIN)-[A-Z0-9]{4,}(?:-\d{1,2})?"),
    ),
    _CopyPattern(
        maker="a synchroniser",
        is_certain=False,
        pattern=re.compile(r"(?P<stem>.*\S) \(\d{1,2}\)"),
    ),
    _CopyPattern(
        maker="iCloud",
        is_certain=False,
        pattern=re.compile(r"(?P<stem>.*\S) (?:[2-9]|[1-9]\d)"),  # the first copy has the number 2
    ),
)
_GIT_COPY: Final = re.compile(r"(?P<original>.+\.md)(?:~[^~]+|\.orig)", re.IGNORECASE)


def parse_conflict_name(path: str) -> ConflictName | None:
    """Return what the path of a conflict copy tells; None if the path is an ordinary one.

    Reads no file. If the result is not `certain`, people give such names too, so the caller has to
    compare the texts.
    """
    folder, slash, file_name = path.rpartition("/")
    stem = file_name[:-3]
    extension = file_name[-3:]
    if extension.casefold() != ".md":
        git_copy = _GIT_COPY.fullmatch(file_name)
        if git_copy is None:
            return None
        return ConflictName(f"{folder}{slash}{git_copy['original']}", "git", certain=True)

    # For speed: the name of a copy ends with a bracket, digit or capital, as few other names do.
    last = stem[-1:]
    may_be_copy = last in (")", "]") or last.isdigit() or last.isupper()
    if not may_be_copy:
        return None

    for maker, is_certain, pattern in _COPY_PATTERNS:
        copy = pattern.fullmatch(stem)
        if copy:
            original = f"{folder}{slash}{copy['stem']}{extension}"
            return ConflictName(original, maker, is_certain)
    return None


def are_similar(one: str, other: str) -> bool:
    """Return whether two texts are versions of one note.

    They are if three quarters of the characters of their bodies are in lines that both have, in any
    order and without the blanks around them. Frontmatter does not count, because notes of one
    template share it. Two empty bodies are not similar.
    """
    lines = _count_body_lines(one)
    other_lines = _count_body_lines(other)
    total = _count_characters(lines + other_lines)
    shared = _count_characters(lines & other_lines)
    return total > 0 and 2 * shared >= _MIN_SHARED * total


def _count_body_lines(text: str) -> Counter[str]:
    """Return the lines of a note's body without blanks around them, and how often each occurs."""
    body = text[read_header(text).body_start :]
    return Counter(map(str.strip, body.split("\n")))


def _count_characters(lines: Counter[str]) -> int:
    """Return the number of characters in all lines, each as often as it was counted."""
    return sum(len(line) * count for line, count in lines.items())
