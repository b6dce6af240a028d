"""The words of a query are marked in a text, whatever their case, accents and endings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplemem.web.highlights import mark_words


@pytest.mark.parametrize(
    ("query", "text", "marked"),
    [
        ("heron", "Herons, a heron and the heroine.", ["Herons", "heron"]),
        ("cafe", "The Café is open.", ["Café"]),
        ("car", "A car, two cars and a carpet.", ["car", "cars"]),
        ("the harbour", "The harbour opens.", ["harbour"]),
        ("the", "The harbour opens.", ["The"]),
        ("opening", "It opens at six, the opening.", ["opening"]),
        ("東京", "昨日東京へ行った", ["東京"]),
        ('"oak boat" -tree', "A boat of oak.", ["boat", "oak"]),
        ("zebra", "A boat of oak.", []),
        ("", "A boat of oak.", []),
    ],
)
def test_words_of_the_query_are_marked(query: str, text: str, marked: list[str]) -> None:
    assert [part.text for part in mark_words(text, query) if part.is_match] == marked


@given(st.text(), st.text())
def test_the_parts_together_are_the_text(text: str, query: str) -> None:
    assert "".join(part.text for part in mark_words(text, query)) == text
