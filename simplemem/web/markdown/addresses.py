"""The addresses of notes, files and sections on the page, and what links lead to and show."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import quote

from simplemem.web.markdown.context import NoteContext

# The types of images that the page shows, by the ending of their file.
IMAGE_TYPES: Final = {
    ".apng": "image/apng",
    ".avif": "image/avif",
    ".bmp": "image/bmp",
    ".gif": "image/gif",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webp": "image/webp",
}
CANVAS: Final = ".canvas"

# The notation of Obsidian. Limits and possessive quantifiers keep the time linear in the text.
WIKILINK: Final = re.compile(
    r"(?P<mark>!?)\[\[(?P<link>[^\[\]\n|]{1,400})(?:\|(?P<label>[^\[\]\n]{1,400}))?\]\]"
)
# The beginning of a link of Markdown that leads to the web, and of one that leads to no note.
WEB_ADDRESS: Final = re.compile(r"(?:https?|mailto):", re.IGNORECASE)
OTHER_ADDRESS: Final = re.compile(r"[a-zA-Z][\w+.-]*:|//")

_WORD: Final = re.compile(r"\w++")
# What the page says when the pointer is on a link.
_CREATE: Final = "No note has this name yet: create it"
_MISSING: Final = "No note has this name"
_NOT_SHOWN: Final = "A file of the vault, which this page does not show"


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a link leads: its address, its CSS class, and what the page says about it, or "".

    `path` is the file that the link means; "" if it is not known or does not exist.
    """

    href: str
    css_class: str
    title: str = ""
    path: str = ""

    @property
    def is_image(self) -> bool:
        """Whether it is an image that the page shows."""
        return media_type_of(self.path) is not None


def page_url(prefix: str, page: str, name: str) -> str:
    """Return the address of a page about a note or a file, such as `move`. Slashes stay.

    `prefix` is that of the vault.
    """
    return f"{prefix}/{page}/{quote(name, safe='/', errors='surrogateescape')}"


def link_of(prefix: str, name: str) -> str:
    """Return the address of a note on the page."""
    return page_url(prefix, "note", name)


def file_url(prefix: str, path: str) -> str:
    """Return the address of an image of the vault."""
    return page_url(prefix, "file", path)


def canvas_url(prefix: str, path: str) -> str:
    """Return the address of the page of a canvas."""
    return page_url(prefix, "canvas", path)


def edit_url(prefix: str, name: str) -> str:
    """Return the address at which a note is edited, or created."""
    return page_url(prefix, "edit", name)


def media_type_of(path: str) -> str | None:
    """Return the media type of an image that the page shows, by its ending; None for others."""
    return IMAGE_TYPES.get(PurePosixPath(path).suffix.lower())


def heading_id(heading: str) -> str:
    """Return the id of the element of a heading, such as `h-first-steps` for `First steps`.

    It begins with `h-`, so that no heading has the id of another part of the page.
    """
    words = _WORD.findall(unicodedata.normalize("NFC", heading).casefold())
    return "h-" + "-".join(words)


def block_id(name: str) -> str:
    """Return the id of the element of a block with the id `^name`."""
    return "b-" + name.casefold()


def anchor_of(subpath: str) -> str:
    """Return the fragment of an address: `#h-sub` for `#Heading#Sub`, and "" for no subpath."""
    _, _, last_part = subpath.rpartition("#")
    last_part = last_part.strip()
    if not last_part:
        return ""
    if last_part.startswith("^"):
        return "#" + quote(block_id(last_part[1:]))
    return "#" + quote(heading_id(last_part))


def label_of_link(link: str) -> str:
    """Return the text of a wikilink without a label: `Note › Heading` for `Note#Heading`.

    `link` is what the brackets contain. A link within its own note has only the heading.
    """
    target, _, heading = link.partition("#")
    if target and heading:
        return f"{target} › {heading.lstrip('^')}"
    return link.lstrip("#^")


def lookup_target(target: str) -> str:
    """Return the target of a link in the form in which links are looked up.

    It is in NFC, has ordinary spaces for those that do not break, and none at its ends.
    """
    return unicodedata.normalize("NFC", target.replace("\xa0", " ")).strip()


def destination_of(
    context: NoteContext, prefix: str, source: str, target: str, subpath: str
) -> Destination:
    """Return where a link in the note `source` leads.

    `target` is the path or name in the link, "" for the note itself, and `subpath` what follows it:
    `#Heading`, `#^block` or "".
    """
    anchor = anchor_of(subpath)
    key = lookup_target(target)
    if not key:
        return Destination(anchor or "#", "wikilink")

    targets = context.links.get(source, {})
    if key not in targets:
        return Destination(link_of(prefix, _without_ending(key)) + anchor, "wikilink")

    path = targets[key]
    if path is None:
        return _unresolved(context, prefix, _without_ending(key))
    return _destination_of_file(prefix, path, anchor)


def _destination_of_file(prefix: str, path: str, anchor: str) -> Destination:
    """Return where a link to an existing file leads. `anchor` is the place within a note."""
    if path.lower().endswith(".md"):
        href = link_of(prefix, _without_ending(path)) + anchor
        return Destination(href, "wikilink", path=path)
    if media_type_of(path) is not None:
        return Destination(file_url(prefix, path), "file", path=path)
    if path.lower().endswith(CANVAS):
        return Destination(canvas_url(prefix, path), "canvas", path=path)
    return Destination("#", "nowhere", _NOT_SHOWN)


def _unresolved(context: NoteContext, prefix: str, name: str) -> Destination:
    """Return where an unresolved link leads: to the editor, or to the page of the missing note."""
    if context.can_create:
        return Destination(edit_url(prefix, name.lstrip("/")), "wikilink unresolved", _CREATE)
    return Destination(link_of(prefix, name), "wikilink unresolved", _MISSING)


def _without_ending(path: str) -> str:
    """Return the name of a note: its path without `.md`."""
    if path[-3:].lower() == ".md":
        return path[:-3]
    return path
