"""No tool leads out of the vault, whatever its arguments say (durability.md F34, F35, F36, F37, F38; I7).

The calls are made from the list of tools: a new one, or a new argument, is taken in by itself, and a tool that nobody has
said how to call fails the first test here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from canary import SECRET, Room
from effort import LONG
from hostile_names import hostile_names

from simplemem.config import Settings
from simplemem.graph.graph import graph_of
from simplemem.graph.values import Entity, Observation, Relation
from simplemem.note.names import check_name, name_of
from simplemem.server.calls import perform
from simplemem.server.door import Door
from simplemem.server.graph_calls import perform_contract
from simplemem.store import EnhancedStore
from simplemem.tools.contract import ContractTool
from simplemem.tools.toolsets import PROFILES, Profile, choose

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the vault has links and a pipe")

PLAIN = Settings.model_validate({"embed": {"provider": "none"}, "write": {"durability": "fast"}})
NAMES = frozenset(["name", "new_name"])
"""Arguments that say which file is meant get every name. The others of a tool share them, or get some."""
SOME, FEW = 7, 20

METADATA = {"title": "T", "description": "D", "tags": {"todo": True}}
# How each tool is called so that it does its work. One argument after the other is then replaced.
HARMLESS: dict[str, dict[str, Any]] = {
    "search_memories": {"query": "harbours"},
    "read_memory": {"name": "n"},
    "create_memory": {"name": "new", "content": "text", "metadata": METADATA, "overwrite": True},
    "update_memory": {"name": "n", "content": "text", "metadata": METADATA},
    "change_tag": {"name": "n", "tags": {"todo": None}},
    "list_memories": {},
    "get_backlinks": {"name": "n"},
    "build_context": {"query": "harbours"},
    "move_memory": {"name": "n", "new_name": "moved"},
    "delete_memory": {"name": "n"},
    "memory_history": {},
    "undo_change": {"name": "n"},
}
RELATION = {"from": "E", "to": "F", "relationType": "knows"}
SAID = {"entityName": "E", "contents": ["text"], "observations": ["text"]}
HARMLESS |= {
    "create_entities": {"entities": [{"name": "E", "entityType": "component", "observations": ["text"]}]},
    "create_relations": {"relations": [RELATION]},
    "add_observations": {"observations": [SAID]},
    "delete_entities": {"entityNames": ["E"], "names": ["E"]},
    "delete_observations": {"deletions": [SAID]},
    "delete_relations": {"relations": [RELATION]},
    "read_graph": {},
    "search_nodes": {"query": "text"},
    "open_nodes": {"names": ["E"]},
    "traverse_graph": {"start": "E"},
    "find_path": {"from": "E", "to": "F"},
    "semantic_search": {"query": "text"},
    "get_relation": RELATION,
    "update_relation": {"relation": RELATION},
    "get_entity_embedding": {"entity_name": "E"},
    "get_entity_history": {"entityName": "E"},
    "get_relation_history": RELATION,
    "get_graph_at_time": {"timestamp": 1_800_000_000_000},
    "get_decayed_graph": {},
    "save_knowledge": {"type": "insight", "content": "text", "confidence": 0.5, "tags": ["t"]},
    "search_knowledge": {"query": "text"},
    "link_knowledge": {},
    "get_stats": {},
    "export_markdown": {},
    "export_graph": {"format": "json"},
    "detect_contradictions": {},
    "auto_resolve_contradictions": {},
    "get_superseded_history": {},
    "analyze_patterns": {},
    "generate_insights": {},
    "detect_antipatterns": {},
    "suggest_tags": {},
    "cluster_knowledge": {},
    "get_cache_stats": {},
    "clear_cache": {},
    "persist_cache": {},
}
FEW_NAMES = HARMLESS.keys() - {tool.name for tool in choose(PROFILES["default"])}
"""Tools that keep what they are told in notes of their own: a few of the names each, as none of them means a file."""
TOOLS = list(
    {
        (tool.name, tool.run): pytest.param(profile, tool, id=f"{profile.name}.{tool.name}")
        for profile in [*PROFILES.values(), Profile("graph", "", ("graph",))]
        for tool in choose(profile)
    }.values()
)
"""Each way to do something once, whichever profiles have it."""


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Room:
    return Room(tmp_path_factory.mktemp("room"))


@pytest.fixture(scope="module")
def door(room: Room) -> Iterator[Door]:
    door = Door(room.vault, lambda: EnhancedStore(room.vault, PLAIN))
    yield door
    door.close(writing=1, closing=5)


def put_back(room: Room) -> None:
    """The note that every call is about, if the last one took it away."""
    if not (room.vault / "n.md").is_file():
        (room.vault / "n.md").write_text("---\ntags: [todo]\n---\nA note about [[notes/other]] harbours.\n")


def set_the_scene(door: Door) -> None:
    """What the tools of a graph are about."""
    graph = graph_of(door.store())
    graph.create_entities([Entity(name, "component", (Observation("text"),)) for name in "EF"])
    graph.create_relations([Relation("E", "knows", "F")])


def spoilt(shape: dict[str, Any], name: str) -> Any:
    """A value of that shape with the name wherever there is room for one; None when there is none."""
    match shape.get("type"):
        case "string":
            return name
        case "object":
            return {name: name, "title": name, "tags": [name], "aliases": [name]}
        case "array":
            inside = shape.get("items", {})
            parts = inside.get("properties", {})
            return [{key: spoilt(each, name) for key, each in parts.items()} or spoilt(inside, name) or name]
    if "anyOf" in shape:
        return next((value for each in shape["anyOf"] if (value := spoilt(each, name)) is not None), None)
    return None


def call(door: Door, tool: Any, arguments: dict[str, Any]) -> Any:
    answering = perform_contract if isinstance(tool, ContractTool) else perform
    return answering(tool, door, arguments, "hostile 1")


@pytest.mark.parametrize(("profile", "tool"), TOOLS)
def test_every_tool_is_known_here_and_does_its_work(room: Room, door: Door, profile: Any, tool: Any) -> None:
    assert tool.name in HARMLESS, f"say in HARMLESS how {tool.name} is called, so that its arguments can be attacked"
    put_back(room)
    wanted = {
        key: value for key, value in HARMLESS[tool.name].items() if key in tool.listing()["inputSchema"]["properties"]
    }
    if tool.name in FEW_NAMES:
        set_the_scene(door)
    if tool.name == "link_knowledge":
        saving = next(t for t in choose(profile) if t.name == "save_knowledge")
        told = [call(door, saving, HARMLESS["save_knowledge"] | {"content": each}) for each in ("one", "two")]
        ids = [answer.content[0].text.rpartition(" ")[2] for answer in told]
        wanted = {"sourceId": ids[0], "targetId": ids[1]}
    if tool.name == "undo_change":
        call(door, next(t for t in choose(profile) if t.name == "update_memory"), {"name": "n", "append": "x"})
    result = call(door, tool, wanted)
    assert not result.is_error, result.content[0].text


@pytest.mark.parametrize(("profile", "tool"), TOOLS)
def test_a_tool_never_leaves_the_vault(room: Room, door: Door, profile: Any, tool: Any) -> None:
    names = hostile_names(room.folder)
    assert len(names) >= 300
    shapes = tool.listing()["inputSchema"]["properties"]
    every = SOME if NAMES & shapes.keys() else sum(spoilt(shape, "x") is not None for shape in shapes.values())
    every = FEW if tool.name in FEW_NAMES else every
    wanted = {key: value for key, value in HARMLESS[tool.name].items() if key in shapes}
    for number, (argument, shape) in enumerate(shapes.items()):
        chosen = names if LONG or argument in NAMES else names[number % every :: every]
        for name in chosen:
            if (value := spoilt(shape, name)) is None:
                continue
            put_back(room)
            result = call(door, tool, {**wanted, argument: value})
            said = "\n".join(part.text for part in result.content) + json.dumps(result.structured_content)
            assert not room.touched(), (argument, name)
            assert SECRET not in said, (argument, name)
            assert "failed inside simplemem" not in said, (argument, name, said)
            if not isinstance(tool, ContractTool):
                assert result.is_error is False or result.structured_content["error"]["code"], (argument, name)


def test_what_was_written_has_names_that_every_system_takes(room: Room, door: Door) -> None:
    """After all of the above: what lies in the vault now is what was there, and notes with portable names (F34)."""
    made = [
        path.relative_to(room.vault).as_posix()
        for path in room.vault.rglob("*")
        if path.is_file() and not path.is_symlink() and not path.relative_to(room.vault).parts[0].startswith(".")
    ]
    for path in made:
        assert check_name(name_of(path)) == name_of(path)
    assert {path.name for path in room.vault.iterdir() if path.name.startswith(".")} <= {".git", ".simplemem", ".trash"}


def test_reading_a_file_outside_would_have_been_seen(room: Room) -> None:
    """The canary tells of a change, and of mere reading where the disk notes that."""
    if room.reading_shows():
        (room.folder / "canary.md").read_text()
        assert room.touched() == [str(room.folder / "canary.md")]
    (room.folder / "outside" / "more.md").write_text("x")
    assert str(room.folder / "outside") in room.touched()


def test_writing_a_note_that_has_a_second_name_outside_leaves_the_other_alone(tmp_path: Path) -> None:
    """F35: a hard link is one file with two names. It may be read; writing gives the vault a file of its own."""
    room = Room(tmp_path)
    other = room.folder / "outside" / "shared.md"
    other.write_text("shared text\n")
    os.link(other, room.vault / "hard.md")
    with EnhancedStore(room.vault, PLAIN) as store:
        store.sync()
        assert store.read("hard").content == "shared text\n"
        store.update("hard", append="ours")
        store.change_tags("hard", {"todo": True})
        store.move("hard", "moved")
        store.delete("moved")
    assert other.read_text() == "shared text\n"
