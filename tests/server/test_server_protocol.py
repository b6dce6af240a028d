"""The official client, in both generations of the protocol: every tool, resource and prompt."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio
import jsonschema
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.subscriptions import ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from sdk_client import LEGACY, MODERN, both, connected, run, text_of, until

from simplemem.server.executor import StoreExecutor
from simplemem.server.resources import CHANGES, Resources, name_in, uri_of
from simplemem.store import EnhancedStore


async def indexed(client: Client, word: str) -> bool:
    answer = (
        await client.call_tool("search_memories", {"query": word, "mode": "text"})
    ).structured_content
    return bool(answer["hits"]) and answer["index"]["state"] != "indexing"


@both
def test_every_tool_answers_as_its_schema_says(vault: Path, mode: str) -> None:
    """Each tool, in the course of an ordinary conversation; text and structured content both."""

    async def body() -> None:
        async with connected(vault, mode) as client:
            schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
            used = set()

            async def call(tool: str, **arguments: Any) -> dict[str, Any]:
                result = await client.call_tool(tool, arguments)
                assert not result.is_error, text_of(result)
                jsonschema.validate(result.structured_content, schemas[tool])
                assert text_of(result).strip()
                used.add(tool)
                return result.structured_content

            role = {"tags": {"role": "pilot"}}
            ada = await call(
                "create_memory", name="people/Ada", content="Ada flies kites.", metadata=role
            )
            text = "# Kite\n\nBuilt by [[people/Ada]].\n\n## Log\n\nFirst flight."
            kite = await call("create_memory", name="projects/kite", content=text)
            read = await call("read_memory", name="[[people/Ada]]")
            assert read["sha256"] == ada["sha256"] and read["backlinks"] == ["projects/kite"]
            await call("read_memory", name="projects/kite", section="Log")
            appended = {"append": "Second flight.", "if_sha256": kite["sha256"][:12]}
            assert (await call("update_memory", name="projects/kite.md", **appended))["changed"]
            edits = '[{"old": "First", "new": "Very first"}]'
            assert (await call("update_memory", name="kite", edits=edits))["changed"]
            tags = await call("change_tag", name="people/Ada", tags="todo, role=captain")
            assert tags["tag_map"] == {"todo": True, "role": "captain"}
            await until(lambda: indexed(client, "very first"))
            found = await call(
                "search_memories", query="very first flight", explain=True, tags=None, limit="3"
            )
            assert found["hits"][0]["name"] == "projects/kite"
            assert (await call("list_memories", limit=1))["next_cursor"]
            assert (await call("get_backlinks", name="people/Ada"))["items"][0][
                "name"
            ] == "projects/kite"
            assert (await call("build_context", query="flight", budget_tokens=200))["items"]
            moved = await call("move_memory", name="people/Ada", new_name="people/Ada Lovelace")
            assert moved["rewritten"] == ["projects/kite"]
            story = await call("memory_history", name="projects/kite", diff="true")
            assert story["versions"][0]["who"] == "protocol-test 1.2"
            deletion = await call("delete_memory", name="people/Ada Lovelace")
            assert deletion["links_left_unresolved"] == 1
            await call("undo_change", version=deletion["version"])
            assert used == set(schemas) and (vault / "people" / "Ada Lovelace.md").exists()

    run(body)


@both
def test_a_failure_is_a_result_with_a_code_and_an_unknown_tool_an_error(
    vault: Path, mode: str
) -> None:
    async def body() -> None:
        async with connected(vault, mode) as client:
            await client.call_tool("create_memory", {"name": "projects/apollo", "content": "x"})
            failed = await client.call_tool("read_memory", {"name": "projects/apolo"})
            error = failed.structured_content["error"]
            assert (
                failed.is_error
                and error["code"] == "not_found"
                and error["candidates"] == ["projects/apollo"]
            )
            assert error["message"] in text_of(failed)
            with pytest.raises(MCPError, match="no tool"):
                await client.session.call_tool("no_such_tool", {})

    run(body)


@both
def test_memories_are_resources(vault: Path, write: Callable[..., Path], mode: str) -> None:
    text = "---\ntitle: Ada\n---\nÄther & more\n"
    write("people/Ada L.md", text)
    write("changes.md", "a memory of that name")

    async def body() -> None:
        async with connected(vault, mode) as client:

            async def read(uri: str) -> str:
                return (await client.read_resource(uri)).contents[0].text

            async def listing() -> list[str]:
                found = [resource.uri for resource in (await client.list_resources()).resources]
                return found if len(found) == 3 else []

            templates = (await client.list_resource_templates()).resource_templates
            assert [template.uri_template for template in templates] == ["memory://{+name}"]
            for uri in (
                "memory://people/Ada%20L",
                "memory://people/Ada L",
                "memory://people/Ada%20L.md",
            ):
                assert await read(uri) == text
            listed = await until(listing)
            assert listed[0] == "memory://changes"
            assert set(listed[1:]) == {"memory://people/Ada%20L", "memory://changes.md"}
            assert "[people/Ada L](memory://people/Ada%20L)" in await read("memory://changes")
            assert await read("memory://changes.md") == "a memory of that name"
            for uri in (
                "memory://nobody",
                "memory://../secret",
                "memory://",
                "file:///etc/passwd",
                "memory:///etc/x",
            ):
                with pytest.raises(MCPError) as refused:
                    await read(uri)
                assert refused.value.error.code == types.INVALID_PARAMS

    run(body)


def test_an_edit_by_hand_reaches_a_listener_of_2026(
    vault: Path, write: Callable[..., Path]
) -> None:
    write("Ada Lovelace.md", "one")

    async def body() -> None:
        async with connected(vault, MODERN) as client:
            uris = [
                "memory://Ada Lovelace",
                "memory://ada%20lovelace.md",
                "memory://changes",
                "memory://other",
            ]
            async with client.listen(resource_subscriptions=uris) as heard:
                await until(lambda: indexed(client, "one"))
                write("Ada Lovelace.md", "two, by hand")
                answered_ids = set()
                async for event in heard:
                    assert isinstance(event, ResourceUpdated)
                    answered_ids.add(event.uri)
                    if len(answered_ids) == 3:
                        break
                assert answered_ids == set(uris[:3])
            assert (await client.read_resource(uris[0])).contents[0].text == "two, by hand"
            async with client.listen(resources_list_changed=True) as heard:
                write("new.md", "a note that was not there")
                assert isinstance(await anext(aiter(heard)), ResourcesListChanged)

    run(body)


@pytest.mark.filterwarnings(
    f"ignore::{MCPDeprecationWarning.__module__}.{MCPDeprecationWarning.__name__}"
)
def test_an_edit_by_hand_reaches_a_subscriber_of_2025(
    vault: Path, write: Callable[..., Path]
) -> None:
    notified: list[str] = []
    write("a.md", "one")
    write("b.md", "one")

    async def hear(message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            notified.append(message.params.uri)

    async def anything() -> bool:
        return bool(notified)

    async def body() -> None:
        async with connected(vault, LEGACY, message_handler=hear) as client:
            assert client.server_capabilities.resources.subscribe
            await client.subscribe_resource("memory://a")
            await until(lambda: indexed(client, "one"))
            notified.clear()
            write("b.md", "changed, and nobody asked")
            write("a.md", "two")
            await until(anything)
            await client.unsubscribe_resource("memory://a")
            told_then = list(notified)
            write("a.md", "three")
            await until(lambda: indexed(client, "three"))
            assert set(notified) == {"memory://a"} and notified == told_then

    run(body)


def test_the_recall_prompt_says_when_no_memory_answers(vault: Path) -> None:
    for name, text in (("kite", "The kite needs a tail."), ("boat", "The boat of Ines is blue.")):
        (vault / f"{name}.md").write_text(f"{text}\n", encoding="utf-8")

    async def body() -> None:
        async with connected(vault, MODERN) as client:
            await until(lambda: indexed(client, "kite"))

            async def recalled(topic: str) -> str:
                prompt = await client.get_prompt("recall", {"topic": topic})
                return prompt.messages[0].content.text

            unknown_topic = await recalled(
                "Which passport did Ines renew for the expedition to Patagonia?"
            )
            assert (
                "A first search found no answer. Nothing found; these are the nearest."
                in unknown_topic
            )
            assert "found no answer" not in await recalled("the tail of the kite")

    run(body)


@both
def test_prompts_bring_what_the_memories_say_and_names_and_tags_are_completed(
    vault: Path, mode: str
) -> None:
    async def body() -> None:
        async with connected(vault, mode) as client:

            async def prompt_text(prompt: str, **arguments: str) -> str:
                return (await client.get_prompt(prompt, arguments)).messages[0].content.text

            async def completed(prompt: str, name: str, value: str) -> list[str]:
                reference = types.PromptReference(name=prompt)
                if prompt == "":
                    reference = types.ResourceTemplateReference(uri="memory://{+name}")
                return (
                    await client.complete(reference, {"name": name, "value": value})
                ).completion.values

            for name, tags in (("kite", "todo"), ("people/Ada", "todo, status=done")):
                more = {"content": "The kite needs a tail.", "metadata": {"tags": tags}}
                await client.call_tool("create_memory", {"name": name, **more})
            await until(lambda: indexed(client, "kite"))
            assert [prompt.name for prompt in (await client.list_prompts()).prompts] == [
                "recall",
                "remember",
                "review",
            ]
            assert "The kite needs a tail." in await prompt_text("recall", topic="kite")
            assert "the boat" in await prompt_text("remember", what="the boat is blue")
            assert "**kite**" in await prompt_text("review", tag="todo")
            none = await prompt_text("review", tag="nothing")
            assert "No memory changed" in none and "No note has #nothing" in none
            for prompt, arguments in (
                ("recall", {}),
                ("nothing", {}),
                ("review", {"since": "when pigs fly"}),
            ):
                with pytest.raises(MCPError):
                    await prompt_text(prompt, **arguments)
            assert await completed("", "name", "people/") == ["people/Ada"]
            assert await completed("recall", "topic", "ad") == ["people/Ada"]
            assert await completed("review", "tag", "#to") == ["todo"]
            assert await completed("review", "since", "x") == []

    run(body)


class Deaf:
    """Stands for a client that reads nothing until it is told to."""

    def __init__(self) -> None:
        self.session = self._connection = self
        self.exit_stack = AsyncExitStack()
        self.heard: list[str] = []
        self.reads = anyio.Event()

    async def notify(self, _method: str, params: dict[str, str]) -> None:
        await self.reads.wait()
        self.heard.append(params["uri"])


def test_a_client_that_does_not_read_is_told_each_thing_once_when_it_does(
    vault: Path, write: Callable[..., Path]
) -> None:
    write("a.md", "one")
    write("b.md", "one")

    async def body() -> None:
        door = StoreExecutor(lambda: EnhancedStore(vault))
        resources, client = Resources(door, slow_client_seconds=60), Deaf()
        for uri in ("memory://a", "memory://b", CHANGES):
            await resources.subscribe(cast("Any", client), types.SubscribeRequestParams(uri=uri))
        # The first pass of the index reports both notes, too: not while the client is counted.
        for thread in threading.enumerate():
            if thread.name == "indexing":
                await anyio.to_thread.run_sync(thread.join)
        for k in range(500):
            resources.report_change(frozenset({"a"} if k % 2 else {"b", "elsewhere"}))
            await anyio.sleep(0)
        client.reads.set()
        with anyio.fail_after(10):
            while resources._changed_uris or len(client.heard) < 3:
                await anyio.sleep(0.01)
        assert set(client.heard) == {"memory://a", "memory://b", CHANGES}
        assert len(client.heard) <= 4  # one was on its way when the rest was noted
        door.close(writing=1, closing=5)

    anyio.run(body)


class CountingExecutor(StoreExecutor):
    """Counts the listeners that are added to its store."""

    listener_count = 0

    def on_change(self, listener: Callable[[frozenset[str]], None]) -> None:
        self.listener_count += 1
        super().on_change(listener)


def test_clients_that_subscribe_at_once_share_one_listener(
    vault: Path, write: Callable[..., Path]
) -> None:
    write("a.md", "one")

    async def body() -> None:
        executor = CountingExecutor(lambda: EnhancedStore(vault))
        resources = Resources(executor)
        subscription = types.SubscribeRequestParams(uri=CHANGES)
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(resources.subscribe, cast("Any", Deaf()), subscription)
        assert executor.listener_count == 1
        for thread in threading.enumerate():
            if thread.name == "indexing":
                thread.join()
        executor.close(writing=1, closing=5)

    anyio.run(body)


@pytest.mark.parametrize(
    "name", ["a", "people/Ada Lovelace", "changes", "x.md", "100 %", "a#b?c", "Ä/ö", "a.MD"]
)
def test_a_name_and_its_uri_are_the_same_thing(name: str) -> None:
    assert name_in(uri_of(name)) == name and uri_of(name) != CHANGES


def test_calls_one_after_the_other_meet_one_thread_and_parallel_ones_have_others(
    tmp_path: Path,
) -> None:
    door, barrier = StoreExecutor(lambda: EnhancedStore(tmp_path)), threading.Barrier(3)

    def work(*, waits: bool = False) -> int:
        if waits:
            barrier.wait(10)
        return threading.get_ident()

    async def read_at_once() -> tuple[set[int], set[int]]:
        one_by_one = {await door.run(work) for _ in range(20)}
        return one_by_one, set(
            await asyncio.gather(*(door.run(partial(work, waits=True)) for _ in range(3)))
        )

    one_by_one, at_once = asyncio.run(read_at_once())
    assert len(one_by_one) == 1 and len(at_once) == 3
    door.close(writing=1, closing=5)
