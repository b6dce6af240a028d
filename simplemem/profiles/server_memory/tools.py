"""The tools of the profile `server-memory`, as `@modelcontextprotocol/server-memory` lists them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from simplemem.errors import Invalid, SimplememError
from simplemem.features.graph.values import NoSuchEntity
from simplemem.profiles.server_memory.answers import Entities, Relations, Results, Success
from simplemem.profiles.server_memory.arguments import GraphArguments
from simplemem.profiles.server_memory.verbs import DELETING_VERBS, VERBS, Rules, graph_tools
from simplemem.tools import render
from simplemem.tools.arguments import EXACT
from simplemem.tools.normalize import describe_errors
from simplemem.tools.schema import closed
from simplemem.tools.tool import Data, Reply, Tool, ToolAdapter

_SCHEMA_DIALECT: Final = "http://json-schema.org/draft-07/schema#"


class ReferenceAdapter(ToolAdapter):
    """Lists tools, validates arguments and reports errors like graph memory servers.

    An error is a text without a code, and arguments must have exactly their types.
    """

    base = GraphArguments

    def listing(self, tool: Tool) -> Data:
        """Return the tool as `tools/list` of these servers shows it."""
        listing = super().listing(tool)
        listing["inputSchema"] = {"$schema": _SCHEMA_DIALECT, **tool.input}
        listing["execution"] = {"taskSupport": "forbidden"}
        if tool.output:
            listing["outputSchema"] = {"$schema": _SCHEMA_DIALECT, **closed(tool.output)}
        return listing

    def read(self, tool: Tool, sent: Mapping[str, Any] | None) -> BaseModel:
        """Return the validated arguments of a call. Unknown ones and null are ignored.

        `sent` are the arguments as the client passed them, or None. Raises Invalid with the
        message of these servers, which names every error.
        """
        names = tool.input["properties"]  # without the other names that an argument has elsewhere
        arguments = {
            name: value
            for name, value in (sent or {}).items()
            if name in names and value is not None
        }
        try:
            return tool.model.model_validate(arguments, context=EXACT)
        except ValidationError as error:
            errors = "\n".join(f"{place} {message}" for place, message in describe_errors(error))
            reason = f"Input validation error: Invalid arguments for tool {tool.name}: {errors}"
            raise Invalid(f"MCP error -32602: {reason}") from None

    def failed(self, error: SimplememError) -> tuple[str, Data | None]:
        """Return the text of an error, its message and hint, and None: an error has no data.

        NoSuchEntity has no hint in the text, because clients know exactly the words of its message.
        """
        if isinstance(error, NoSuchEntity):
            return error.message, None
        return f"{error.message} {error.hint}".rstrip(), None


def _reply_in_json(verb: str, data: Data) -> Reply[Any]:
    """Return the answer of server-memory: JSON as text, or a constant sentence after a deletion.

    `verb` is the name of a tool's function, which says whether it deletes, adds or reads, and
    `data` is its answer, of a type in `answers`. If it adds, only the first field is returned.
    """
    action, _, subject = verb.partition("_")
    if action == "delete":
        message = f"{subject.capitalize()} deleted successfully"
        return Reply(message, {"success": True, "message": message})
    if action in ("create", "add"):
        # Only the first field: the others say what our own tools left out.
        key = next(iter(data))
        return Reply(render.pretty(data[key]), {key: data[key]})
    return Reply(render.pretty(data), data)


HINTS: Final[dict[str, dict[str, Any]]] = {
    "create_entities": {"return": Reply[Entities]},
    "create_relations": {"return": Reply[Relations]},
    "add_observations": {"return": Reply[Results]},
    **{verb.__name__: {"return": Reply[Success]} for verb in DELETING_VERBS},
}
"""The types of the answers (the type hint "return"), by the name of the tool."""

RULES: Final = Rules(_reply_in_json, ReferenceAdapter(), is_reference=True, hints=HINTS)
TOOLS: Final[tuple[Tool, ...]] = graph_tools(RULES, *VERBS)
