"""Cutting: pages of a long note, and texts made short."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from simplemem.note.words import count_tokens
from simplemem.tools.pages import asked_page, page_of, page_size
from simplemem.tools.render import brief, brief_lines

texts = st.text(st.sampled_from("ab \n#中é-\r\u2028"), max_size=400)


def cut(text: str, size: int) -> list[str]:
    return [
        page_of(text, None, number, size).text
        for number in range(1, page_of(text, None, 1, size).total + 1)
    ]


@given(texts, st.integers(4, 60))
def test_pages_one_after_another_are_the_text_and_none_is_too_long(text: str, size: int) -> None:
    pages = cut(text, size)
    assert "".join(pages) == text
    assert all(len(page) <= size for page in pages)
    assert all(pages) or text == ""


def test_a_page_ends_before_a_section_rather_than_in_one() -> None:
    text = "# One\n" + "word " * 15 + "\n# Two\n" + "word " * 15
    assert cut(text, 100) == ["# One\n" + "word " * 15 + "\n", "# Two\n" + "word " * 15]


def test_going_on_as_a_page_says_leads_through_the_whole_text() -> None:
    text = "".join(f"## Part {k}\n\n{'word ' * 20}\n\n" for k in range(9))
    for section in (None, "Log"):
        page = page_of(text, section, 1, 300)
        read = page.text
        while page.following is not None:
            asked, number = asked_page(page.following)
            assert asked == section
            page = page_of(text, asked, number, 300)
            read += page.text
        assert read == text


def test_a_page_of_any_script_has_about_the_same_tokens() -> None:
    for text in ("word " * 20_000, "灯笼" * 20_000, "灯笼 and words " * 8_000):
        size = page_size(text, count_tokens(text))
        assert 3_000 < count_tokens(text[:size]) < 8_000


@given(texts, st.integers(5, 40))
def test_a_text_made_brief_is_on_one_line_and_has_no_more_tokens_than_it_may(
    text: str, tokens: int
) -> None:
    short = brief(text, tokens)
    assert "\n" not in short
    assert "\u2028" not in short
    assert count_tokens(short) <= tokens + 1
    if count_tokens(" ".join(text.split())) <= tokens:
        assert not short.endswith("…")


@given(st.lists(st.text(st.sampled_from("ab 中"), max_size=30), max_size=40), st.integers(1, 100))
def test_lines_made_brief_are_the_first_ones_and_the_rest_is_counted(
    lines: list[str], tokens: int
) -> None:
    text = "\n".join(lines).rstrip("\n")
    shown = brief_lines(text, tokens)
    if shown != text:
        *kept, last = shown.split("\n")
        assert text.split("\n")[: len(kept)] == kept
        assert last == f"… ({len(text.split(chr(10))) - len(kept)} more lines)"
