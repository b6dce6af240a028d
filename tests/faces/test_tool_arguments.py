"""Arguments: forgiving about form, strict about meaning."""

from __future__ import annotations

from typing import Any

import pytest

from simplemem.errors import Invalid
from simplemem.faces.arguments import Narrowing
from simplemem.faces.core import TOOLS
from simplemem.faces.face import OURS

BY_NAME = {tool.name: tool for tool in TOOLS}


def read(tool: str, **sent: Any) -> Any:
    return OURS.read(BY_NAME[tool], sent)[0]


@pytest.mark.parametrize(
    ("sent", "meant"),
    [("  projects/apollo ", ""), ("projects/apollo.md", ""), ("projects/apollo.MD", ""), ("[[projects/apollo]]", ""),
     ("[[projects/apollo.md|the moon]]", ""), ("[[projects/apollo#Log]]", ""), (2026, "2026"), (".md", ".md"),
     ("memory://projects/Apollo%2011", "projects/Apollo 11")],
)  # fmt: skip
def test_a_name_is_read_however_it_is_dressed_or_called(sent: Any, meant: str) -> None:
    for alias in ("name", "path", "id", "memory_id"):
        assert read("update_memory", **{alias: sent}).name == (meant or "projects/apollo")


def test_null_is_the_same_as_absent() -> None:
    asked = read("search_memories", query="x", tags=None, limit=None, mode=None, type=None)
    assert (asked.tags, asked.limit, asked.mode) == (None, None, "hybrid")


def test_json_sent_as_a_string_is_read() -> None:
    asked = read(
        "create_memory", name="a", content="b", metadata='{"tags": {"todo": true}, "budget": 12}', overwrite="true"
    )
    assert asked.metadata == {"tags": {"todo": True}, "budget": 12}
    assert asked.overwrite is True
    assert read("search_memories", query="x", tags='{"status": "done"}').tags == {"status": "done"}
    assert [edit.old for edit in read("update_memory", name="a", edits='[{"old": "x", "new": "y"}]').edits] == ["x"]
    assert [edit.new for edit in read("update_memory", name="a", edits={"old_str": "x", "new_str": "y"}).edits] == ["y"]
    assert read("get_backlinks", name="a", kinds="link").kinds == ["link"]
    assert read("get_backlinks", name="a", kinds='["link", "semantic"]').kinds == ["link", "semantic"]


def test_a_text_that_looks_like_json_stays_text() -> None:
    assert read("create_memory", name="a", content='{"a": 1}').content == '{"a": 1}'
    assert read("update_memory", name="a", append="[[b]]").append == "[[b]]"


def test_tags_may_come_in_any_notation() -> None:
    from simplemem.memory import Filter

    for sent in (
        {"todo": "", "status": "done"},
        {"todo": "true", "status": "done"},
        '{"todo": "", "status": "done"}',
        "todo, status=done",
        ["todo", "status=done"],
    ):
        asked = read("search_memories", tags=sent)
        assert Narrowing(tags=asked.tags).filter() == Filter(tags={"todo": "", "status": "done"}), sent


def test_a_tag_that_is_the_text_true_is_only_there() -> None:
    assert read("change_tag", name="a", tags={"todo": "true", "x": "y"}).tags == {"todo": True, "x": "y"}


def test_numbers_may_be_strings_and_too_much_is_as_much_as_there_is() -> None:
    assert read("search_memories", limit="7").limit == 7
    assert read("search_memories", limit=10**9).limit == 50
    assert read("list_memories", limit=1000.0).limit == 200
    assert read("build_context", query="x", budget=10**9).budget_tokens == 20_000


def test_the_first_digits_of_a_hash_are_enough_and_dress_is_ignored() -> None:
    for sent, meant in (
        (" `ABCDEF123456`", "abcdef123456"),
        ("", None),
        (f"{'a' * 12}+{'B' * 12}", "a" * 12 + "+" + "b" * 12),
    ):
        assert read("update_memory", name="a", append="b", if_sha256=sent).if_sha256 == meant


@pytest.mark.parametrize(
    ("tool", "sent", "named"),
    [
        ("read_memory", {}, "'name': Field required"),
        ("create_memory", {"name": "a"}, "'content': Field required"),
        ("create_memory", {"name": "a", "content": "b", "metadata": "not json"}, "'metadata'"),
        ("create_memory", {"name": "a", "content": "b", "metadata": ["title"]}, "'metadata'"),
        ("search_memories", {"query": "x", "limit": 0}, "'limit'"),
        ("search_memories", {"query": "x", "limit": "many"}, "'limit'"),
        ("search_memories", {"query": "x", "mode": "magic"}, "'hybrid', 'text'"),
        ("search_memories", {"query": ["x"]}, "'query'"),
        ("list_memories", {"sort": "colour"}, "'modified', 'created'"),
        ("update_memory", {"name": "a", "edits": [{"old": "x"}]}, "'edits.0.new'"),
        ("update_memory", {"name": "a", "edits": "soon"}, "'edits.0'"),
        ("update_memory", {"name": "a", "append": "x", "if_sha256": "abc"}, "'if_sha256'"),
        ("build_context", {"query": "x", "budget_tokens": 1}, "'budget_tokens'"),
    ],
)
def test_what_cannot_be_meant_is_said_by_name(tool: str, sent: dict[str, Any], named: str) -> None:
    with pytest.raises(Invalid) as refused:
        read(tool, **sent)
    assert named in refused.value.message
    assert "It takes" in refused.value.hint


def test_a_refusal_never_quotes_what_was_sent() -> None:
    with pytest.raises(Invalid) as refused:
        read("create_memory", name="a", content="b", metadata="my secret diary")
    assert "diary" not in str(refused.value.as_dict())


def test_a_writing_tool_stops_at_a_strange_argument_and_a_reading_one_passes_it_over() -> None:
    with pytest.raises(Invalid, match="if_sha") as refused:
        read("update_memory", name="a", append="x", if_sha="0" * 64)
    assert "if_sha256" in refused.value.hint
    asked, notes = OURS.read(BY_NAME["search_memories"], {"query": "x", "colour": "red"})
    assert asked.query == "x"
    assert "colour" in notes[0]


@pytest.mark.parametrize("deep", ["[" * 100_000, '{"a":' * 100_000])
def test_json_too_deep_to_read_is_no_list(deep: str) -> None:
    with pytest.raises(Invalid):
        read("update_memory", name="a", edits=deep)
