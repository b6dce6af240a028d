"""JSON as `JSON.stringify(value, null, 2)` writes it, and quickly: a graph may have many thousand lines. Pure."""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import to_json

from simplemem.kinds.graph.jsonl import escaped


def pretty(value: Any) -> str:
    """A JSON value over several lines, indented by two. Half a surrogate pair is escaped."""
    try:
        return to_json(value, indent=2).decode()
    except ValueError:  # half a pair, which UTF-8 cannot say
        return escaped(json.dumps(value, indent=2, ensure_ascii=False))
