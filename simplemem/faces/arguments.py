"""Reading what a model sends as arguments: forgiving about form, strict about meaning.

JSON sent as a string is read, null is the same as absent, a number may be a string, a name may wear `[[
]]` or `.md`. An argument nobody knows is said back: a reading tool goes on without it, a writing tool does
nothing (a misspelt `if_sha256` must not be lost).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
)
from pydantic.fields import FieldInfo

from simplemem.errors import Invalid


class Arguments(BaseModel):
    """The arguments of a tool, shown in the order they are declared in, inherited ones last."""

    model_config = ConfigDict(extra="ignore", frozen=True, coerce_numbers_to_str=True)

    shown_types: ClassVar[dict[str, str]] = {}
    """Types to show for arguments that are read in several forms: only the plainest is shown to a model."""

    @classmethod
    def short_schema(cls) -> dict[str, Any]:
        """What pydantic says about the fields, without what a model does not need: titles, nulls, defaults
        of null."""
        whole = cls.model_json_schema()
        own = [name for name in cls.__annotations__ if name in cls.model_fields]
        order = dict.fromkeys([*own, *cls.model_fields])
        properties = {name: _short(whole["properties"][name]) for name in order}
        for name, kind in cls.shown_types.items():
            properties[name] = {"type": kind} | {k: v for k, v in properties[name].items() if k in _KEPT}
        shown = {"type": "object", "properties": properties}
        if whole.get("required"):
            shown["required"] = whole["required"]
        return shown


_KEPT = frozenset({"description", "items"})


def _short(schema: Mapping[str, Any]) -> dict[str, Any]:
    kept = {k: v for k, v in schema.items() if k != "title" and not (k == "default" and v in (None, "", {}, []))}
    choices = [each for each in kept.pop("anyOf", []) if each.get("type") != "null"]
    if len(choices) == 1:
        kept = {**_short(choices[0]), **kept}
    if kept.get("additionalProperties") is True:
        del kept["additionalProperties"]
    return kept


def read_arguments(kind: type[Arguments], sent: Mapping[str, Any] | None, *, strict: bool) -> tuple[Any, list[str]]:
    """The arguments as `kind`, and what was passed over. Raises Invalid naming every argument that is
    wrong."""
    given = {key: value for key, value in (sent or {}).items() if value is not None}
    known = {spelling: name for name, field in kind.model_fields.items() for spelling in (name, *_aliases(field))}
    strange = [key for key in given if key not in known]
    if strange and strict:
        raise Invalid(
            f"There is no argument {_listed(strange)}; nothing was changed.",
            hint=_nearest(strange, list(kind.model_fields)),
        )
    try:
        read = kind.model_validate(given)
    except ValidationError as error:
        raise _said(error, kind) from None
    return read, [f"The argument {_listed(strange)} is not known here and was passed over."] if strange else []


def _aliases(field: FieldInfo) -> list[str]:
    alias = field.validation_alias
    return [str(each) for each in alias.choices] if isinstance(alias, AliasChoices) else []


def _listed(names: list[str]) -> str:
    return ", ".join(repr(name[:40]) for name in names[:5])


def _nearest(strange: list[str], known: list[str]) -> str:
    near = get_close_matches(strange[0], known, n=1)
    return f"Did you mean {near[0]!r}?" if near else "It takes " + ", ".join(known) + "."


def _said(error: ValidationError, kind: type[Arguments]) -> Invalid:
    """Which arguments are wrong, in words. Never the value itself: it may be a whole note."""
    wrong: dict[str, str] = {}
    missing: list[str] = []
    for each in error.errors(include_url=False, include_context=False, include_input=False):
        where = ".".join(str(part) for part in each["loc"] if not str(part).startswith("function-")) or "arguments"
        if each["type"] == "missing" and len(each["loc"]) == 1:
            missing.append(where)
        else:
            wrong.setdefault(where, each["msg"].removeprefix("Value error, "))
    said = [f"{name!r} is needed" for name in missing] + [f"{name!r}: {message}" for name, message in wrong.items()]
    return Invalid("; ".join(said) + ".", hint="It takes " + ", ".join(kind.model_fields) + ".")


def from_json(value: Any) -> Any:
    """An object or list that came as the text of one."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _object(value: Any) -> Any:
    value = from_json(value)
    return {} if value == "" else value


def _tags(value: Any) -> Any:
    """Tags as they come; in a map the text `true` is meant as true."""
    value = from_json(value)
    if isinstance(value, Mapping):
        return {key: True if each in ("true", "True") else each for key, each in value.items()}
    return value


def _a_list(value: Any) -> Any:
    """A list; a single thing, or several separated by commas, is meant as one."""
    value = from_json(value)
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return [value] if isinstance(value, Mapping) else value


def _no_name_marks(value: Any) -> Any:
    """A name without the brackets of a wikilink, the scheme of a resource, `.md` at its end."""
    if not isinstance(value, str):
        return value
    name = value.strip()
    if name.startswith("memory://"):
        from urllib.parse import unquote

        name = unquote(name.removeprefix("memory://"))
    if name.startswith("[[") and name.endswith("]]"):
        name = name[2:-2].split("|", 1)[0].split("#", 1)[0].strip()
    return name[:-3] if name.lower().endswith(".md") and len(name) > 3 else name


def _hash(value: Any) -> Any:
    """A hash without decoration: `sha256:AB12…` is `ab12…`. The first twelve digits of one are enough. Two with a plus
    between them accept the merge that a lost race offered."""
    if not isinstance(value, str):
        return value
    if value.count("+") == 1:
        base, current = (_hash(part) for part in value.split("+"))
        return f"{base}+{current}" if base and current else base or current
    digits = value.strip().strip("`").removeprefix("sha256:").strip().lower()
    if not digits:
        return None
    if not 12 <= len(digits) <= 64 or digits.strip("0123456789abcdef"):
        raise ValueError("a SHA-256 has 64 hexadecimal digits; the first 12 or more of them will do")
    return digits


def at_most(most: int) -> BeforeValidator:
    """For a `limit`: more than `most` is taken as `most`."""

    def clamped(value: Any) -> Any:
        try:
            return min(int(value), most) if not isinstance(value, bool) else value
        except (TypeError, ValueError, OverflowError):
            return value

    return BeforeValidator(clamped)


def _a_word(*words: str) -> BeforeValidator:
    """One of a few words, however it is written."""

    def read(value: Any) -> Any:
        word = value.strip().lower() if isinstance(value, str) else value
        if word not in words:
            raise ValueError("it is one of " + ", ".join(words))
        return word

    return BeforeValidator(read)


Name = Annotated[
    str,
    BeforeValidator(_no_name_marks),
    Field(validation_alias=AliasChoices("name", "path", "id", "memory_id")),
]
NewName = Annotated[str, BeforeValidator(_no_name_marks)]
OtherName = Annotated[str | None, BeforeValidator(_no_name_marks)]
Sha = Annotated[str | None, BeforeValidator(_hash)]
Object = Annotated[dict[str, Any], BeforeValidator(_object)]
Words = Annotated[list[str], BeforeValidator(_a_list)]
Tags = Annotated[Any, BeforeValidator(_tags)]
"""Tags in any notation: a map, a list, `a, b`. The store knows how to read them."""

Mode = Annotated[Literal["hybrid", "text", "semantic"], _a_word("hybrid", "text", "semantic")]
Sort = Annotated[Literal["modified", "created", "name", "title"], _a_word("modified", "created", "name", "title")]


class Edit(BaseModel):
    """Exact text to find once in a note, and what to put in its place."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    old: str = Field(validation_alias=AliasChoices("old", "old_str", "old_text", "oldText", "old_string"))
    new: str = Field(validation_alias=AliasChoices("new", "new_str", "new_text", "newText", "new_string"))


Edits = Annotated[
    list[Edit],
    BeforeValidator(_a_list),
    WithJsonSchema(
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"old": {"type": "string"}, "new": {"type": "string"}},
                "required": ["old", "new"],
            },
        }
    ),
]
