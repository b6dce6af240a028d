"""Any string stands on one line of a note and reads back as itself; any name gets a file."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplemem.features.graph.attributes import format_attributes, split_attributes
from simplemem.features.graph.literals import format_text, parse_text
from simplemem.features.graph.names import path_for_entity
from simplemem.note.names import check_name

ODD = [
    "",
    " ",
    " x",
    "x ",
    "a\nb",
    "a\r\nb",
    "\x00",
    "\ud800x",
    "\u2028",
    "\u00a0x",
    '"',
    '"quoted" text',
    "%%",
]
ODD += [
    "a %%b=c%%",
    "# heading",
    "```",
    "- dash",
    "1. one",
    "---",
    "<div>",
    "> quote",
    "| a |",
    "$$",
    "x" * 5000,
]
PLAIN = [
    "works at Acme",
    "[x] done",
    "[category] text #tag",
    "[[link]]",
    "`code`",
    "a: b",
    "100 %",
    "日本語",
    "end \\",
]
HARD = [
    "",
    ".",
    "..",
    "a/b",
    "../x",
    "C:\\x",
    "CON",
    "con.txt",
    "a:b",
    "x.md",
    "a~b",
    "n" * 300,
    "日" * 300,
    "\x00",
]
HARD += [
    "\ud800",
    "a.",
    " a",
    "a ",
    "cafe\u0301",
    "\u202eevil",
    "[[x]]",
    "a|b",
    "%%",
    ".hidden",
    "a\nb",
    "~/home",
]


@pytest.mark.parametrize("text", ODD + PLAIN)
def test_what_is_spelled_reads_back(text: str) -> None:
    assert parse_text(format_text(text)) == text


@given(st.text(st.characters(codec=None), max_size=60))
def test_any_string_comes_back(text: str) -> None:
    line = format_text(text)
    assert parse_text(line) == text
    assert len(line.splitlines()) <= 1 or line == text.strip()
    line.encode()  # no half of a character is left for the file


def test_a_line_that_only_looks_like_a_literal_is_what_it_is() -> None:
    assert parse_text('"quoted" by hand') == '"quoted" by hand'
    assert parse_text('"never closed') == '"never closed'


VALUES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(),
    st.booleans(),
    st.none(),
    st.text(st.characters(codec="utf-8"), max_size=20),
    st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), st.integers(), max_size=3),
)


@given(
    st.text(st.characters(codec="utf-8"), max_size=30),
    st.dictionaries(st.from_regex(r"[A-Za-z][a-z_0-9]{0,8}", fullmatch=True), VALUES, max_size=4),
)
def test_attributes_come_back_and_leave_the_text_alone(
    text: str, attributes: dict[str, object]
) -> None:
    line = format_text(text) + format_attributes(attributes)
    said, read = split_attributes(line)
    assert parse_text(said) == text
    assert read == attributes


@pytest.mark.parametrize("value", ["b%%c", "a%%", "a%%%b", "%%"])
def test_an_attribute_may_contain_the_mark_of_a_comment(value: str) -> None:
    line = "uses [[PostgreSQL]]" + format_attributes({"reason": value, "confidence": 0.5})
    assert split_attributes(line) == (
        "uses [[PostgreSQL]]",
        {"reason": value, "confidence": 0.5},
    )


def test_a_persons_comment_without_attributes_is_part_of_the_text() -> None:
    assert split_attributes("tea %%ask Ada%%") == ("tea %%ask Ada%%", {})


# -- files that every system and every link can carry


@pytest.mark.parametrize(
    "name", ["Ada Lovelace", "日本語", "a.b", "it's 100 %", "\U0001f9e0", "name (old)", "README"]
)
def test_a_name_that_a_file_can_carry_is_the_files(name: str) -> None:
    assert path_for_entity(name) == f"graph/{name}.md"


@pytest.mark.parametrize("name", HARD)
def test_any_other_name_gets_a_near_one_that_is_its_own(name: str) -> None:
    path = path_for_entity(name)
    stem = path.removeprefix("graph/").removesuffix(".md")
    assert check_name(f"graph/{stem}") == f"graph/{stem}"
    assert "~" in stem and "/" not in stem and len(path.encode()) < 255
    assert unicodedata.normalize("NFC", stem) == stem


def test_a_name_that_is_taken_is_left_alone() -> None:
    taken = {"graph/alice.md"}
    path = path_for_entity("alice", lambda path: path in taken)
    assert path != "graph/alice.md" and path.startswith("graph/alice~")
    assert path_for_entity("alice", lambda other: other in {*taken, path}) not in {*taken, path}
