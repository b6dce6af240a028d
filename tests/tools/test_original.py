"""The profile of the original has its eight tools, parameters and formats, not its defects."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from waiting import write_many_notes

from simplemem.errors import Invalid
from simplemem.profiles.simplemem.settings import original_settings
from simplemem.profiles.simplemem.texts import plain_length
from simplemem.profiles.simplemem.tools import TOOLS

META = {
    "title": "Plan",
    "description": "The plan",
    "tags": {"todo": True, "prio": 1},
    "extra": "kept",
}

BY_THE_ORIGINAL = """\
---
title: Old note
description: made by the original
tags:
  status: done
  todo: true
created: 2025-06-01T10:00:00Z
modified: 2025-06-02T10:00:00.123456789+02:00
links:
  - plan
depth:
  a: 1
---

# Old

The lantern. See [[plan]] and [the plan](plan.md).
"""


def hits(text: str) -> list[str]:
    return re.findall(r"^## \d+\. (.+)$", text, re.MULTILINE)


def test_a_memory_is_created_with_a_map_of_tags_and_the_servers_dates(
    ask_original, vault: Path
) -> None:
    created = ask_original(
        "create_memory",
        name="plan",
        metadata=META | {"created": "1999-01-01", "modified": "1999-01-01"},
        content="Go.",
    )
    assert created.text == "Memory 'plan' was created."
    text = (vault / "plan.md").read_text()
    assert "tags:\n  todo: true\n  prio: " in text
    assert "extra: kept" in text
    assert "1999" not in text
    again = ask_original("create_memory", name="plan", metadata=META, content="Other.")
    assert again.code == "already_exists"


def test_title_description_and_tags_are_required(ask_original, vault: Path) -> None:
    for metadata, named in (
        ({}, "title, description, tags"), ({"title": "x", "description": "y", "tags": None}, "tags"),
        ({"title": 5, "description": "y", "tags": {}}, "title"), ("not an object", "metadata"), (["x"], "metadata"),
    ):  # fmt: skip
        refused = ask_original("create_memory", name="a", metadata=metadata, content="x")
        assert refused.code == "invalid" and named in refused.text
    assert not (vault / "a.md").exists()
    metadata = '{"title": "A", "description": "", "tags": ["todo", "status=done"]}'
    assert not ask_original("create_memory", name="a", metadata=metadata, content="x").failed
    assert "**Tags:** todo, status: done" in ask_original("read_memory", name="a").text


def test_reading_returns_the_file_its_metadata_and_its_links(
    ask_original, write: Callable[..., Path]
) -> None:
    os.utime(write("old.md", BY_THE_ORIGINAL), (0, 0))
    ask_original("create_memory", name="plan", metadata=META, content="Go.")
    text = ask_original("read_memory", name="old").text
    assert text.startswith(BY_THE_ORIGINAL)
    after = text.removeprefix(BY_THE_ORIGINAL)
    assert after.startswith("\n---\n")
    for row in (
        "**Title:** Old note",
        "**Description:** made by the original",
        "**Tags:** status: done, todo",
        "**Created:** 2025-06-01 10:00:00",
        "plan (wiki)",
        "the plan: plan (markdown)",
    ):
        assert row in after
    assert re.search(r"\*\*Modified:\*\* 2025-06-02 \d\d:00:00", after)


def test_an_update_replaces_the_text_and_all_metadata(
    ask_original, write: Callable[..., Path]
) -> None:
    path = write("old.md", BY_THE_ORIGINAL)
    done = ask_original(
        "update_memory",
        name="old",
        metadata={"title": "New", "description": "d", "tags": {"x": "y"}},
        content="New text.\n",
    )
    assert done.text.split("\n")[0] == "Memory 'old' was updated."
    text = path.read_text()
    assert "created: 2025-06-01T10:00:00Z" in text
    assert "2025-06-02" not in text
    assert "title: New" in text
    for removed in ("status", "todo", "links", "depth", "lantern"):
        assert removed not in text
    assert (
        ask_original("update_memory", name="nobody", metadata=META, content="x").code == "not_found"
    )


def test_change_tag_reports_every_tag(ask_original, write: Callable[..., Path]) -> None:
    path = write("old.md", BY_THE_ORIGINAL)
    changed = ask_original(
        "change_tag", name="old", tags={"status": "open", "todo": None, "new": True, "absent": None}
    )
    assert changed.text.split("\n")[1:5] == [
        "- status: changed from done to open",
        "- todo: removed (was true)",
        "- new: set to true",
        "- absent: already absent",
    ]
    assert "status: open" in path.read_text()
    assert "The lantern. See [[plan]]" in path.read_text()
    assert ask_original("change_tag", name="old", tags={}).code == "invalid"
    assert ask_original("change_tag", name="nobody", tags={"x": True}).code == "not_found"


def test_the_list_shows_all_metadata_and_what_is_too_long(
    ask_original, write: Callable[..., Path]
) -> None:
    write("old.md", BY_THE_ORIGINAL)
    write("long.md", "---\ntitle: Long\n---\n" + "word " * 600)
    ask_original.in_step()
    text = ask_original("list_memories").text
    assert text.startswith("# Memories (2)\n")
    for row in (
        "## long\n**Title:** Long\n**Length:** 2999 (over the limit of 2500)",
        "## old\n**Title:** Old note\n",
        'depth: {"a": 1}',
    ):
        assert row in text


def test_a_search_answers_in_the_format_of_the_original(
    ask_original, write: Callable[..., Path]
) -> None:
    write("old.md", BY_THE_ORIGINAL)
    ask_original.in_step()
    text = ask_original("search_memories", query="lantern").text
    assert text.startswith(
        '# Memories found for "lantern"\n\n## 1. old\n**Title:** Old note\n**Snippet:** '
    )
    assert "\n**Similarity:** 1.000\n" in text
    assert "\n**Description:** made by the original\n**Tags:** status: done, todo\n---\n" in text
    assert "\n**Where:** Old (line " in text
    none = ask_original("search_memories", query="lantern", tags={"nope": ""}).text
    assert none.startswith('No memories were found for "lantern" with any of the tags nope.')


def test_a_search_can_have_tags_with_or_without_a_query(
    ask_original, write: Callable[..., Path]
) -> None:
    write("a.md", "---\ntags: {status: done}\n---\nlantern")
    write("b.md", "---\ntags: {status: open, todo: true}\n---\nlantern")
    ask_original.in_step()
    for arguments, names in (
        ({"query": "lantern", "tags": {"status": "done"}}, ["a"]), ({"tags": {"todo": "true"}}, ["b"]),
        ({"query": "lantern", "tags": {"status": "", "todo": ""}, "require_all": True}, ["b"]),
    ):  # fmt: skip
        assert hits(ask_original("search_memories", **arguments).text) == names
    assert ask_original("search_memories", query=" ").code == "invalid"


def test_related_memories_are_links_first_then_similar_ones(
    ask_original, write: Callable[..., Path]
) -> None:
    write("kites.md", "Kites need wind, a tail and a long string.")
    write(
        "links.md",
        "---\ntitle: Linking\ndescription: It links\n---\nSomething else. See [[kites]] here.",
    )
    write("near.md", "A kite with a tail flies in the wind on its string.")
    ask_original.in_step()
    text = ask_original("get_backlinks", name="kites").text
    assert text.startswith(
        '# Related memories for "kites"\n\n## 1. links\n**Title:** Linking\n**Snippet:** '
    )
    assert "**Link Type:** explicit | **Relevance:** 1.000\n**Description:** It links\n---" in text
    assert hits(text)[1:] == ["near"]
    assert "**Link Type:** semantic" in text
    assert '"kites" and "wind"' in ask_original("get_backlinks", name="kites", query="wind").text
    assert ask_original("get_backlinks", name="nobody").code == "not_found"


def test_an_incomplete_index_is_not_reported_as_no_memories(
    ask_original, write: Callable[..., Path], vault: Path
) -> None:
    write_many_notes(vault)
    ask_original.store.start()
    early = ask_original("search_memories", query="lantern").text
    assert "The index is still being built." in early and "No memories were found" not in early
    early = ask_original("list_memories").text
    assert "The index is still being built." in early and "There are no memories" not in early


def test_a_deleted_memory_is_reported_as_missing(ask_original, write: Callable[..., Path]) -> None:
    write("a.md", "The lantern.")
    ask_original.in_step()
    assert (
        "## a" in ask_original("list_memories").text
        and "still" not in ask_original("list_memories").text
    )
    ask_original("delete_memory", name="a")
    assert ask_original("list_memories").text == "There are no memories.\n"


def test_the_limit_applies_to_the_plain_text(ask_original, asking_with, vault: Path) -> None:
    code = "```\n" + "word " * 600 + "\n```\n"
    assert not ask_original("create_memory", name="code", metadata=META, content=code).failed
    refused = ask_original("create_memory", name="long", metadata=META, content="word " * 600)
    assert refused.code == "too_long"
    assert "2999" in refused.text
    assert "2500" in refused.text
    assert (
        ask_original("update_memory", name="code", metadata=META, content="word " * 600).code
        == "too_long"
    )
    unlimited = asking_with("simplemem", max_memory_length=0)
    assert not unlimited("create_memory", name="long", metadata=META, content="word " * 600).failed
    strict = asking_with("simplemem", max_memory_length=3)
    assert strict("create_memory", name="four", metadata=META, content="four").code == "too_long"
    assert not strict("create_memory", name="three", metadata=META, content="**sea**").failed


def test_length_is_of_plain_text() -> None:
    texts = {
        "": 0, "word": 4, "**bold** and `code`": 13, "# Title\n\nText": 11, "- one\n- two": 7, "a\nb": 3,
        "[shown](https://example.org/long)": 5, "```\ncode\n```": 0, "<div class='x'>html</div>": 4,
    }  # fmt: skip
    assert {text: plain_length(text) for text in texts} == texts


def test_hints_name_only_tools_and_arguments_of_the_profile(ask_original, ask) -> None:
    for name in ("a", "b"):
        ask_original("create_memory", name=name, metadata=META, content="[[a]]")
    again = {"name": "a", "metadata": META, "content": "other"}
    refused = ask_original("create_memory", **again).data["error"]
    assert refused["hint"] == "Use update_memory to change it."
    assert "overwrite=true" in ask("create_memory", **again).data["error"]["hint"]
    ask_original("delete_memory", name="a")
    assert "undo_change" in ask("read_memory", name="a").text
    missing = ask_original("read_memory", name="a")
    assert missing.code == "not_found" and "undo_change" not in missing.text


def test_descriptions_state_the_limit() -> None:
    for tool in TOOLS:
        if "content" in tool.arguments:
            assert "2,500 characters" in tool.input["properties"]["content"]["description"]


# --- its settings


def test_the_settings_file_is_found_where_the_original_looked(tmp_path: Path) -> None:
    own, system = tmp_path / "own", tmp_path / "system"
    env = {"XDG_CONFIG_HOME": str(own), "XDG_CONFIG_DIRS": f"{tmp_path / 'none'}:{system}"}
    assert original_settings(tmp_path, env) == {}
    for length, folder in enumerate(
        (system / "simplemem", own / "simplemem", tmp_path / ".config/simplemem", tmp_path)
    ):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.toml").write_text(f"max_memory_length = {length}\n")
        assert original_settings(tmp_path, env) == {"max_memory_length": length}


def test_only_known_settings_are_read_and_a_named_file_must_exist(tmp_path: Path) -> None:
    named, key = tmp_path / "mine.toml", {"path": "~/key"}
    named.write_text(
        'vault = "/etc"\nmax_memory_length = 7\n[voyage_ai]\napi_key = {path = "~/key"}\nmodel = "m"\nx = 1\n'
    )
    taken = {"max_memory_length": 7, "voyage_ai.api_key": key, "voyage_ai.model": "m"}
    assert original_settings(tmp_path, {}, named) == taken
    env = {"SIMPLEMEM_MAX_MEMORY_LENGTH": "9", "SIMPLEMEM_VOYAGE_AI_MODEL": "n"}
    assert original_settings(tmp_path, env, named) == {"voyage_ai.api_key": key}
    with pytest.raises(Invalid):
        original_settings(tmp_path, {}, tmp_path / "nowhere.toml")
    (tmp_path / "config.toml").write_text("this is = not [toml")
    with pytest.raises(Invalid, match=r"config\.toml"):
        original_settings(tmp_path, {})


def test_a_number_in_metadata_and_in_a_map_of_tags_stays_a_number(
    ask_original: Any, vault: Path
) -> None:
    tags = {"prio": 2, "zero": 0, "share": 0.5, "word": "2", "todo": True}
    metadata = {"title": "Plan", "description": "d", "tags": tags, "rank": 3, "code": "007"}
    assert not ask_original("create_memory", name="plan", content="Text.", metadata=metadata).failed
    ask_original("change_tag", name="plan", tags={"prio": 4, "level": 1})
    header = yaml.safe_load((vault / "plan.md").read_text().split("---\n")[1])
    assert header["tags"] == {**tags, "prio": 4, "level": 1}
    assert (header["rank"], header["code"]) == (3, "007")
    assert all(type(header["tags"][key]) is type(value) for key, value in tags.items())
