"""The MCP App: what clients with and without support for apps see, call and read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.extension import advertise
from mcp.server import apps as sdk
from mcp.shared.exceptions import MCPError
from sdk_client import both, connected, run, text_of

from simplemem.server import apps

APP_CLIENT: dict[str, Any] = {
    "extensions": [advertise(apps.EXTENSION_ID, {"mimeTypes": [apps.MIME_TYPE]})]
}
DEFAULT_TOOLS = 12


async def ui_of_tools(client: Client) -> dict[str, Any]:
    """Return what the `_meta` of each listed tool says about apps, None for nothing, by name."""
    listed = await client.list_tools()
    return {tool.name: (tool.meta or {}).get("ui") for tool in listed.tools}


def test_the_constants_are_those_of_the_sdk() -> None:
    assert apps.EXTENSION_ID == sdk.EXTENSION_ID
    assert apps.MIME_TYPE == sdk.APP_MIME_TYPE


@both
def test_a_client_without_support_sees_twelve_tools_and_no_app(vault: Path, mode: str) -> None:
    async def body() -> None:
        async with connected(vault, mode) as client:
            ui = await ui_of_tools(client)
            assert len(ui) == DEFAULT_TOOLS
            assert set(ui.values()) == {None}
            with pytest.raises(MCPError, match="no tool called"):
                await client.call_tool("keep_change", {"versions": ["v1"]})

    run(body)


@both
def test_a_client_with_support_shows_the_app_with_tools_that_write(vault: Path, mode: str) -> None:
    async def body() -> None:
        async with connected(vault, mode, **APP_CLIENT) as client:
            ui = await ui_of_tools(client)
            assert ui["create_memory"] == {
                "resourceUri": "ui://simplemem/changes.html",
                "visibility": ["model", "app"],
            }
            assert ui["read_memory"] is None
            model_sees = [
                name for name, app in ui.items() if not app or "model" in app["visibility"]
            ]
            assert len(model_sees) == DEFAULT_TOOLS
            assert set(ui) - set(model_sees) == {"show_change", "keep_change"}

            app = await client.read_resource(apps.URI)
            assert app.contents[0].mime_type == sdk.APP_MIME_TYPE

    run(body)


@both
def test_the_app_shows_keeps_and_undoes_what_a_tool_wrote(vault: Path, mode: str) -> None:
    async def body() -> None:
        async with connected(vault, mode, **APP_CLIENT) as client:
            await client.call_tool("create_memory", {"name": "Heron", "content": "Grey."})
            shown = await client.call_tool("show_change", {"name": "Heron"})
            assert shown.structured_content is not None
            [change] = shown.structured_content["changes"]
            assert (change["op"], change["name"], change["status"]) == ("create", "Heron", "open")
            assert [{"kind": "added", "text": "Grey."}] in change["lines"]

            await client.call_tool("keep_change", {"versions": change["versions"]})
            shown = await client.call_tool("show_change", {"name": "Heron"})
            assert shown.structured_content is not None
            assert shown.structured_content["changes"][0]["status"] == "kept"

            await client.call_tool("undo_change", {"version": change["versions"][0]})
            assert not (vault / "Heron.md").exists()

    run(body)


@both
def test_review_changes_lists_what_is_left_as_text_for_every_client(vault: Path, mode: str) -> None:
    async def body() -> None:
        async with connected(vault, mode, tools="review") as client:
            nothing = await client.call_tool("review_changes", {})
            assert text_of(nothing) == "There is nothing to review."

            await client.call_tool(
                "create_memory", {"name": "Heron", "content": "Grey.", "reason": "seen today"}
            )
            listed = text_of(await client.call_tool("review_changes", {}))
            assert "# 1 change to review" in listed
            assert re.search(r"create Heron \(\+\d+ -0 words\): seen today", listed)
            assert "{+Grey.+}" in listed

    run(body)


def test_a_server_that_emulates_another_one_has_no_app(vault: Path) -> None:
    async def body() -> None:
        async with connected(vault, "legacy", "server-memory", **APP_CLIENT) as client:
            assert set((await ui_of_tools(client)).values()) == {None}

    run(body)
