"""Lines of a note that mean something to basic-memory.

Observations are written `- [category] text`, and relations `- relation [[Title]]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from simplemem.note.note import read_note

_ITEM: Final = r"(?:[-*+]|\d{1,9}[.)])[ \t]++"
_OBSERVATION: Final = re.compile(
    _ITEM + r"(?!\[[ xX?!/>~-]?\])(?:\[([^\[\]()\n]++)\][ \t]++(\S.*+)|((?:\S.*[ \t])?#\w.*))"
)
_CONTEXT: Final = re.compile(r"(.*\S)?[ \t]*\([^()\n]*+\)")
_RELATION: Final = re.compile(
    _ITEM + r"(?:\"([^\"\n]++)\"|'([^'\n]++)'|([^\s\[]\S*+))[ \t]++"
    r"\[\[[^\[\]\n]++\]\](?:[ \t]++\([^()\n]*+\))?[ \t]*+$"
)
_DEFAULT_RELATION: Final = "links_to"


@dataclass(frozen=True, order=True)
class RelationText:
    """A relation as a note writes it, such as `- uses [[Page|alias]]`.

    Attributes:
        type: Its type, such as `uses`.
        link: The text between the brackets, such as `Page|alias`.
    """

    type: str
    link: str


def observations(text: str) -> Iterator[tuple[str, str]]:
    """Yield the category and the text of each observation in the text of a note, in order.

    A list item without a category is an observation, of the category "note", if it has a tag. A
    context in parentheses at the end of an item with a category is left out.
    """
    for line, _ in _list_items(text):
        match = _OBSERVATION.match(line)
        if match is None:
            continue

        category, categorised, tagged = match.groups()
        content = (categorised or tagged).rstrip()
        context = _CONTEXT.fullmatch(content) if category else None
        if context is not None:
            content = context[1]
        if content:
            yield (category or "note").strip(), content


def relation_texts(text: str) -> list[RelationText]:
    """Return the relations in the text of a note, each once, sorted by type and link.

    Each wikilink and embed is one. Its type is the word or quoted text before it if its list item
    has nothing else but a context in parentheses, and "links_to" otherwise.
    """
    types = _relation_types(text)
    relations: set[RelationText] = set()
    data = text.encode()
    note = read_note(data)
    for link in note.body.links:
        if link.form == "wiki":
            link_text = text[link.start : link.end]
            inside = link_text.lstrip("!")[2:-2]
            relation_type = types.get(link.line, _DEFAULT_RELATION)
            relations.add(RelationText(relation_type, inside))
    return sorted(relations)


def _relation_types(text: str) -> dict[int, str]:
    """Return the types that list items give their relations, by the number of their line."""
    types: dict[int, str] = {}
    for line, number in _list_items(text):
        match = _RELATION.match(line)
        if match is not None:
            types[number] = match[1] or match[2] or match[3]
    return types


def _list_items(text: str) -> Iterator[tuple[str, int]]:
    """Yield the first line of each list item, and its line number."""
    note = read_note(text.encode())
    for block in note.body.blocks:
        if block.kind == "item":
            lines = text[block.start : block.end].splitlines()
            yield lines[0], block.line
