"""Headings, blocks, block ids and sections: what stands in a body, and where."""

from __future__ import annotations

import pytest

from simplemem.note.body import Body, read_body
from simplemem.note.header import read_header
from simplemem.note.passages import find_section


def body_of(text: str) -> Body:
    return read_body(text, 0)


def kinds(text: str) -> list[tuple[str, str]]:
    return [(block.kind, text[block.start : block.end]) for block in body_of(text).blocks]


def test_headings_of_both_notations_have_level_text_and_line() -> None:
    text = "# One ##\n\nTwo\n---\n\n> ## In a *quote*\n\n- ### In a list\n\n####### seven\n#none\n"
    found = [
        (heading.level, heading.text, heading.line) for heading in body_of("\ufeff" + text).headings
    ]
    assert found == [(1, "One", 1), (2, "Two", 3), (2, "In a *quote*", 6), (3, "In a list", 8)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_end_as_commonmark_says_and_nowhere_else(end: str) -> None:
    text = end.join(["---", "a: 1", "---", "# A", "x\u2028# no\x0b# no\x85# no", "", "# B"])
    body = read_body(text, read_header(text).body_start)
    assert [(heading.text, heading.line) for heading in body.headings] == [("A", 4), ("B", 7)]
    assert [text[heading.start : heading.end] for heading in body.headings] == ["# A", "# B"]


def test_every_kind_of_block_is_a_block_of_its_own() -> None:
    text = (
        "# H\n\npara\nmore\n\n- one\n  - two\n\n  again\n1. three\n\n> said\n\n"
        "```py\n# code\n```\n\n    indented\n\n"
        "| a |\n|---|\n| b |\n\n<div>\nx\n</div>\n\n$$\n- x\n\ny\n$$\n\n***\n\n[ref]: somewhere\n"
    )
    assert kinds(text) == [
        ("heading", "# H"), ("paragraph", "para\nmore"), ("item", "- one"), ("item", "- two"), ("paragraph", "again"),
        ("item", "1. three"), ("quote", "> said"), ("code", "```py\n# code\n```"), ("code", "indented"),
        ("table", "| a |\n|---|\n| b |"), ("html", "<div>\nx\n</div>"), ("math", "$$\n- x\n\ny\n$$"),
        ("definition", "[ref]: somewhere"),
    ]  # fmt: skip


def test_a_block_knows_the_heading_it_stands_under() -> None:
    text = "above\n\n# A\n\nin a\n\n## B\n\nin b\n"
    found = [
        (text[block.start : block.end], block.heading, block.line) for block in body_of(text).blocks
    ]
    assert found == [
        ("above", -1, 1),
        ("# A", 0, 3),
        ("in a", 0, 5),
        ("## B", 1, 7),
        ("in b", 1, 9),
    ]


def test_block_ids_stand_at_the_end_of_a_block_or_alone_after_it() -> None:
    text = "para ^one\n\n- item ^two-2\n\n| a |\n|---|\n| b |\n\n^three\n\nnot ^this one\n\n```\ncode ^no\n```\n"
    assert body_of(text).block_ids == (("one", 1), ("two-2", 3), ("three", 9))


SECTIONS = (
    "intro\n\n# First\n\none\n\n## Sub: part\n\ntwo ^here\n\n# Second\n\n## Sub: part\n\nthree\n\n"
    "| a |\n|---|\n\n^table\n"
)


def section(wanted: str) -> str | None:
    span = find_section(SECTIONS, body_of(SECTIONS), wanted)
    return None if span is None else SECTIONS[span[0] : span[1]]


def test_a_section_is_found_by_its_heading_or_path_and_reaches_to_the_next_of_its_level() -> None:
    assert section("First") == "# First\n\none\n\n## Sub: part\n\ntwo ^here\n\n"
    assert section("#second") == SECTIONS[SECTIONS.index("# Second") :]
    assert (
        section("First > Sub: part")
        == section("First#Sub: part")
        == "## Sub: part\n\ntwo ^here\n\n"
    )
    assert section("sub  PART") == "## Sub: part\n\ntwo ^here\n\n"
    assert section("Second#Sub part") == SECTIONS[SECTIONS.rindex("## Sub") :]
    assert [
        section(wanted)
        for wanted in ("Second#First", "First > Second", "", "#", "Third", "^nothing")
    ] == [None] * 6


def test_a_block_is_found_by_its_id_whatever_its_case() -> None:
    assert section("^HERE") == "two ^here"
    assert section("#^table") == "| a |\n|---|\n\n^table"


@pytest.mark.parametrize(
    "text",
    [
        ">" * 50_000 + " [[x]]",
        "- " * 50_000 + "[[x]]",
        "".join("  " * depth + "- a\n" for depth in range(300)) + "[[x]]",
        "".join("> " * depth + "a\n\n" for depth in range(300)) + "\n[[x]]",
        "[a]: b\n\n" + "> - " * 3_000 + "[[x]]\n" + "b\n" * 10_000,
        "[a]: b\n\n" + "- " * 500 + "a\n\n[[x]]\n",
        "1. " * 400 + "\n\n[[x]]",
    ],
    ids=[
        "quotes",
        "lists",
        "indents",
        "growing quotes",
        "mixed and lazy",
        "too deep for the parser",
        "numbers",
    ],
)
def test_depth_breaks_nothing_and_hides_no_link(text: str) -> None:
    assert [link.target for link in body_of(text).links] == ["x"]


def test_a_block_below_a_heading_is_found_only_there() -> None:
    text = "# A\n\none ^x\n\n# B\n\ntwo ^y\n"
    body = body_of(text)
    assert find_section(text, body, "A > ^x") == find_section(text, body, "^x")
    assert find_section(text, body, "A > ^y") is None
    assert find_section(text, body, "C > ^x") is None
