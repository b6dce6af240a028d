"""The forms a graph can be exported in, by their names: each makes a text of a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from simplemem.kinds.graph import jsonl
from simplemem.kinds.graph.values import Graph

FORMATS: Final[dict[str, Callable[[Graph], str]]] = {
    "jsonl": jsonl.written,
}
