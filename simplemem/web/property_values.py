"""The properties of a note as the page shows them: lists, checkboxes, dates, links and texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from simplemem.web.markdown.addresses import destination_of
from simplemem.web.markdown.context import NoteContext

OWN_PROPERTIES: Final = ("title", "tags", "description")  # have places of their own on the page
# Possessive, so that the time stays linear in the text, however many brackets it has.
_WIKILINK: Final = re.compile(r"\[\[([^\[\]|#]{1,400}+)(#[^\[\]|]*+)?(?:\|([^\[\]]*+))?+\]\]")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?")
_WEB_ADDRESS: Final = re.compile(r"https?://\S++")


@dataclass(frozen=True, slots=True)
class TextPart:
    """A part of a text. For a link, `href` is its address; otherwise the other fields are ""."""

    text: str
    href: str = ""
    css_class: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class PropertyValue:
    """A value of a property, or an item of a list. `parts` has its text and its links."""

    kind: Literal["text", "date", "checkbox"]
    parts: tuple[TextPart, ...]
    is_checked: bool = False

    @property
    def text(self) -> str:
        """The whole text of the value."""
        return "".join(part.text for part in self.parts)


def link_targets(properties: Mapping[str, object]) -> list[str]:
    """Return the targets of the wikilinks in all values of properties."""
    targets = []
    for text in _texts_in(properties):
        targets += [link[1] for link in _WIKILINK.finditer(text)]
    return targets


def property_rows(
    properties: Mapping[str, object], context: NoteContext, prefix: str
) -> dict[str, tuple[PropertyValue, ...]]:
    """Return the values by their property, without `OWN_PROPERTIES`. A list has several values."""
    rows = {}
    for key, value in properties.items():
        if key in OWN_PROPERTIES:
            continue

        items: Sequence[object] = [value]
        if isinstance(value, (list, tuple)):
            items = value
        rows[str(key)] = tuple(_read_value(item, context, prefix) for item in items)
    return rows


def _texts_in(value: object) -> Iterator[str]:
    """Yield each text in a value, at any depth."""
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _texts_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts_in(item)
    elif isinstance(value, str):
        yield value


def _read_value(value: object, context: NoteContext, prefix: str) -> PropertyValue:
    """Return one value of a property. A list or map within a list becomes a text."""
    if isinstance(value, bool):
        word = "true" if value else "false"
        return PropertyValue("checkbox", (TextPart(word),), is_checked=value)

    text = _as_text(value)
    if _DATE.fullmatch(text):
        return PropertyValue("date", (TextPart(text),))
    if _WEB_ADDRESS.fullmatch(text):
        return PropertyValue("text", (TextPart(text, text, "outward"),))
    return PropertyValue("text", tuple(_split_links(text, context, prefix)))


def _as_text(value: object) -> str:
    """Return a value as one text. The items of a list or map have commas between them."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_as_text(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_as_text, value))
    if value is None:
        return ""
    return str(value)


def _split_links(text: str, context: NoteContext, prefix: str) -> Sequence[TextPart]:
    """Return the parts of a text, of which each wikilink is one.

    A link has the last part of its target as text, even if it has a label.
    """
    parts = []
    end = 0
    for link in _WIKILINK.finditer(text):
        if link.start() > end:
            parts.append(TextPart(text[end : link.start()]))

        target, subpath, _ = link.groups()
        destination = destination_of(context, prefix, context.path, target, subpath or "")
        label = target.rpartition("/")[2]
        parts.append(TextPart(label, destination.href, destination.css_class, destination.title))
        end = link.end()

    if end < len(text):
        parts.append(TextPart(text[end:]))
    return parts
