"""What a change makes of a text: its own span, and no other byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplemem.errors import Invalid, TooLong
from simplemem.note.appending import append_content
from simplemem.note.header import read_header
from simplemem.note.note import Note, read_note
from simplemem.store import EnhancedStore
from simplemem.store.edits import (
    apply_edits,
    apply_metadata,
    new_note_text,
    replace_content,
    stamp_modified,
)

NOW = "2026-01-24T12:00:00"
HEADERS = [
    "",
    "---\na: 1\n---\n",
    "---\r\na: 1\r\n---\r\n\r\n",
    "\ufeff---\n# c\na:   1\n---\n\n\n",
    "\ufeff",
]
PLAIN = st.text(st.sampled_from("ab \n\u2028é#-[]"), max_size=40)
BODIES = st.one_of(PLAIN, PLAIN.map(lambda text: text.replace("\n", "\r\n")))


def note(text: str) -> Note:
    return read_note(text.encode())


# -- new notes


def test_a_new_note_has_its_header_in_the_order_a_person_would_write() -> None:
    metadata = {
        "rating": 5,
        "tags": ["x"],
        "type": "idea",
        "description": "D",
        "title": "T",
        "x": None,
    }
    assert new_note_text("Body", metadata, NOW) == (
        "---\ntitle: T\ndescription: D\ntype: idea\ntags:\n  - x\nrating: 5\n"
        f"created: {NOW}\nmodified: {NOW}\n---\n\nBody\n"
    )


def test_the_time_of_its_making_may_be_given_and_that_of_its_change_may_not() -> None:
    properties = read_header(
        new_note_text("", {"created": "2020-01-01", "modified": "2020-01-01"}, NOW)
    ).properties
    assert properties == {"created": "2020-01-01", "modified": NOW}


# -- content


@pytest.mark.parametrize("header", HEADERS)
@given(old=BODIES, new=PLAIN)
def test_replacing_content_keeps_what_stands_above_it(header: str, old: str, new: str) -> None:
    before = note(header + old)
    after = replace_content(before, new)
    start = before.content_start
    assert after[:start] == before.text[:start]
    again = note(after)
    assert again.header.properties == before.header.properties
    assert replace_content(again, new) == after  # done twice is done once


@pytest.mark.parametrize("header", HEADERS)
@given(old=BODIES, addition=st.text(st.sampled_from("ab\n é"), min_size=1, max_size=20))
def test_what_is_appended_stands_on_a_line_of_its_own_below_every_byte_there_was(
    header: str, old: str, addition: str
) -> None:
    before = note(header + old)
    after = append_content(before, addition)
    assert after.startswith(before.text)
    rest = after[len(before.text) :].replace("\r\n", "\n").replace("\r", "\n")
    above = rest[
        : len(rest.rstrip("\n")) - len(addition.rstrip("\n"))
    ]  # the end of its line, and a blank one
    assert above in ("", "\n", "\n\n")
    assert rest.removeprefix(above) in (addition, f"{addition}\n")
    assert after.endswith(("\n", "\r"))
    assert (
        before.text.endswith(("\n", "\r"))
        or not before.text.strip("\ufeff")
        or rest.startswith("\n")
    )


# -- edits


@given(
    st.lists(st.sampled_from(["one", "two", "three", "four"]), unique=True, min_size=1),
    st.sampled_from(HEADERS),
)
def test_edits_and_their_inverse_give_the_text_again(words: list[str], header: str) -> None:
    newline = "\r\n" if "\r" in header else "\n"
    text = header + newline.join(["one two", "three", "\u2028four"])
    there = [{"old": word, "new": f"<{word.upper()}>"} for word in words]
    back = [{"old": edit["new"], "new": edit["old"]} for edit in reversed(there)]
    changed = apply_edits(note(text), there)
    assert changed != text
    assert apply_edits(note(changed), back) == text


def test_an_edit_reaches_only_the_body() -> None:
    with pytest.raises(Invalid):
        apply_edits(note("---\ntitle: One\n---\nTwo\n"), [{"old": "One", "new": "x"}])
    assert (
        apply_edits(note("---\ntitle: One\n---\nOne\n"), [{"old": "One", "new": "x"}])
        == "---\ntitle: One\n---\nx\n"
    )


def test_an_edit_given_with_plain_line_ends_finds_and_leaves_those_of_the_note() -> None:
    assert (
        apply_edits(note("one\r\ntwo\r\nthree\r\n"), [{"old": "one\ntwo", "new": "1\n2\n3"}])
        == "1\r\n2\r\n3\r\nthree\r\n"
    )


def test_what_would_grow_too_long_is_refused(
    plain_store: EnhancedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain_store.create("a", "x")
    monkeypatch.setattr("simplemem.store.edits.MAX_TEXT", 100)
    for change in (
        lambda: plain_store.create("b", "x" * 101),
        lambda: plain_store.update("a", content="x" * 101),
        lambda: plain_store.update("a", append="x" * 101),
        lambda: plain_store.update("a", edits=[{"old": "x", "new": "x" * 101}]),
    ):
        with pytest.raises(TooLong):
            change()
    monkeypatch.setattr("simplemem.store.edits.MAX_TEXT", 10)
    plain_store.update("a", edits=[{"old": "x", "new": ""}])  # what is too long already may shrink


# -- metadata


def test_a_tag_with_a_value_keeps_it_when_tags_are_replaced_by_a_list() -> None:
    text = apply_metadata("---\ntags: [old]\n---\n", {"tags": ["a", "status/done"]})
    assert note(text).header.properties["tags"] == ["a", "status/done"]


@pytest.mark.parametrize(
    ("header", "stamped"),
    [
        ("modified: 2020-01-01T00:00:00\n", f"modified: {NOW}\n"),
        (
            "a: 1\nModified: 2020-01-01T00:00:00  # by us\nb: 2\n",
            f"a: 1\nModified: {NOW}  # by us\nb: 2\n",
        ),
        ("Modified: 2020-01-01  # by us\nb: 2\n", f"Modified: {NOW[:10]}  # by us\nb: 2\n"),
        ("modified: '2020-01-01'\n", f"modified: '{NOW[:10]}'\n"),
        (f"modified: {NOW[:10]}\n", f"modified: {NOW[:10]}\n"),
        ("a: 1\n", "a: 1\n"),
        (f"modified: {NOW}\n", f"modified: {NOW}\n"),
        ("modified: [broken\n", "modified: [broken\n"),
    ],
)
def test_a_change_is_stamped_where_the_note_keeps_such_a_mark(header: str, stamped: str) -> None:
    assert stamp_modified(f"---\n{header}---\nbody\n", NOW) == f"---\n{stamped}---\nbody\n"


def test_a_stamp_keeps_the_offset_a_note_writes() -> None:
    for held, ending in (("2020-01-01T00:00:00Z", "Z"), ("2020-01-01T00:00:00+02:00", NOW[-3:])):
        text = stamp_modified(f"---\nmodified: {held}\n---\n", NOW)
        value = str(note(text).header.properties["modified"])
        assert value != held
        assert value.endswith("Z") if ending == "Z" else value[-6] in "+-"
