"""What no note answers is said to be not found, and a score says how good a hit is in itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from simplemem.config import Settings
from simplemem.search.rank import MODES, Mode, Ranked, above_floor
from simplemem.store import EnhancedStore

_NOTES = {
    "boiler": "The boiler in the cellar was serviced by Ines in March.",
    "garden": "The old pear tree in the garden was pruned by Ines.",
    "roof": "Ines found a broken tile on the roof after the storm.",
    "bicycle": "The chain of the bicycle was oiled and the brakes were set.",
    "bees": "Ines brought honey of the bees from the village.",
    "piano": "The piano was tuned by the man from the village.",
    "stove": "The stove in the kitchen smokes when the wind is in the west.",
    "car": "The car passed its inspection and has new tyres.",
}
_ANSWERED = "When did Ines have the boiler in the cellar serviced?"
_NEVER = "Which passport did Ines renew for the Patagonia expedition?"
_LONG = (
    "Plumber and electrician visit the bathroom today. When did Ines have the boiler in the cellar serviced in March?"
)


@pytest.fixture
def house(vault: Path, write: Callable[[str, str], Path]) -> Path:
    for name, text in _NOTES.items():
        write(f"{name}.md", f"{text}\n")
    return vault


@pytest.mark.parametrize("mode", MODES)
def test_what_nobody_answers_is_not_found_and_the_nearest_are_offered_as_such(house: Path, mode: Mode) -> None:
    with EnhancedStore(house, Settings()) as store:
        store.sync()
        assert not store.search(_ANSWERED, mode=mode).only_nearest
        found = store.search(_NEVER, mode=mode)
        assert found.only_nearest and found.hits and "ines" not in [word.lower() for word in found.absent]


@pytest.mark.parametrize("mode", MODES)
def test_the_words_around_a_long_question_do_not_hide_its_answer(house: Path, mode: Mode) -> None:
    with EnhancedStore(house, Settings()) as store:
        store.sync()
        found = store.search(_LONG, mode=mode)
        assert found.hits[0].name == "boiler" and not found.only_nearest


def test_words_that_the_best_note_lacks_and_equals_beside_it_count_against_it() -> None:
    alone, equal = [[Ranked(k, "", score) for k, score in enumerate(scores)] for scores in ((0.9, 0.6), (0.9,) * 6)]
    held = above_floor(0.5, 0, 0.5, alone, "hybrid")
    assert held > above_floor(0.5, 0, 0.5, equal, "hybrid")
    assert held > above_floor(0.5, 1, 0.5, alone, "hybrid") > above_floor(0.5, 2, 0.5, alone, "hybrid")
    assert held > above_floor(0.5, 0, 0.1, alone, "hybrid")
    for mode in MODES:  # the only note of a vault is ahead of all, and need not answer
        assert above_floor(0.1, 2, 0.1, alone[:1], mode) < 0


def test_packs_and_an_index_of_words_alone_say_so_too(house: Path, plain_store: EnhancedStore) -> None:
    plain_store.sync()
    assert plain_store.search(_NEVER).only_nearest and plain_store.context(_NEVER).only_nearest
    assert not plain_store.search(_ANSWERED).only_nearest and not plain_store.context(_ANSWERED).only_nearest


@pytest.mark.parametrize("mode", ["hybrid", "text"])
def test_a_score_says_how_much_of_the_question_a_memory_holds_whatever_the_others_hold(house: Path, mode: Mode) -> None:
    with EnhancedStore(house, Settings()) as store:
        store.sync()
        best, *_, last = (hit.score for hit in store.search(_ANSWERED, mode=mode).hits)
        assert best > 0.9 and last < 0.5
        weak = store.search("Ines Patagonia expedition passport", mode=mode).hits[0]
        assert weak.score < 0.4  # the best of its question, and no good


def test_what_a_memory_is_called_and_tagged_counts(
    plain_store: EnhancedStore, write: Callable[[str, str], Path]
) -> None:
    write("Zanzibar.md", "---\ntags: [ferry]\n---\nBooked for May.\n")
    plain_store.sync()
    found = plain_store.search("Is the Zanzibar ferry booked?")
    assert found.hits[0].score == 1.0 and not found.only_nearest
