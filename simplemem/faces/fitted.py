"""Arguments held to a schema as another server holds them: strictly, with what it does not know dropped. Pure.

What is listed to clients is what is checked, so the two cannot come apart. Only the form is forgiven that models are
known to send: anything but a text as a string of JSON, null for what may be left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]

_NUMBERS = ("number", "integer")
_SAID_AS_JSON = ("array", "object", "boolean", *_NUMBERS)


class Unfit(Exception):
    """The arguments do not fit; `issues` says where and why, a line each."""

    def __init__(self, issues: list[str]) -> None:
        super().__init__("\n".join(issues))
        self.issues = issues


def fitted(schema: Schema, sent: Mapping[str, Any]) -> dict[str, Any]:
    """What was sent, as the schema of an object has it. Raises Unfit naming all that is wrong."""
    issues: list[str] = []
    taken = _taken(schema, dict(sent), "", issues)
    if issues:
        raise Unfit(issues)
    return dict(taken)


def utf16_length(text: str) -> int:
    """How long JavaScript says that a text is."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _taken(schema: Schema, value: Any, where: str, issues: list[str]) -> Any:
    kind = schema.get("type")
    if kind in _SAID_AS_JSON and isinstance(value, str):
        value = from_json(value)
    if not _is(kind, value):
        issues.append(f"Invalid input: expected {kind}, received {_called(value)}{_at(where)}")
    elif kind == "object" and "properties" in schema:
        return _properties(schema, value, where, issues)
    elif kind == "array" and "items" in schema:
        return [_taken(schema["items"], each, f"{where}[{k}]", issues) for k, each in enumerate(value)]
    elif kind == "string" and utf16_length(value) > schema.get("maxLength", len(value) * 2):
        issues.append(f"Too big: expected string to have <={schema['maxLength']} characters{_at(where)}")
    elif kind in _NUMBERS and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        issues.append(f"Invalid input: {value} is not between what is allowed{_at(where)}")
    return value


def _properties(schema: Schema, value: Mapping[str, Any], where: str, issues: list[str]) -> dict[str, Any]:
    required, taken = schema.get("required", ()), {}
    for name, part in schema["properties"].items():
        inside = f"{where}.{name}" if where else name
        if name not in value and name in required:
            issues.append(f"Invalid input: expected {part.get('type')}, received undefined at {inside}")
        elif name in value and (value[name] is not None or name in required):
            taken[name] = _taken(part, value[name], inside, issues)
    return taken


def from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _is(kind: Any, value: Any) -> bool:
    if kind == "string":
        return isinstance(value, str)
    if kind == "array":
        return isinstance(value, list)
    if kind == "object":
        return isinstance(value, dict)
    if kind == "boolean":
        return isinstance(value, bool)
    if kind not in _NUMBERS:
        return True
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return False
    return kind == "number" or value == int(value)


def _called(value: Any) -> str:
    """What JavaScript calls a value."""
    names = {type(None): "null", bool: "boolean", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "number")


def _at(where: str) -> str:
    return f" at {where}" if where else ""
