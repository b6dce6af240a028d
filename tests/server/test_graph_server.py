"""A server that stands in the place of a graph memory server, met from outside."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from bare_client import Bare, Inside
from waiting import eventually

URI = "memory://knowledge-graph"
UPDATED = "notifications/resources/updated"
WORDS = {"SIMPLEMEM_EMBED_PROVIDER": "none"}


def entity(name: str, *observations: str) -> dict[str, Any]:
    return {"name": name, "entityType": "t", "observations": list(observations)}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Bare, dict[str, Any]]]:
    """One server for the tests that leave nothing behind that another minds, and how it introduced itself."""
    vault = tmp_path_factory.mktemp("vault")
    with Inside(vault, "server-memory") as server:
        yield server, server.initialize()


def text_of(result: dict[str, Any]) -> str:
    [part] = result["content"]
    assert part["type"] == "text"
    text: str = part["text"]
    return text


def names(server: Bare) -> list[str]:
    return [
        entity_row["name"]
        for entity_row in server.call("read_graph")["structuredContent"]["entities"]
    ]


def test_it_introduces_itself_and_lists_what_that_server_lists(
    shared: tuple[Bare, dict[str, Any]],
) -> None:
    server, about = shared
    assert about["serverInfo"] == {"name": "memory-server", "version": "0.6.3"}
    assert about["capabilities"] == {
        "tools": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
    }
    assert "instructions" not in about
    tools = {tool["name"]: tool for tool in server.request("tools/list")["result"]["tools"]}
    assert list(tools)[:3] == ["create_entities", "create_relations", "add_observations"]
    create, read = tools["create_entities"], tools["read_graph"]
    assert (create["title"], create["execution"]) == (
        "Create Entities",
        {"taskSupport": "forbidden"},
    )
    assert read["annotations"] == {
        "destructiveHint": False, "idempotentHint": True, "openWorldHint": False, "readOnlyHint": True,
    }  # fmt: skip
    assert tools["delete_entities"]["annotations"]["destructiveHint"]
    assert not tools["add_observations"]["annotations"]["idempotentHint"]
    assert (
        "additionalProperties" not in create["inputSchema"]
        and not create["outputSchema"]["additionalProperties"]
    )
    created = server.call("create_entities", entities=[entity("A", "o")])
    jsonschema.validate(created["structuredContent"], create["outputSchema"])


def test_what_is_wrong_with_a_call_is_told_in_that_servers_words(
    shared: tuple[Bare, dict[str, Any]],
) -> None:
    server, _ = shared
    unknown_tool = server.call("nope")
    assert (unknown_tool["isError"], text_of(unknown_tool)) == (
        True,
        "MCP error -32602: Tool nope not found",
    )
    invalid = server.call("search_nodes")
    assert (invalid["isError"], "structuredContent" in invalid) == (True, False)
    assert text_of(invalid).startswith("MCP error -32602: Input validation error: ")
    missing = server.call("add_observations", observations=[{"entityName": "a\nb", "contents": []}])
    assert (missing["isError"], text_of(missing)) == (True, "Entity with name a\nb not found")
    assert server.request("resources/read", {"uri": "memory://nope"})["error"] == {
        "code": -32602,
        "message": "MCP error -32602: Resource memory://nope not found",
    }
    assert server.request("prompts/list")["error"]["code"] == -32601
    assert (
        "entities"
        in server.request("tools/call", {"name": "read_graph"})["result"]["structuredContent"]
    )


def test_subscribers_hear_once_before_the_answer_of_each_change_that_succeeds(
    shared: tuple[Bare, dict[str, Any]],
) -> None:
    server, _ = shared
    [resource] = server.request("resources/list")["result"]["resources"]
    assert (resource["uri"], resource["mimeType"]) == (URI, "application/json")
    assert server.request("resources/templates/list")["result"]["resourceTemplates"] == []
    server.call("create_entities", entities=[entity("unheard")])
    server.request("resources/subscribe", {"uri": URI})
    heard = []
    for tool, arguments in (
        ("create_entities", {"entities": [entity("heard", "x")]}),
        ("read_graph", {}),
        ("add_observations", {"observations": [{"entityName": "nobody", "contents": []}]}),
        ("delete_entities", {"entityNames": "wrong"}),
        ("delete_entities", {"entityNames": []}),
    ):
        server.call(tool, **arguments)
        heard.append(
            [
                notification["params"]
                for notification in server.notifications
                if notification["method"] == UPDATED
            ]
        )
        server.notifications.clear()
    assert heard == [[{"uri": URI}], [], [], [], [{"uri": URI}]]
    server.request("resources/unsubscribe", {"uri": URI})
    server.call("create_entities", entities=[entity("B")])
    server.request("ping")
    assert not [
        notification for notification in server.notifications if notification["method"] == UPDATED
    ]
    [whole] = server.request("resources/read", {"uri": URI})["result"]["contents"]
    read = json.loads(whole["text"])
    assert (
        read == server.call("read_graph")["structuredContent"]
        and entity("heard", "x") in read["entities"]
    )


def hears(server: Bare, count: int) -> bool:
    """Whether a client is told so often; it waits for that, and then a moment for what would be too much."""

    def updates() -> int:
        server.request("ping")
        return sum(notification["method"] == UPDATED for notification in server.notifications)

    eventually(lambda: updates() >= count)
    time.sleep(0.3)
    return updates() == count


def test_subscribers_hear_of_what_a_person_and_another_server_change(vault: Path) -> None:
    with Inside(vault, "server-memory") as first:
        first.initialize()
        first.call("create_entities", entities=[entity("Ann", "likes tea")])
        page = vault / "graph/Ann.md"
        with Inside(vault, "server-memory") as second:
            second.initialize()
            assert names(second) == ["Ann"]
            for server in (first, second):
                server.request("resources/subscribe", {"uri": URI})
            time.sleep(1)  # let what came before be heard of
            for server in (first, second):
                server.request("ping")
                server.notifications.clear()
            page.write_text(page.read_text() + "- by hand\n")
            assert hears(first, 1) and hears(second, 1)
            first.call("create_entities", entities=[entity("Bob")])
            assert hears(second, 2) and hears(first, 2)
        (vault / "plain.md").write_text("no part of the graph\n")
        page.unlink()
        assert hears(first, 3)
        first.request("resources/unsubscribe", {"uri": URI})
        (vault / "graph/Eve.md").write_text("- by hand\n")
        assert hears(first, 3) and names(first) == ["Bob", "Eve"]


def test_calls_that_are_sent_all_at_once_are_all_kept(shared: tuple[Bare, dict[str, Any]]) -> None:
    server, _ = shared
    call_ids = [
        server.post(
            "tools/call", {"name": "create_entities", "arguments": {"entities": [entity(f"e{k}")]}}
        )
        for k in range(40)
    ]
    assert all(not server.answer(call_id)["result"]["isError"] for call_id in call_ids)
    assert {f"e{k}" for k in range(40)} <= set(names(server))


def test_a_file_of_that_server_is_taken_over_once_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "memory.jsonl"
    file.write_text(
        '{"type":"entity","name":"Old","entityType":"t","observations":["kept"]}\n'
        '{"type":"entity","na\n'
        '{"type":"relation","from":"Old","to":"Old","relationType":"is"}'
    )
    old_bytes = file.read_bytes()
    env = {"MEMORY_FILE_PATH": str(file)}
    with started_beside(tmp_path, env) as server:
        server.initialize()
        assert server.call("read_graph")["structuredContent"] == {
            "entities": [{"name": "Old", "entityType": "t", "observations": ["kept"]}],
            "relations": [{"from": "Old", "to": "Old", "relationType": "is"}],
        }
        server.call("delete_entities", entityNames=["Old"])
        server.end_input()
        server.process.wait(20)
        assert f"line 2 of {file} was skipped: it is not JSON".encode() in server.log
    assert (tmp_path / "memory/.simplemem").is_dir()
    with started_beside(tmp_path, env) as server:
        server.initialize()
        assert names(server) == []
    assert file.read_bytes() == old_bytes


def started_beside(folder: Path, env: dict[str, str]) -> Bare:
    """A server that is not told its vault."""
    return Bare(None, "--profile", "server-memory", env=WORDS | env, cwd=folder)
