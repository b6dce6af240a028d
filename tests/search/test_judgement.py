"""Whether the best hit answers, judged from what it has of a question; and the scores that are shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simplemem.models import LOOSELY_RELATED, NO_WORD_FOUND, NOTHING_FOUND
from simplemem.search import judgement
from simplemem.search.judgement import Evidence

_ANSWER = Evidence(
    coverage=0.8,
    missing_names=0.0,
    word_count=3,
    text_length=500,
    similarity=0.6,
    lead=0.2,
)
_ALL_WEIGHTS = (
    judgement.ENGLISH_WEIGHTS,
    judgement.FOREIGN_WEIGHTS,
    judgement.WORD_WEIGHTS,
)


@pytest.mark.parametrize("weights", _ALL_WEIGHTS)
def test_a_note_that_covers_a_question_answers_it_and_one_that_covers_nothing_does_not(
    weights: tuple[judgement.Weights, ...],
) -> None:
    nothing = Evidence(coverage=0.0, missing_names=1.0, word_count=3, text_length=500, lead=0.05)
    assert judgement.confidence(_ANSWER, weights) > 0 > judgement.confidence(nothing, weights)


def test_what_speaks_for_a_hit_makes_it_surer_and_no_note_holds_the_whole_of_a_long_question() -> (
    None
):
    def confidence(**other: float) -> float:
        evidence = replace(_ANSWER, **other)
        return judgement.confidence(evidence, judgement.ENGLISH_WEIGHTS[1:])

    weaker: dict[str, float]
    for weaker in (
        {"similarity": 0.1},
        {"coverage": 0.1},
        {"lead": 0.0},
        {"missing_names": 1.0},
        {"text_length": 50_000},
    ):
        assert confidence(**weaker) < confidence()
    assert confidence(word_count=9) > confidence()


def test_a_note_on_somebody_does_not_answer_what_it_says_nothing_of() -> None:
    assert judgement.is_about_names_only(0.05)
    assert not judgement.is_about_names_only(0.4)


def test_a_hit_without_a_word_of_the_question_must_stand_out() -> None:
    assert judgement.is_clear_by_meaning(3.0)
    assert not judgement.is_clear_by_meaning(1.0)


@pytest.mark.parametrize("background", [0.0, 0.4, 0.7])
def test_the_scale_of_an_embedder_does_not_matter(background: float) -> None:
    def scaled(cosine: float) -> float:
        return background + (1 - background) * cosine

    others = [scaled(cosine) for cosine in (0.02, 0.1, 0.05, -0.03, 0.08)]
    z_score = judgement.z_score(scaled(0.4), others)
    assert z_score == pytest.approx(judgement.z_score(0.4, [0.02, 0.1, 0.05, -0.03, 0.08]))
    assert judgement.is_clear_by_meaning(z_score)
    assert not judgement.is_clear_by_meaning(judgement.z_score(scaled(0.11), others))


def test_the_only_note_of_a_vault_does_not_stand_out_because_it_is_alone() -> None:
    assert not judgement.is_clear_by_meaning(judgement.z_score(0.15, []))
    assert judgement.is_clear_by_meaning(judgement.z_score(0.6, []))


def test_without_our_vectors_a_word_that_is_held_by_chance_is_no_answer() -> None:
    """As "get" in "Which vaccines did the dog get?", which a third of the question is."""
    by_chance = Evidence(coverage=0.3, missing_names=0.0, word_count=3, text_length=500, lead=0.1)
    found = replace(by_chance, coverage=0.8)
    weights = judgement.WORD_WEIGHTS
    assert judgement.confidence(by_chance, weights) < 0 < judgement.confidence(found, weights)


def test_words_that_tell_little_anywhere_count_little_though_they_are_rare_in_the_vault() -> None:
    weights = judgement.informative_weights(
        {"get": 1.0, "vaccines": 1.0, "s": 1.0}, [5.8, 20.5, 8.2]
    )
    assert weights["vaccines"] > 5 * weights["get"] > 5 * weights["s"]
    assert judgement.coverage_of(weights, [1.0, 0.1, 1.0]) < 0.2


def test_a_notice_says_what_is_true_of_the_words() -> None:
    assert judgement.ANSWERED.notice == "" and not judgement.ANSWERED.only_nearest
    assert judgement.unanswered({"snacks": 1.0}, ["snacks"], ["snacks"]).notice == NO_WORD_FOUND

    related = judgement.unanswered({"anna": 1.0, "birthday": 1.0}, ["birthday"], ["birthday"])
    assert related.only_nearest and related.missing == ("birthday",)
    assert related.notice == f"{LOOSELY_RELATED}; no hit contains: birthday."

    words = {"get": 0.2, "vaccines": 2.0, "dog": 1.0}
    unrelated = judgement.unanswered(words, ["dog"], ["vaccines", "dog"])
    assert unrelated.notice == NOTHING_FOUND


def test_no_shown_score_is_above_the_one_before_it() -> None:
    assert judgement.falling_scores([1.0, 1.0, 0.13, 1.0]) == [1.0, 1.0, 0.13, 0.13]
    assert judgement.falling_scores([]) == []
