"""The list of tools as clients get it: what it says, what it weighs, and that no profile has a name twice."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from simplemem.errors import Invalid
from simplemem.faces.instructions import INSTRUCTIONS, LEARNING, ORIGINAL
from simplemem.faces.toolsets import PROFILES, TOOLSETS, Profile, choose, profile_called, split_names
from simplemem.note.words import count_tokens

SNAPSHOT = Path(__file__).with_name("tool_list.json")
OURS = [name for name, profile in PROFILES.items() if profile.known_as is None and not profile.vault_env]
"""The profiles whose tools are as small as we please; the others are as large as those of the server they stand for."""


def weight(value: Any) -> int:
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


def snapshot() -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for profile in [*PROFILES.values(), Profile("graph", "the toolset `graph` alone", ("graph",))]:
        tools = [tool.listing() for tool in choose(profile)]
        seen = [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in tools]
        shown[profile.name] = {
            "bytes_a_model_sees": weight(seen),
            "tokens_a_model_sees": weight(seen) // 4,
            "bytes": weight(tools),
            "tools": tools,
        }
    return shown


def test_the_list_is_as_it_was() -> None:
    """A change of the list is a change of a contract: look at it, then write it with
    `python tests/faces/test_tool_list.py`."""
    assert snapshot() == json.loads(SNAPSHOT.read_text(encoding="utf-8"))


@pytest.mark.parametrize("profile", [*OURS, "graph"])
def test_the_list_of_a_profile_stays_small(profile: str) -> None:
    shown = snapshot()[profile]
    assert len(shown["tools"]) <= 12
    assert shown["bytes_a_model_sees"] < 8_000
    assert shown["bytes"] < 24_000


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_every_tool_says_what_it_is(profile: Profile) -> None:
    tools = choose(profile)
    assert len({tool.name for tool in tools}) == len(tools)
    for tool in tools:
        shown = tool.listing()
        hints = shown["annotations"]
        assert set(hints) == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
        assert hints["readOnlyHint"] is not tool.writes
        assert not (hints["readOnlyHint"] and hints["destructiveHint"])
        assert shown["title"]
        assert 0 < len(shown["description"]) < 300
        jsonschema.Draft202012Validator.check_schema(shown["inputSchema"])
        assert shown["inputSchema"]["type"] == "object"
        assert "$ref" not in json.dumps(shown["inputSchema"])
        if tool.output:
            jsonschema.Draft202012Validator.check_schema(tool.output)
            assert tool.output["type"] == "object"


def test_only_what_adds_is_not_called_destructive() -> None:
    """The default `create_memory` can replace a text (overwrite); the original's cannot."""
    harmless = {
        name: [tool.name for tool in choose(profile) if tool.writes and not tool.destructive]
        for name, profile in PROFILES.items()
    }
    adding = ["create_entities", "create_relations", "add_observations"]
    assert harmless == {
        "default": [],
        "simplemem": ["create_memory"],
        "server-memory": adding,
        "memento": adding,
        "self-improving": [*adding, "save_knowledge", "link_knowledge"],
    }


def test_an_answer_or_an_error_fits_a_schema_and_nothing_else_does() -> None:
    """Clients check structured content against the schema, of failures too."""
    for tool in choose(PROFILES["default"]):
        fits = jsonschema.Draft202012Validator(tool.listing()["outputSchema"]).is_valid
        assert fits({"error": {"code": "not_found", "message": "no"}})
        assert not fits({"error": {"message": "no code"}})
        assert not fits({})


def test_toolsets_are_added_and_taken_away_by_name() -> None:
    default = PROFILES["default"]
    assert choose(default, ["core"]) == choose(default)
    with pytest.raises(Invalid, match="No tool is left"):
        choose(default, ["-core"])
    assert choose(default, ["-core", "original"]) == choose(PROFILES["simplemem"])
    with pytest.raises(Invalid, match="no toolset 'nothing'"):
        choose(default, ["nothing"])
    assert split_names(["core, original", "-core"]) == ["core", "original", "-core"]
    assert split_names(None) == []


def test_two_tools_of_one_name_never_meet() -> None:
    for some in itertools.combinations(TOOLSETS, 2):
        one, two = ({tool.name for tool in choose(Profile("p", "", (name,)))} for name in some)
        if one & two:
            with pytest.raises(Invalid, match="Two toolsets have a tool"):
                choose(Profile("p", "", some))
            resolved = Profile("p", "", some, without=frozenset(f"{some[0]}.{name}" for name in one & two))
            chosen = [tool.name for tool in choose(resolved)]
            assert sorted(chosen) == sorted(one | two)
        else:
            assert len(choose(Profile("p", "", some))) == len(one | two)


def test_a_profile_that_is_not_there_is_answered_with_those_that_are() -> None:
    assert profile_called(None) is PROFILES["default"]
    with pytest.raises(Invalid) as refused:
        profile_called("nobody")
    assert "simplemem" in refused.value.hint


@pytest.mark.parametrize("text", [INSTRUCTIONS, ORIGINAL, LEARNING])
def test_the_instructions_fit_in_four_hundred_tokens(text: str) -> None:
    assert count_tokens(text) <= 400


if __name__ == "__main__":
    SNAPSHOT.write_text(json.dumps(snapshot(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
