"""What no note answers is said to be not found, what one answers in other words is not, and scores say how good hits are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest
from embedding_service import EmbeddingService, Vector

from simplemem.models import LOOSELY_RELATED, NO_WORD_FOUND, NOTHING_FOUND
from simplemem.search.rank import MODES, Mode
from simplemem.settings.model import Settings
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
_LONG = "Plumber and electrician visit the bathroom today. When did Ines have the boiler in the cellar serviced in March?"


@pytest.fixture
def house(vault: Path, write: Callable[[str, str], Path]) -> Path:
    for name, text in _NOTES.items():
        write(f"{name}.md", f"{text}\n")
    return vault


@pytest.mark.parametrize("mode", MODES)
def test_what_nobody_answers_is_not_found_and_the_nearest_are_offered_as_such(
    house: Path, mode: Mode
) -> None:
    with EnhancedStore(house, Settings()) as store:
        store.sync()
        assert not store.search(_ANSWERED, mode=mode).only_nearest
        found = store.search(_NEVER, mode=mode)
        assert (
            found.only_nearest
            and found.hits
            and "ines" not in [word.lower() for word in found.absent]
        )


@pytest.mark.parametrize("mode", MODES)
def test_the_words_around_a_long_question_do_not_hide_its_answer(house: Path, mode: Mode) -> None:
    with EnhancedStore(house, Settings()) as store:
        store.sync()
        found = store.search(_LONG, mode=mode)
        assert found.hits[0].name == "boiler" and not found.only_nearest


def test_packs_and_an_index_of_words_alone_say_so_too(
    house: Path, plain_store: EnhancedStore
) -> None:
    plain_store.sync()
    assert plain_store.search(_NEVER).only_nearest and plain_store.context(_NEVER).only_nearest
    assert (
        not plain_store.search(_ANSWERED).only_nearest
        and not plain_store.context(_ANSWERED).only_nearest
    )


@pytest.mark.parametrize("mode", ["hybrid", "text"])
def test_a_score_says_how_much_of_the_question_a_memory_holds_whatever_the_others_hold(
    house: Path, mode: Mode
) -> None:
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


# -- in other words, in a vault of one's first weeks

_FIRST_WEEKS = {
    "Anna": "Anna is my sister. She works as a nurse in Leeds and likes orchids.",
    "Car": "The car had its brakes replaced in March at Miller's garage.",
    "Running": "Half marathon plan: three runs a week, the long one on Sunday, new shoes after 700 kilometres.",
    "Heating": "The boiler loses pressure in winter. Open the valve under the sink until the needle shows 1.5 bar.",
    "Cat": "Pepper hides under the bed whenever there is thunder.",
    "Wedding": "Ines and Tom get married on the second of June in the orchard.",
    "Guitar": "Guitar lesson every Thursday at six with Marek.",
    "Olga": "Olga's father was a fisherman in Galicia; she grew up beside the harbour.",
}
_IN_OTHER_WORDS = {
    "Who repaired the vehicle?": "Car",
    "How often should I jog to prepare for the race?": "Running",
    "Which instrument am I learning?": "Guitar",
    "What was the occupation of Olga's dad?": "Olga",
}
_UNKNOWN = [
    "my blood pressure readings",
    "when is Anna's birthday",
    "When is Anna's birthday?",
    "\u00bfQui\u00e9n gan\u00f3 la liga?",
    "Who won the league?",
    "Which vaccines did the dog get?",
    "What is the capital of Mongolia?",
]


@pytest.fixture
def first_weeks(vault: Path, write: Callable[[str, str], Path]) -> Path:
    for name, text in _FIRST_WEEKS.items():
        write(f"{name}.md", f"{text}\n")
    return vault


def test_a_clear_winner_in_other_words_is_never_below_a_notice(first_weeks: Path) -> None:
    with EnhancedStore(first_weeks, Settings()) as store:
        store.sync()
        for question, name in _IN_OTHER_WORDS.items():
            found = store.search(question)
            assert (found.hits[0].name, found.only_nearest, found.notice) == (name, False, ""), (
                question
            )
            assert store.context(question).notice == ""


@pytest.mark.parametrize("question", _UNKNOWN)
def test_what_is_unknown_is_still_reported_as_unknown(first_weeks: Path, question: str) -> None:
    with EnhancedStore(first_weeks, Settings()) as store:
        store.sync()
        found = store.search(question)
        assert found.only_nearest
        if any(word in question.lower() for word in ("anna", "pressure")):
            missing = ", ".join(found.missing)
            assert found.notice == f"{LOOSELY_RELATED}; no hit contains: {missing}."
            assert store.context(question).notice == found.notice
        else:
            is_word_held = "get" in question.lower()
            assert found.notice == (NOTHING_FOUND if is_word_held else NO_WORD_FOUND)


def test_what_contains_all_words_of_a_question_is_never_below_a_notice(first_weeks: Path) -> None:
    with EnhancedStore(first_weeks, Settings()) as store:
        store.sync()
        for question in ("harbour father Galicia", "sister orchids", "Which valve has a needle?"):
            assert not store.search(question).only_nearest, question


def test_a_word_that_resembles_nothing_has_no_hits(first_weeks: Path) -> None:
    with EnhancedStore(first_weeks, Settings()) as store:
        store.sync()
        assert store.search("linguistics").hits == ()


def test_one_page_that_has_nothing_to_do_with_a_question_is_no_answer(
    store: EnhancedStore, write: Callable[[str, str], Path]
) -> None:
    write("lighthouse.md", "# Keepers\n\nThe keeper of the lighthouse is called Osmund.\n")
    store.sync()
    assert not store.search("queso").hits
    assert not store.search("\u00bfQui\u00e9n gan\u00f3 la liga?").hits
    found = store.extension.answers(
        "\u00bfQui\u00e9n gan\u00f3 la liga?", ["lighthouse.md"], 5, passages=5
    )
    assert (found.notes, found.passages, found.quality) == ({}, [], 0.0)
    assert not store.extension.answers(
        "Who is the keeper of the lighthouse?", ["lighthouse.md"], 5
    ).only_nearest


def test_a_right_note_that_shares_only_a_name_is_listed_without_a_notice(first_weeks: Path) -> None:
    with EnhancedStore(first_weeks, Settings()) as store:
        store.sync()
        found = store.search("On which date does Ines become a bride?")
        assert (found.hits[0].name, found.notice) == ("Wedding", "")


def test_by_meaning_alone_a_note_that_shares_a_common_word_is_no_answer(first_weeks: Path) -> None:
    with EnhancedStore(first_weeks, Settings()) as store:
        store.sync()
        assert store.search("How do I get a visa?", mode="semantic").only_nearest
        assert not store.search("Why does Pepper hide under the bed?", mode="semantic").only_nearest


@pytest.mark.parametrize("mode", ["hybrid", "semantic"])
def test_with_another_embedder_the_words_of_a_question_suffice(
    first_weeks: Path, mode: Mode
) -> None:
    with EmbeddingService() as service:
        embed = {
            "provider": "openai",
            "url": f"{service.url}/v1",
            "model": "words",
            "api_key": "none",
        }
        with EnhancedStore(first_weeks, Settings.model_validate({"embed": embed})) as store:
            store.sync()
            found = store.search("Under which bed does Pepper hide?", mode=mode)
            assert (found.hits[0].name, found.notice) == ("Cat", "")


class SynonymService(EmbeddingService):
    """A model that knows synonyms, and whose texts are all alike to a degree, as those of many models are."""

    alike = 0.0
    synonyms: ClassVar = {"vehicle?": "car", "repaired": "brakes"}

    def vector(self, text: str, dimension: int) -> Vector:
        words = [self.synonyms.get(word, word) for word in text.lower().split()]
        told = super().vector(
            " ".join(word for word in words if word in self.synonyms.values()) or text, dimension
        )
        own = [value * (1 - self.alike) ** 0.5 for value in told[:-1]]
        return [*own, self.alike**0.5]


@pytest.mark.parametrize("alike", [0.0, 0.6])
def test_another_embedder_is_judged_on_its_own_scale(first_weeks: Path, alike: float) -> None:
    with SynonymService() as service:
        service.alike = alike
        embed = {
            "provider": "openai",
            "url": f"{service.url}/v1",
            "model": "synonyms",
            "api_key": "none",
        }
        with EnhancedStore(first_weeks, Settings.model_validate({"embed": embed})) as store:
            store.sync()
            found = store.search("Who repaired the vehicle?")
            assert (found.hits[0].name, found.notice) == ("Car", "")
            assert store.search("What is the capital of Mongolia?").notice == NO_WORD_FOUND


# -- shown scores


@pytest.mark.parametrize("mode", ["hybrid", "semantic"])
def test_scores_never_rise_from_hit_to_hit(first_weeks: Path, mode: Mode) -> None:
    with EnhancedStore(first_weeks, Settings()) as store:
        store.sync()
        rose = False
        for question in (*_IN_OTHER_WORDS, *_UNKNOWN):
            found = store.search(question, mode=mode, limit=8).hits
            scores = [hit.score for hit in found]
            assert scores == sorted(scores, reverse=True), question
            assert [hit.score for hit in store.search(question, mode=mode, limit=3).hits] == scores[
                :3
            ]

            own = store.search(question, mode=mode, limit=8, own_scores=True).hits
            assert [hit.name for hit in own] == [hit.name for hit in found]
            rose |= [hit.score for hit in own] != scores
        assert rose  # else this vault shows nothing
        packed = [
            item["score"]
            for item in store.context("Who repaired the vehicle?", budget_tokens=4000).items
        ]
        assert packed == sorted(packed, reverse=True)
