"""Claude's memory tool for programs that use Anthropic's SDK (from a checkout: `pip install ".[anthropic]"`):

client.beta.messages.tool_runner(tools=[MemoryTool("~/notes")], ...)
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from anthropic.lib.tools import BetaAbstractMemoryTool, ToolError

from simplemem.errors import SimplememError
from simplemem.features.files import run
from simplemem.store import open_store


class MemoryTool(BetaAbstractMemoryTool):
    """The folder `memories/` of a vault as Claude's memory. Close it, or use it as a context manager."""

    def __init__(self, vault: str | os.PathLike[str] | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.store = open_store(os.path.expanduser(vault) if vault is not None else None)

    def execute(self, command: Any) -> str:
        """Carry out a command of the model."""
        call: Mapping[str, Any] = command if isinstance(command, Mapping) else vars(command)
        try:
            return run(self.store, call, who="claude", tool="memory")
        except SimplememError as error:
            raise ToolError(error.message) from error

    view = create = str_replace = insert = delete = rename = execute

    def clear_all_memory(self) -> str:
        """Put everything below /memories into the trash."""
        for line in run(self.store, {"command": "view", "path": "/memories"}).split("\n")[2:]:
            path = line.partition("\t")[2].rstrip("/")
            if path.count("/") == 2:
                run(self.store, {"command": "delete", "path": path}, who="claude", tool="memory")
        return "All memory cleared"

    def close(self) -> None:
        """Close the vault."""
        self.store.close()

    def __enter__(self) -> MemoryTool:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
