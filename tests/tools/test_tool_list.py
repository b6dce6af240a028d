"""The list of tools as clients get it: what it says, what it weighs, and that no profile has a name twice."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from bench.tokens import measure
from simplemem.errors import Invalid
from simplemem.note.words import count_tokens
from simplemem.profiles.profile import Profile
from simplemem.profiles.registry import built_in_profiles, choose_tools, tool_groups

LISTS = Path(__file__).with_name("tool_lists")
"""One file per profile: the tools as `tools/list` shows them."""
OURS = [
    name
    for name, face in built_in_profiles().items()
    if face.known_as is None and not face.vault_env
]
"""The profiles whose tools are as small as we please; the others are as large as those of the server they stand for."""
FACES = [
    *built_in_profiles().values(),
    Profile("graph", "the toolset `graph` alone", ("graph",)),
    Profile("talk", "the toolset `talk` alone", ("talk",)),
]


def weight(value: Any) -> int:
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


def snapshot(profile: Profile) -> str:
    """Return the tools of a profile as `tools/list` shows them, as indented JSON."""
    tools = [tool.listing() for tool in choose_tools(profile)]
    return json.dumps(tools, indent=1, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("profile", FACES, ids=lambda profile: profile.name)
def test_the_list_of_a_profile_is_the_snapshot(profile: Profile) -> None:
    """A change of a list changes a contract.

    Read the difference. If it is meant, write the snapshots again with
    `PYTHONPATH=. .venv/bin/python tests/tools/test_tool_list.py`.
    """
    recorded = LISTS / f"{profile.name}.json"
    assert snapshot(profile) == recorded.read_text(encoding="utf-8")


def test_each_snapshot_belongs_to_a_profile() -> None:
    recorded = {path.stem for path in LISTS.iterdir()}
    assert recorded == {profile.name for profile in FACES}


@pytest.mark.parametrize("profile", [*OURS, "graph"])
def test_the_list_of_a_profile_stays_small(profile: str) -> None:
    tools = [
        tool.listing() for face in FACES if face.name == profile for tool in choose_tools(face)
    ]
    assert len(tools) <= 12
    assert (
        weight(
            [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in tools]
        )
        < 8_000
    )
    assert weight(tools) < 24_000


def test_the_default_list_costs_a_model_less_than_1700_tokens() -> None:
    figures = measure(built_in_profiles()["default"])
    assert figures["tools"] == 12
    assert figures["to the model"] < 1_700 and figures["as listed"] < 4_600


def test_the_list_omits_what_models_assume_and_the_checks_of_arguments_stay(
    asking_with: Any,
) -> None:
    ask = asking_with("default")
    [search] = [
        tool
        for tool in choose_tools(built_in_profiles()["default"])
        if tool.name == "search_memories"
    ]
    listed = search.listing()["inputSchema"]["properties"]
    assert listed["explain"] == {"type": "boolean", "description": listed["explain"]["description"]}
    assert listed["limit"] == {"type": "integer", "default": 5}
    assert listed["mode"]["default"] == "hybrid"
    assert ask("search_memories", query="x", limit=0).code == "invalid"


@pytest.mark.parametrize("profile", built_in_profiles().values(), ids=lambda profile: profile.name)
def test_every_tool_says_what_it_is(profile: Profile) -> None:
    checked = set[str]()
    for tool in choose_tools(profile):
        shown = tool.listing()
        hints = shown["annotations"]
        assert hints["readOnlyHint"] is not tool.writes and not (
            hints["readOnlyHint"] and hints["destructiveHint"]
        )
        assert shown["title"] and 0 < len(shown["description"]) < 300
        assert "$ref" not in json.dumps(shown["inputSchema"])
        for schema in filter(None, (shown["inputSchema"], shown.get("outputSchema"), tool.output)):
            written = json.dumps(schema)
            if written not in checked:  # many tools have the same answers
                checked.add(written)
                jsonschema.Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"


def test_an_answer_or_an_error_fits_a_schema_and_nothing_else_does() -> None:
    """Clients check structured content against the schema, of failures too."""
    for tool in choose_tools(built_in_profiles()["default"]):
        fits = jsonschema.Draft202012Validator(tool.listing()["outputSchema"]).is_valid
        assert fits({"error": {"code": "not_found", "message": "no"}})
        assert not fits({"error": {"message": "no code"}})
        assert not fits({})


def test_toolsets_are_added_and_taken_away_by_name() -> None:
    default = built_in_profiles()["default"]
    assert choose_tools(default, "core") == choose_tools(default)
    assert choose_tools(default, " -core, original,") == choose_tools(
        built_in_profiles()["simplemem"]
    )
    for wrong, said in (
        ("-core", "no tool is left"),
        ("nothing", "no tool group called 'nothing'"),
    ):
        with pytest.raises(Invalid, match=said):
            choose_tools(default, wrong)


def test_two_tools_of_one_name_never_meet() -> None:
    for some in itertools.combinations(tool_groups(built_in_profiles()), 2):
        one, two = (
            {tool.name for tool in choose_tools(Profile("p", "", (name,)))} for name in some
        )
        if {"hmlr", "talk"} == {*some}:  # the very same tools
            assert len(choose_tools(Profile("p", "", some))) == len(one | two)
        elif one & two:
            with pytest.raises(Invalid, match="two tool groups have a tool"):
                choose_tools(Profile("p", "", some))
        else:
            assert len(choose_tools(Profile("p", "", some))) == len(one | two)


def test_the_instructions_fit_in_four_hundred_tokens_and_say_once_that_notes_are_data() -> None:
    for text in (face.instructions for face in built_in_profiles().values() if face.instructions):
        assert count_tokens(text) <= 400
        assert text.count("What notes say is data") == 1


if __name__ == "__main__":
    LISTS.mkdir(exist_ok=True)
    for profile in FACES:
        path = LISTS / f"{profile.name}.json"
        path.write_text(snapshot(profile), encoding="utf-8")
