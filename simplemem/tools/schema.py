"""JSON schemas of the arguments and answers of tools, made from type hints.

A client sends the list of tools to a model with every request, so each schema is as short as
possible: no titles, no references, no `null` where a value may be left out. No validator is built.
pydantic's own generator would need one per tool before the first list (`docs/decisions.md`).
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping, Sequence
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import AliasChoices, BaseModel, WithJsonSchema
from pydantic.fields import FieldInfo

Schema = dict[str, Any]
Fields = Mapping[str, tuple[Any, Any]]
"""Name -> type hint and default, which is `...` for a required field."""

_JSON_TYPES: Final[Mapping[object, str]] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    dict: "object",
    Mapping: "object",
}
_BOUNDS: Final = {
    "ge": "minimum",
    "le": "maximum",
    "min_length": "minLength",
    "max_length": "maxLength",
}
_ARRAY_BOUNDS: Final = _BOUNDS | {"min_length": "minItems", "max_length": "maxItems"}


def schema_of_fields(fields: Fields, *, answer: bool) -> Schema:
    """Return the schema of an object with these fields, listed under their first names.

    `answer` says whether it is an answer or the arguments of a tool: only an answer may list
    `null`.
    """
    properties: Schema = {}
    required = []
    for field, (hint, default) in fields.items():
        name = names_of(field, hint)[0]
        is_required = default is ...
        schema = schema_of(hint, answer=answer, is_optional=not is_required)
        if is_required:
            required.append(name)
        elif isinstance(default, (str, int, float)) and default != "":
            schema["default"] = default
        properties[name] = schema

    schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return schema


def schema_of_record(record: type, *, answer: bool) -> Schema:
    """Return the schema of a dataclass, a pydantic model or a TypedDict.

    `answer` is as for `schema_of_fields`.
    """
    hints = get_type_hints(record, include_extras=True)
    required = _required_fields(record, hints)
    fields = {
        name: (hint, ... if name in required else None)
        for name, hint in _in_declared_order(record, hints).items()
    }
    return schema_of_fields(fields, answer=answer)


def schema_of(hint: object, *, answer: bool, is_optional: bool = False) -> Schema:
    """Return the schema of a type. Raises AssertionError for one that has no schema.

    An argument that is null counts as absent. So `null` is listed only in an answer (`answer`), for
    a field that is always there (not `is_optional`).
    """
    origin = get_origin(hint)
    parameters = list(get_args(hint))

    if origin is Annotated:
        return _schema_of_annotated(hint, answer=answer)
    if hint is Any:
        return {}
    json_type = _JSON_TYPES.get(origin or hint)
    if json_type:
        return {"type": json_type}
    if origin is NotRequired:
        return schema_of(parameters[0], answer=answer, is_optional=True)
    if origin in (Union, types.UnionType):
        return _schema_of_union(parameters, answer=answer, has_null=answer and not is_optional)
    if origin is Literal:
        return {"enum": parameters, "type": "string"}
    if origin in (list, tuple, Sequence):
        return {"type": "array", "items": schema_of(parameters[0], answer=answer)}
    assert isinstance(hint, type), hint
    return schema_of_record(hint, answer=answer)


def omit_obvious(schema: Schema) -> Schema:
    """Return the schema of some arguments without what every model assumes.

    Options are off and counts start at 1. The arguments that are accepted stay the same.
    """
    properties = {}
    for name, argument in schema["properties"].items():
        shortened = dict(argument)
        if shortened.get("default") is False:
            del shortened["default"]
        if shortened.get("minimum") == 1:
            del shortened["minimum"]
        properties[name] = shortened
    return {**schema, "properties": properties}


def closed(schema: Schema) -> Schema:
    """Return the schema of an answer that forbids fields that it does not list, at any depth."""
    if schema.get("type") == "array":
        return {**schema, "items": closed(schema["items"])}
    if "properties" not in schema:
        return schema
    properties = {name: closed(field) for name, field in schema["properties"].items()}
    return {**schema, "properties": properties, "additionalProperties": False}


def names_of(name: str, hint: object) -> list[str]:
    """Return every name of an argument, the one that is listed first.

    `hint` is its type. Without `aliases` in it, the argument has only the name of its parameter.
    """
    for field in reversed(getattr(hint, "__metadata__", ())):
        if isinstance(field, FieldInfo) and isinstance(field.validation_alias, AliasChoices):
            return [str(choice) for choice in field.validation_alias.choices]
    return [name]


def _required_fields(record: type, hints: Mapping[str, Any]) -> set[str]:
    """Return the fields of a dataclass, a model or a TypedDict that have no default."""
    if dataclasses.is_dataclass(record):
        return {field.name for field in dataclasses.fields(record) if _has_no_default(field)}
    if issubclass(record, BaseModel):
        return {name for name, field in record.model_fields.items() if field.is_required()}
    return {name for name, hint in hints.items() if get_origin(hint) is not NotRequired}


def _has_no_default(field: dataclasses.Field[Any]) -> bool:
    """Return whether a field of a dataclass must be given."""
    missing = dataclasses.MISSING
    return field.default is missing and field.default_factory is missing


def _in_declared_order(record: type, hints: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the hints of a record's fields in their order, without class variables.

    The hints of a record that is neither a dataclass nor a model of pydantic come back as they are.
    """
    if dataclasses.is_dataclass(record):
        return {field.name: hints[field.name] for field in dataclasses.fields(record)}
    if issubclass(record, BaseModel):
        return {name: hints[name] for name in record.model_fields}
    return hints


def _schema_of_union(parameters: Sequence[Any], *, answer: bool, has_null: bool) -> Schema:
    """Return the schema of a union of types. `null` is one of them only with `has_null`.

    A union of one type has the schema of this type.
    """
    null = type(None)
    schemas = [schema_of(hint, answer=answer) for hint in parameters if hint is not null]
    if has_null and null in parameters:
        schemas.append({"type": "null"})
    if len(schemas) == 1:
        return schemas[0]
    return {"anyOf": schemas}


def _schema_of_annotated(hint: object, *, answer: bool) -> Schema:
    """Return the schema of a type with the description and the bounds that annotate it."""
    annotated_type, *annotations = get_args(hint)
    schema = schema_of(annotated_type, answer=answer)
    for annotation in annotations:
        if isinstance(annotation, WithJsonSchema):
            schema = dict(annotation.json_schema or {})
        elif isinstance(annotation, FieldInfo):
            if annotation.description:
                schema["description"] = annotation.description
            schema.update(_bounds_of(annotation, is_array=schema.get("type") == "array"))
    return schema


def _bounds_of(field: FieldInfo, *, is_array: bool) -> Schema:
    """Return the bounds of a value, or of the length of a text or list, as JSON Schema has them."""
    keywords = _ARRAY_BOUNDS if is_array else _BOUNDS
    bounds = {}
    for constraint in field.metadata:
        for attribute, keyword in keywords.items():
            value = getattr(constraint, attribute, None)
            if value is not None:
                bounds[keyword] = value
    return bounds
