"""`tools list` shows the tools that a client of the server sees."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from simplemem.note.words import count_tokens
from simplemem.profiles.registry import built_in_profiles, choose_tools

if TYPE_CHECKING:
    from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("words_only")


def test_every_tool_of_the_default_profile_is_listed_with_what_it_does(run: Run) -> None:
    facts = run("tools", "--json").json
    tools = {tool["name"]: tool for tool in facts["tools"]}
    listed = {tool.name: tool.listing() for tool in choose_tools(built_in_profiles()["default"])}
    assert list(tools) == list(listed) and facts["profile"] == "default"
    assert {name: tool["annotations"] for name, tool in tools.items()} == {
        name: tool["annotations"] for name, tool in listed.items()
    }
    effects = {
        name: tools[name]["effect"]
        for name in ("search_memories", "update_memory", "delete_memory")
    }
    assert effects == {
        "search_memories": "reads",
        "update_memory": "writes",
        "delete_memory": "deletes",
    }
    assert all(
        listed[name]["description"].startswith(tool["summary"]) for name, tool in tools.items()
    )
    shown = run("tools").out
    assert all(name in shown for name in listed) and f"{facts['tokens']:,} tokens" in shown


def test_the_tokens_are_those_of_what_a_model_reads(run: Run) -> None:
    facts = run("tools", "list", "--profile", "chatgpt", "--json").json
    total = 0
    for tool in choose_tools(built_in_profiles()["chatgpt"]):
        listing = tool.listing()
        read = {key: listing[key] for key in ("name", "description", "inputSchema")}
        total += count_tokens(json.dumps(read, separators=(",", ":"), ensure_ascii=False))
    assert facts["tokens"] == total == sum(tool["tokens"] for tool in facts["tools"])
    assert facts["instructions_tokens"] == count_tokens(built_in_profiles()["chatgpt"].instructions)


@pytest.mark.parametrize("profile", built_in_profiles())
def test_every_profile_can_be_listed(run: Run, profile: str) -> None:
    facts = run("tools", "--profile", profile, "--json").json
    assert [tool["name"] for tool in facts["tools"]] == [
        tool.name for tool in choose_tools(built_in_profiles()[profile])
    ]


def test_tool_groups_are_added_and_removed_and_mistakes_are_named(run: Run) -> None:
    names = [
        tool["name"] for tool in run("tools", "--tools=-core,original", "--json").json["tools"]
    ]
    assert names == [tool.name for tool in choose_tools(built_in_profiles()["simplemem"])]
    refused = run("tools", "--profile", "nobody")
    assert (
        refused.code == 1
        and "no profile called 'nobody'" in refused.err
        and "chatgpt" in refused.err
    )
    assert run("tools", "--tools", "nothing").code == 1


def test_tools_that_delete_are_not_listed_if_the_settings_hide_them(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMPLEMEM_NO_DELETE", "true")
    assert "delete_memory" not in run("tools").out
