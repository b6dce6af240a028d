"""The toolset `graph`: the knowledge graph in a vault, for the default server."""

from __future__ import annotations

from typing import Any

from simplemem.faces import graph_read, graph_write
from simplemem.faces.tool import Tool

TOOLS: tuple[Tool[Any], ...] = (*graph_write.TOOLS, *graph_read.TOOLS)
