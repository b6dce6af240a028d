"""The tool of Claude's memory.

The answer is text only, and an error is its message: Invalid for a call that the tool refuses, or
an error of the vault such as ReadOnly. `simplemem.anthropic.MemoryTool` is the same for programs
that use Anthropic's SDK.
"""

from __future__ import annotations

from typing import Annotated, Literal

from simplemem.errors import SimplememError
from simplemem.features import files
from simplemem.store import EnhancedStore
from simplemem.tools.arguments import about
from simplemem.tools.tool import Caller, Data, Reply, ToolAdapter, tool

Command = Literal["view", "create", "str_replace", "insert", "delete", "rename"]
Text = str | None
Path = Annotated[Text, about("below /memories")]
LineRange = Annotated[
    list[int] | None,
    about("for view: [first line, last line]; -1 is the end"),
]
Line = Annotated[
    int | None,
    about("for insert: after this line, 0 is the top"),
]


class _TextAdapter(ToolAdapter):
    """Reports an error as its message, without fields."""

    def failed(self, error: SimplememError) -> tuple[str, Data | None]:
        """Return the message of an error, and None for its fields."""
        return error.message, None


@tool("Memory", writes=True, destructive=True, idempotent=False, adapter=_TextAdapter())
def memory(
    store: EnhancedStore,
    caller: Caller,
    command: Command,
    path: Path = None,
    view_range: LineRange = None,
    file_text: Annotated[Text, about("for create")] = None,
    old_str: Annotated[Text, about("for str_replace: text that occurs once")] = None,
    new_str: Annotated[Text, about("for str_replace")] = None,
    insert_line: Line = None,
    insert_text: Annotated[Text, about("for insert")] = None,
    old_path: Annotated[Text, about("for rename")] = None,
    new_path: Annotated[Text, about("for rename")] = None,
) -> Reply[None]:
    """View, create, edit, delete and rename memory files below /memories. View /memories first."""
    call = {
        "command": command,
        "path": path,
        "view_range": view_range,
        "file_text": file_text,
        "old_str": old_str,
        "new_str": new_str,
        "insert_line": insert_line,
        "insert_text": insert_text,
        "old_path": old_path,
        "new_path": new_path,
    }
    return Reply(files.run(store, call, **caller))


TOOLS = (memory,)
