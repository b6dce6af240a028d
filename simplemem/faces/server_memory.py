"""The face of the graph memory server that most clients know, `@modelcontextprotocol/server-memory`: its nine tools.

memento.md §2 and §3 are their contract: arguments, the shapes of answers, the texts of errors. What people said of that
server is done better, in ways no client can see: nothing acknowledged is lost, and every entity is a note.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypedDict

from pydantic import BaseModel, ValidationError

from simplemem.errors import Invalid
from simplemem.faces import graph_tools as verbs
from simplemem.faces.face import Data, Manner, Reply, Tool
from simplemem.faces.graph_tools import Added, EntityOut, GraphArguments, RelationOut, Rules
from simplemem.faces.render import pretty
from simplemem.faces.schema import closed
from simplemem.kinds.graph.values import NoSuchEntity

if TYPE_CHECKING:
    from simplemem.errors import SimplememError

_DRAFT = "http://json-schema.org/draft-07/schema#"


class JsonText(Manner):
    """The manner of graph memory servers: answers are JSON as text too, failures are words alone. Arguments are held to
    their types; what is not listed is dropped, and null is as absent."""

    base = GraphArguments

    def listing(self, tool: Tool) -> Data:
        shown = super().listing(tool)
        shown["inputSchema"] = {"$schema": _DRAFT, **tool.input}
        shown["execution"] = {"taskSupport": "forbidden"}
        return shown | ({"outputSchema": {"$schema": _DRAFT, **closed(tool.output)}} if tool.output else {})

    def read(self, tool: Tool, sent: Mapping[str, Any] | None) -> tuple[BaseModel, list[str]]:
        listed = tool.input["properties"]  # not the other names that an argument has elsewhere
        given = {key: value for key, value in (sent or {}).items() if key in listed and value is not None}
        try:
            return tool.model.model_validate(given, context=verbs.EXACT), []
        except ValidationError as error:
            wrong = [f"{each['msg']} at {'.'.join(map(str, each['loc']))}" for each in error.errors(include_url=False)]
            why = f"Input validation error: Invalid arguments for tool {tool.name}: " + "\n".join(wrong)
            raise Invalid(f"MCP error -32602: {why}") from None

    def failed(self, error: SimplememError) -> tuple[str, Data | None]:
        """Of an entity that is not there the words are those that clients know, and no more."""
        known = isinstance(error, NoSuchEntity) or not error.hint
        return (error.message if known else f"{error.message} {error.hint}"), None

    def unknown(self, name: str) -> str:
        return f"MCP error -32602: Tool {name} not found"


Entities = TypedDict("Entities", {"entities": list[EntityOut]})
Relations = TypedDict("Relations", {"relations": list[RelationOut]})
Results = TypedDict("Results", {"results": list[Added]})
Done = TypedDict("Done", {"success": bool, "message": str})


def _as_json(verb: str, data: Data) -> Reply[Any]:
    """Answers as that server gives them: JSON as text, or a sentence that is always the same."""
    begins, what = verb.split("_", 1)
    if begins == "delete":
        message = f"{what.capitalize()} deleted successfully"
        return Reply(message, {"success": True, "message": message})
    if begins in ("create", "add"):
        key = next(iter(data))
        return Reply(pretty(data[key]), {key: data[key]})
    return Reply(pretty(data), data)


HINTS: Final[dict[str, dict[str, Any]]] = {verb.__name__: {"return": Reply[Done]} for verb in verbs.VERBS[3:6]} | {
    "create_entities": {"return": Reply[Entities]},
    "create_relations": {"return": Reply[Relations]},
    "add_observations": {"return": Reply[Results]},
}
RULES: Final = Rules(_as_json, JsonText(), is_reference=True, hints=HINTS)
TOOLS: tuple[Tool, ...] = verbs.graph_tools(RULES, *verbs.VERBS)
