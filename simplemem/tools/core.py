"""The default tool group, in the order in which a model sees it."""

from __future__ import annotations

from simplemem.tools.history import memory_history, undo_change
from simplemem.tools.reading import list_memories, read_memory
from simplemem.tools.searching import build_context, get_backlinks, search_memories
from simplemem.tools.writing import (
    change_tag,
    create_memory,
    delete_memory,
    move_memory,
    update_memory,
)

TOOLS = (
    search_memories,
    read_memory,
    create_memory,
    update_memory,
    change_tag,
    list_memories,
    get_backlinks,
    build_context,
    move_memory,
    delete_memory,
    memory_history,
    undo_change,
)
