"""Names of notes, vault paths without `.md`: what a caller means by one, what may be one, how two compare. Pure.
What exists is read under its name; a new one must be legal on every system and in a link (obsidian.md §5, F34, F38)."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from datetime import date
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from simplemem.errors import Invalid, TooLong
from simplemem.note.header import read_header
from simplemem.note.words import well_formed

MOST_SEGMENT_BYTES = 200
MOST_NAME_CHARACTERS = 240
NAMELESS = "Untitled"

_DEVICE = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])[ ]*(\..*)?", re.IGNORECASE | re.DOTALL
)
# What Windows forbids in a file name, what ends a link target and what no file can hold, with the spaces around it.
_FORBIDDEN = re.compile(
    r'[\s\\/:*?"<>|#^\[\]\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]+'
)
# Percent signs that begin a comment in Obsidian, or that a careless reader would decode into a path.
_PERCENT = re.compile(r"%(?=%|2e|2f|5c|00)", re.IGNORECASE)
_DATE = re.compile(r"(?<!\d)(\d{4})-?(\d{2})-?(\d{2})(?!\d)")


def check_name(name: str) -> str:
    """The name a new note may have: NFC, `/` between folders, no `.md`. Else Invalid or TooLong, with a proposal."""
    wanted = unicodedata.normalize("NFC", name)
    while (
        shorter := name_of(wanted)
    ) != wanted:  # `x.md.md` as well: as a name, `x.md` would mean `x`
        wanted = shorter
    parts = wanted.split("/")
    longest = max(len(well_formed(part).encode()) for part in parts)
    if longest > MOST_SEGMENT_BYTES or len(wanted) > MOST_NAME_CHARACTERS:
        most = f"{MOST_NAME_CHARACTERS} characters in all and {MOST_SEGMENT_BYTES} bytes per folder or file name"
        raise TooLong(
            f"{_shown(name)} is too long for a name; the limits are {most}", hint=_proposal(name)
        )
    if any(part != legal_name(part) for part in parts):
        message = f"{_shown(name)} does not work as a note name on every system and in every link"
        raise Invalid(message, hint=_proposal(name), name=_shown(name))
    return wanted


def is_device(segment: str) -> bool:
    """Whether Windows takes this name, whatever its extension, for a device."""
    return _DEVICE.fullmatch(segment) is not None


def legal_name(title: str) -> str:
    """Any title as a name of one part that `check_name` takes. A legal name, given again, stays as it is."""
    name, better = title, _mended(unicodedata.normalize("NFC", title))
    while better != name:
        name, better = better, _mended(better)
    return name


def _mended(name: str) -> str:
    """One step to a legal name."""
    name = "".join(char for char in name if unicodedata.category(char) != "Cf")
    name = _tidy(unicodedata.normalize("NFC", _PERCENT.sub("", _FORBIDDEN.sub(_bridge, name))))
    encoded = name.encode()
    if (
        len(encoded) > MOST_SEGMENT_BYTES
    ):  # cut between words if that costs little, never inside a character
        cut = encoded[:MOST_SEGMENT_BYTES].decode("utf-8", "ignore")
        while cut and unicodedata.combining(name[len(cut)]):
            cut = cut[:-1]
        words = cut.rfind(" ")
        name = _tidy(cut[:words] if words > len(cut) * 2 // 3 else cut)
    if not name or name == "~":
        return NAMELESS
    stem, dot, rest = name.partition(".")
    return f"{stem.rstrip()}_{dot}{rest}" if is_device(name) else name


def _bridge(run: re.Match[str]) -> str:
    """What stands for forbidden characters: a hyphen inside a word ("a/b" -> "a-b"), a space or nothing elsewhere."""
    if not run[0].strip(" \u3000"):
        return run[0]
    is_edge = run.start() == 0 or run.end() == len(run.string)
    return "" if is_edge else " " if any(map(str.isspace, run[0])) else "-"


def _tidy(name: str) -> str:
    """Without the spaces and dots at the ends, and the extension that every note has anyway."""
    return name_of(name.strip().lstrip(". ")).rstrip(". ")


def clean_reference(name: str) -> str:
    """What a caller means by a name: without [[ ]], what is shown, a heading, `.md` and a leading slash; NFC. Only what
    could lead out of the vault is refused: notes exist under names that nobody could give a new one."""
    wanted = unicodedata.normalize("NFC", well_formed(name)).strip()
    linked = re.fullmatch(r"!?\[\[(.*)\]\]", wanted, re.DOTALL)
    wanted = linked[1] if linked else wanted
    wanted = wanted[:1] + wanted[1:].split("|")[0]
    # A hash between letters begins a heading ("Note#Part"); in "C# notes" it is part of the name.
    heading = re.search(r"#" if linked else r"(?<=\S)#(?=[^\s.])", wanted)
    wanted = name_of(wanted[: heading.start() if heading else None].strip())
    while wanted.startswith(("/", "./")):
        wanted = wanted.lstrip("/").removeprefix("./")
    if not wanted:
        raise Invalid(
            "no name given",
            hint="Note names are paths in the vault without .md, such as projects/apollo.",
        )
    if (
        "\\" in wanted
        or "\0" in wanted
        or any(part in ("", ".", "..") for part in wanted.split("/"))
    ):
        raise Invalid(f"{_shown(name)} is not a valid note name", hint=_proposal(name))
    return wanted


def compare_key(path_or_name: str) -> str:
    """The one key by which paths and names are compared: two with the same are the same to some system."""
    if path_or_name.isascii():
        return path_or_name.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path_or_name).casefold())


def name_of(path: str) -> str:
    """`a/b.md` -> `a/b`."""
    return path[:-3] if path[-3:].lower() == ".md" else path


def path_of(name: str) -> str:
    """`a/b` -> `a/b.md`."""
    return name + ".md"


def is_named(name: str, reference: str) -> bool:
    """Whether a reference gives this name, or its last part: `people/Ada` is named by `ada` too."""
    return compare_key(clean_reference(reference)) in (
        compare_key(name),
        compare_key(name.rsplit("/", 1)[-1]),
    )


def base_name(path: str) -> str:
    """`a/b.md` -> `b`."""
    return name_of(path.rsplit("/", 1)[-1])


def _proposal(name: str) -> str:
    """The hint of a refused name: the nearest legal one."""
    parts = [part for part in name_of(name).replace("\\", "/").split("/") if part.strip(" .~")]
    legal = "/".join(map(legal_name, parts)) or NAMELESS
    return (
        "Use fewer or shorter folders."
        if len(legal) > MOST_NAME_CHARACTERS
        else f"Use {legal} instead."
    )


def _shown(name: str) -> str:
    """A name in a message: quoted, its unseen characters escaped, and not a screen long."""
    return (
        repr(name[:57] + "...")
        if len(name) > 60
        else ascii(name)
        if not name.isprintable()
        else repr(name)
    )


def date_in(name: str) -> str:
    """The last date in a name, as `2026-01-24`; empty when there is none."""
    for year, month, day in reversed(_DATE.findall(name)):
        try:
            return date(int(year), int(month), int(day)).isoformat()
        except ValueError:
            continue
    return ""


def private_by_rule(path: str, rules: Sequence[str]) -> bool:
    """Whether a rule names this path: `journal/`, `plans/will`, or a pattern of all of it, `*` across folders."""
    return any(
        _matches(compare_key(path), compare_key(rule.strip().replace("\\", "/"))) for rule in rules
    )


def _matches(path: str, rule: str) -> bool:
    rule = rule.removeprefix("./")
    bare = rule.strip("/")
    if not bare:
        return rule != ""  # "/" is the whole vault
    if any(sign in bare for sign in "*?"):
        if bare.startswith("**/") and _matches(path, bare.removeprefix("**/")):
            return True  # as elsewhere, it may stand for no folder at all
        bare = bare.replace(
            "[", "[[]"
        )  # brackets stand in names: only `*` and `?` mean more than themselves
        return (
            fnmatchcase(path, bare)
            or fnmatchcase(path.removesuffix(".md"), bare)
            or fnmatchcase(path, f"{bare}/*")
        )
    return path.startswith(f"{bare}/") or (not rule.endswith("/") and path in (bare, f"{bare}.md"))


# Where two devices changed a note at the same time, a synchroniser keeps both, one of them under a name like the note's.
# Some of these names nobody else gives; others ("Chapter 2") people give as well, and then the texts decide.

COPY_REASON: Final = "a conflict copy made by "
_AKIN: Final = 0.75  # of what stands in either body


class ConflictName(NamedTuple):
    """The note that a name says it is a copy of, and who keeps such copies; people give names not `certain` too."""

    original: str
    maker: str
    certain: bool

    @property
    def reason(self) -> str:
        """Why it is left out of recall."""
        return COPY_REASON + self.maker


def is_copy_reason(hidden: str | None) -> bool:
    """Whether a note is left out of recall because it is a conflict copy."""
    return hidden is not None and hidden.startswith(COPY_REASON)


# Dropbox says it in the language of the computer; these are spellings seen in people's folders.
_CONFLICTED: Final = (
    "(?i:conflicted copy|conflict copy|in konflikt stehende kopie|konfliktkopie|copie en conflit|copia en conflicto|"
    "copia conflictiva|còpia en conflicte|copia in conflitto|cópia em conflito|конфликтующая копия|の競合コピー|冲突副本)"
)
_PART: Final = r"[^()]*(?:\([^()]*\)[^()]*)?"  # a device may be called `MacBook Pro (2)`
# Who keeps copies under such a name, and whether nobody else gives it. The first that fits says it.
_MARKS: Final = tuple(
    (maker, certain, re.compile(pattern))
    for maker, certain, pattern in (
        ("Syncthing", True, r"(.+)\.sync-conflict-\d{8}-\d{6}(?:-[A-Z0-9]{5,8})?"),
        ("Obsidian Sync", True, rf"(.*\S) \((?i:conflicted copy) {_PART}\d{{12}}\)"),
        ("Nextcloud", True, rf"(.*\S) \({_CONFLICTED} \d{{4}}-\d\d-\d\d \d{{6}}\)"),
        ("Dropbox", True, rf"(.*\S) \({_PART}{_CONFLICTED}{_PART}\)(?:-\d+)?"),
        (
            "Dropbox",
            True,
            r"(.*\S) \((?:Case|Selective Sync|Unicode Encoding|Whitespace) Conflict(?: \(?\d+\)?)?\)",
        ),
        ("Seafile", True, r"(.*\S) \(SFConflict [^()]+\)"),
        ("pCloud", True, r"(.*\S) (?:\(conflicted(?: \d+)?\)|\[conflicted(?: \d+)?\])"),
        ("ownCloud", True, r"(.+)_conflict-\d{8}-\d{6}"),
        ("git", True, r"(.+)[_.](?:BACKUP|BASE|LOCAL|REMOTE)[_.]\d+"),
        ("OneDrive", False, r"(.*\S)-(?:DESKTOP|LAPTOP|WIN)-[A-Z0-9]{4,}(?:-\d{1,2})?"),
        ("a synchroniser", False, r"(.*\S) \(\d{1,2}\)"),
        ("iCloud", False, r"(.*\S) (?:[2-9]|[1-9]\d)"),  # its first copy is the second
    )
)
_GIT: Final = re.compile(r"(.+\.md)(?:~[^~]+|\.orig)", re.IGNORECASE)


def conflict_name(path: str) -> ConflictName | None:
    """What a path says of itself, None for an ordinary one."""
    folder, slash, name = path.rpartition("/")
    stem, ending = name[:-3], name[-3:]
    if ending.casefold() != ".md":
        left = _GIT.fullmatch(name)
        return None if left is None else ConflictName(folder + slash + left[1], "git", certain=True)
    if stem and (
        stem[-1] in ")]" or stem[-1].isdigit() or stem[-1].isupper()
    ):  # no mark ends otherwise
        for maker, certain, pattern in _MARKS:
            if found := pattern.fullmatch(stem):
                return ConflictName(f"{folder}{slash}{found[1]}{ending}", maker, certain)
    return None


def are_akin(one: str, other: str) -> bool:
    """Whether two texts are versions of one: three quarters of their bodies are the same; headers come of templates."""
    ours, theirs = (
        Counter(map(str.strip, text[read_header(text).body_start :].split("\n")))
        for text in (one, other)
    )
    total, common = (
        sum(len(line) * count for line, count in some.items())
        for some in (ours + theirs, ours & theirs)
    )
    return total > 0 and 2 * common >= _AKIN * total
