"""Rules by folder as an agent meets them: a real server, asked in every way the protocol has."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bare_client import Bare, Inside

CANARY = "quetzalcoatl"
CHANGES: dict[str, dict[str, Any]] = {
    "update_memory": {"append": "x"}, "change_tag": {"tags": {"todo": True}}, "delete_memory": {},
    "move_memory": {"new_name": "x"}, "create_memory": {"content": "x"},
}  # fmt: skip


@pytest.fixture
def house(vault: Path, write: Callable[..., Path]) -> Path:
    write("tea.md", "---\ntags: [drink]\n---\nOolong. [[Archive/old]]\n")
    write("Archive/old.md", "Old leaves.\n")
    write(
        "Private/diary.md",
        f"---\ntags: [{CANARY}]\ntitle: Secret Plans\n---\n{CANARY} drinks [[tea]].\n",
    )
    return vault


def offered(bare: Bare) -> set[str]:
    bare.initialize()
    return {tool["name"] for tool in bare.request("tools/list")["result"]["tools"]}


def settled(bare: Bare, notes: int) -> None:
    while bare.call("list_memories")["structuredContent"]["total"] != notes:
        time.sleep(0.02)


@pytest.mark.parametrize("by", ["the user", "the vault"])
def test_an_agent_is_told_nothing_of_what_is_hidden(
    house: Path, write: Callable[..., Path], by: str
) -> None:
    if by == "the vault":
        write(".simplemem/config.toml", '[access]\nhidden = ["Private/"]\n')
    with Inside(house, **({"access__hidden": ["Private/"]} if by == "the user" else {})) as bare:
        offered(bare)
        settled(bare, 2)
        bare.request("resources/subscribe", {"uri": "memory://changes"})
        names, tags = (
            {"type": "ref/resource", "uri": "memory://{+name}"},
            {"type": "ref/prompt", "name": "review"},
        )
        requests: list[tuple[str, dict[str, Any]]] = [
            ("resources/list", {}),
            ("resources/read", {"uri": "memory://changes"}),
            *(
                (
                    "completion/complete",
                    {"ref": names, "argument": {"name": "name", "value": prefix}},
                )
                for prefix in ("", "Priv", "Secret")
            ),
            ("completion/complete", {"ref": tags, "argument": {"name": "tag", "value": "q"}}),
            ("prompts/get", {"name": "recall", "arguments": {"topic": "who drinks oolong tea?"}}),
            ("prompts/get", {"name": "review", "arguments": {"since": "2020-01-01"}}),
        ]
        answers: list[Any] = [bare.request(method, params) for method, params in requests]
        answers.append(
            bare.call("search_memories", query="who drinks tea?", limit=50, explain=True)
        )
        answers += [
            bare.call("get_backlinks", name="tea"),
            bare.call("build_context", query="who drinks tea?"),
        ]
        answers.append(bare.call("memory_history", diff=True))
        for name in ("Private/diary", "Secret Plans", "diary"):
            refused = [
                bare.request("resources/read", {"uri": f"memory://{name.replace(' ', '%20')}"})
            ]
            refused += [
                bare.call(tool, name=name)
                for tool in ("read_memory", "delete_memory", "get_backlinks")
            ]
            refused.append(bare.call("update_memory", name=name, append="x"))
            never = name.replace("diary", "dairy").replace("Secret", "Sacred")
            asked_in_vain = json.dumps(bare.call("read_memory", name=never))
            assert json.dumps(refused[1]).replace(name, "") == asked_in_vain.replace(never, "")
            answers += [
                json.dumps(refusal).replace("%20", " ").replace(name, "") for refusal in refused
            ]
        write("Private/diary.md", f"{CANARY} writes again.\n")
        write("tea.md", "Oolong again.\n")
        text = json.dumps(
            [answers, bare.next_notification("notifications/resources/updated"), bare.notifications]
        )
        assert not [word for word in (CANARY, "diary", "Secret") if word in text]
        assert (
            bare.call("search_memories", query=CANARY)["structuredContent"]["index"]["notes"] == 2
        )


@pytest.mark.parametrize("profile", ["default", "simplemem"])
def test_a_server_that_may_not_delete_offers_no_tool_for_it(house: Path, profile: str) -> None:
    with Inside(house, profile, no_delete=True) as bare:
        assert "delete_memory" not in offered(bare)
        answer = bare.request("tools/call", {"name": "delete_memory", "arguments": {"name": "tea"}})
        assert answer["error"]["message"] == "no tool called 'delete_memory'"
        if profile == "default":
            bare.call("create_memory", name="new", content="x")
            undone = bare.call("undo_change", name="new")
            assert undone["structuredContent"]["error"]["code"] == "read_only"
    assert (house / "tea.md").exists()


def test_a_read_only_server_leaves_no_trace_in_the_vault(house: Path) -> None:
    times_before = {path: path.stat().st_mtime_ns for path in house.rglob("*")}
    with Bare(house, "--read-only") as bare:
        offered(bare)
        settled(bare, 3)
        assert bare.call("search_memories", query="oolong")["structuredContent"]["hits"]
        for tool, more in CHANGES.items():
            name = "n" if tool == "create_memory" else "tea"
            assert (
                bare.call(tool, name=name, **more)["structuredContent"]["error"]["code"]
                == "read_only"
            ), tool
        bare.end_input()
        bare.process.wait(20)
    assert {path: path.stat().st_mtime_ns for path in house.rglob("*")} == times_before
