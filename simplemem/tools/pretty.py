"""JSON as `JSON.stringify(value, null, 2)` writes it, and quickly: a graph may have many thousand lines. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from json.encoder import encode_basestring
from typing import Any

from simplemem.graph.jsonl import escaped

_STEP = "  "


def pretty(value: Any) -> str:
    """A JSON value over several lines, indented by two. Half a surrogate pair is escaped."""
    return escaped(_said(value, "\n"))


def _said(value: Any, line: str) -> str:
    # Texts, which are most of a graph, are not worth a call each.
    if isinstance(value, str):
        return encode_basestring(value)
    inner = line + _STEP
    if isinstance(value, Mapping) and value:
        parts = [
            f"{encode_basestring(key)}: {encode_basestring(each) if type(each) is str else _said(each, inner)}"
            for key, each in value.items()
        ]
        return "{" + inner + f",{inner}".join(parts) + line + "}"
    if isinstance(value, (list, tuple)) and value:
        parts = [encode_basestring(each) if type(each) is str else _said(each, inner) for each in value]
        return "[" + inner + f",{inner}".join(parts) + line + "]"
    return json.dumps(value)
