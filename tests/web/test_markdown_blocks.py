"""The text of a note is split into blocks as a reader sees them, so that a change can be shown."""

from __future__ import annotations

import pytest

from simplemem.web.markdown_blocks import split_into_blocks


def displayed_blocks(text: str) -> list[tuple[str, str]]:
    """Return the kind and the text of each block of a note."""
    blocks = split_into_blocks(text, prefix="")
    return [(block.kind, "".join(word.text for word in block.words)) for block in blocks]


@pytest.mark.parametrize(
    ("item", "blocks_of_item"),
    [
        ("-\n", []),
        ("- ```\n  code\n  ```\n", [("code-line", "code")]),
    ],
)
def test_what_follows_an_item_without_words_is_no_item(
    item: str, blocks_of_item: list[tuple[str, str]]
) -> None:
    text = f"{item}\n# Heading\n\nParagraph.\n"
    following = [("heading-1", "Heading"), ("paragraph", "Paragraph.")]
    assert displayed_blocks(text) == [*blocks_of_item, *following]


@pytest.mark.parametrize(
    ("text", "displayed"),
    [
        ("> [!note]- Why only 55 metres\n> Rope.", "note (folded): Why only 55 metres\nRope."),
        ("> [!warning] *Mind* the gap", "warning: Mind the gap"),
        ("> [!tip]", "tip: "),
        ("> Words.\n>\n> [!note] later", "Words.|[!note] later"),
        ("[!note] no quote", "[!note] no quote"),
        ("> [!no te] no callout", "[!no te] no callout"),
        ("> [!note]  Two spaces", "note: Two spaces"),
        ("> - [!note] item", "• [!note] item"),
        ("> ```\n> code\n> ```\n\n[!note] later", "code|[!note] later"),
        (">\n\n[!note] later", "[!note] later"),
    ],
)
def test_a_callout_begins_with_its_type(text: str, displayed: str) -> None:
    assert "|".join(words for _, words in displayed_blocks(text)) == displayed


def test_a_change_of_an_address_or_a_language_alone_is_seen() -> None:
    for text in ("![chart](http://a.example)", "```python\npass\n```"):
        other = text.replace("a.example", "b.example").replace("python", "sh")
        assert displayed_blocks(text) != displayed_blocks(other)


def test_an_embed_is_named_and_not_its_size() -> None:
    text = "See ![[jetty.png|120]] and ![[Plan#Costs]]."
    [(_, words)] = displayed_blocks(text)
    assert words == "See [embedded: jetty.png, 120] and [embedded: Plan#Costs]."


def test_a_row_has_a_bar_between_its_cells_and_a_task_has_a_box() -> None:
    text = "| a | b |\n|---|---|\n| c | |\n\n1. one\n\n- [x] *done*\n"
    assert displayed_blocks(text) == [
        ("row", "a | b"),
        ("row", "c | "),
        ("list-item", "1. one"),
        ("list-item", "☑ done"),
    ]
