"""What is appended to a note is a block of its own, unless it continues the list or the table that the note ends with."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplemem.note.appending import append_content, open_at_end
from simplemem.note.note import Note, read_note

TABLE = "| a | b |\n|---|---|\n| 1 | 2 |\n"


def note_of(text: str) -> Note:
    return read_note(text.encode())


@pytest.mark.parametrize(
    ("text", "addition"),
    [
        ("A paragraph.\n", "Another.\n"),
        ("A paragraph.", "Another."),
        (TABLE, "A paragraph.\n"),
        (TABLE, "| c | d |\n|---|---|\n| 3 | 4 |\n"),
        (TABLE, "Either a | or b.\n"),
        ("> A quote.\n", "A paragraph.\n"),
        ("> [!note] Title\n> A callout.\n", "A paragraph.\n"),
        ("> A quote.\n", "> Another quote.\n"),
        ("- an item\n", "A paragraph.\n"),
        ("- an item\n", "* of another list\n"),
        ("- an item\n", "1. of another list\n"),
        ("1. an item\n", "2) of another list\n"),
        ("- an item\n", "---\n"),
        ("> - an item in a quote\n", "- an item\n"),
        ("A paragraph.\n", "- an item\n"),
        ("A paragraph.\n", "---\n"),
        ("A paragraph.\n", "===\n"),
        ("a | b\n", "|---|---|\n"),
        ("# A heading\n", "A paragraph.\n"),
        ("A paragraph.\n", "# A heading\n"),
        ("```\ncode\n```\n", "A paragraph.\n"),
        ("<div>\n", "A paragraph.\n"),
        ("<!-- a comment -->\n", "A paragraph.\n"),
        ("%% a comment %%\n", "A paragraph.\n"),
        ("[^1]: A footnote.\n", "A paragraph.\n"),
        ("A paragraph.\n", "    code\n"),
        ("A paragraph.\n", " - an item\n"),
        ("---\ntitle: A\n---\nA paragraph.\n", "Another.\n"),
    ],
)
def test_what_is_appended_is_not_attached_to_the_last_block(text: str, addition: str) -> None:
    appended = append_content(note_of(text), addition)
    assert appended == text.rstrip("\n") + "\n\n" + addition.rstrip("\n") + "\n"


@pytest.mark.parametrize(
    ("text", "addition"),
    [
        ("- an item\n", "- another\n"),
        ("- [ ] a task\n", "- [x] another\n"),
        ("* an item\n", "* another\n"),
        ("1. an item\n", "2. another\n"),
        ("9) an item\n", "10) another\n"),
        ("- an item\n  - below it\n", "- another\n"),
        ("- an item\n  - below it\n", "  - another below it\n"),
        ("- an item\nthat goes on lazily\n", "- another\n"),
        ("- an item\n\n  and its second paragraph\n", "- another\n"),
        ("- an item\n", "  and more of it\n"),
        ("- an item\n", "\t- below it\n"),
        (TABLE, "| 3 | 4 |\n"),
        (TABLE, "| 3 |\n"),
        (TABLE, "| 3 | 4 |\n\nA paragraph.\n"),
        ("a | b\n--|--\n1 | 2\n", "3 | 4\n"),
        ("A paragraph\n", " that goes on.\n"),
        ("    code\n", "    more code\n"),
    ],
)
def test_an_append_continues_a_list_or_table_of_the_same_kind(text: str, addition: str) -> None:
    assert append_content(note_of(text), addition) == text + addition


@pytest.mark.parametrize(
    ("text", "addition", "appended"),
    [
        ("", "Text.", "Text.\n"),
        ("---\ntitle: A\n---\n", "Text.\n", "---\ntitle: A\n---\nText.\n"),
        ("---\ntitle: A\n---", "Text.\n", "---\ntitle: A\n---\nText.\n"),
        ("---\ntitle: A\n---\n\n", "Text.\n", "---\ntitle: A\n---\n\nText.\n"),
        ("A paragraph.\n\n", "Text.\n", "A paragraph.\n\nText.\n"),
        ("A paragraph.\n  \n", "Text.\n", "A paragraph.\n  \nText.\n"),
        ("A paragraph.\n", "\nText.\n", "A paragraph.\n\nText.\n"),
        ("A paragraph.\n", "\n\nText.\n", "A paragraph.\n\n\nText.\n"),
        ("```\ncode\n", "more code\n", "```\ncode\nmore code\n"),
    ],
)
def test_an_append_adds_no_blank_line_that_is_not_needed(
    text: str, addition: str, appended: str
) -> None:
    assert append_content(note_of(text), addition) == appended


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_an_append_has_the_line_ends_of_the_note(newline: str) -> None:
    text = f"# A{newline}{newline}> A quote."
    appended = append_content(note_of(text), "One.\nTwo.")
    assert appended == f"{text}{newline}{newline}One.{newline}Two.{newline}"
    listed = f"- a{newline}"
    assert append_content(note_of(listed), "- b") == f"- a{newline}- b{newline}"


@pytest.mark.parametrize("text", ["", "A paragraph.\n", "A paragraph."])
def test_an_addition_with_other_line_ends_gets_those_of_a_note_with_line_feeds(text: str) -> None:
    appended = append_content(note_of(text), "One.\r\nTwo.\r")
    assert "\r" not in appended
    assert appended.endswith("One.\nTwo.\n")


@pytest.mark.parametrize(
    ("text", "block"),
    [
        ("```\ncode\n", "a code block"),
        ("Text.\n\n~~~\ncode\n", "a code block"),
        ("<!-- never closed\n", "an HTML comment"),
        ("%% never closed\n", "an Obsidian comment"),
        ("```\ncode\n```\n", ""),
        ("<!-- closed -->\n", ""),
        ("%% closed %%\n", ""),
        ("`a` 100%\n", ""),
        ("Write `%%` before a comment.\n", ""),
        ("Write ``a ` %%`` before a comment.\n", ""),
        ("A ` and a %% comment\n", "an Obsidian comment"),
        ("A \\`%% comment`\n", "an Obsidian comment"),
        ("%% a ` is no code %% here `\n", ""),
        ("%% opened\n\nand closed %% before `%%`\n", ""),
        ("", ""),
    ],
)
def test_what_takes_in_whatever_follows_is_named(text: str, block: str) -> None:
    assert open_at_end(note_of(text)) == block


BLOCKS = st.sampled_from(
    [
        "A paragraph.",
        "> A quote.",
        "- an item",
        "  - below",
        "1. one",
        "| a | b |",
        "|---|---|",
        "# Heading",
        "```",
        "",
        "    code",
    ]
)


@given(
    st.lists(BLOCKS, max_size=8).map("\n".join),
    st.lists(BLOCKS, min_size=1, max_size=4).map("\n".join),
)
def test_an_append_keeps_every_byte_before_it_and_every_line_of_its_own(
    text: str, addition: str
) -> None:
    appended = append_content(note_of(text), addition)
    assert appended.startswith(text)
    assert appended.rstrip("\n").endswith(addition.rstrip("\n"))
    assert appended.endswith("\n")


@given(st.lists(BLOCKS, max_size=8).map("\n".join))
def test_an_appended_paragraph_is_a_paragraph_of_its_own(text: str) -> None:
    note = note_of(text)
    appended = note_of(append_content(note, "The appended words."))
    if not open_at_end(note):
        last = appended.body.blocks[-1]
        assert (last.kind, appended.text[last.start : last.end]) == (
            "paragraph",
            "The appended words.",
        )
