"""Types of arguments: what each accepts beside its plain form, and its description for a model.

Validation is lenient about the form: JSON in a string, one thing for a list, a name as a link.
It is strict about the meaning.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeVar, get_args
from urllib.parse import unquote

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    Field,
    WithJsonSchema,
)
from pydantic_core.core_schema import ValidationInfo

from simplemem.models import Filter

T = TypeVar("T")

EXACT: Final = "exact"
"""The validation context in which a single thing is not accepted for a list."""

_HASH_PATTERN: Final = r"^[0-9a-f]{12,64}(\+[0-9a-f]{12,64})?$"
"""A hash, or its first 12 digits or more. Two with a plus accept the merge of a conflict."""

OLD_TEXT_NAMES: Final = (
    "old",
    "old_str",
    "old_text",
    "oldText",
    "old_string",
    "find",
    "find_text",
)
NEW_TEXT_NAMES: Final = (
    "new",
    "new_str",
    "new_text",
    "newText",
    "new_string",
    "replace",
    "replacement",
    "replace_with",
)


class Arguments(BaseModel):
    """The base of the arguments of a tool, and of the objects in lists among them."""

    model_config = {"frozen": True, "coerce_numbers_to_str": True}


def from_json(value: object) -> Any:
    """Return the object or list that a text contains as JSON, or the value itself.

    The value itself is returned if it is no text, or a text that is not valid JSON.
    """
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def read_tags(value: object) -> Any:
    """Return tags as a value: JSON in a text is read, and everything else stays as it is.

    In a map, the text `true` becomes True, for a tag without a value.
    """
    tags = from_json(value)
    if not isinstance(tags, Mapping):
        return tags
    return {tag: True if text in ("true", "True") else text for tag, text in tags.items()}


def _read_list(value: object, info: ValidationInfo) -> Any:
    """Return a list. A single text or object becomes a list of one, unless the context is EXACT.

    Other values are returned as they are, for the validator to refuse.
    """
    items = from_json(value)
    if info.context != EXACT and isinstance(items, (str, Mapping)):
        return [items]
    return items


def _read_words(value: object) -> Any:
    """Return a list of words: a text is split at commas, and empty parts are left out.

    Other values are returned as they are; a list in a text may be JSON.
    """
    words = from_json(value)
    if not isinstance(words, str):
        return words
    parts = [part.strip() for part in words.split(",")]
    return [part for part in parts if part]


def _read_object(value: object) -> Any:
    """Return the object that a text contains as JSON; an empty text becomes an empty object.

    Other values are returned as they are.
    """
    return {} if value == "" else from_json(value)


def _read_name(value: object) -> Any:
    """Return a name without the brackets of a link, the scheme of a resource and `.md`.

    The heading and the label of a link are left out. A value that is no text is returned as it is.
    """
    if not isinstance(value, str):
        return value

    name = value.strip()
    if name.startswith("memory://"):
        name = unquote(name.removeprefix("memory://"))
    if name.startswith("[[") and name.endswith("]]"):
        target, _, _ = name[2:-2].partition("|")
        name, _, _ = target.partition("#")
        name = name.strip()
    if name.lower().endswith(".md") and name.lower() != ".md":
        name = name[: -len(".md")]
    return name


def _read_hash(value: object) -> Any:
    """Return a hash in lower case, without backticks and spaces around it.

    Returns None if nothing is left, and a value that is no text as it is.
    """
    if not isinstance(value, str):
        return value
    return value.strip(" `").lower() or None


def clamp(maximum: int) -> AfterValidator:
    """Return a validator that reduces a number to `maximum`."""
    return AfterValidator(lambda value: min(value, maximum))


def one_of(*words: str, **synonyms: str) -> BeforeValidator:
    """Return a validator that accepts some words in any case, and synonyms of them.

    `synonyms` has the word by its synonym. The validator returns the word, and raises ValueError
    for any other text, which pydantic reports.
    """

    def read_word(value: object) -> str:
        """Return the word that a value means. Raises ValueError if it means none."""
        text = str(value).strip().lower()
        word = synonyms.get(text, text)
        if word not in words:
            raise ValueError("must be one of " + ", ".join(words))
        return word

    return BeforeValidator(read_word)


def about(text: str) -> Any:
    """Return the annotation that describes an argument for a model."""
    return Field(description=text)


def aliases(*names: str) -> Any:
    """Return the annotation with the names of an argument. The first is the one that is listed."""
    return Field(validation_alias=AliasChoices(*names))


@dataclass(frozen=True)
class UserMark:
    """Marks the type of an argument whose value is the user that a call is for."""


def names_user() -> UserMark:
    """Return the mark of an argument that names a user, for a text or `str | None`.

    A token that is limited to a user can pass no other user in such an argument, and passes its own
    if the client passes none. The schema of the argument stays as it is.
    """
    return UserMark()


def is_user_argument(hint: object) -> bool:
    """Return whether the type of an argument, or a part of this type, is marked by `names_user`."""
    marks = getattr(hint, "__metadata__", ())
    if any(isinstance(mark, UserMark) for mark in marks):
        return True
    return any(is_user_argument(part) for part in get_args(hint))


Name = Annotated[str, BeforeValidator(_read_name)]
Sha = Annotated[Annotated[str, Field(pattern=_HASH_PATTERN)] | None, BeforeValidator(_read_hash)]
Object = Annotated[dict[str, Any], BeforeValidator(_read_object)]
Several = Annotated[list[T], BeforeValidator(_read_list)]
Words = Annotated[list[str], BeforeValidator(_read_words)]
Share = Annotated[float, Field(ge=0, le=1)]
Tags = Annotated[Any, BeforeValidator(read_tags), WithJsonSchema({"type": "object"})]
"""Tags in any notation: a map, a list, or `a, b`. The store reads them."""

Mode = Literal["hybrid", "text", "semantic"]
Sort = Literal["modified", "created", "name", "title"]


class EditIn(Arguments):
    """A text that occurs once in a note, and the text that replaces it."""

    old: Annotated[str, aliases(*OLD_TEXT_NAMES)]
    new: Annotated[str, aliases(*NEW_TEXT_NAMES)]


@dataclass(frozen=True)
class FilterArgs:
    """The arguments that filter notes by their properties. A tool has them as one parameter."""

    tags: Annotated[Tags, about("{status: 'done', todo: ''}; '' is any value")] = None
    require_all: Annotated[bool, about("all tags, not any")] = False
    type: str | None = None
    prefix: Annotated[str | None, about("folder or start of the name")] = None
    since: Annotated[str | None, about("changed since: date or 'last week'")] = None
    until: str | None = None

    def filter(self) -> Filter:
        """Return the filter for the store.

        Raises Invalid for tags that cannot be required. A date that cannot be read is refused only
        by the search or the list.
        """
        return Filter.of(**vars(self))


@dataclass(frozen=True)
class LinkFilterArgs(FilterArgs):
    """The arguments that filter notes by their properties and links."""

    link_to: Annotated[Name | None, about("must link to this memory")] = None
    linked_by: Annotated[Name | None, about("this memory must link to it")] = None
