"""No tool leads out of the vault, whatever its arguments are.

The calls are made from the list of tools: a new one, or a new argument, is taken in by itself, and a tool that nobody
has said how to call (in `tool_calls.py`) fails the first test here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from canary import SECRET, Room
from effort import LONG
from hostile_names import hostile_names
from tool_calls import HARMLESS, harmless, put_back

from simplemem.note.names import check_name, name_of
from simplemem.profiles.profile import Profile
from simplemem.profiles.registry import built_in_profiles, choose_tools
from simplemem.server.calls import ToolCall, answer_call
from simplemem.server.executor import StoreExecutor
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore
from simplemem.tools.tool import Tool

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the vault has links and a pipe")

PLAIN = {"embed": {"provider": "none"}, "write": {"durability": "fast"}}
NAMES = frozenset(["name", "new_name"])
"""Arguments that say which file is meant get every name, the others one in so many: together they get all."""
ADDED = [
    Profile(name, "A toolset that is added to a server", (name,))
    for name in ("graph", "knowledge-base")
]
TOOLS = [
    pytest.param(profile, tool, id=f"{profile.name}.{tool.name}")
    for profile in (*built_in_profiles().values(), *ADDED)
    for tool in choose_tools(profile)
]


class Pages(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module", autouse=True)
def a_page_of_the_web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    (folder := tmp_path_factory.mktemp("web")).joinpath("page.txt").write_text(
        "The tide turns at noon.\n"
    )
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Pages, directory=folder)) as server:
        Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        HARMLESS["ingest_url"]["url"] = f"http://127.0.0.1:{server.server_port}/page.txt"
        yield
        server.shutdown()


@contextmanager
def door_of(room: Room) -> Iterator[StoreExecutor]:
    (base := room.vault / "kb").mkdir(exist_ok=True)
    documents = {"allow_private": True, "knowledge_base": base}
    door = StoreExecutor(
        lambda: EnhancedStore(
            room.vault, Settings.model_validate({**PLAIN, "documents": documents})
        )
    )
    yield door
    door.close(writing=1, closing=5)


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Room:
    return Room(tmp_path_factory.mktemp("room"))


@pytest.fixture(scope="module")
def door(room: Room) -> Iterator[StoreExecutor]:
    """For a call or two of each tool. One that is attacked has a vault of its own: else each would read the history of
    all that were attacked before it."""
    with door_of(room) as door:
        yield door


def spoilt(shape: dict[str, Any], name: str) -> Any:
    """A value of that shape with the name wherever there is room for one; None when there is none."""
    match shape.get("type"):
        case "string":
            return name
        case "object" if "properties" in shape:
            inside = {
                key: (each.get("enum") or [spoilt(each, name)])[0]
                for key, each in shape["properties"].items()
            }
            return {key: value for key, value in inside.items() if value is not None}
        case "object":
            return {name: name, "title": name, "tags": [name], "aliases": [name]}
        case "array":
            return [spoilt(shape.get("items", {}), name) or name]
    return next(
        (value for each in shape.get("anyOf", ()) if (value := spoilt(each, name)) is not None),
        None,
    )


def share_of(
    names: list[str], profile: Profile, tool: Tool, argument: str, number: int
) -> list[str]:
    """The names that one argument of a tool gets."""
    if (
        LONG
        or argument in NAMES
        or (profile.name, tool.name) == ("server-memory", "create_entities")
    ):
        return names
    every = (
        7 if profile.name in ("default", "simplemem") else 24
    )  # the graph's tools are many and do alike
    return names[([each.values for each in TOOLS].index((profile, tool)) + number) % every :: every]


def call(door: StoreExecutor, tool: Any, arguments: dict[str, Any]) -> Any:
    return answer_call(tool, door, ToolCall(arguments, "hostile 1"))


@pytest.mark.parametrize(("profile", "tool"), TOOLS)
def test_every_tool_is_known_here_and_does_its_work(
    room: Room, door: StoreExecutor, profile: Any, tool: Any
) -> None:
    put_back(room.vault)
    wanted = harmless(tool)
    if tool.name == "undo_change":
        call(
            door,
            next(t for t in choose_tools(profile) if t.name == "update_memory"),
            {"name": "n", "append": "x"},
        )
    result = call(door, tool, wanted)
    assert not result.is_error, (
        f"say in tool_calls.py how {tool.name} is called: {result.content[0].text}"
    )


MAKING = "create_entities create_relations add_observations delete_entities link_knowledge save_knowledge".split()


@pytest.mark.parametrize(
    ("profile", "tool"),
    [each for each in TOOLS if any(tool.name in MAKING for tool in each.values[1:])],
)
def test_a_name_without_malice_takes_the_same_way_and_arrives(
    room: Room, door: StoreExecutor, profile: Any, tool: Any
) -> None:
    """Else the hostile ones would be turned away for their form, and prove nothing."""
    for argument, shape in tool.listing()["inputSchema"]["properties"].items():
        put_back(room.vault)
        name = "id-one" if tool.name == "link_knowledge" else "Apollo"
        if (
            argument in ("type", "reason", "container_tag")
            or (value := spoilt(shape, name)) is None
        ):
            continue
        wanted = harmless(tool) | ({"targetId": "id-two"} if argument == "sourceId" else {})
        if argument == "targetId":
            wanted["sourceId"] = "id-two"
        result = call(door, tool, {**wanted, argument: value})
        assert not result.is_error, (argument, value, result.content[0].text)


@pytest.mark.parametrize("every", [10, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("profile", "tool"), TOOLS)
def test_a_tool_never_leaves_the_vault(tmp_path: Path, profile: Any, tool: Any, every: int) -> None:
    """Together the tools get every name even where each argument gets one in ten."""
    place = [each.values for each in TOOLS].index((profile, tool))
    room = Room(tmp_path)
    names = hostile_names(room.folder)
    assert len(names) >= 300
    shapes = tool.listing()["inputSchema"]["properties"]
    wanted = harmless(tool)
    with door_of(room) as door:
        for number, (argument, shape) in enumerate(shapes.items()):
            share = share_of(names, profile, tool, argument, number)
            for name in share[(place + number) % every :: every]:
                if (value := spoilt(shape, name)) is None:
                    continue
                put_back(room.vault)
                result = call(door, tool, {**wanted, argument: value})
                said = "\n".join(part.text for part in result.content) + json.dumps(
                    result.structured_content
                )
                assert not room.touched(), (argument, name)
                assert SECRET not in said, (argument, name)
                assert "internal error in simplemem" not in said, (argument, name, said)
                if (
                    result.structured_content is not None
                ):  # the failures of graph servers are words alone
                    assert result.is_error is False or result.structured_content["error"]["code"], (
                        argument,
                        name,
                    )
    # The vault now has what was there, and notes with names that every system permits.
    for path in (
        each for each in room.vault.rglob("*") if each.is_file() and not each.is_symlink()
    ):
        if not (name := path.relative_to(room.vault).as_posix()).startswith("."):
            assert check_name(name_of(name)) == name_of(name)
    assert {path.name for path in room.vault.iterdir() if path.name.startswith(".")} <= {
        ".git",
        ".simplemem",
        ".trash",
    }


def test_reading_a_file_outside_would_have_been_seen(room: Room) -> None:
    """The canary tells of a change, and of mere reading where the disk notes that."""
    if room.reading_shows():
        (room.folder / "canary.md").read_text()
        assert room.touched() == [str(room.folder / "canary.md")]
    (room.folder / "outside" / "more.md").write_text("x")
    assert str(room.folder / "outside") in room.touched()


def test_writing_a_note_that_has_a_second_name_outside_leaves_the_other_alone(
    tmp_path: Path,
) -> None:
    """A hard link is one file with two names. It may be read; writing gives the vault a file of its own."""
    room = Room(tmp_path)
    other = room.folder / "outside" / "shared.md"
    other.write_text("shared text\n")
    os.link(other, room.vault / "hard.md")
    with EnhancedStore(room.vault, Settings.model_validate(PLAIN)) as store:
        store.sync()
        assert store.read("hard").content == "shared text\n"
        store.update("hard", append="ours")
        store.change_tags("hard", {"todo": True})
        store.move("hard", "moved")
        store.delete("moved")
    assert other.read_text() == "shared text\n"
