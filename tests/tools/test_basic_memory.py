"""The profile basic-memory answers as release 0.24.1 did (tests/data/basic_memory.toml).

bench/basic_memory.py compares it with the package itself.
"""

from __future__ import annotations

import json
import shutil
import sys
import tomllib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "server"))
from sdk_client import LEGACY, MODERN, connected, run, text_of

from simplemem.profiles.basic_memory.note_lines import observations
from simplemem.profiles.basic_memory.permalinks import slug
from simplemem.profiles.basic_memory.search import property_matches
from simplemem.store import open_store

DATA = Path(__file__).parents[1] / "data"
SEEN = tomllib.loads((DATA / "basic_memory.toml").read_text(encoding="utf-8"))
Write = Callable[[str, str | bytes], Path]
Ask = Callable[[str, dict[str, Any]], Awaitable[Any]]


def with_tools(vault: Path, body: Callable[[Ask], Awaitable[None]], mode: str = MODERN) -> None:
    async def connect() -> None:
        async with connected(vault, mode, "basic-memory") as client:
            await body(client.call_tool)

    run(connect)


def part(data: Any, path_in_data: str) -> Any:
    """Return the value at a path such as `results.title`; of a list, that of every item."""
    for key in path_in_data.split("."):
        if not isinstance(data, list):
            data = data[key]
            continue
        items = []
        for item in data:
            items += item if isinstance(item, list) else [item]
        data = [item[key] for item in items]
    return data


async def take_all_steps(ask: Ask) -> None:
    for step in SEEN["steps"]:
        tool, _, sent = step["call"].partition(" ")
        result = await ask(tool, json.loads(sent))
        text = text_of(result)
        call = step["call"]
        assert bool(result.is_error) == step.get("failed", False), (call, text)
        assert text.startswith(step.get("begins", "")) and text.endswith(step.get("ends", "")), (
            call,
            text,
        )
        assert all(phrase in text for phrase in step.get("has", ())), (call, text)
        if not result.is_error:
            data = result.structured_content["result"]
            assert data == text or data == json.loads(text), call
        for path_in_data, value in step.get("is", {}).items():
            assert part(json.loads(text), path_in_data) == value, (call, path_in_data, text)


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
def test_every_answer_has_the_form_of_release_0_24_1(vault: Path, mode: str) -> None:
    with_tools(vault, take_all_steps, mode)


def test_a_directory_is_deleted_as_one_step(vault: Path) -> None:
    with_tools(vault, take_all_steps)
    assert not list(vault.glob("old/**/*.md"))
    with open_store(vault) as store:
        store.undo(store.next_to_undo())
    assert {path.name for path in vault.glob("old/**/*.md")} == {
        "Ginger Cake.md",
        "Tea- A Guide.md",
    }


def move_docs(ask: Any) -> Any:
    return ask("move_note", identifier="docs", destination_path="old", is_directory=True)


@pytest.mark.parametrize(
    "rest",
    [{"old/c.md": "It has the name.\n"}, {"Private/quetzal.md": "See [[docs/c]].\n"}],
    ids=["a name is taken", "a hidden link would break"],
)
def test_a_directory_is_moved_as_one_step_or_not_at_all(
    asking_with: Callable[..., Any], vault: Path, write: Write, rest: dict[str, str]
) -> None:
    for path, text in ({f"docs/{name}.md": "See [[docs/b]].\n" for name in "abcd"} | rest).items():
        write(path, text)
    old_files = {path: path.read_text() for path in vault.glob("*/*.md")}
    ask = asking_with("basic-memory", embed={"provider": "none"}, access={"hidden": ["Private/"]})
    ask.in_step()
    refused = move_docs(ask)
    assert refused.failed
    assert "quetzal" not in refused.text
    assert {path: path.read_text() for path in vault.glob("*/*.md")} == old_files
    for path in rest:
        (vault / path).unlink()
    ask.in_step()
    assert not move_docs(ask).failed
    assert {path.name: path.read_text() for path in vault.glob("old/*.md")} == {
        f"{name}.md": "See [[old/b]].\n" for name in "abcd"
    }
    ask.store.undo(ask.store.next_to_undo())
    assert {path.name for path in vault.glob("docs/*.md")} == {"a.md", "b.md", "c.md", "d.md"}
    assert not list(vault.glob("old/*.md"))


def test_a_permalink_is_derived_from_the_path() -> None:
    assert {path: slug(path) for path in SEEN["permalinks"]} == SEEN["permalinks"]


@pytest.mark.parametrize("bounds", [[], [1], {"low": 1, "high": 3}, 3])
def test_bounds_that_are_not_two_values_match_no_property(bounds: object) -> None:
    assert not property_matches({"priority": 2}, "priority", {"$between": bounds})
    assert property_matches({"priority": 2}, "priority", {"$between": [1, 3]})


def test_the_same_lines_are_observations_as_in_basic_memory() -> None:
    found = {
        line: [each for one in observations(f"Text.\n\n{line}\n") for each in one]
        for line in SEEN["lines"]
    }
    assert found == SEEN["lines"]


def test_a_vault_of_basic_memory_is_served_without_a_change(vault: Path) -> None:
    shutil.copytree(DATA / "imports" / "basic-memory", vault, dirs_exist_ok=True)
    old_files = {path: path.read_bytes() for path in vault.rglob("*.md")}

    async def body(ask: Ask) -> None:
        found = await ask("search_notes", {"query": "*", "page_size": 100, "output_format": "json"})
        rows = found.structured_content["result"]["results"]
        assert len(rows) == len(old_files)
        for row in rows:
            read = await ask("read_note", {"identifier": row["permalink"], "output_format": "json"})
            assert read.structured_content["result"]["file_path"] == row["file_path"]

    with_tools(vault, body)
    assert {path: path.read_bytes() for path in old_files} == old_files


AWAY = {"provider": "ollama", "model": "none", "url": "http://127.0.0.1:9"}


def test_no_note_is_reported_missing_while_the_index_is_incomplete(
    asking_with: Any, write: Any
) -> None:
    write("tea.md", "Oolong.\n")
    asking = asking_with("basic-memory", embed=AWAY)
    found = asking("search_notes", query="zebra")
    assert "No answer yet" in found.text and "not yet by meaning" in found.text
    assert "No results found" not in found.text
    shaped = asking("search_notes", query="zebra", output_format="json").data["result"]
    assert shaped["results"] == [] and "not yet by meaning" in shaped["notice"]
    missing = asking("read_note", identifier="zebra")
    assert "not yet by meaning" in missing.text and "found nothing near" not in missing.text


def test_an_empty_result_of_a_complete_index_has_no_notice(asking_with: Any, write: Any) -> None:
    write("tea.md", "Oolong.\n")
    asking = asking_with("basic-memory", embed={"provider": "none"})
    assert "No results found" in asking("search_notes", query="zebra").text
    assert (
        "notice" not in asking("search_notes", query="zebra", output_format="json").data["result"]
    )
