"""One thing that was learned, as a note and back."""

from __future__ import annotations

import pytest

from simplemem.errors import Invalid
from simplemem.kinds.learned.entry import (
    LEARNED,
    EntryLink,
    KnowledgeEntry,
    body_of,
    clean_text,
    entry_of_note,
    plain,
    properties_of,
    read_entry,
    slug_of,
    with_tie,
)
from simplemem.note.names import check_name

AT = "2026-11-22T10:00:00"


def written(content: str, context: str = "", **more: object) -> str:
    body, _, held = body_of(content, context)
    return LEARNED.render(properties_of("an-id", "error", 0.9, False, ["pg"]) | held | more, body, AT)


def read_back(text: str) -> KnowledgeEntry:
    return read_entry("knowledge/error/n.md", text, "")


ODD = [
    "Plain words.",
    "Vec<List<int>> &amp; <script>alert(1)</script>",
    "two\n\nparagraphs",
    "# A heading\n\nand text",
    "## Context\n\nwhat the content says itself",
    "## Relations\n\n- fixes [[x]]",
    "text\n\n## Relations\n\n- fixes [[x]]\n\n## Context\n\nand more",
    "- a list\n  - and below",
    "```python\nprint('## Relations')\n```",
    "> quoted\n> ## Context",
    "---\nlooks: like a header\n---\nbelow",
    "日本語の記録",
    "ends with a backslash \\",
    "%% hidden %% seen",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "\u2028 a line separator \u2029 within",
]


@pytest.mark.parametrize(
    "context", ["", "While deploying.", "## Context\n\nwithin", "# Big\n\ntext", "two\n\nparagraphs"]
)
@pytest.mark.parametrize("content", ODD)
def test_what_is_written_reads_back_as_the_same(content: str, context: str) -> None:
    entry = read_back(written(content.strip(), context))
    assert (entry.content, entry.context) == (content.strip(), context)
    assert (entry.id, entry.type, entry.confidence, entry.verified, entry.tags) == (
        "an-id",
        "error",
        0.9,
        False,
        ("pg",),
    )


@pytest.mark.parametrize("content", ODD)
@pytest.mark.parametrize("context", ["", "While deploying.", "## Context\n\nwithin"])
def test_a_relation_is_added_behind_whatever_it_says(content: str, context: str) -> None:
    text = with_tie(written(content.strip(), context), "fixes", "knowledge/error/other")
    text = with_tie(text, "relates to", "Some note")
    entry = read_back(text)
    assert entry.ties[-2:] == (EntryLink("fixes", "knowledge/error/other"), EntryLink("relates to", "Some note"))
    assert (entry.content, entry.context) == (content.strip(), context)


@pytest.mark.parametrize(
    ("content", "closed"),
    [
        ("```\nleft open", "```\nleft open\n```"),
        ("~~~\nleft open", "~~~\nleft open\n~~~"),
        ("text\n\n<!-- left open", "text\n\n<!-- left open\n-->"),
        ("````\n```\nleft open", "````\n```\nleft open\n````"),
    ],
)
def test_what_is_left_open_is_closed_so_that_it_swallows_nothing(content: str, closed: str) -> None:
    entry = read_back(with_tie(written(content, "a context"), "fixes", "x"))
    assert (entry.content, entry.context, entry.ties) == (closed, "a context", (EntryLink("fixes", "x"),))


def test_an_odd_relationship_is_kept_to_the_letter() -> None:
    for odd in ('"quoted"', "[[a link]]", "- a bullet", "# a heading", "ünï"):
        assert read_back(with_tie(written("text"), odd, "x")).ties == (EntryLink(odd, "x"),)


def test_a_relation_joins_those_a_person_wrote_and_leaves_what_follows() -> None:
    text = "---\ntype: knowledge\n---\ntext\n\n## Relations\n* knows [[Ada|her]]\n\n## Log\nmore\n"
    longer = with_tie(text, "fixes", "x")
    assert (
        longer
        == "---\ntype: knowledge\n---\ntext\n\n## Relations\n* knows [[Ada|her]]\n- fixes [[x]]\n\n## Log\nmore\n"
    )
    entry = read_back(longer)
    assert entry.ties == (EntryLink("knows", "Ada"), EntryLink("fixes", "x"))
    assert entry.content == "text\n\n## Log\nmore"


def test_line_ends_of_windows_stay() -> None:
    text = "---\r\ntype: knowledge\r\n---\r\ntext\r\n\r\n## Relations\r\n\r\n- a [[b]]\r\n"
    longer = with_tie(text, "fixes", "x")
    assert longer == text + "- fixes [[x]]\r\n"
    assert read_back(longer).ties == (EntryLink("a", "b"), EntryLink("fixes", "x"))


def test_a_note_written_by_hand_needs_next_to_nothing() -> None:
    bare = read_entry("knowledge/errors/Pool.md", "The pool is exhausted.\n", "")
    assert (bare.id, bare.type, bare.confidence, bare.content) == (
        "knowledge/errors/Pool",
        "error",
        None,
        "The pool is exhausted.",
    )
    elsewhere = read_entry("notes/Pool.md", "---\ntype: knowledge\nconfidence: high\nverified: yes please\n---\nx", "")
    assert (elsewhere.type, elsewhere.confidence, elsewhere.verified) == ("insight", None, False)


def test_a_header_that_cannot_be_read_is_said_and_the_rest_is_there() -> None:
    entry = read_entry("knowledge/error/n.md", "---\ntags: [a\n---\ntext\n", "")
    assert entry.problem and "text" in entry.content


def test_which_notes_are_knowledge() -> None:
    assert LEARNED.holds("notes/a.md", "Knowledge") and LEARNED.holds("knowledge/error/a.md", "")
    assert not LEARNED.holds("notes/a.md", "") and not LEARNED.holds("knowledge/error/a.md", "person")


def test_an_ordinary_note_is_looked_at_in_the_same_way() -> None:
    entry = entry_of_note("people/Ada.md", "---\ntype: person\ntags: [a]\n---\n# Ada\n\nSee [[Bo#x|him]].", "", AT, AT)
    assert (entry.id, entry.type, entry.confidence, entry.tags) == ("people/Ada", "person", None, ("a",))
    assert entry.content == "# Ada\n\nSee [[Bo#x|him]]." and entry.ties == (EntryLink("links to", "Bo"),)
    assert not entry.is_own and entry.headline == "Ada"


def test_superseded_is_what_says_so() -> None:
    header = 'type: knowledge\nstatus: Superseded\nsuperseded_by: "[[knowledge/error/b|B]]"\nsuperseded_at: 2026-01-02'
    entry = read_back(f"---\n{header}\n---\nx")
    assert entry.is_superseded and entry.superseded_by == "knowledge/error/b" and entry.superseded_at == "2026-01-02"


def test_a_headline_is_what_a_reader_sees_first() -> None:
    assert (
        read_back(written("```\ncode\n```\n\n> **Note** the [[Pool|pool]] of [a](b)")).headline == "Note the pool of a"
    )
    assert read_back(written("word " * 60)).headline.endswith("word…")
    assert plain("![[icon.svg]] <b>bold</b> text %% strength=0.9 %%") == " bold text "


@pytest.mark.parametrize(
    ("content", "slug"),
    [
        ("Raise the pool to 50!", "raise-the-pool-to-50"),
        ("# A/B: C:\\x <List>", "a-b-c-x-list"),
        ("プール", "プ"),
        ("!!!", "entry"),
        ("CON", "con_"),
        ("x" * 300, "x" * 60),
        ("../../etc/passwd", "etc-passwd"),
    ],
)
def test_a_file_is_named_by_the_first_words(content: str, slug: str) -> None:
    made = slug_of(content)
    assert check_name(f"knowledge/error/{made}") == f"knowledge/error/{made}"
    assert made.startswith(slug[:20])


def test_what_no_note_can_carry_is_refused_and_nothing_else() -> None:
    assert clean_text("  <b>\r\nx\r </b> ", "content") == "<b>\nx\n </b>"
    for odd in ("a\0b", "half \ud83d"):
        with pytest.raises(Invalid, match="content"):
            clean_text(odd, "content")
