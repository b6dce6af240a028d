"""A prompt sends a model only to tools that the server has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bare_client import Bare

from simplemem.profiles.profile import Profile
from simplemem.profiles.registry import built_in_profiles, choose_tools, tool_groups

ALL_TOOLS = {
    tool.name
    for toolset in tool_groups(built_in_profiles())
    for tool in choose_tools(Profile("any", "", (toolset,)))
}
ARGUMENTS = {"recall": {"topic": "tea"}, "remember": {"what": "I like tea"}, "review": {}}
WITH_PROMPTS = {"default", "simplemem"}


@pytest.mark.parametrize(
    "profile", [name for name, face in built_in_profiles().items() if face.known_as is None]
)
def test_no_prompt_names_a_tool_that_the_profile_does_not_have(vault: Path, profile: str) -> None:
    with Bare(vault, "--profile", profile, env={"SIMPLEMEM_EMBED_PROVIDER": "none"}) as bare:
        bare.initialize()
        tools = {tool["name"] for tool in bare.request("tools/list")["result"]["tools"]}
        offered = {prompt["name"] for prompt in bare.request("prompts/list")["result"]["prompts"]}
        assert offered == (set(ARGUMENTS) if profile in WITH_PROMPTS else set())
        for name, arguments in ARGUMENTS.items():
            answer = bare.request("prompts/get", {"name": name, "arguments": arguments})
            if name not in offered:
                assert "no prompt called" in answer["error"]["message"]
                continue
            text = answer["result"]["messages"][0]["content"]["text"]
            assert not (set(re.findall(r"[a-z]+(?:_[a-z]+)+", text)) & ALL_TOOLS) - tools


@pytest.mark.parametrize(("options", "offered"), [
    (["--profile", "hmlr", "--tools", "core"], {"recall", "remember", "review"}),
    (["--tools=-core,graph"], set()),
])  # fmt: skip
def test_the_prompts_follow_the_tools_that_are_chosen(
    vault: Path, options: list[str], offered: set[str]
) -> None:
    with Bare(vault, *options, env={"SIMPLEMEM_EMBED_PROVIDER": "none"}) as bare:
        bare.initialize()
        assert {
            prompt["name"] for prompt in bare.request("prompts/list")["result"]["prompts"]
        } == offered
