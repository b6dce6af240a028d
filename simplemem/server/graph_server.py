"""A server of the SDK that stands in the place of a graph memory server: its name, its tools, its one resource. It has
no instructions and no prompts, because that server has none (memento.md §2)."""

from __future__ import annotations

from typing import Any

from mcp.server.lowlevel import Server

from simplemem.faces.tool import Tool
from simplemem.server.assemble import list_of
from simplemem.server.calls import read_string_arguments, tell_failures_plainly
from simplemem.server.door import Door
from simplemem.server.graph_calls import GraphCalls, keep_data_as_it_is
from simplemem.server.graph_resource import GraphResource


def assemble_graph_server(tools: tuple[Tool[Any], ...], door: Door, known_as: tuple[str, str]) -> Server[Any]:
    """A server for these tools on that store, under a name and version that clients know."""
    resource = GraphResource(door)
    name, version = known_as
    server: Server[Any] = Server(
        name,
        version=version,
        on_list_tools=list_of(tools, door),
        on_call_tool=GraphCalls(tools, door, resource),
        on_list_resources=resource.shown,
        on_list_resource_templates=resource.templates,
        on_read_resource=resource.read,
        on_subscribe_resource=resource.subscribe,
        on_unsubscribe_resource=resource.unsubscribe,
        on_subscriptions_listen=resource.listen,
    )
    server.middleware += [tell_failures_plainly, read_string_arguments, keep_data_as_it_is]
    return server
