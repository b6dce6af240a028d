"""The profile of Claude's memory tool: one tool, whose text is the answer, and a failure its own words. `MemoryTool` of
`simplemem.anthropic` is the same for programs that use Anthropic's SDK."""

from __future__ import annotations

from typing import Annotated, Literal

from simplemem.errors import SimplememError
from simplemem.features import files
from simplemem.store import EnhancedStore
from simplemem.tools.arguments import about
from simplemem.tools.tool import Caller, Data, Manner, Reply, tool


class _Words(Manner):
    def failed(self, error: SimplememError) -> tuple[str, Data | None]:
        return error.message, None


Text = str | None
Path = Annotated[Text, about("below /memories")]


@tool("Memory", writes=True, destructive=True, idempotent=False, manner=_Words())
def memory(
    store: EnhancedStore,
    caller: Caller,
    command: Literal["view", "create", "str_replace", "insert", "delete", "rename"],
    path: Path = None,
    view_range: Annotated[
        list[int] | None, about("for view: [first line, last line]; -1 is the end")
    ] = None,
    file_text: Annotated[Text, about("for create")] = None,
    old_str: Annotated[Text, about("for str_replace: text that occurs once")] = None,
    new_str: Annotated[Text, about("for str_replace")] = None,
    insert_line: Annotated[int | None, about("for insert: after this line, 0 is the top")] = None,
    insert_text: Annotated[Text, about("for insert")] = None,
    old_path: Annotated[Text, about("for rename")] = None,
    new_path: Annotated[Text, about("for rename")] = None,
) -> Reply[None]:
    """View, create, edit, delete and rename memory files below /memories. View /memories first."""
    call = {key: value for key, value in locals().items() if key not in ("store", "caller")}
    return Reply(files.run(store, call, **caller))


TOOLS = (memory,)
