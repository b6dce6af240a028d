"""The faces of memories that are built into clients: Claude's memory tool, and ChatGPT's search and fetch."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Contract = Callable[..., Any]


def test_claudes_tool_answers_in_the_words_of_its_contract(contract: Contract) -> None:
    memory = contract("anthropic-memory")
    made = memory(
        "memory", command="create", path="/memories/notes.md", file_text="Ida likes tea.\n"
    )
    assert (made.text, made.data) == ("File created successfully at: /memories/notes.md", None)
    again = memory("memory", command="create", path="/memories/notes.md", file_text="x")
    assert (again.text, again.data, again.failed) == (
        "File /memories/notes.md already exists",
        None,
        True,
    )
    shown = memory("memory", command="view", path="/memories/notes.md", view_range=[1, 1])
    assert (
        shown.text
        == "Here's the content of /memories/notes.md with line numbers:\n     1\tIda likes tea."
    )
    missing = memory("memory", command="insert", path="/memories/notes.md")
    assert missing.failed and "insert_line, insert_text" in missing.text


def test_chatgpt_finds_and_fetches_what_it_can_cite(contract: Contract) -> None:
    contract("default")(
        "create_memory",
        name="people/Ida & co",
        content="Ida likes tea.",
        metadata={"tags": ["person"]},
    )
    ask = contract("chatgpt", http={"url": "https://memory.example.org/"})
    found = ask("search", query="who likes tea")
    [hit] = found.data["results"]
    assert hit == {
        "id": "people/Ida & co",
        "title": "Ida & co",
        "url": "https://memory.example.org/note/people/Ida%20%26%20co",
    }
    assert json.loads(found.text) == found.data
    read = ask("fetch", id=hit["id"])
    assert json.loads(read.text) == read.data
    assert (read.data["text"].strip(), read.data["metadata"]["tags"]) == (
        "Ida likes tea.",
        "person",
    )
    assert ask("search", query="zzqxv").data == {"results": []}
    assert ask("fetch", id="nobody").failed
