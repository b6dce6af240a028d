"""One voice a fact: what says the same goes in once, the newest first where notes disagree, and no word is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from simplemem.note.names import date_in
from simplemem.search.voices import MOST_SAID, Piece, Voice, voices

LONG = (
    "Filling takes an hour when the wind is low. The cylinder is earthed by two people who have done it before. "
    "Nobody else stands within ten metres of the hose until the neck is tied."
)


def piece(name: str, text: str, day: str = "2026-01-01", line: int = 1, start: int = 0) -> Piece:
    return Piece(name, name.title(), "", line, f"{day}T12:00:00", text, 1.0, start)


def said(voice: Voice) -> list[tuple[str, str, str, str]]:
    return [(each.label, each.text, each.cited, each.when) for each in voice.said]


def test_the_same_words_go_in_once_and_name_the_other_places() -> None:
    speaking, taken_up = voices([piece("a", LONG), piece("b", LONG.upper(), line=7), piece("c", "Other.")])
    assert [voice.piece.name for voice in speaking] == ["a", "c"]
    assert speaking[0].also == ["b:7"]
    assert [(one.name, of.name) for one, of in taken_up] == [("b", "a")]
    assert said(speaking[0]) == []


def test_a_passage_that_is_part_of_another_is_named_beside_it() -> None:
    part = LONG.split(". ")[1] + "."
    speaking, _ = voices([piece("a", LONG), piece("b", part)])
    assert [voice.piece.name for voice in speaking] == ["a"]
    assert speaking[0].also == ["b:1"]


def test_what_a_near_duplicate_says_otherwise_is_quoted_with_its_line() -> None:
    text = f"Before all else, and after it:\n\n{LONG.replace('two people', 'two women')} So it is done."
    speaking, _ = voices([piece("a", LONG), piece("b", text, line=10)])
    assert len(speaking) == 2  # three sentences of its own are worth a place
    text = LONG.replace("until the neck is tied", "until the neck is closed")
    speaking, _ = voices([piece("a", LONG), piece("b", f"\n\n{text}", line=10)])
    assert len(speaking) == 1
    assert speaking[0].nearly == ["b:10"]
    assert speaking[0].also == []
    other = "Nobody else stands within ten metres of the hose until the neck is closed."
    assert said(speaking[0]) == [("differs", other, "b:12", "2026-01-01")]


def test_where_notes_disagree_the_newest_speaks_and_quotes_the_older() -> None:
    old = piece("old", "The wind limit for launches is 8 m/s.", "2024-05-01", line=3)
    new = piece("new", "The wind limit for launches is 6 m/s.", "2025-09-01")
    for order in ([old, new], [new, old]):
        speaking, taken_up = voices(order)
        assert [voice.piece.name for voice in speaking] == ["new"]
        assert said(speaking[0]) == [("older", "The wind limit for launches is 8 m/s.", "old:3", "2024-05-01")]
        assert [(one.name, of.name) for one, of in taken_up] == [("old", "new")]


def test_of_near_duplicates_the_newer_speaks_though_only_a_word_is_another() -> None:
    old = piece("old", LONG, "2024-05-01")
    new = piece("new", LONG.replace("until the neck is tied", "until the neck is closed"), "2025-09-01")
    speaking, _ = voices([old, new])
    assert [voice.piece.name for voice in speaking] == ["new"]
    tied = "Nobody else stands within ten metres of the hose until the neck is tied."
    assert said(speaking[0]) == [("older", tied, "old:1", "2024-05-01")]


def test_an_older_passage_that_says_more_stays_behind_the_newer_one() -> None:
    old = piece("old", f"The wind limit for launches is 8 m/s. {LONG}", "2024-05-01")
    between = piece("other", "Bees and honey.")
    new = piece("new", "The wind limit for launches is 6 m/s.", "2025-09-01")
    speaking, _ = voices([old, between, new])
    assert [voice.piece.name for voice in speaking] == ["new", "old", "other"]
    assert [each[0] for each in said(speaking[0])] == ["older"]
    assert said(speaking[1]) == []


def test_of_one_day_neither_is_called_older_and_the_better_one_speaks() -> None:
    speaking, _ = voices(
        [piece("a", "The wind limit for launches is 8 m/s."), piece("b", "The wind limit for launches is 6 m/s.")]
    )
    assert [voice.piece.name for voice in speaking] == ["a"]
    assert [each[:3] for each in said(speaking[0])] == [("differs", "The wind limit for launches is 6 m/s.", "b:1")]


def test_the_date_in_a_name_counts_before_the_date_of_the_file() -> None:
    old = piece("log/2024-05-01", "The wind limit for launches is 8 m/s.", "2026-03-03")
    new = piece("rules", "The wind limit for launches is 6 m/s.", "2025-09-01")
    speaking, _ = voices([old, new])
    assert speaking[0].piece.name == "rules"
    assert [date_in(name) for name in ("a/20240501-x", "2023-01-01 to 2024-05-01", "1234-99-99", "12024-05-011")] == [
        "2024-05-01", "2024-05-01", "", "",
    ]  # fmt: skip


def test_two_sentences_of_one_note_are_no_disagreement() -> None:
    speaking, _ = voices(
        [
            piece("a", "The first mast carries 3 sails.", start=0),
            piece("a", "The first mast carries 4 sails.", start=40),
        ]
    )
    assert [said(voice) for voice in speaking] == [[], []]


def test_no_more_is_quoted_than_a_reader_wants_and_the_rest_speaks_for_itself() -> None:
    pieces = [
        piece(f"n{chr(97 + k)}", f"The tide gauge at the pier reads {k} metres.", f"2026-01-{k + 10}") for k in range(9)
    ]
    speaking, taken_up = voices(pieces)
    assert speaking[0].piece.name == "ni"
    assert [each[3] for each in said(speaking[0])] == ["2026-01-17", "2026-01-16", "2026-01-15", "2026-01-14"]
    assert speaking[0].more == 9 - 1 - MOST_SAID
    assert len(speaking) == 9 - MOST_SAID and len(taken_up) == MOST_SAID


SENTENCES = st.sampled_from([
    "The wind limit is 6 metres a second.", "The wind limit is 8 metres a second.", "The tracker is waterproof today.",
    "The tracker is not waterproof today.", "Bees make honey from nectar.", "# Heading", "- an item of a list",
])  # fmt: skip
PIECES = st.lists(
    st.tuples(
        st.sampled_from("abcd"), st.lists(SENTENCES, min_size=1, max_size=4), st.sampled_from(["2025-01-01", "2026-01-01"])
    ),
    max_size=7,
)  # fmt: skip


@given(PIECES)
def test_every_sentence_of_every_passage_is_said_somewhere(given_pieces: list[tuple[str, list[str], str]]) -> None:
    pieces = [piece(name, "\n\n".join(lines), day) for name, lines, day in given_pieces]
    speaking, taken_up = voices(pieces)
    assert len(speaking) + len(taken_up) == len(pieces)
    heard = "\n".join(voice.piece.text + "".join(f"\n{each.text}" for each in voice.said) for voice in speaking)
    for each in pieces:
        for line in each.text.split("\n\n"):
            assert line.startswith("#") or line.removeprefix("- ") in heard
