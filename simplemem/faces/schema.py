"""JSON Schemas of answers, said briefly: what stands in them is a contract with programs, and every byte
is paid for by each client."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
MAYBE_TEXT: Schema = {"anyOf": [{"type": "string"}, {"type": "null"}]}
NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
MAP: Schema = {"type": "object"}


def record(optional: tuple[str, ...] = (), /, **properties: Schema) -> Schema:
    """An object with these properties; all are required but the `optional` ones."""
    needed = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": needed}


def several(item: Schema) -> Schema:
    """A list of such items."""
    return {"type": "array", "items": item}


def or_an_error(answer: Schema) -> Schema:
    """The schema of an answer that may be a failure instead. Most clients check what a tool says against
    its schema even when that is a failure, and keep one that does not fit from the model."""
    return {
        "type": "object",
        "properties": {**answer["properties"], "error": ERROR},
        "anyOf": [{"required": answer["required"]}, {"required": ["error"]}],
    }


TEXTS = several(TEXT)
INDEX = record(("reason",), state=TEXT, notes=COUNT, pending=COUNT, reason=TEXT)
ERROR = record(("hint",), code=TEXT, message=TEXT, hint=TEXT)
