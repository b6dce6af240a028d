"""List items of a page: observations and relations. They are parsed and formatted here. Pure.

A relation is a type and a link, as in `- uses [[PostgreSQL]]`, or a type and a name as a literal,
as in `- knows "a name"`. Every other item is an observation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

from simplemem.features.graph.attributes import format_attributes, split_attributes
from simplemem.features.graph.literals import (
    format_literal,
    is_plain,
    leading_literal,
    parse_literal,
    parse_text,
)
from simplemem.features.graph.values import Observation

Section = Literal["observations", "relations", "lead"]
"""Where an item stands. `lead` is the text above the first heading below the title."""

_DEFAULT_TYPE: Final = "relates_to"  # of a link without text before it

# A span of inline code, or else a link. Links inside code do not count.
_CODE_OR_LINK: Final = re.compile(
    r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)|\[\[(?P<target>[^\[\]\r\n]+)\]\]"
)
_ONE_TO_FOUR_WORDS: Final = re.compile(r"\w[\w'’-]*(?: \w[\w'’-]*){0,3}")


class RelationLine(NamedTuple):
    """A relation as it is written on a page: to the target of a link, or to an exact name.

    `link` is "" if the item has a name instead, and `name` is "" if it has a link.
    """

    type: str
    link: str
    name: str
    attributes: Mapping[str, Any]


class Bullet(NamedTuple):
    """A list item that is an observation or a relation, and its span in the text of the page."""

    start: int
    end: int
    content: Observation | RelationLine


def parse_bullet(item: str, section: Section, note_name: str) -> Observation | RelationLine | None:
    """Return the observation or relation that a list item of a section is.

    `item` is the text of the item without its `- `. Every item of the section `observations` is an
    observation. An item of `relations` that is no relation gives None. An item of the lead is a
    relation only if it is nothing but one to four words and a link to a note other than
    `note_name`, and else an observation.
    """
    text, attributes = split_attributes(item)
    if section == "observations":
        return Observation(parse_text(text), attributes)

    relation = _parse_relation(text, attributes)
    if section == "relations":
        return relation
    if relation is not None and _is_relation_in_lead(relation, text, note_name):
        return relation
    return Observation(parse_text(text), attributes)


def _is_relation_in_lead(relation: RelationLine, text: str, note_name: str) -> bool:
    """Return whether an item of the lead is a relation rather than a sentence with a link."""
    is_words_and_link = text.startswith(f"{relation.type} [[") and text.endswith("]]")
    if not is_words_and_link or not _ONE_TO_FOUR_WORDS.fullmatch(relation.type):
        return False

    target = f"/{relation.link}".removesuffix(".md").casefold()
    leads_to_itself = f"/{note_name}".casefold().endswith(target)
    return not leads_to_itself


def _parse_relation(text: str, attributes: Mapping[str, Any]) -> RelationLine | None:
    """Return the relation that the text of an item states, None if it states none."""
    type_literal = leading_literal(text)
    if type_literal is not None:
        target = text[type_literal.end :].lstrip()
        return _parse_target_of_literal_type(type_literal.text, target, attributes)

    # A plain type and a name, as in `knows "a name"`.
    space = text.find(' "')
    if space >= 0:
        name = parse_literal(text[space + 1 :])
        if name is not None:
            return RelationLine(text[:space], "", name, attributes)

    link = _first_link(text)
    if link is None:
        return None
    relation_type = text[: link.start()].rstrip()
    is_embed = relation_type.endswith("!")
    if is_embed or relation_type.startswith("[") or "\n" in relation_type:
        return None
    return RelationLine(relation_type or _DEFAULT_TYPE, _target_of(link), "", attributes)


def _parse_target_of_literal_type(
    relation_type: str, target: str, attributes: Mapping[str, Any]
) -> RelationLine | None:
    """Return a relation whose type is a literal. `target` is the text after that literal.

    None if that text is no literal and does not begin with a link.
    """
    name = parse_literal(target)
    if name is not None:
        return RelationLine(relation_type, "", name, attributes)

    link = _first_link(target)
    if link is None or target[: link.start()].rstrip():
        return None
    return RelationLine(relation_type, _target_of(link), "", attributes)


def _first_link(text: str) -> re.Match[str] | None:
    """Return the first link of a text that is not in code.

    None if there is no link, or if the first one is `[[#Heading]]`, which leads to the note itself.
    """
    for match in _CODE_OR_LINK.finditer(text):
        if match["target"]:
            return match if _target_of(match) else None
    return None


def _target_of(link: re.Match[str]) -> str:
    """Return what a link names as its note: its text without `#heading` and `|label`.

    It is "" for `[[#Heading]]`.
    """
    target_and_heading = link["target"].partition("|")[0]
    return target_and_heading.partition("#")[0].strip()


def format_observation(observation: Observation) -> str:
    """Return an observation as a list item, without a line break at its end.

    Further lines of the text are indented below the first. If one of the lines would not read back
    as the same text, the whole text is a literal on one line.
    """
    lines = observation.text.split("\n")
    text = format_literal(observation.text)
    if all(is_plain(line) for line in lines):
        text = "\n  ".join(lines)
    return f"- {text}{format_attributes(observation.attributes)}"


def format_relation(relation_type: str, target: str, attributes: Mapping[str, Any]) -> str:
    """Return a relation as a list item, without a line break.

    `target` is a link in brackets or a literal, as `format_link` and `format_literal` return it.
    The type becomes a literal if it would not read back as the same type.
    """
    looks_like_more = "[[" in relation_type or '"' in relation_type or "`" in relation_type
    is_unchanged = is_plain(relation_type) and not relation_type.startswith("[")
    if looks_like_more or not is_unchanged:
        relation_type = format_literal(relation_type)
    return f"- {relation_type} {target}{format_attributes(attributes)}"
