"""A context pack: the best passages, cited, never over its budget."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplemem.errors import Invalid
from simplemem.memory import Filter
from simplemem.note.words import count_tokens
from simplemem.search.pack import pack
from simplemem.search.voices import Piece
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]
WORDS = st.text(st.sampled_from("ab cd\n東京 #-é"), max_size=120)


def piece(text: str, name: str = "n", score: float = 1.0) -> Piece:
    return Piece(name, "Title", "A > B", 7, "2026-01-24T12:00:00", text, score)


@given(st.lists(WORDS, max_size=12), st.integers(1, 200))
def test_a_pack_never_exceeds_its_budget_and_counts_what_it_left_out(texts: list[str], budget: int) -> None:
    packed = pack([piece(text, f"n{k}") for k, text in enumerate(texts)], budget)
    assert packed.tokens == count_tokens(packed.text) <= budget
    assert len(packed.items) + packed.left_out + packed.duplicates == sum(bool(text.strip()) for text in texts)
    assert len(packed.omitted) == packed.left_out + packed.duplicates
    for item in packed.items:
        text = texts[int(item["name"][1:])]
        before = text[: len(text) - len(text.lstrip())]
        assert item["line"] == 7 + len(before) - before.count(" ")
        assert f"[{item['name']}:{item['line']}]" in packed.text


def test_pieces_keep_their_order_and_a_smaller_one_goes_in_where_a_large_one_does_not() -> None:
    packed = pack([piece("first"), piece("large " * 500, "b"), piece("last", "c")], 60)
    assert [item["name"] for item in packed.items] == ["n", "c"]
    assert packed.left_out == 1
    assert packed.text.index("first") < packed.text.index("last")


def test_the_same_passage_goes_in_once() -> None:
    packed = pack([piece("The crane."), piece("the  CRANE.", "copy"), piece("  ", "empty")], 500)
    assert [item["name"] for item in packed.items] == ["n"]
    assert packed.left_out == 0


def test_a_piece_is_cited_with_title_heading_name_line_and_day() -> None:
    packed = pack([piece("The crane.", "a/b")], 500)
    assert packed.text == "### Title › A > B\n[a/b:7] 2026-01-24\n\nThe crane."


def test_nothing_makes_an_empty_pack() -> None:
    packed = pack([], 100)
    assert (packed.text, packed.tokens, packed.items, packed.left_out) == ("", 0, (), 0)


# -- from a vault


@pytest.fixture
def harbour(plain_store: EnhancedStore, write: Write) -> EnhancedStore:
    for k in range(12):
        lines = [f"In year {year} the harbour crane number {k} was repaired in spring." for year in range(1 + 6 * k)]
        write(f"n{k}.md", f"# Crane {k}\n\n" + "\n\n".join(lines))
    write("other.md", "Bees.")
    plain_store.sync()
    return plain_store


@pytest.mark.parametrize("budget", [50, 80, 200, 1500, 100_000])
def test_whatever_the_budget_it_is_kept(harbour: EnhancedStore, budget: int) -> None:
    packed = harbour.context("harbour crane", budget_tokens=budget)
    assert packed.tokens == count_tokens(packed.text) <= budget
    assert packed.items
    assert all(harbour.read(str(item["name"])) for item in packed.items)
    assert "Bees" not in packed.text


def test_more_budget_never_gives_less(harbour: EnhancedStore) -> None:
    sizes = [len(harbour.context("harbour crane", budget_tokens=budget).items) for budget in (60, 200, 600, 5000)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_a_pack_is_the_same_every_time_and_can_be_narrowed(harbour: EnhancedStore) -> None:
    assert harbour.context("harbour crane").text == harbour.context("harbour crane").text
    narrowed = harbour.context("harbour crane", filter=Filter.of(prefix="n3"))
    assert {item["name"] for item in narrowed.items} == {"n3"}


def test_every_note_speaks_once_before_one_speaks_again(harbour: EnhancedStore) -> None:
    names = [item["name"] for item in harbour.context("harbour crane", budget_tokens=100_000).items]
    assert len(names) > 12  # the longer notes have several passages
    assert len(set(names[:12])) == 12


def test_a_passage_stands_as_it_is_in_the_note_now(harbour: EnhancedStore, write: Write) -> None:
    """An edit that the index has not heard of yet moves no words into a citation that are not there."""
    preamble = "\n\n".join(f"Preamble {k}, which speaks of nothing that anybody asked for." for k in range(40))
    write("n5.md", f"# Minutes\n\n{preamble}\n\n# Sale\n\nThe quetzal harbour crane was sold.\n")
    packed = harbour.context("quetzal harbour crane sold", budget_tokens=400, filter=Filter.of(prefix="n5"))
    assert "The quetzal harbour crane was sold." in packed.text
    assert packed.items[0]["heading"].endswith("Sale")


def test_too_small_a_budget_is_refused(harbour: EnhancedStore) -> None:
    with pytest.raises(Invalid):
        harbour.context("crane", budget_tokens=10)


def test_a_question_that_nothing_answers_gives_an_empty_pack(plain_store: EnhancedStore) -> None:
    packed = plain_store.context("crane")
    assert (packed.text, packed.items, packed.left_out) == ("", (), 0)
