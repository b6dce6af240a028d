"""Any string stands on one line of a note and reads back as itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplemem.kinds.graph import spelling

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
    "a %%b=c%%",
]
ODD += ["# heading", "```", "- dash", "1. one", "---", "<div>", "> quote", "| a |", "$$", "\ufeff", "x" * 5000]
PLAIN = [
    "works at Acme",
    "[x] done",
    "[category] text #tag",
    "[[link]]",
    "`code`",
    "a: b",
    "100 %",
    "日本語",
    "ends with \\",
]


@pytest.mark.parametrize("text", ODD + PLAIN)
def test_what_is_spelled_reads_back(text: str) -> None:
    assert spelling.read(spelling.spell(text)) == text


@pytest.mark.parametrize("text", [text for text in ODD if text != "x" * 5000])
def test_what_a_line_cannot_carry_is_a_literal_in_ascii(text: str) -> None:
    spelled = spelling.spell(text)
    assert spelled.startswith('"') and spelled.isascii() and "%%" not in spelled and "\n" not in spelled


@given(st.text(st.characters(codec=None), max_size=60))
def test_any_string_comes_back(text: str) -> None:
    line = spelling.spell(text)
    assert spelling.read(line) == text
    assert len(line.splitlines()) <= 1 or line == text.strip()
    line.encode()  # no half of a character is left for the file


def test_a_line_that_only_looks_like_a_literal_is_what_it_is() -> None:
    assert spelling.read('"quoted" by hand') == '"quoted" by hand'
    assert spelling.read('"never closed') == '"never closed'


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
def test_attributes_come_back_and_leave_the_text_alone(text: str, attributes: dict[str, object]) -> None:
    line = spelling.spell(text) + spelling.spell_attributes(attributes)
    said, read = spelling.split_attributes(line)
    assert spelling.read(said) == text
    assert read == attributes


def test_a_persons_comment_without_attributes_is_part_of_the_text() -> None:
    assert spelling.split_attributes("tea %%ask Ada%%") == ("tea %%ask Ada%%", {})
