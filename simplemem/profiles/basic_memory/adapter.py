"""How basic-memory's tools are listed and called.

They have its schemas and its plain error texts, and each call is for one project.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, cast, get_type_hints

from pydantic import BaseModel

from simplemem.errors import SimplememError
from simplemem.profiles.basic_memory.arguments import ProjectArguments
from simplemem.profiles.basic_memory.project import Project, Result
from simplemem.store import EnhancedStore
from simplemem.tools.session import Session
from simplemem.tools.tool import Caller, Data, Reply, Tool, ToolAdapter


class BasicMemoryAdapter(ToolAdapter):
    """Lists tools with pydantic's schemas, as FastMCP does, and reports errors as text only."""

    def listing(self, tool: Tool) -> Data:
        """Return the entry of a tool in `tools/list`, with pydantic's schema of its arguments.

        Types of optional arguments allow null, and no argument has a title.
        """
        schema = tool.model.model_json_schema()
        properties = {
            name: {key: value for key, value in argument.items() if key != "title"}
            for name, argument in schema["properties"].items()
        }

        input_schema: Data = {}
        if "required" in schema:
            input_schema["required"] = schema["required"]
        input_schema["type"] = schema["type"]
        input_schema["additionalProperties"] = False
        input_schema["properties"] = properties

        output_schema = (tool.output or {}) | {"x-fastmcp-wrap-result": True}
        schemas = {"inputSchema": input_schema, "outputSchema": output_schema}
        return super().listing(tool) | schemas

    def failed(self, error: SimplememError) -> tuple[str, Data | None]:
        """Return the text of an error, and None: there is no structured data.

        It is the message alone if the error has no hint and no details.
        """
        if not error.hint and not error.details:
            return error.message, None
        text, _ = super().failed(error)
        return text, None


class BasicMemoryTool(Tool):
    """A tool whose function takes the project and one model with all arguments."""

    def __call__(
        self,
        store: EnhancedStore,
        caller: Caller,
        arguments: BaseModel,
        session: Session | None = None,
    ) -> Reply[Result]:
        """Call the function with the vault as a project, and return its answer.

        Without a `session`, the client has read nothing. Raises Invalid if the arguments name
        another project, and the errors of the function.
        """
        project_arguments = cast("ProjectArguments", arguments)
        project = Project(store, caller, project_arguments, session or Session())
        return self.run(project, arguments)

    @cached_property
    def model(self) -> type[BaseModel]:
        """The model of the arguments: the type of the function's second parameter."""
        model: type[BaseModel] = get_type_hints(self.run)["arguments"]
        return model

    @cached_property
    def arguments(self) -> dict[str, tuple[Any, Any]]:
        """The type and the default of each argument, by name; `...` if it is required."""
        hints = get_type_hints(self.model, include_extras=True)
        return {
            name: (hints[name], ... if field.is_required() else field.default)
            for name, field in self.model.model_fields.items()
        }


def basic_memory_tool(
    title: str, **options: Any
) -> Callable[[Callable[[Project, Any], Reply[Result]]], Tool]:
    """Return a decorator that makes a tool of a function.

    The function's name and docstring become those of the tool, and its second parameter has the
    model of the arguments. `options` are fields of `Tool`, such as `writes`.
    """

    def make_tool(run: Callable[[Project, Any], Reply[Result]]) -> Tool:
        """Return the tool of a function, whose name and docstring it has."""
        description = " ".join((run.__doc__ or "").split())
        return BasicMemoryTool(
            run, run.__name__, title, description, adapter=BasicMemoryAdapter(), **options
        )

    return make_tool
