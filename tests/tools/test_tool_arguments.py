"""Arguments: forgiving about form, strict about meaning."""

from __future__ import annotations

from typing import Any

import pytest

from simplemem.errors import Invalid
from simplemem.tools.arguments import FilterArgs
from simplemem.tools.core import TOOLS
from simplemem.tools.tool import DEFAULT_ADAPTER

BY_NAME = {tool.name: tool for tool in TOOLS}


def read(tool: str, **sent: Any) -> Any:
    return DEFAULT_ADAPTER.read(BY_NAME[tool], sent)


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
        "create_memory",
        name="a",
        content="b",
        metadata='{"tags": {"todo": true}, "budget": 12}',
        overwrite="true",
    )
    assert asked.metadata == {"tags": {"todo": True}, "budget": 12}
    assert asked.overwrite is True
    assert read("search_memories", query="x", tags='{"status": "done"}').tags == {"status": "done"}
    assert [
        edit.old
        for edit in read("update_memory", name="a", edits='[{"old": "x", "new": "y"}]').edits
    ] == ["x"]
    assert [
        edit.new
        for edit in read("update_memory", name="a", edits={"old_str": "x", "new_str": "y"}).edits
    ] == ["y"]
    assert read("get_backlinks", name="a", kinds="link").kinds == ["link"]
    assert read("get_backlinks", name="a", kinds='["link", "semantic"]').kinds == [
        "link",
        "semantic",
    ]


def test_a_text_that_looks_like_json_stays_text() -> None:
    assert read("create_memory", name="a", content='{"a": 1}').content == '{"a": 1}'
    assert read("update_memory", name="a", append="[[b]]").append == "[[b]]"


def test_tags_may_come_in_any_notation() -> None:
    from simplemem.models import Filter

    for sent in (
        {"todo": "", "status": "done"},
        {"todo": "true", "status": "done"},
        '{"todo": "", "status": "done"}',
        "todo, status=done",
        ["todo", "status=done"],
    ):
        asked = read("search_memories", query="", tags=sent)
        assert FilterArgs(tags=asked.tags).filter() == Filter(
            tags={"todo": "", "status": "done"}
        ), sent


def test_a_tag_that_is_the_text_true_is_only_there() -> None:
    assert read("change_tag", name="a", tags={"todo": "true", "x": "y"}).tags == {
        "todo": True,
        "x": "y",
    }


def test_numbers_may_be_strings_and_too_much_is_as_much_as_there_is() -> None:
    assert read("search_memories", query="x", limit="7").limit == 7
    assert read("search_memories", query="x", limit=10**9).limit == 50
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
    [("read_memory", {}, "'name' is missing"), ("create_memory", {"name": "a"}, "'content' is missing"),
     ("create_memory", {"name": "a", "content": "b", "metadata": "not json"}, "'metadata'"),
     ("create_memory", {"name": "a", "content": "b", "metadata": ["title"]}, "'metadata'"),
     ("search_memories", {"query": "x", "limit": 0}, "'limit'"),
     ("search_memories", {"query": "x", "limit": "many"}, "'limit'"),
     ("search_memories", {"query": "x", "mode": "magic"}, "'hybrid', 'text'"),
     ("search_memories", {"query": ["x"]}, "'query'"), ("list_memories", {"sort": "colour"}, "'modified', 'created'"),
     ("update_memory", {"name": "a", "edits": [{"old": "x"}]}, "'edits.0.new'"),
     ("update_memory", {"name": "a", "edits": "soon"}, "'edits.0'"),
     ("update_memory", {"name": "a", "append": "x", "if_sha256": "abc"}, "'if_sha256'"),
     ("build_context", {"query": "x", "budget_tokens": 1}, "'budget_tokens'")],
)  # fmt: skip
def test_what_cannot_be_meant_is_said_by_name(tool: str, sent: dict[str, Any], named: str) -> None:
    with pytest.raises(Invalid) as refused:
        read(tool, **sent)
    assert named in refused.value.message
    assert "The arguments are" in refused.value.hint


def test_a_refusal_never_quotes_what_was_sent() -> None:
    with pytest.raises(Invalid) as refused:
        read("create_memory", name="a", content="b", metadata="my secret diary")
    assert "diary" not in str(refused.value.as_dict())


@pytest.mark.parametrize(
    ("tool", "sent", "meant"),
    [
        *(("search_memories", {word: "sync"}, {"query": "sync"}) for word in ("q", "text", "question")),
        ("search_memories", {"query": "x", "folder": "a", "top_k": 3}, {"prefix": "a", "limit": 3}),
        ("list_memories", {"tag": "todo", "path": "a", "n": 3}, {"tags": ["todo"], "prefix": "a", "limit": 3}),
        ("search_memories", {"Query": "x", "linkTo": "a", "k": "7"}, {"query": "x", "link_to": "a", "limit": 7}),
        *(("read_memory", {word: "a"}, {"name": "a"}) for word in ("title", "identifier", "note", "memory")),
        ("move_memory", {"title": "a", "destination": "b"}, {"name": "a", "new_name": "b"}),
        ("move_memory", {"path": "a", "new_path": "b"}, {"name": "a", "new_name": "b"}),
        ("update_memory", {"name": "a", "edits": [{"find": "x", "replace": "y"}]}, {"edits": [{"old": "x", "new": "y"}]}),
        ("update_memory", {"name": "a", "old": "x", "new": "y"}, {"edits": [{"old": "x", "new": "y"}]}),
        ("update_memory", {"name": "a", "find": "x", "replace": "y"}, {"edits": [{"old": "x", "new": "y"}]}),
        ("change_tag", {"name": "a", "add": ["x", "y=z"], "remove": "u, v"},
         {"tags": {"x": True, "y": "z", "u": None, "v": None}}),
        ("change_tag", {"name": "a", "tags": {"add": ["x"], "remove": ["y"]}}, {"tags": {"x": True, "y": None}}),
        ("create_memory", {"title": "a", "text": "b"}, {"name": "a", "content": "b", "metadata": None}),
        ("create_memory", {"title": "A", "name": "a", "body": "b", "tag": "x", "type": "t", "metadata": '{"z": 1}'},
         {"name": "a", "metadata": {"z": 1, "title": "A", "type": "t", "tags": ["x"]}}),
        ("create_memory", {"title": "A", "path": "a", "content": "b"}, {"name": "a", "metadata": {"title": "A"}}),
    ],
)  # fmt: skip
def test_every_tool_takes_the_words_that_models_use(
    tool: str, sent: dict[str, Any], meant: dict[str, Any]
) -> None:
    assert read(tool, **sent).model_dump(include=set(meant)) == meant


@pytest.mark.parametrize(
    ("tool", "sent", "said"),
    [
        (
            "update_memory",
            {"name": "a", "append": "x", "if_sha": "0" * 64},
            "Did you mean if_sha256?",
        ),
        (
            "search_memories",
            {"query": "x", "colour": "red"},
            "The arguments are query, limit, mode",
        ),
        ("list_memories", {"until_": "2026", "sorted": "name"}, "Did you mean sort?"),
        ("update_memory", {"name": "a", "text": "x"}, "Did you mean content or append?"),
        ("update_memory", {"name": "a", "tags": ["x"]}, 'Did you mean metadata={"tags": …}?'),
        ("read_memory", {"name": "a", "title": "b"}, "Pass it once."),
        (
            "create_memory",
            {"name": "a", "content": "b", "title": "A", "metadata": {"title": "B"}},
            "Pass it once.",
        ),
    ],
)
def test_what_is_not_known_is_refused_with_what_was_meant(
    tool: str, sent: dict[str, Any], said: str
) -> None:
    with pytest.raises(Invalid) as refused:
        read(tool, **sent)
    assert said in refused.value.hint


def test_what_is_not_known_within_a_list_is_refused_too() -> None:
    with pytest.raises(Invalid, match=r"'edits\.0\.count' is unknown"):
        read("update_memory", name="a", edits=[{"old": "x", "new": "y", "count": 1}])


@pytest.mark.parametrize("profile", ["simplemem", "self-improving"])
def test_the_other_profiles_of_ours_read_arguments_so_too(asking_with: Any, profile: str) -> None:
    ask = asking_with(profile)
    tool = "search_memories" if profile == "simplemem" else "search_knowledge"
    assert not ask(tool, q="x").failed
    assert ask(tool, query="x", colour="red").code == "invalid"
    assert (
        "create_memory" not in ask.tools()
        or not ask(
            "create_memory", title="A", name="a", description="d", tags=["x"], text="b"
        ).failed
    )


def test_a_query_may_be_empty_with_a_filter_and_is_refused_when_absent(ask: Any) -> None:
    ask("create_memory", name="a", content="b", tags=["todo"])
    assert [hit["name"] for hit in ask("search_memories", query="", tags="todo").data["hits"]] == [
        "a"
    ]
    assert "'query' is missing" in ask("search_memories", tags="todo").text
    assert "no query and no filter" in ask("search_memories", query=" ").text


def test_a_tool_without_arguments_takes_any(asking_with: Any) -> None:
    assert not asking_with("self-improving")("get_cache_stats", random_string="x").failed


@pytest.mark.parametrize(
    ("tool", "sent", "said"),
    [
        ("get_backlinks", {"name": "a", "limit": 0}, "'limit' must be at least 1"),
        (
            "search_memories",
            {"query": "x", "explain": "perhaps"},
            "'explain' must be true or false",
        ),
        (
            "create_memory",
            {"name": "a", "content": 5, "metadata": []},
            "'metadata' must be an object",
        ),
        (
            "list_memories",
            {"sort": "colour"},
            "'sort' must be 'modified', 'created', 'name' or 'title'",
        ),
        (
            "delete_memory",
            {"name": {}, "if_sha256": "x"},
            "'name' must be a string; 'if_sha256' must be a sha256, or at least its first 12 digits",
        ),
    ],
)
def test_errors_of_arguments_are_in_our_words(tool: str, sent: dict[str, Any], said: str) -> None:
    with pytest.raises(Invalid) as refused:
        read(tool, **sent)
    assert refused.value.message == said


@pytest.mark.parametrize("deep", ["[" * 100_000, '{"a":' * 100_000])
def test_json_too_deep_to_read_is_no_list(deep: str) -> None:
    with pytest.raises(Invalid):
        read("update_memory", name="a", edits=deep)
