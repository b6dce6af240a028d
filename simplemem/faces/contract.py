"""A tool whose interface is another server's: schemas, result shapes and the words of its errors are given, not ours.

Its arguments are held to the schema it lists (`fitted.py`), not to our own forgiving reading; its answer carries no
`error` beside the data, because the clients of that server do not look for one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from simplemem.faces.arguments import Arguments
from simplemem.faces.tool import Tool

Schema = dict[str, Any]

_DRAFT = "http://json-schema.org/draft-07/schema#"


class Given(Arguments):
    """Arguments that fit the schema of their tool."""

    given: dict[str, Any]


class Refused(Exception):
    """The tool answers with an error, and these are its words."""


@dataclass(frozen=True)
class ContractTool(Tool[Given]):
    """A tool of such a server."""

    schema: Schema = field(default_factory=dict)

    @cached_property
    def input(self) -> Schema:
        return {"$schema": _DRAFT, **self.schema}

    def listing(self) -> Schema:
        shown = super().listing()
        shown["execution"] = {"taskSupport": "forbidden"}
        if self.output:
            shown["outputSchema"] = {"$schema": _DRAFT, **self.output}
        return shown


def text(description: str = "") -> Schema:
    return {"type": "string", **({"description": description} if description else {})}


def number(description: str = "", **bounds: float) -> Schema:
    return {"type": "number", **({"description": description} if description else {}), **bounds}


def flag(description: str = "") -> Schema:
    return {"type": "boolean", **({"description": description} if description else {})}


def several(items: Schema, description: str = "") -> Schema:
    return {"type": "array", "items": items, **({"description": description} if description else {})}


def thing(properties: dict[str, Schema], required: tuple[str, ...] | None = None) -> Schema:
    """An object; all its properties are required unless it is said which."""
    needed = list(properties if required is None else required)
    return {"type": "object", "properties": properties, **({"required": needed} if needed else {})}


def closed(schema: Schema) -> Schema:
    """The schema of an answer: what it lists and nothing else, at any depth."""
    if schema.get("type") == "array":
        return {**schema, "items": closed(schema["items"])}
    if schema.get("type") != "object":
        return schema
    inside = {name: closed(each) for name, each in schema["properties"].items()}
    return {**schema, "properties": inside, "additionalProperties": False}
