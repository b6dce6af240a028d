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
    """A relation as a note writes it: its type, and the text between the brackets."""

    type: str
    link: str


def observations(text: str) -> Iterator[tuple[str, str]]:
    """Yield the category and the text of each observation of a note, in their order.

    A list item without a category is an observation, of the category "note", if it has a tag.
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
    """Return the relations of a note, each once, sorted by type and link.

    Every wikilink is one. Its type is the word before it if its list item has nothing else, and
    "links_to" otherwise.
    """
    types: dict[int, str] = {}
    for line, number in _list_items(text):
        match = _RELATION.match(line)
        if match is not None:
            types[number] = match[1] or match[2] or match[3]

    relations: set[RelationText] = set()
    for link in read_note(text.encode()).body.links:
        if link.form == "wiki":
            inside = text[link.start : link.end].lstrip("!")[2:-2]
            relations.add(RelationText(types.get(link.line, _DEFAULT_RELATION), inside))
    return sorted(relations)


def _list_items(text: str) -> Iterator[tuple[str, int]]:
    """Yield the first line of each list item, and its line number."""
    for block in read_note(text.encode()).body.blocks:
        if block.kind == "item":
            yield text[block.start : block.end].splitlines()[0], block.line
