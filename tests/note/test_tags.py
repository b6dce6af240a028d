"""Tags in all their notations: what counts as one, how a filter finds it, how a change keeps to it."""

from __future__ import annotations

from typing import Any

import pytest

from simplemem.errors import Invalid, Unreadable
from simplemem.note.header import read_header
from simplemem.note.note import Tag, filter_pairs, read_tags, tag_map
from simplemem.note.tag_changes import change_tags, tags_for_new_note
from simplemem.note.tag_requests import parse_tag_request


def note(header: str) -> str:
    return f"---\n{header}\n---\nbody #inline\n"


def names(header: str, inline: tuple[str, ...] = ()) -> list[str]:
    return [tag.name for tag in read_tags(read_header(note(header)).properties, inline)]


def pairs(header: str, inline: tuple[str, ...] = ()) -> set[tuple[str, str]]:
    properties = read_header(note(header)).properties
    return set(filter_pairs(read_tags(properties, inline), properties))


def mapped(header: str, inline: tuple[str, ...] = ()) -> dict[str, Any]:
    properties = read_header(note(header)).properties
    return tag_map(read_tags(properties, inline), properties)


# ------------------------------------------------------------------ reading


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ('tags:\n  - alpha\n  - beta/gamma\n  - "#hashed"', ["alpha", "beta/gamma", "hashed"]),
        ("tags: [one, two]", ["one", "two"]),
        ("Tags:\n  - cased", ["cased"]),
        ("tags:\n  - ok\n  - 2024\n  - null\n  - true\n  - with space\n  - ''\n  - [x]\n  - '#'", ["ok"]),
        ('note: "#nope in a property"\ntags: []', []),
        ("tags: 2024", []),
        ("tags: [日本語, été, 🚀, yes, 2024-01-15]", ["日本語", "été", "🚀", "yes", "2024-01-15"]),
        ("tags: {status: done, todo: true}", ["status/done", "todo"]),
        ("tags:\n  done: false\n  gone:\n  n: 5\n  note: 'a, b'\n  l: [x]\n  where: at home", ["n/5",
        "note", "l", "where/at-home"]),
        ("tags: [unclosed", []),
    ],
)  # fmt: skip
def test_the_tags_property_is_read_as_obsidian_reads_it(header: str, found: list[str]) -> None:
    assert names(header) == found


def test_forms_that_obsidian_dropped_are_read_as_legacy() -> None:
    for header in (
        "tags: one, two",
        "tags: '#one #two'",
        "TAG: [one, a b, two]",
        "keywords: one, two",
    ):
        tags = read_tags(read_header(note(header)).properties, ())
        assert tags == (Tag("one", "legacy"), Tag("two", "legacy"))


def test_tags_of_all_sources_are_one_list_and_the_first_spelling_wins() -> None:
    properties = read_header(note("tags: [Todo, status/Done]\ntag: old")).properties
    assert read_tags(properties, ["todo", "new/", "STATUS/done", "new", "old"]) == (
        Tag("Todo", "property"),
        Tag("status/Done", "property"),
        Tag("old", "legacy"),
        Tag("new", "inline"),
    )
    assert read_tags({"tags": {"a": "b"}}, ["x"]) == (Tag("a/b", "map"), Tag("x", "inline"))


def test_values_that_are_no_part_of_a_tag_are_found_to_the_letter() -> None:
    assert pairs("tags: {Owner: 'Ann, B', where: at home, n: 1.5, ok: true, no: false}") == {
        ("owner", ""), ("owner", "Ann, B"), ("where", ""), ("where", "at-home"), ("where", "at home"),
        ("where/at-home", ""), ("n", ""), ("n", "1.5"), ("ok", ""),
    }  # fmt: skip
    assert ("owner", "Ann, B") in pairs("tags: [owner]\nOwner: 'Ann, B'")
    assert pairs("tags: [a/b/c]") == {
        ("a", ""),
        ("a/b", ""),
        ("a/b/c", ""),
        ("a", "b/c"),
        ("a/b", "c"),
    }


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("tags: [todo, status/done]", {"todo": True, "status": "done"}),
        (
            "tags: {status: done, todo: true, n: 5, x: false, y: }",
            {"status": "done", "todo": True, "n": 5},
        ),
        ("tags: [a/b/c]", {"a": "b/c"}),
        ("tags: [status/done, status]", {"status": "done"}),
        ("tags: [p/a, P/b, p]", {"p": "a", "P/b": True}),
        ("tags: [due]\ndue: 2026-12-01", {"due": "2026-12-01"}),
        ("tags: [due, x]\nDue: 5\nx: [list]", {"due": 5, "x": True}),
        ("tags: [title, type]\ntitle: T\ntype: note", {"title": True, "type": True}),
    ],
)
def test_tags_are_shown_as_a_map(header: str, found: dict[str, Any]) -> None:
    assert mapped(header) == found


# ------------------------------------------------------------------ requests


@pytest.mark.parametrize(
    ("request_", "meant"),
    [
        (None, {}),
        ({"todo": True, "#status": "done", "gone": None, "no": False}, {"todo": True, "status": "done",
        "gone": None, "no": False}),
        (["todo", "#status/done"], {"todo": True, "status/done": True}),
        (["status=done", {"a": "b"}], {"status": "done", "a": "b"}),
        ("a, #b/c", {"a": True, "b/c": True}),
        ("status=in progress, todo", {"status": "in progress", "todo": True}),
        ("status: done", {"status": "done"}),
        ('{"todo": true, "n": 5}', {"todo": True, "n": 5}),
        ({"n": 1.5, "x": ""}, {"n": 1.5, "x": True}),
        ({"area": ["home", "work"]}, {"area/home": True, "area/work": True}),
        ({"two words": True}, {"two-words": True}),
    ],
)  # fmt: skip
def test_tags_are_understood_however_they_are_asked_for(
    request_: object, meant: dict[str, Any]
) -> None:
    found = parse_tag_request(request_)
    assert found == meant
    assert [type(value) for value in found.values()] == [type(value) for value in meant.values()]


@pytest.mark.parametrize(
    "request_", [5, True, "{broken", "[1]", [3], [["a"]], {"": True}, {"#": "x"}, {1: True},
    {"a": {"b": "c"}}, "=x", "[" * 100_000, "[" + "9" * 5_000 + "]"]
)  # fmt: skip
def test_what_is_no_tag_is_refused_with_an_example(request_: object) -> None:
    with pytest.raises(Invalid) as failure:
        parse_tag_request(request_)
    assert "status/done" in failure.value.hint
    assert len(failure.value.message) < 200


# ------------------------------------------------------------------ new notes


def test_a_new_note_gets_a_list_and_keeps_other_values_as_properties() -> None:
    request = {"todo": True, "status": "in progress", "no": False, "gone": None, "priority": 5}
    assert tags_for_new_note(request) == (
        ["todo", "status/in-progress", "priority/5"],
        {"no": False},
    )
    assert tags_for_new_note({"owner": "Ann, B"}) == (["owner"], {"owner": "Ann, B"})
    assert tags_for_new_note(["a", "A", "b/c"]) == (["a", "b/c"], {})


@pytest.mark.parametrize(
    ("name", "proposed"),
    [("node.js", "node-js"), ("c++", "c"), ("2024", "n2024"), ("a//b", "a/b"), ("/x", "x"), ("(x)", "x"),
    ("a’b", "a-b"), ("!!", "tag"), ("20/24", "n20/24")],  # U+2019 is punctuation
)  # fmt: skip
def test_names_obsidian_would_not_take_are_refused_with_a_proposal(
    name: str, proposed: str
) -> None:
    with pytest.raises(Invalid) as failure:
        tags_for_new_note([name])
    assert failure.value.details["proposed"] == proposed
    assert tags_for_new_note([proposed]) == ([proposed], {})
    with pytest.raises(Invalid):
        change_tags(note("tags: [a]"), {name: True})


@pytest.mark.parametrize("key", ["title", "Type", "tags", "created", "a/b"])
def test_a_value_does_not_displace_a_property_with_a_meaning_of_its_own(key: str) -> None:
    with pytest.raises(Invalid):
        tags_for_new_note({key: "not, a tag"})
    with pytest.raises(Invalid):
        change_tags(note("tags: [a]"), {key: "not, a tag"})


# ------------------------------------------------------------------ changes


@pytest.mark.parametrize(
    ("before", "changes", "after"),
    [
        # lists
        ("tags:\n  - a # c\n  - b", {"new": True}, "tags:\n  - a # c\n  - b\n  - new"),
        ("tags: [a, b]", {"c": True, "a": None}, "tags: [b, c]"),
        ("tags:\n  - status/active # c\n  - x", {"status": "done"}, "tags:\n  - status/done # c\n  - x"),
        ("tags: [status/a, x, Status/b]", {"status": "done"}, "tags: [status/done, x]"),
        ("tags: [x]", {"status": "in progress"}, "tags: [x, status/in-progress]"),
        ("tags: [status/done]", {"status": True}, "tags: [status/done, status]"),
        ("tags: [status/done, status, statusx]", {"status": False}, "tags: [statusx]"),
        ("tags: [status/done, status/open]", {"status/done": None}, "tags: [status/open]"),
        ("tags: [a, with space, 5, ~]", {"b": True}, "tags: [a, with space, 5, ~, b]"),
        ("tags: [[a]]", {"b": True}, "tags: [[a], b]"),
        # values that are kept in a property
        ("tags: [x]", {"owner": "Ann, B"}, "tags: [x, owner]\nowner: Ann, B"),
        ("tags: [owner]\nowner: Ann, B", {"owner": "bob"}, "tags: [owner]\nowner: bob"),
        ("tags: [owner]\nowner: Ann, B", {"owner": None}, "tags: []\nowner: Ann, B"),
        ("tags: [rating]\nrating: 4", {"rating": "5"}, "tags: [rating]\nrating: 5"),
        ("tags: [status/open]", {"status": "a, b"}, "tags: [status]\nstatus: a, b"),
        # a text
        ("tags: single", {"new": True}, "tags:\n  - single\n  - new"),
        ("tags: 'status/a'", {"status": "b"}, "tags: 'status/b'"),
        ("tags: one, two", {"three": True}, "tags:\n  - one\n  - two\n  - three"),
        ("tags: one, two", {"one": True}, "tags: one, two"),
        # none
        ("a: 1", {"todo": True, "status": "done"}, "a: 1\ntags:\n  - todo\n  - status/done"),
        ("a: 1", {"todo": None}, "a: 1"),
        ("tag: old\nkeywords: a, old", {"old": None}, "tag:\nkeywords: a"),
        ("tag: [old, x]", {"old": None, "new": True}, "tag: [x]\ntags:\n  - new"),
        # maps
        ("tags: {status: open, todo: true}", {"status": "done"}, "tags: {status: done, todo: true}"),
        ("tags: {status: open}", {"todo": True, "owner": "Ann, B"},
        'tags: {status: open, todo: true, owner: "Ann, B"}'),
        ("tags:\n  status: open # c\n  todo: true", {"todo": None}, "tags:\n  status: open # c"),
        ("tags: {status: done}", {"status/done": None}, "tags: {}"),
        ("tags: {status: done}", {"status/done": True}, "tags: {status: done}"),
        ("tags: {no: 4}", {"No": "5"}, 'tags: {"no": 5}'),
        ("tags: {two words: true}", {"two-words": None}, "tags: {}"),
    ],
)  # fmt: skip
def test_a_change_keeps_the_notation_of_the_note(
    before: str, changes: dict[str, Any], after: str
) -> None:
    assert change_tags(note(before), changes) == note(after)
    windows = note(before).replace("\n", "\r\n")
    assert change_tags(windows, changes) == note(after).replace("\n", "\r\n")


def test_a_list_in_the_place_of_a_value_is_not_overwritten() -> None:
    with pytest.raises(Invalid):
        change_tags(note("tags: [x]\nowner: [Ann, Bob]"), {"owner": "C, D"})
    assert change_tags(note("tags: [x]\nowner: [Ann]"), {"owner": "bob"}) == note(
        "tags: [x, owner/bob]\nowner: [Ann]"
    )


@pytest.mark.parametrize("header", ["tags: [unclosed", '{"tags": ["a"]}', "tags: [a]\ntags: [b]"])
def test_tags_of_a_header_that_cannot_be_rewritten_stay(header: str) -> None:
    with pytest.raises(Unreadable):
        change_tags(note(header), {"new": True})
    with pytest.raises(Invalid):
        change_tags(note(header), {" / ": True})
