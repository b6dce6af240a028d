"""One link as it is written: `[[target#subpath|display]]` or `[display](target#subpath "title")`. Pure.

obsidian.md §1.1 to the letter. Where links stand in a text is `inline.py`'s business; what they lead to
is not known to a note at all.
"""

from __future__ import annotations

import html
import re
import unicodedata
from typing import Literal, NamedTuple
from urllib.parse import unquote

from simplemem.note.frontmatter import Scalar


class Link(NamedTuple):
    """A link or embed as it is written: what it looks up, what it shows, and where each part stands."""

    form: Literal["wiki", "markdown"]
    embed: bool
    property: str | None  # the header path ("related.0") of a property link
    target: str  # what is looked up; "" means the note itself
    subpath: str  # "#Heading" or "#^id"; "" when there is none
    display: str
    line: int
    start: int  # the whole link, with its brackets and the "!" before it
    end: int
    path_start: int  # what a rename replaces
    path_end: int
    display_start: int  # -1 when there is none
    display_end: int
    angle: bool  # a Markdown destination in <>
    scalar: Scalar | None  # the value that a property link is, None in the body


# A destination with its title: <in angles>, or without spaces and with parentheses nested at most three deep.
_PLAIN = r"[^ \t\n\r\v\f\x00-\x1f\x7f()\\]++|\\[!-/:-@\[-`{-~]?+"
_NESTED = rf"\((?:{_PLAIN}|\((?:{_PLAIN}|\((?:{_PLAIN})*+\))*+\))*+\)"
_TITLE = r"""(?:"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|\((?:[^()\\]|\\.)*+\))"""
_GAP = r"[ \t\n\r]"
DESTINATION = re.compile(
    rf"\({_GAP}*+(?:<((?:[^<>\\\n\r]|\\.)*+)>|((?!<)(?:{_PLAIN}|{_NESTED})*+))(?:{_GAP}++{_TITLE})?+{_GAP}*+\)",
    re.DOTALL,
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:|//")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")


def read_wikilink(
    text: str, start: int, end: int, embed: bool, line: int, property_path: str | None = None
) -> Link | None:
    """The link `[[...]]` or `![[...]]` between two offsets, None when it names nothing."""
    begins, stop = start + 2 + embed, end - 2
    inner = text[begins:stop]
    if not inner or inner.isspace():
        return None
    bar = inner.find("|", 1)  # [[|x]] keeps its bar (obsidian.md §1.1)
    path = inner if bar < 0 else inner[:bar]
    if bar >= 0 and path.endswith("\\"):  # in tables the bar is escaped
        path = path[:-1]
    hash_at = path.find("#")
    name = path if hash_at < 0 else path[:hash_at]
    subpath = "" if hash_at < 0 else path[hash_at:].rstrip()
    lead = len(name) - len(name.lstrip())
    stripped = name.strip()
    path_start = begins + lead if stripped else begins
    shown = (begins + bar + 1, stop) if bar >= 0 else (-1, -1)
    return Link(
        "wiki",
        embed,
        property_path,
        clean_target(stripped),
        subpath,
        inner[bar + 1 :] if bar >= 0 else "",
        line,
        start,
        end,
        path_start,
        path_start + len(stripped),
        *shown,
        angle=False,
        scalar=None,
    )


def read_destination(
    text: str, found: re.Match[str], start: int, shown: tuple[int, int], image: bool, line: int
) -> Link | None:
    """The internal Markdown link that a match of `DESTINATION` ends, None when it is external or empty."""
    angle = found[1] is not None
    begins, stop = found.span(1 if angle else 2)
    destination = text[begins:stop]
    if not destination or _SCHEME.match(destination):
        return None
    hash_at = destination.find("#")
    path = destination if hash_at < 0 else destination[:hash_at]
    empty = shown[0] == shown[1]
    return Link(
        "markdown",
        image,
        None,
        clean_target(_decoded(path).strip()),
        "" if hash_at < 0 else _decoded(destination[hash_at:]),
        text[shown[0] : shown[1]],
        line,
        start,
        found.end(),
        begins,
        begins + len(path),
        *((-1, -1) if empty else shown),
        angle=angle,
        scalar=None,
    )


def _decoded(destination: str) -> str:
    """A destination as the name it stands for: escapes, entities and percent signs undone."""
    if "\\" in destination:
        destination = _ESCAPED.sub(r"\1", destination)
    if "&" in destination:
        destination = _ENTITY.sub(lambda found: html.unescape(found[0]), destination)
    if "%" in destination:
        try:
            return unquote(destination, errors="strict")
        except UnicodeDecodeError:  # a percent sign that stands for itself
            return destination
    return destination


def clean_target(name: str) -> str:
    """A link's path as it is looked up: no-break spaces are spaces, NFC, trimmed (obsidian.md §1.4)."""
    if name.isascii():
        return name
    return unicodedata.normalize("NFC", name.replace("\xa0", " ")).strip()
