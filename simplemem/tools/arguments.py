"""What a model sends as arguments, read forgivingly in form and strictly in meaning; which memory it means; and the
schemas that tell it of arguments and answers, which show the plainest form and need no validators."""

from __future__ import annotations

import dataclasses
import difflib
import json
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NotRequired,
    TypeVar,
    Union,
    get_origin,
    get_type_hints,
)
from urllib.parse import unquote

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    Field,
    ValidationError,
    WithJsonSchema,
)
from pydantic.fields import FieldInfo
from pydantic_core.core_schema import ValidationInfo

from simplemem.errors import Invalid, NotFound
from simplemem.models import Filter
from simplemem.note.names import is_named
from simplemem.note.tag_requests import parse_tag_request

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

T = TypeVar("T")
EXACT = "exact"  # the context in which a profile takes no single thing for a list
Schema = dict[str, Any]

_PLAIN: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
_PLAIN |= {dict: "object", Mapping: "object"}
_BOUNDS = {"ge": "minimum", "le": "maximum", "min_length": "minLength", "max_length": "maxLength"}
_HASHES = r"^[0-9a-f]{12,64}(\+[0-9a-f]{12,64})?$"
"""A hash, or its first twelve digits or more. Two with a plus between them accept the merge that a lost race offered."""


class Arguments(BaseModel):
    """The base of the arguments of a tool, and of what stands in lists among them."""

    model_config = {"frozen": True, "coerce_numbers_to_str": True}


def from_json(value: Any) -> Any:
    """An object or a list that came as the text of one."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _tags(value: Any) -> Any:
    """Tags as they come; in a map the text `true` is meant as true."""
    value = from_json(value)
    if isinstance(value, Mapping):
        return {key: True if each in ("true", "True") else each for key, each in value.items()}
    return value


def _several(value: Any, info: ValidationInfo) -> Any:
    """A list; a single thing is meant as one, unless a profile is exact. A text with commas is one text."""
    value = from_json(value)
    return [value] if info.context != EXACT and isinstance(value, (str, Mapping)) else value


def _words(value: Any) -> Any:
    """A list; several words separated by commas are meant as one."""
    value = from_json(value)
    return (
        [part.strip() for part in value.split(",") if part.strip()]
        if isinstance(value, str)
        else value
    )


def _name(value: Any) -> Any:
    """A name without the brackets of a wikilink, the scheme of a resource, `.md` at its end."""
    if not isinstance(value, str):
        return value
    name = value.strip()
    if name.startswith("memory://"):
        name = unquote(name.removeprefix("memory://"))
    if name.startswith("[[") and name.endswith("]]"):
        name = name[2:-2].split("|", 1)[0].split("#", 1)[0].strip()
    return name[:-3] if name.lower().endswith(".md") and len(name) > 3 else name


def at_most(most: int) -> AfterValidator:
    """For a `limit`: more than `most` is taken as `most`."""
    return AfterValidator(lambda value: min(value, most))


def one_of(*words: str, **synonyms: str) -> BeforeValidator:
    """One of a few words, in any case; `synonyms` mean one of them."""

    def read(value: Any) -> Any:
        word = str(value).strip().lower()
        if (meant := synonyms.get(word, word)) not in words:
            raise ValueError("must be one of " + ", ".join(words))
        return meant

    return BeforeValidator(read)


def about(text: str) -> Any:
    """What a model is told about an argument."""
    return Field(description=text)


def also(*names: str) -> Any:
    """The names that an argument goes by, the one that is shown first."""
    return Field(validation_alias=AliasChoices(*names))


Name = Annotated[str, BeforeValidator(_name)]
_stripped = BeforeValidator(
    lambda value: value.strip(" `").lower() or None if isinstance(value, str) else value
)
Sha = Annotated[Annotated[str, Field(pattern=_HASHES)] | None, _stripped]
Object = Annotated[
    dict[str, Any], BeforeValidator(lambda value: {} if value == "" else from_json(value))
]
Several = Annotated[list[T], BeforeValidator(_several)]
Words = Annotated[list[str], BeforeValidator(_words)]
Share = Annotated[float, Field(ge=0, le=1)]
Tags = Annotated[Any, BeforeValidator(_tags), WithJsonSchema({"type": "object"})]
"""Tags in any notation: a map, a list, `a, b`. The store knows how to read them."""

Mode = Literal["hybrid", "text", "semantic"]
Sort = Literal["modified", "created", "name", "title"]

_OLD = ("old", "old_str", "old_text", "oldText", "old_string", "find", "find_text")
_NEW = (
    "new",
    "new_str",
    "new_text",
    "newText",
    "new_string",
    "replace",
    "replacement",
    "replace_with",
)


class EditIn(Arguments):
    """Exact text to find once in a note, and what to put in its place."""

    old: Annotated[str, also(*_OLD)]
    new: Annotated[str, also(*_NEW)]


@dataclass(frozen=True)
class Narrowing:
    """By what a memory is and when it changed: arguments that several tools have, given to them as one."""

    tags: Annotated[Tags, about("{status: 'done', todo: ''}; '' is any value")] = None
    require_all: Annotated[bool, about("all tags, not any")] = False
    type: str | None = None
    prefix: Annotated[str | None, about("folder or start of the name")] = None
    since: Annotated[str | None, about("changed since: date or 'last week'")] = None
    until: str | None = None

    def filter(self) -> Filter:
        return Filter.of(**vars(self))


@dataclass(frozen=True)
class LinkNarrowing(Narrowing):
    """And by its links."""

    link_to: Annotated[Name | None, about("must link to this memory")] = None
    linked_by: Annotated[Name | None, about("this memory must link to it")] = None


def resolved(store: EnhancedStore, name: str) -> str:
    """The memory of that name, title or alias. NotFound says what became of it."""
    return store.resolve(name)


def to_change(store: EnhancedStore, name: str) -> str:
    """The memory to be changed. NotFound says what became of it, though another may have the name for a title."""
    found = store.resolve(name)
    if is_named(found, name):
        return found
    former = store.extension.find_former_note(name)
    if former is None or (former.current_name is None and not former.is_deleted):
        return found
    error = former.error()
    candidates = [found]
    if former.current_name is not None:
        candidates.insert(0, former.current_name)
    hint = f"{found} has this title or alias. To change it, pass {found} as the name."
    raise NotFound(error.message, hint=hint, candidates=candidates)


def whole_hash(store: EnhancedStore, name: str, sha256: str | None) -> str | None:
    """The hash a caller means by its first digits; as given when that is not what the note has."""
    if sha256 is None or len(sha256) == 64 or "+" in sha256:
        return sha256
    now = store.read(name).sha256
    return now if now.startswith(sha256) else sha256


# --- what models call the arguments of a tool

_HABITS = {
    "query": ("q", "text", "question", "search", "searchquery", "keywords"),
    "tags": ("tag", "labels"),
    "prefix": ("folder", "path", "directory"),
    "limit": ("topk", "k", "n", "maxresults", "count"),
    "name": (
        "path",
        "id",
        "memoryid",
        "title",
        "identifier",
        "note",
        "memory",
        "memoryname",
        "filename",
        "file",
    ),
    "new_name": ("destination", "newpath", "newtitle", "target", "to"),
    "content": ("text", "body", "markdown"),
    "append": ("text", "body", "markdown"),
    "metadata": ("frontmatter", "properties"),
    "if_sha256": ("sha256", "hash"),
    "since": ("after", "from"),
    "until": ("before", "to"),
}
"""Argument -> what models write in its place, in lower case and without `_` and `-`."""
_PROPERTIES = ("title", "description", "type", "tags", "aliases")


def meant(
    tool: str, known: Mapping[str, tuple[Any, Any]], sent: Mapping[str, Any]
) -> dict[str, Any]:
    """What was sent, under the names that arguments are shown by. Invalid says what else may be meant."""
    names = {
        _bare(each): names_of(name, hint)[0]
        for name, (hint, _) in known.items()
        for each in names_of(name, hint)
    }
    shown = list(dict.fromkeys(names.values()))
    given: dict[str, Any] = {}
    # A tool without arguments takes anything: some clients cannot send nothing.
    parts = {key: value for key, value in sent.items() if value is not None} if known else {}
    for key, value in _gathered(tool, shown, parts).items():
        habits = [name for name in shown if _bare(key) in _HABITS.get(name, ())]
        options = [names[_bare(key)]] if _bare(key) in names else habits
        if len(options) != 1:
            near = options or [names[each] for each in difflib.get_close_matches(_bare(key), names)]
            near = (
                [f'metadata={{"{key}": …}}'] if key in _PROPERTIES and "metadata" in shown else near
            )
            hint = f"Did you mean {' or '.join(dict.fromkeys(near))}? " if near else ""
            raise Invalid(
                f"no argument {key[:40]!r}", hint=f"{hint}The arguments are {', '.join(shown)}."
            )
        if given.setdefault(options[0], value) != value:
            raise Invalid(
                f"{options[0]!r} is given twice, once as {key[:40]!r}", hint="Pass it once."
            )
    return given


def _bare(key: str) -> str:
    return key.replace("_", "").replace("-", "").casefold()


def _gathered(tool: str, shown: Sequence[str], sent: dict[str, Any]) -> dict[str, Any]:
    """What was sent, with the parts of one argument that came by themselves put together."""
    if "tag" not in shown and isinstance(tag := from_json(sent.get("tag")), str) and "," not in tag:
        sent["tag"] = [tag]  # one, though it has spaces
    if tool == "create_memory" and isinstance(
        metadata := from_json(sent.get("metadata") or {}), Mapping
    ):
        named = any(_bare(key) in ("name", *_HABITS["name"]) for key in sent if key != "title")
        sent |= {"tags": sent.pop("tag")} if sent.keys() & {"tag", "tags"} == {"tag"} else {}
        lone = {
            key: sent.pop(key) for key in _PROPERTIES if key in sent and (named or key != "title")
        }
        if twice := [key for key in lone if metadata.get(key, lone[key]) != lone[key]]:
            raise Invalid(f"{twice[0]!r} is given twice, once in metadata", hint="Pass it once.")
        return sent | ({"metadata": {**metadata, **lone}} if lone else {})
    if "edits" in shown:
        ends = dict.fromkeys(_OLD, "old") | dict.fromkeys(_NEW, "new")
        if edit := {ends[key]: sent.pop(key) for key in list(sent) if key in ends}:
            return sent | {"edits": [*from_json(sent.get("edits", [])), edit]}
    if tool == "change_tag":
        tags = _tags(sent.get("tags"))
        both = (
            tags
            if tags and isinstance(tags, Mapping) and tags.keys() <= {"add", "remove"}
            else sent
        )
        if changes := {
            key: parse_tag_request(_tags(both[key])) for key in ("add", "remove") if both.get(key)
        }:
            gone = (
                key if value is True else f"{key}/{value}"
                for key, value in changes.get("remove", {}).items()
            )
            rest = parse_tag_request(tags) if both is sent else {}
            whole = {**rest, **changes.get("add", {}), **dict.fromkeys(gone)}
            return {key: value for key, value in sent.items() if key not in changes} | {
                "tags": whole
            }
    return sent


_SAID = {
    "missing": "is missing",
    "extra": "is unknown",
    "greater": "must be at least {ge}",
    "less": "must be at most {le}",
    "too_short": "must not be empty",
    "too_long": "is longer than {max_length}",
    "pattern": "must be a sha256, or at least its first 12 digits",
    "literal": "must be {expected}",
    "value": "{error}",
    "string": "must be a string",
    "bool": "must be true or false",
    "int": "must be an integer",
    "float": "must be a number",
    "list": "must be a list",
    "dict": "must be an object",
    "model": "must be an object",
}


def wrong(error: ValidationError) -> dict[tuple[str, str], None]:
    """Where each fault of some arguments is and what it is, in our words. Never a value: it may be a note."""
    found = []
    for each in error.errors(include_url=False, include_input=False):
        kind = next((kind for kind in _SAID if kind in each["type"]), "")
        said = _SAID.get(kind, "is invalid").format(**each.get("ctx", {}))
        found.append((".".join(map(str, each["loc"])), said))
    return dict.fromkeys(found)


# --- schemas: made of type hints, as short as they can be said, since each client pays for every byte of a list of tools


def schema_of(hint: Any, *, answer: bool, optional: bool = False) -> Schema:
    """The schema of a type. Null is the same as absent: it stands only in an answer that is always there."""
    origin, inside = get_origin(hint), list(getattr(hint, "__args__", ()))
    if origin is Annotated:
        return _annotated(hint, answer)
    if hint is Any:
        return {}
    if plain := _PLAIN.get(origin or hint):
        return {"type": plain}
    if origin is NotRequired:
        return schema_of(inside[0], answer=answer, optional=True)
    if origin in (Union, types.UnionType):
        forms = [schema_of(each, answer=answer) for each in inside if each is not type(None)]
        forms += [{"type": "null"}] if answer and not optional and type(None) in inside else []
        return forms[0] if len(forms) == 1 else {"anyOf": forms}
    if origin is Literal:
        return {"enum": inside, "type": "string"}
    if origin in (list, tuple, Sequence):
        return {"type": "array", "items": schema_of(inside[0], answer=answer)}
    return record_of(hint, answer=answer)


def record_of(kind: type, *, answer: bool) -> Schema:
    """The schema of a dataclass, a model or a typed dictionary: what has no default is always there."""
    hints = get_type_hints(kind, include_extras=True)
    if dataclasses.is_dataclass(kind):
        nothing = dataclasses.MISSING
        needed = {
            each.name: each.default is nothing is each.default_factory
            for each in dataclasses.fields(kind)
        }
    elif issubclass(kind, BaseModel):
        needed = {name: field.is_required() for name, field in kind.model_fields.items()}
    else:
        needed = {name: get_origin(hint) is not NotRequired for name, hint in hints.items()}
    return record(
        {name: (hints[name], ... if must else None) for name, must in needed.items()}, answer=answer
    )


def record(fields: Mapping[str, tuple[Any, Any]], *, answer: bool) -> Schema:
    """The schema of an object with these types and defaults (... for none), each under the first name it goes by."""
    shown: Schema = {}
    required = []
    for name, (hint, default) in fields.items():
        first = names_of(name, hint)[0]
        shown[first] = schema_of(hint, answer=answer, optional=default is not ...)
        if default is ...:
            required.append(first)
        elif isinstance(default, (str, int, float)) and default != "":
            shown[first]["default"] = default
    return {"type": "object", "properties": shown} | ({"required": required} if required else {})


def without_the_obvious(schema: Schema) -> Schema:
    """Return the schema of some arguments without what every model assumes: options are off, counts start at 1.

    What is accepted stays the same. Clients send the list of tools to a model with every request.
    """
    shown = {}
    for name, argument in schema["properties"].items():
        brief = dict(argument)
        if brief.get("default") is False:
            del brief["default"]
        if brief.get("minimum") == 1:
            del brief["minimum"]
        shown[name] = brief
    return {**schema, "properties": shown}


def closed(schema: Schema) -> Schema:
    """The schema of an answer that has what it lists and nothing else, at any depth."""
    if schema.get("type") == "array":
        return {**schema, "items": closed(schema["items"])}
    if "properties" not in schema:
        return schema
    inside = {name: closed(each) for name, each in schema["properties"].items()}
    return {**schema, "properties": inside, "additionalProperties": False}


def names_of(name: str, hint: Any) -> list[str]:
    """Every name that an argument goes by, the one that is shown first."""
    for field in reversed(getattr(hint, "__metadata__", ())):
        if isinstance(field, FieldInfo) and isinstance(field.validation_alias, AliasChoices):
            return [str(each) for each in field.validation_alias.choices]
    return [name]


def _annotated(hint: Any, answer: bool) -> Schema:
    shown = schema_of(hint.__origin__, answer=answer)
    for each in hint.__metadata__:
        if isinstance(each, WithJsonSchema):
            shown = dict(each.json_schema or {})
        elif isinstance(each, FieldInfo):
            shown |= {"description": each.description} if each.description else {}
            for bound in each.metadata:
                for name, said in _BOUNDS.items():
                    if (value := getattr(bound, name, None)) is not None:
                        shown[
                            said.replace("Length", "Items")
                            if shown.get("type") == "array"
                            else said
                        ] = value
    return shown
