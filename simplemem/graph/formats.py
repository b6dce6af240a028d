"""The forms a graph can be exported in, by their names: each makes a text of a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from simplemem.graph import jsonl
from simplemem.graph.values import Graph

FORMATS: Final[dict[str, Callable[[Graph], str]]] = {
    "jsonl": jsonl.written,
}
