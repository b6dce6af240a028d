"""Passages: whole blocks up to a size, overlapping a little, each with its headings, and nothing left out."""

from __future__ import annotations

import pytest

from simplemem.note.body import read_body
from simplemem.note.passages import (
    MAX_TOKENS,
    OVERLAP_TOKENS,
    Passage,
    add_line,
    cut_passages,
    text_key,
)
from simplemem.note.words import count_tokens


def cut(text: str, start: int = 0) -> tuple[Passage, ...]:
    return cut_passages(text, read_body(text, start))


def shown(text: str) -> list[str]:
    return [text[passage.start : passage.end] for passage in cut(text)]


def sentences(count: int, of: str = "word") -> str:
    return " ".join(f"{of} number {k} stands here." for k in range(count))


def test_a_short_note_is_one_passage_and_an_empty_one_has_none() -> None:
    for text in (
        "# Title\n\nOne.\n\n- two\n\n***\n\n## More\n\nThree.\n",
        "***\n\ntext\n\n-\n",
        "***\n",
    ):
        assert shown(text) == [text.rstrip()]
    assert cut("") == cut(" \n\t\n") == cut("---\na: 1\n---\n", 13) == ()


def test_whole_blocks_are_packed_up_to_the_limit_and_overlap() -> None:
    paragraphs = [f"P{k} " + sentences(5) for k in range(20)]  # 34 tokens each
    text = "\n\n".join(paragraphs)
    found = shown(text)
    assert len(found) > 3
    for passage in found:
        assert passage.startswith("P") and passage.endswith("here.")
        assert count_tokens(passage) <= MAX_TOKENS
    for before, after in zip(cut(text), cut(text)[1:], strict=False):
        overlap = count_tokens(text[after.start : before.end])
        assert 0 < overlap <= OVERLAP_TOKENS


def test_a_passage_names_the_headings_of_its_first_text() -> None:
    text = (
        f"# A\n\n## B\n\n{sentences(25)}\n\n### C\n\n{sentences(25)}\n\n## D\n\n{sentences(25)}\n"
    )
    assert [passage.headings for passage in cut(text)] == [("A", "B"), ("A", "B", "C"), ("A", "D")]
    assert [passage.line for passage in cut(text)] == [1, 7, 11]


def test_a_heading_goes_with_what_it_heads() -> None:
    text = f"{sentences(20)}\n\n### Head\n\n{sentences(20)}\n"
    first, second = shown(text)
    assert first.endswith("here.")
    assert second.startswith("### Head")


def test_a_new_section_begins_a_passage_once_there_is_enough() -> None:
    long, short = f"# One\n\n{sentences(16)}\n\n", "# One\n\nLittle.\n\n"
    assert [text.split("\n")[0] for text in shown(long + "# Two\n\nMore.\n")] == ["# One", "# Two"]
    assert len(shown(short + "# Two\n\nMore.\n")) == 1


def test_what_is_too_long_is_cut_between_sentences_words_or_lines() -> None:
    found = shown(sentences(120))
    assert len(found) > 3
    assert all(
        passage.startswith("word number") and passage.endswith("stands here.") for passage in found
    )
    for passage in shown("alpha beta gamma " * 300):
        assert {passage.split()[0], passage.split()[-1]} <= {"alpha", "beta", "gamma"}
    for passage in shown("```\n" + "value = call(one, two)\n" * 200 + "```\n"):
        assert passage.split("\n")[-1] in ("value = call(one, two)", "```")


def test_text_without_spaces_is_cut_by_characters() -> None:
    found = shown("語" * 1000)
    assert len(found) >= 5
    assert max(map(len, found)) <= MAX_TOKENS
    japanese = shown("これは一つの文です。" * 100)
    assert all(passage.endswith("。") for passage in japanese)


def test_a_long_text_has_the_same_key_however_it_is_spaced() -> None:
    words = ["plum", "pear"] * 60_000
    assert text_key(" ".join(words)) == text_key("\n\t ".join(words)) is not None
    assert text_key(" ".join(words)) != text_key(" ".join(words[1:]))
    assert text_key("- \n" * 100_000) is None


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_a_line_is_added_below_the_last_line_of_a_section_with_any_line_ends(newline: str) -> None:
    text = newline.join(["# History", "", "- one", ""])
    assert add_line(text, "History", "- two") == newline.join(
        ["# History", "", "- one", "- two", ""]
    )
    assert add_line(f"# History{newline}", "History", "- one") == text
