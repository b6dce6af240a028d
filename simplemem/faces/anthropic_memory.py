"""The face of Claude's memory tool: one tool, whose text is the answer, and a failure its own words. `MemoryTool` of
`simplemem.anthropic` is the same for programs that use Anthropic's SDK."""

from __future__ import annotations

from typing import Annotated, Literal

from simplemem.errors import SimplememError
from simplemem.faces.arguments import about
from simplemem.faces.face import Caller, Data, Manner, Reply, tool
from simplemem.kinds import files
from simplemem.store import EnhancedStore


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
    view_range: Annotated[list[int] | None, about("of view: [first line, last line], -1 for the end")] = None,
    file_text: Annotated[Text, about("of create")] = None,
    old_str: Annotated[Text, about("of str_replace: what stands there once")] = None,
    new_str: Annotated[Text, about("of str_replace")] = None,
    insert_line: Annotated[int | None, about("of insert: behind which line, 0 for the top")] = None,
    insert_text: Annotated[Text, about("of insert")] = None,
    old_path: Annotated[Text, about("of rename")] = None,
    new_path: Annotated[Text, about("of rename")] = None,
) -> Reply[None]:
    """View, create, edit, delete and rename files of memory below /memories. View /memories first."""
    call = {key: value for key, value in locals().items() if key not in ("store", "caller")}
    return Reply(files.run(store, call, **caller))


TOOLS = (memory,)
