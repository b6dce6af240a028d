"""An MCP App: clients that can show HTML show a change with buttons to keep and to undo it.

The app is a resource, `ui://simplemem/changes.html`. A tool that names it in its `_meta` is shown
with it (https://modelcontextprotocol.io, the extension `io.modelcontextprotocol/ui`). Clients that
do not support apps see the tools as they are without it, and get text.

The constants are those of the SDK's `mcp.server.apps`, which is not imported: it needs the SDK's
high-level server, which takes longer to import than this server takes to start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types

from simplemem.tools.tool import Tool

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    Context = ServerRequestContext[Any, Any]

EXTENSION_ID: Final = "io.modelcontextprotocol/ui"
MIME_TYPE: Final = "text/html;profile=mcp-app"
URI: Final = "ui://simplemem/changes.html"
_SHOWN_TO_MODEL: Final = ("model", "app")
_HIDDEN_FROM_MODEL: Final = ("app",)


def supports_apps(ctx: Context) -> bool:
    """Return whether the client of a request can show an app."""
    capabilities = ctx.session.client_capabilities
    extensions = capabilities.extensions if capabilities else None
    settings = (extensions or {}).get(EXTENSION_ID)
    if not settings:
        return False
    mime_types = settings.get("mimeTypes")
    return isinstance(mime_types, (list, tuple)) and MIME_TYPE in mime_types


def app_tools() -> tuple[Tool, ...]:
    """Return the tools that the app calls. Their module is imported for the first such client."""
    from simplemem.tools.reviewing import APP_TOOLS

    return APP_TOOLS


def list_with_app(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Return tools as `tools/list` shows them to a client that supports apps.

    Those that write, and those that show changes, name the app. The tools of the app come last,
    hidden from the model unless it has them anyway.
    """
    listings = []
    for tool in tools:
        listing = tool.listing()
        if tool.writes or tool.shows_changes:
            listing["_meta"] = _meta(URI, _SHOWN_TO_MODEL)
        listings.append(listing)

    names = {tool.name for tool in tools}
    hidden = {"_meta": _meta(URI, _HIDDEN_FROM_MODEL)}
    listings += [tool.listing() | hidden for tool in app_tools() if tool.name not in names]
    return listings


def _meta(uri: str, visibility: Sequence[str]) -> Mapping[str, Any]:
    """Return the `_meta` of a tool that the app belongs to, and who may see the tool."""
    return {"ui": {"resourceUri": uri, "visibility": list(visibility)}}


def app_resource() -> types.ReadResourceResult:
    """Return the app as the answer to `resources/read`. It loads nothing from elsewhere."""
    contents = types.TextResourceContents.model_validate(
        {
            "uri": URI,
            "mimeType": MIME_TYPE,
            "text": _html(),
            "_meta": {"ui": {"prefersBorder": True}},
        }
    )
    return types.ReadResourceResult(contents=[contents])


@cache
def _html() -> str:
    """Return the document of the app. It is read once per process."""
    return files("simplemem.server").joinpath("app.html").read_text(encoding="utf-8")
