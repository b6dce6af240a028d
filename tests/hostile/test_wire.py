"""Messages that are almost right, against a real server: whatever comes, the next request is answered."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
from bare_client import PATIENCE, Bare
from effort import chance, rounds

METHODS = [
    "initialize", "ping", "tools/list", "tools/call", "resources/list", "resources/templates/list", "resources/read",
    "resources/subscribe", "resources/unsubscribe", "prompts/list", "prompts/get", "completion/complete", "logging/setLevel",
    "notifications/initialized", "notifications/cancelled", "notifications/progress", "roots/list", "sampling/createMessage",
    "subscriptions/listen", "server/discover", "no/such", "", "rpc.discover", "tools/call/x", "\u2028",
]  # fmt: skip
TOOLS = [
    "search_memories",
    "read_memory",
    "list_memories",
    "get_backlinks",
    "memory_history",
    "no_such_tool",
    "",
]
OF_A_GRAPH = [
    "read_graph",
    "search_nodes",
    "open_nodes",
    "get_relation",
    "get_entity_history",
    "get_graph_at_time",
    "",
]
ARGUMENTS = {"name": "a", "query": "plum"}
VALUES: list[Any] = [
    None, True, False, 0, -1, 1.5, 1e308, -0.0, 2**63, -(2**64), 10**400, "", "x", "\u0000", "\ud800", "é" * 50, "x" * 5000,
    [], {}, [[]], [None], {"": None}, {"_meta": {"progressToken": {}}}, {"name": []}, {"uri": 5}, {"arguments": "{}"},
    {"arguments": {"name": {"a": [1]}}}, {"cursor": "!"}, {"ref": {"type": "ref/none"}}, {"requestId": None}, "2.0", "1.0",
]  # fmt: skip


def some(luck: random.Random, depth: int = 0) -> Any:
    kind = luck.random()
    if depth > 3 or kind < 0.6:
        return copy.deepcopy(luck.choice(VALUES))
    if kind < 0.8:
        return [some(luck, depth + 1) for _ in range(luck.randint(0, 3))]
    keys = [
        "name",
        "uri",
        "arguments",
        "id",
        "params",
        "_meta",
        "query",
        "limit",
        "cursor",
        "argument",
        "ref",
        "x",
    ]
    return {luck.choice(keys): some(luck, depth + 1) for _ in range(luck.randint(0, 4))}


def almost_right(luck: random.Random, number: int, tools: list[str] = TOOLS) -> bytes:
    """A message, and one to three things about it that are not as they should be."""
    message: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": f"m{number}",
        "method": luck.choice(METHODS),
        "params": {"name": luck.choice(tools), "arguments": ARGUMENTS | {"limit": 1}},
    }
    for _ in range(luck.randint(1, 3)):
        act = luck.random()
        key = luck.choice(list(message) or ["x"])
        if act < 0.3:
            message[key] = some(luck)
        elif act < 0.5:
            message.pop(key)
        elif act < 0.7:
            message["params"] = some(luck)
        elif act < 0.85 and isinstance(message.get("params"), dict):
            message["params"]["arguments"] = some(luck)
        else:
            message[luck.choice(["result", "error", "extra", "jsonrpc", "id"])] = some(luck)
    line = json.dumps(message if luck.random() > 0.05 else [message, message]).encode()
    if luck.random() < 0.2:
        broken = bytearray(line)
        for _ in range(luck.randint(1, 4)):
            at = luck.randrange(len(broken))
            broken[at : at + luck.randrange(3)] = bytes(
                luck.randrange(256) for _ in range(luck.randrange(3))
            )
        line = bytes(broken).replace(b"\n", b" ")
    return line + b"\n"


@pytest.mark.parametrize(("profile", "tools"), [("default", TOOLS), ("memento", OF_A_GRAPH)])
def test_after_messages_that_are_almost_right_the_next_is_answered(
    tmp_path: Path, profile: str, tools: list[str]
) -> None:
    """Each time some of it has been sent, an honest question is asked."""
    luck = chance(f"almost right {profile}")
    (tmp_path / "graph").mkdir()
    (tmp_path / "graph/a.md").write_text("- A plum\n")
    with Bare(tmp_path, "--profile", profile, env={"SIMPLEMEM_EMBED_PROVIDER": "none"}) as server:
        server.initialize()
        sent: list[bytes] = []
        for number in range(rounds(900, 100_000)):
            sent.append(almost_right(luck, number, tools))
            server.send(sent[-1])
            if number % 40 == 39:
                try:
                    assert "result" in server.request("ping"), sent[-40:]
                except (EOFError, BrokenPipeError):
                    pytest.fail(
                        f"exit {server.process.wait()}, after {sent[-40:]!r}\n{server.log[-3000:]!r}"
                    )
        if profile == "memento":
            found = server.call("search_nodes", query="plum")["structuredContent"]["entities"]
            assert found == [{"name": "a", "entityType": "entity", "observations": ["A plum"]}]
        else:
            assert (
                server.call("read_memory", name="graph/a")["structuredContent"]["content"]
                == "- A plum\n"
            )
        assert not server.not_json  # and nothing else came over the wire
        server.end_input()
        assert server.process.wait(PATIENCE) == 0
    assert b"Traceback" not in server.log
