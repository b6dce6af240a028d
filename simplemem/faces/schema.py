"""JSON Schemas made of type hints, as short as they can be said: each client pays for every byte of a list of tools,
and the list is made while it waits, so no validators are built. Arguments show the plainest form they are read in.
Pure."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints

from pydantic import AliasChoices, BaseModel, WithJsonSchema
from pydantic.fields import FieldInfo

Schema = dict[str, Any]

_PLAIN: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
_BOUNDS = {"ge": "minimum", "le": "maximum", "min_length": "minLength", "max_length": "maxLength"}
_ERROR: Schema = {
    "type": "object",
    "properties": {"code": {"type": "string"}, "message": {"type": "string"}, "hint": {"type": "string"}},
    "required": ["code", "message"],
}


def schema_of(hint: Any, *, answer: bool, optional: bool = False) -> Schema:
    """The schema of a type. Null is the same as absent: it stands only in an answer that is always there."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _annotated(hint, answer)
    if hint is Any:
        return {}
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if origin is NotRequired:
        return schema_of(inside[0], answer=answer, optional=True)
    if origin in (Union, types.UnionType):
        forms = [schema_of(each, answer=answer) for each in inside if each is not type(None)]
        forms += [{"type": "null"}] if answer and not optional and type(None) in inside else []
        return forms[0] if len(forms) == 1 else {"anyOf": forms}
    if origin is Literal:
        return {"enum": list(inside), "type": "string"}
    if origin in (list, tuple, Sequence):
        return {"type": "array", "items": schema_of(inside[0], answer=answer)}
    if origin in (dict, Mapping) or hint in (dict, Mapping):
        return {"type": "object"}
    return record_of(hint, answer=answer)


def record_of(kind: type, *, answer: bool) -> Schema:
    """The schema of a dataclass, a model or a typed dictionary: what has no default is always there."""
    hints = get_type_hints(kind, include_extras=True)
    if dataclasses.is_dataclass(kind):
        nothing = dataclasses.MISSING
        needed = {each.name: each.default is nothing is each.default_factory for each in dataclasses.fields(kind)}
    elif issubclass(kind, BaseModel):
        needed = {name: field.is_required() for name, field in kind.model_fields.items()}
    else:
        needed = {name: get_origin(hint) is not NotRequired for name, hint in hints.items()}
    return record({name: hints[name] for name in needed}, needed, answer=answer)


def record(hints: Mapping[str, Any], needed: Mapping[str, bool], *, answer: bool) -> Schema:
    """The schema of an object with these properties, each under the first name it goes by."""
    shown = {
        names_of(name, hint)[0]: schema_of(hint, answer=answer, optional=not needed[name])
        for name, hint in hints.items()
    }
    required = [names_of(name, hint)[0] for name, hint in hints.items() if needed[name]]
    return {"type": "object", "properties": shown} | ({"required": required} if required else {})


def or_an_error(answer: Schema) -> Schema:
    """The schema of an answer that may be a failure instead: most clients check what a tool says even then."""
    properties = {**answer["properties"], "error": _ERROR}
    either = [{"required": answer.get("required", [])}, {"required": ["error"]}]
    return {"type": "object", "properties": properties, "anyOf": either}


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
                        shown[said.replace("Length", "Items") if shown.get("type") == "array" else said] = value
    return shown
