"""The default toolset: twelve tools, in the order a model should meet them."""

from __future__ import annotations

from typing import Any

from simplemem.faces import core_read as read
from simplemem.faces import core_search as search
from simplemem.faces import core_undo as undo
from simplemem.faces import core_write as write
from simplemem.faces.tool import Tool

TOOLS: tuple[Tool[Any], ...] = (
    search.SEARCH,
    read.READ,
    write.CREATE,
    write.UPDATE,
    write.TAG,
    read.LIST,
    search.BACKLINKS,
    search.CONTEXT,
    write.MOVE,
    write.DELETE,
    read.HISTORY,
    undo.UNDO,
)
