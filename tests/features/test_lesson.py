"""One thing that was learned, as a note and back."""

from __future__ import annotations

import pytest

from simplemem.errors import Invalid
from simplemem.features.lessons.lesson import (
    LESSON,
    Lesson,
    plain_text,
    read_lesson,
    render_body,
    slug_of,
    with_relation,
)
from simplemem.note.names import check_name

ODD = [
    "Plain words.",
    "Vec<List<int>> &amp; <script>alert(1)</script>",
    "two\n\nparagraphs",
    "# A heading\n\nand text",
    "- a list\n  - and below",
    "```python\nprint('## Relations')\n```",
    "> quoted\n> ## Context",
    "---\nlooks: like a header\n---\nbelow",
    "日本語の記録",
    "ends with a backslash \\",
    "%% hidden %% seen",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "\u2028 a line separator \u2029 within".strip(),
]


def read_back(text: str) -> Lesson:
    return read_lesson("knowledge/error/n.md", text)


def relations_of(lesson: Lesson) -> tuple[tuple[str, str], ...]:
    return tuple((relation.type, relation.link) for relation in lesson.relations)


def written(content: str, context: str = "") -> str:
    return LESSON.render({"id": "an-id"}, render_body(content, context), "2026-11-22T10:00:00")


@pytest.mark.parametrize("context", ["", "While deploying.", "two\n\nparagraphs"])
@pytest.mark.parametrize("content", ODD)
def test_what_is_written_reads_back_as_the_same_with_relations_behind_it(
    content: str, context: str
) -> None:
    text = with_relation(written(content, context), "fixes", "knowledge/error/other")
    lesson = read_back(with_relation(text, "relates to", "Some note"))
    assert (lesson.id, lesson.type, lesson.content, lesson.context) == (
        "an-id",
        "error",
        content,
        context,
    )
    assert relations_of(lesson) == (("fixes", "knowledge/error/other"), ("relates to", "Some note"))


def test_sections_of_ours_in_the_content_are_the_entrys_own() -> None:
    lesson = read_back(written("text\n\n## Relations\n\n- fixes [[x]]\n\n## Context\n\nand more"))
    assert (lesson.content, lesson.context, relations_of(lesson)) == (
        "text",
        "and more",
        (("fixes", "x"),),
    )


@pytest.mark.parametrize("content", ["```\nleft open", "~~~\nleft open", "text\n\n<!-- left open"])
def test_what_would_swallow_the_sections_behind_it_is_refused(content: str) -> None:
    with pytest.raises(Invalid, match="leaves a code block or comment open"):
        render_body(content, "")


@pytest.mark.parametrize(
    "odd", ['"quoted"', "[[a link]]", "- a bullet", "# a heading", "ünï", "a [b] c"]
)
def test_an_odd_relationship_is_kept_to_the_letter(odd: str) -> None:
    assert relations_of(read_back(with_relation(written("text"), odd, "x"))) == ((odd, "x"),)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_relation_joins_those_a_person_wrote_and_leaves_what_follows(newline: str) -> None:
    note = "---\ntype: knowledge\n---\ntext\n\n## Relations\n* knows [[Ada|her]]\n"
    text = with_relation(f"{note}\n## Log\nmore\n".replace("\n", newline), "fixes", "x")
    assert text == f"{note}- fixes [[x]]\n\n## Log\nmore\n".replace("\n", newline)
    assert relations_of(read_back(text)) == (("knows", "Ada"), ("fixes", "x"))


def test_a_note_written_by_hand_needs_next_to_nothing() -> None:
    bare = read_lesson("knowledge/errors/Pool.md", "The pool is exhausted.\n")
    assert (bare.id, bare.type, bare.confidence) == ("knowledge/errors/Pool", "error", None)
    elsewhere = read_lesson(
        "notes/Pool.md", "---\ntype: knowledge\nconfidence: high\nverified: yes please\n---\nx"
    )
    assert (elsewhere.type, elsewhere.confidence, elsewhere.verified) == ("insight", None, False)
    broken = read_back("---\ntags: [a\n---\ntext\n")
    assert "text" in broken.content
    link = 'type: knowledge\nsuperseded_by: "[[knowledge/error/b|B]]"'
    assert read_back(f"---\n{link}\n---\nx").is_superseded
    assert read_back(f"---\n{link}\n---\nx").superseded_by == "knowledge/error/b"
    old = read_back("---\ntype: knowledge\ncontext: kept in the header\n---\ntext\n")
    assert old.context == "kept in the header"


def test_an_ordinary_note_is_looked_at_in_the_same_way() -> None:
    lesson = read_lesson(
        "people/Ada.md", "---\ntype: person\ntags: [a]\n---\n# Ada\n\n## Context\n\nSee [[Bo]]."
    )
    assert (lesson.id, lesson.type, lesson.confidence, lesson.tags) == (
        "people/Ada",
        "person",
        None,
        ("a",),
    )
    assert (
        lesson.content == "# Ada\n\n## Context\n\nSee [[Bo]]."
        and lesson.headline == "Ada"
        and not lesson.is_own
    )


def test_a_headline_is_what_a_reader_sees_first() -> None:
    code = "```\ncode\n```\n\n> **Note** the [[Pool|pool]] of [a](b)"
    assert read_back(written(code)).headline == "Note the pool of a"
    assert read_back(written("word " * 60)).headline.endswith("word…")
    assert plain_text("![[icon.svg]] <b>bold</b> text %% strength=0.9 %%") == " bold text "


@pytest.mark.parametrize(
    ("content", "slug"),
    [("Raise the pool to 50!", "raise-the-pool-to-50"), ("# A/B: C:\\x <List>", "a-b-c-x-list"), ("!!!", "entry"),
     ("CON", "con_"), ("x" * 300, "x" * 60),
     ("word " * 40, "word-word-word-word-word-word-word-word-word-word-word-word"),
     ("../../etc/passwd", "etc-passwd")],
)  # fmt: skip
def test_a_file_is_named_by_the_first_words(content: str, slug: str) -> None:
    assert (
        slug_of(content) == slug
        and check_name(f"knowledge/error/{slug}") == f"knowledge/error/{slug}"
    )


def test_the_property_context_of_an_ordinary_note_is_not_its_context() -> None:
    text = "---\ncontext: from the frontmatter\n---\ntext\n"
    assert read_lesson("notes/x.md", text).text == "text"
    assert read_lesson("knowledge/error/x.md", text).context == "from the frontmatter"
