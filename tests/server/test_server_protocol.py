"""The official client, in both generations of the protocol: every tool, resource and prompt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import jsonschema
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.subscriptions import ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from sdk_client import LEGACY, MODERN, both, connected, connected_to_process, run, text_of, until


@both
def test_every_tool_answers_as_its_schema_says(vault: Path, mode: str) -> None:
    """Each tool, in the course of an ordinary conversation; text and structured content both."""

    async def body() -> None:
        async with connected_to_process(vault, mode) as client:
            listed = (await client.list_tools()).tools
            schemas = {tool.name: tool.output_schema for tool in listed}
            used = set()

            async def call(tool: str, **arguments: Any) -> dict[str, Any]:
                result = await client.call_tool(tool, arguments)
                assert not result.is_error, text_of(result)
                jsonschema.validate(result.structured_content, schemas[tool])
                assert text_of(result).strip()
                used.add(tool)
                return result.structured_content

            ada = await call(
                "create_memory", name="people/Ada", content="Ada flies kites.", metadata={"tags": {"role": "pilot"}}
            )
            await call(
                "create_memory",
                name="projects/kite",
                content="# Kite\n\nBuilt by [[people/Ada]].\n\n## Log\n\nFirst flight.",
            )
            read = await call("read_memory", name="[[people/Ada]]")
            assert read["sha256"] == ada["sha256"]
            assert read["backlinks"] == ["projects/kite"]
            await call("read_memory", name="projects/kite", section="Log")
            changed = await call(
                "update_memory",
                name="projects/kite.md",
                append="Second flight.",
                if_sha256=(await call("read_memory", name="kite"))["sha256"][:12],
            )
            assert changed["changed"]
            assert (await call("update_memory", name="kite", edits='[{"old": "First", "new": "Very first"}]'))[
                "changed"
            ]
            tags = await call("change_tag", name="people/Ada", tags="todo, role=captain")
            assert tags["tag_map"] == {"todo": True, "role": "captain"}
            found = await until(lambda: hits(call))
            assert found[0]["name"] == "projects/kite"
            await call("search_memories", query="kite", explain=True, tags=None, limit="3")
            assert (await call("list_memories", limit=1))["next_cursor"]
            assert (await call("get_backlinks", name="people/Ada"))["items"][0]["name"] == "projects/kite"
            assert (await call("build_context", query="flight", budget_tokens=200))["items"]
            moved = await call("move_memory", name="people/Ada", new_name="people/Ada Lovelace")
            assert moved["rewritten"] == ["projects/kite"]
            story = await call("memory_history", name="projects/kite", diff="true")
            assert story["versions"][0]["who"] == "protocol-test 1.2"
            gone = await call("delete_memory", name="people/Ada Lovelace")
            assert gone["links_left_unresolved"] == 1
            await call("undo_change", version=gone["version"])
            assert used == set(schemas)
            assert (vault / "people" / "Ada Lovelace.md").exists()

    async def hits(call: Callable[..., Awaitable[dict[str, Any]]]) -> list[dict[str, Any]]:
        answer = await call("search_memories", query="very first flight")
        return answer["hits"] if answer["index"]["state"] == "ready" else []

    run(body)


@both
def test_a_failure_of_any_tool_is_a_result_with_a_code_that_fits_its_schema(vault: Path, mode: str) -> None:
    """Also for clients that check the structured content of failures, as that of the official inspector does."""
    wrong: dict[str, tuple[str, dict[str, Any]]] = {
        "search_memories": ("invalid", {"query": "x", "limit": 0}),
        "read_memory": ("not_found", {"name": "projects/apolo"}),
        "create_memory": ("already_exists", {"name": "projects/apollo", "content": "y"}),
        "update_memory": ("conflict", {"name": "projects/apollo", "content": "y", "if_sha256": "0" * 64}),
        "change_tag": ("not_found", {"name": "nobody", "tags": {"x": True}}),
        "list_memories": ("invalid", {"sort": "colour"}),
        "get_backlinks": ("not_found", {"name": "nobody"}),
        "build_context": ("invalid", {}),
        "move_memory": ("invalid", {"name": "projects/apollo", "new_name": "../out"}),
        "delete_memory": ("conflict", {"name": "projects/apollo", "if_sha256": "0" * 64}),
        "memory_history": ("not_found", {"name": "nobody"}),
        "undo_change": ("invalid", {}),
    }

    async def body() -> None:
        async with connected(vault, mode) as client:
            await client.call_tool("create_memory", {"name": "projects/apollo", "content": "x"})
            schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
            assert set(wrong) == set(schemas)
            for tool, (code, arguments) in wrong.items():
                failed = await client.call_tool(tool, arguments)
                assert failed.is_error
                assert failed.structured_content["error"]["code"] == code, tool
                assert failed.structured_content["error"]["message"] in text_of(failed)
                jsonschema.validate(failed.structured_content, schemas[tool])
            missed = await client.call_tool("read_memory", {"name": "projects/apolo"})
            assert missed.structured_content["error"]["candidates"] == ["projects/apollo"]
            assert "projects/apollo" in text_of(missed)
            stale = await client.call_tool(*next((t, a) for t, (_, a) in wrong.items() if t == "update_memory"))
            assert len(stale.structured_content["error"]["current_sha256"]) == 64
            with pytest.raises(MCPError, match="no tool"):
                await client.session.call_tool("no_such_tool", {})

    run(body)


@both
def test_memories_are_resources(vault: Path, mode: str) -> None:
    text = "---\ntitle: Ada\n---\nÄther & more\n"

    async def body() -> None:
        (vault / "people").mkdir()
        (vault / "people" / "Ada L.md").write_text(text, encoding="utf-8")
        (vault / "changes.md").write_text("a memory of that name", encoding="utf-8")
        async with connected(vault, mode) as client:
            templates = (await client.list_resource_templates()).resource_templates
            assert [template.uri_template for template in templates] == ["memory://{+name}"]
            for uri in ("memory://people/Ada%20L", "memory://people/Ada L", "memory://people/Ada%20L.md"):
                assert (await client.read_resource(uri)).contents[0].text == text
            listed = await until(lambda: listing(client))
            assert listed[0] == "memory://changes"
            assert set(listed[1:]) == {"memory://people/Ada%20L", "memory://changes.md"}
            assert (
                "[people/Ada L](memory://people/Ada%20L)"
                in (await client.read_resource("memory://changes")).contents[0].text
            )
            assert (await client.read_resource("memory://changes.md")).contents[0].text == "a memory of that name"
            for uri in (
                "memory://nobody",
                "memory://../secret",
                "memory://",
                "file:///etc/passwd",
                "memory:///etc/passwd",
            ):
                with pytest.raises(MCPError) as refused:
                    await client.read_resource(uri)
                assert refused.value.error.code == types.INVALID_PARAMS

    async def listing(client: Client) -> list[str]:
        found = [resource.uri for resource in (await client.list_resources()).resources]
        return found if len(found) == 3 else []

    run(body)


def test_resources_are_listed_in_pages(vault: Path) -> None:
    async def body() -> None:
        for k in range(230):
            (vault / f"n{k}.md").write_text(f"note {k}")
        async with connected(vault, MODERN) as client:
            await until(lambda: ready(client))
            found, cursor, pages = [], None, 0
            while pages == 0 or cursor:
                page = await client.list_resources(cursor=cursor)
                found += [resource.uri for resource in page.resources]
                cursor, pages = page.next_cursor, pages + 1
            assert pages == 3
            assert len(found) == len(set(found)) == 231

    async def ready(client: Client) -> bool:
        return (await client.call_tool("list_memories", {})).structured_content["total"] == 230

    run(body)


def test_an_edit_by_hand_reaches_a_listener_of_2026(vault: Path) -> None:
    async def body() -> None:
        (vault / "Ada Lovelace.md").write_text("one")
        async with connected(vault, MODERN) as client:
            asked = ["memory://Ada Lovelace", "memory://ada%20lovelace.md", "memory://changes", "memory://other"]
            async with client.listen(resource_subscriptions=asked) as heard:
                await until(lambda: indexed(client, "one"))
                (vault / "Ada Lovelace.md").write_text("two, by hand")
                told = set()
                async for event in heard:
                    assert isinstance(event, ResourceUpdated)
                    told.add(event.uri)
                    if len(told) == 3:
                        break
                assert told == set(asked[:3])
            assert (await client.read_resource(asked[0])).contents[0].text == "two, by hand"
            async with client.listen(resources_list_changed=True) as heard:
                (vault / "new.md").write_text("a note that was not there")
                assert isinstance(await anext(aiter(heard)), ResourcesListChanged)

    run(body)


@pytest.mark.filterwarnings(f"ignore::{MCPDeprecationWarning.__module__}.{MCPDeprecationWarning.__name__}")
def test_an_edit_by_hand_reaches_a_subscriber_of_2025(vault: Path) -> None:
    async def body() -> None:
        told: list[str] = []

        async def hear(message: Any) -> None:
            if isinstance(message, types.ResourceUpdatedNotification):
                told.append(message.params.uri)

        (vault / "a.md").write_text("one")
        (vault / "b.md").write_text("one")
        async with connected(vault, LEGACY, message_handler=hear) as client:
            assert client.server_capabilities.resources.subscribe
            await client.subscribe_resource("memory://a")
            await until(lambda: indexed(client, "one"))
            told.clear()
            (vault / "b.md").write_text("changed, and nobody asked")
            (vault / "a.md").write_text("two")
            await until(lambda: anything(told))
            await client.unsubscribe_resource("memory://a")
            told_then = list(told)
            (vault / "a.md").write_text("three")
            await until(lambda: indexed(client, "three"))
            assert set(told) == {"memory://a"}
            assert told == told_then

    async def anything(told: list[str]) -> bool:
        return bool(told)

    run(body)


async def indexed(client: Client, word: str) -> bool:
    answer = (await client.call_tool("search_memories", {"query": word, "mode": "text"})).structured_content
    return bool(answer["hits"]) and answer["index"]["state"] != "indexing"


@both
def test_prompts_bring_what_the_memories_say_and_names_and_tags_are_completed(vault: Path, mode: str) -> None:
    async def body() -> None:
        async with connected(vault, mode) as client:
            await client.call_tool(
                "create_memory", {"name": "kite", "content": "The kite needs a tail.", "metadata": {"tags": "todo"}}
            )
            await until(lambda: indexed(client, "kite"))
            assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["recall", "remember", "review"]
            recall = await client.get_prompt("recall", {"topic": "kite"})
            assert "The kite needs a tail." in recall.messages[0].content.text
            assert (
                "the boat"
                in (await client.get_prompt("remember", {"what": "the boat is blue"})).messages[0].content.text
            )
            assert "**kite**" in (await client.get_prompt("review", {"tag": "todo"})).messages[0].content.text
            assert "There is none" in (await client.get_prompt("review", {"tag": "nothing"})).messages[0].content.text
            for name, arguments in (("recall", {}), ("nothing", {}), ("review", {"since": "when pigs fly"})):
                with pytest.raises(MCPError):
                    await client.get_prompt(name, arguments)
            await client.call_tool(
                "create_memory", {"name": "people/Ada", "content": "x", "metadata": {"tags": "todo, status=done"}}
            )
            memory = types.ResourceTemplateReference(uri="memory://{+name}")
            found = await client.complete(memory, {"name": "name", "value": "people/"})
            assert found.completion.values == ["people/Ada"]
            review = types.PromptReference(name="review")
            recall = types.PromptReference(name="recall")
            assert (await client.complete(recall, {"name": "topic", "value": "ad"})).completion.values == ["people/Ada"]
            assert (await client.complete(review, {"name": "tag", "value": "#to"})).completion.values == ["todo"]
            assert (await client.complete(review, {"name": "since", "value": "x"})).completion.values == []

    run(body)


def test_a_read_only_server_says_so(vault: Path) -> None:
    async def body() -> None:
        (vault / "a.md").write_text("here")
        async with connected(vault, MODERN, read_only=True) as client:
            refused = await client.call_tool("create_memory", {"name": "b", "content": "x"})
            assert refused.structured_content["error"]["code"] == "read_only"
            assert (await client.call_tool("read_memory", {"name": "a"})).structured_content["content"] == "here"
        assert [path.name for path in vault.iterdir() if path.is_file()] == ["a.md"]

    run(body)
