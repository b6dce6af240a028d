"""Claude's memory tool for programs that use Anthropic's SDK.

From a checkout, `pip install ".[anthropic]"` installs what it needs. Usage:
`client.beta.messages.tool_runner(tools=[MemoryTool("~/notes")], ...)`.
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
    """The folder `memories/` of a vault as Claude's memory.

    Guards the open store of the vault. Close it, or use it as a context manager.
    """

    def __init__(self, vault: str | os.PathLike[str] | None = None, **options: Any) -> None:
        """Open a vault, and create its folder if it does not exist.

        Without `vault`, it is the one that the command line would use. `options` are those of the
        SDK's class. Raises NotFound if there is no vault and none can be created, Invalid for wrong
        settings, and Unavailable if the index cannot be opened.
        """
        super().__init__(**options)
        folder = None if vault is None else os.path.expanduser(vault)
        self.store = open_store(folder)

    def execute(self, command: Any) -> str:
        """Carry out a command of the model, and return the answer.

        `command` has the command's name in `command` and its arguments, as keys or attributes.
        Raises ToolError, whose message the model reads, if it fails.
        """
        call: Mapping[str, Any]
        if isinstance(command, Mapping):
            call = command
        else:
            call = vars(command)
        try:
            return run(self.store, call, who="claude", tool="memory")
        except SimplememError as error:
            raise ToolError(error.message) from error

    # The SDK's class requires a method for each command.
    view = create = str_replace = insert = delete = rename = execute

    def clear_all_memory(self) -> str:
        """Move everything below /memories to the trash, and return a sentence that says so.

        Each file and folder is a change of its own. Raises a SimplememError, such as ReadOnly, if
        one cannot be moved; those before it stay in the trash.
        """
        listing = run(self.store, {"command": "view", "path": "/memories"})
        lines = listing.split("\n")
        for line in lines[2:]:  # below a heading and the folder itself
            _size, _tab, path = line.partition("\t")
            path = path.rstrip("/")
            is_at_top = path.count("/") == 2
            if is_at_top:
                run(self.store, {"command": "delete", "path": path}, who="claude", tool="memory")
        return "All memory cleared"

    def close(self) -> None:
        """Close the vault."""
        self.store.close()

    def __enter__(self) -> MemoryTool:
        """Return the tool itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the vault, whether there was an error or not."""
        self.close()
