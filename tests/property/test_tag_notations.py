"""List, nested name and map are the same tags: they read alike from each, and change alike."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from simplemem.note.header import read_header
from simplemem.note.note import filter_pairs, read_tags, tag_map
from simplemem.note.tag_changes import change_tags, tags_for_new_note
from simplemem.note.tag_requests import parse_tag_request
from simplemem.note.yaml_writer import render_header

calm = settings(max_examples=3 * settings.default.max_examples, deadline=None)
tag_keys = st.sampled_from(["todo", "status", "stat", "Project", "日本", "🚀x", "a_b-c", "n1"])
safe_values = st.sampled_from(["done", "in progress", "5", "2026-12-01", "Ünï", "yes", "🚀"])
any_values = st.one_of(
    safe_values,
    st.just(True),
    st.sampled_from(["Ann, B", "http://x", "a/b", "12:30", "1.5", "#x", "(y)"]),
)
requests = st.dictionaries(tag_keys, any_values, max_size=5)
safe_requests = st.dictionaries(tag_keys, st.one_of(safe_values, st.just(True)), max_size=5)
BODY = "\r\n# Body\n#inline\n---\ntags: [no]\n---"


def as_list(request: dict[str, Any]) -> str:
    names, properties = tags_for_new_note(request)
    return render_header({"tags": names, **properties}) + BODY


def as_map(request: dict[str, Any]) -> str:
    return render_header({"tags": request}) + BODY


def facts(text: str) -> tuple[list[str], dict[str, Any], set[tuple[str, str]]]:
    properties = read_header(text).properties
    tags = read_tags(properties, ())
    return (
        [tag.name for tag in tags],
        tag_map(tags, properties),
        set(filter_pairs(tags, properties)),
    )


@calm
@given(requests)
def test_what_is_written_as_a_list_reads_back_as_the_map_it_was(request: dict[str, Any]) -> None:
    assert parse_tag_request(request) == request
    _, found, _ = facts(as_list(request))
    assert found == {
        key: value.replace(" ", "-") if " " in str(value) and "," not in str(value) else value
        for key, value in request.items()
    }
    assert facts(as_map(request))[1] == request


@calm
@given(requests)
def test_list_and_map_give_the_same_tags_and_the_same_filters(request: dict[str, Any]) -> None:
    names, _, rows = facts(as_list(request))
    other_names, _, other_rows = facts(as_map(request))
    assert names == other_names and rows <= other_rows
    for key, value in request.items():
        assert (key.lower(), "") in rows
        if value is not True:
            assert {(key.lower(), value), (key.lower(), value.replace(" ", "-"))} & rows
            assert (key.lower(), value) in other_rows


@calm
@given(safe_requests, st.dictionaries(tag_keys, st.one_of(safe_values, st.none()), max_size=4))
def test_a_change_means_the_same_in_every_notation(
    request: dict[str, Any], changes: dict[str, Any]
) -> None:
    after_list = change_tags(as_list(request), changes)
    after_map = change_tags(as_map(request), changes)
    expected = {key: value for key, value in {**request, **changes}.items() if value is not None}
    assert facts(after_map)[1] == expected
    assert facts(after_list)[1] == {
        key: value.replace(" ", "-") if isinstance(value, str) else value
        for key, value in expected.items()
    }
    assert after_list.endswith(BODY) and after_map.endswith(BODY)
    assert (
        change_tags(after_list, changes) == after_list
        and change_tags(after_map, changes) == after_map
    )


@calm
@given(safe_requests.filter(bool), safe_values)
def test_a_new_tag_and_its_removal_leave_the_same_bytes(
    request: dict[str, Any], value: str
) -> None:
    for text in (as_list(request), as_map(request)):
        assert change_tags(change_tags(text, {"brand-new": value}), {"brand-new": None}) == text
        assert change_tags(change_tags(text, {"brand-new": True}), {"brand-new": None}) == text


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


@calm
@given(
    st.dictionaries(st.text(max_size=8), anything, max_size=4),
    st.lists(st.sampled_from(["a", "A/b", "x/", "/"])),
)
def test_whatever_stands_in_the_tags_is_read(entries: dict[str, Any], inline: list[str]) -> None:
    for value in (entries, list(entries.values()), *entries.values()):
        properties = {**entries, "tags": value}
        tags = read_tags(properties, inline)
        folded = [tag.name.casefold() for tag in tags]
        assert len(set(folded)) == len(folded)
        assert all(name and not any(map(str.isspace, name)) for name in folded)
        rows = filter_pairs(tags, properties)
        assert {tag.name.lower() for tag in tags} <= {key for key, row in rows if not row}
        tag_map(tags, properties)
