"""What a snippet leaves out of a note: comments and badges. Every other character keeps its place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplemem.note.passages import text_key
from simplemem.note.plain_text import plain_text, without_html_comments, without_unseen


def left(text: str) -> list[str]:
    return without_unseen(text).split()


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a <!-- simplemem:begin static --> b", "a b"),
        ("a <!-- of\ntwo lines --> b", "a b"),
        ("<!-- never closed\nto the end", ""),
        ("> <!-- never closed in a quote", "> "),
        ("amid a line <!-- never closed stays", "amid a line <!-- never closed stays"),
        ("a %%comment%% b %%\nof lines\n%% c", "a b c"),
        ("100 %% is no comment", "100 %% is no comment"),
        ("`<!-- code -->` and `%%x%%`", "`<!-- code -->` and `%%x%%`"),
        ("```html\n<!-- code -->\n```\n<!-- none -->z", "```html <!-- code --> ``` z"),
        ("![Build](https://img.shields.io/x?y=z) a", "a"),
        ("[![CI](https://github.com/a/b/actions/ci/badge.svg)](https://github.com/a/b) a", "a"),
        ("![A map](https://a.example/map.png) a", "![A map](https://a.example/map.png) a"),
    ],
)
def test_comments_and_badges_are_left_out_and_what_stands_in_code_is_not(
    text: str, kept: str
) -> None:
    assert left(text) == kept.split()


@given(st.text(alphabet="a`<!->%\n []()x", max_size=60))
def test_what_is_left_keeps_its_place(text: str) -> None:
    for shown in (without_html_comments(text), without_unseen(text)):
        assert len(shown) == len(text)
        assert all(there in (was, " ") for was, there in zip(text, shown, strict=True))
        assert shown.count("\n") == text.count("\n")


def test_many_comments_that_never_close_take_no_longer_than_the_text_is_long() -> None:
    for mark in ("<!-- ", "x <!-- ", "%%", "``%% "):
        assert len(without_unseen(mark * 50_000)) == len(mark) * 50_000


def test_a_text_as_read_has_no_html_comment() -> None:
    assert (
        plain_text("# Notes\n<!-- simplemem:begin static -->\nA *balloon*.<!-- end --> Gone.")
        == "Notes A balloon. Gone."
    )
    assert plain_text("Write `<!-- x -->` to hide x.") == "Write <!-- x --> to hide x."


def test_blocks_that_differ_in_addresses_alone_have_one_key() -> None:
    one = "[Edit in GitHub](https://github.dev/a.md) | <b>Copy</b>\n  this note"
    other = '[Edit in GitHub](https://github.dev/b.md "edit") | Copy this note'
    assert text_key(one) == text_key(other)
    assert text_key(one) != text_key("Edit in GitHub")
    assert text_key("---") is None


def test_an_html_comment_that_begins_a_line_hides_the_rest_also_after_an_opening_amid_a_line() -> (
    None
):
    text = "Amid <!-- a line.\n\n<!-- secret\n\nand more secret\n"
    assert without_html_comments(text).rstrip() == "Amid <!-- a line."
    assert len(without_html_comments(text)) == len(text)
