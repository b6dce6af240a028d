"""Which block a message belongs to: vague words go on, a name brings back, a cue begins, nearness decides the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from simplemem.errors import Unavailable
from simplemem.features.conversations.patterns import PATTERNS, keywords_of, label_of, read_return
from simplemem.features.conversations.router import Decision, TopicRouter
from simplemem.features.conversations.topic import Topic, Turn

START = datetime(2026, 11, 20, 9, tzinfo=UTC)


class Talk:
    """A conversation whose turns go where the governor says; what it wrote is kept here."""

    def __init__(self) -> None:
        self.governor = TopicRouter()
        self.blocks: dict[str, Topic] = {}
        self.current = ""
        self.now = START

    def decide(self, message: str) -> Decision:
        return self.governor.decide(
            message, self.now, list(self.blocks.values()), self.blocks.get(self.current)
        )

    def goes_to(self, message: str) -> str:
        block = self.decide(message).topic
        return block.id if block else ""

    def say(self, message: str, reply: str = "", minutes: int = 3) -> str:
        self.now += timedelta(minutes=minutes)
        self.current = self.goes_to(message) or f"block_{len(self.blocks)}"
        new = Topic(self.current, label_of(message), "active", self.now, (), path="")
        old = self.blocks.get(self.current, new)
        turn = Turn(f"turn_{len(self.blocks)}_{len(old.turns)}", self.now, message, reply, "")
        self.blocks[self.current] = replace(
            old, turns=(*old.turns, turn), sha256=str(len(old.turns))
        )
        return self.current


@pytest.fixture
def talk() -> Talk:
    made = Talk()
    made.say("I want to build a rain gauge with a tipping bucket for the garden.")
    return made


def test_the_first_message_of_all_begins_a_block() -> None:
    assert Talk().goes_to("Why?") == ""


@pytest.mark.parametrize(
    "vague", ["Why?", "Tell me more.", "ok, and then?", "How do I count the tips of the bucket?"]
)
def test_a_vague_or_near_message_goes_on(talk: Talk, vague: str) -> None:
    assert talk.say(vague) == "block_0"


def test_a_cue_begins_and_a_name_brings_back_weeks_later(talk: Talk) -> None:
    assert (
        talk.say("Anyway, help me plan the food for my father's seventieth birthday.") == "block_1"
    )
    assert talk.say("He likes trout, but my aunt eats no fish.") == "block_1"
    assert not talk.decide("Back to the rain gauge: which bearing would rust least?").ranked
    assert (
        talk.say("Back to the rain gauge: which bearing would rust least?", minutes=30_000)
        == "block_0"
    )
    assert talk.say("Back to that thing.") == "block_0"


def test_a_closed_block_is_reached_by_its_name_alone(talk: Talk) -> None:
    talk.say("Anyway, help me plan the food for my father's seventieth birthday.")
    talk.blocks["block_0"] = replace(talk.blocks["block_0"], status="closed", sha256="closed")
    decided = talk.decide("How often does the tipping bucket of the gauge tip in heavy rain?")
    assert talk.blocks["block_0"] not in (decided.topic, *decided.ranked)
    assert talk.goes_to("About the rain gauge again: is brass better?") == "block_0"


def test_numbers_that_decide_rank_all_blocks(talk: Talk) -> None:
    talk.say("Anyway, help me plan the food for my father's seventieth birthday.")
    decided = talk.decide("Which spices and herbs would you serve with the smoked trout fillets?")
    assert {each.id for each in decided.ranked} == {"block_0", "block_1"} and not decided.is_close
    assert decided.reason and "\n" not in decided.reason


def test_a_block_is_read_again_when_its_note_changed() -> None:
    talk = Talk()
    talk.say("I want to build a rain gauge with a tipping bucket for the garden.")
    talk.say("Anyway, help me plan the food for my father's seventieth birthday.")
    asked = "Which yeast makes the crumb of a rye loaf light and open?"
    before = talk.decide(asked)
    corrected = (
        talk.blocks["block_0"]
        .turns[0]
        ._replace(message="My rye loaf has a dense crumb. Which yeast is best?")
    )
    talk.blocks["block_0"] = replace(talk.blocks["block_0"], turns=(corrected,), sha256="corrected")
    after = talk.decide(asked)
    assert (before.ranked[0].id, after.ranked[0].id) == ("block_1", "block_0")


def test_vague_words_go_on_within_a_day_of_talk_alone(talk: Talk) -> None:
    talk.now += timedelta(hours=9)
    assert talk.decide("Tell me more.").ranked
    talk.now -= timedelta(hours=2)
    assert not talk.decide("Tell me more.").ranked


def test_a_greeting_with_news_is_not_vague(talk: Talk) -> None:
    assert talk.decide("Hey, good to see you! What's up?").ranked


def test_closed_blocks_alone_leave_nothing_to_go_on_with(talk: Talk) -> None:
    talk.blocks["block_0"] = replace(talk.blocks["block_0"], status="closed", sha256="closed")
    decided = talk.governor.decide(
        "How do I count the tips?", talk.now, list(talk.blocks.values()), None
    )
    assert decided[0] is None and not decided.ranked and not decided.is_close


@given(
    messages=st.lists(
        st.text() | st.sampled_from(["Back to the ", "By the way, ", "hey Mel! ", "?"]), max_size=6
    )
)
def test_any_text_is_routed(messages: list[str]) -> None:
    talk = Talk()
    for message in messages:
        assert talk.say(message, reply=message) in talk.blocks
        assert (
            label_of(message) and len(label_of(message)) <= 50 and len(keywords_of([message])) <= 5
        )


@pytest.mark.parametrize(
    ("message", "label"),
    [
        (
            "I want to build a rain gauge with a tipping bucket for the garden.",
            "Rain gauge with a tipping bucket for the garden",
        ),
        (
            "Anyway, help me plan the food for my father's seventieth birthday.",
            "Food for my father's seventieth birthday",
        ),
        ("Different topic: how do I wash a down jacket?", "Wash a down jacket"),
        (
            "My sourdough starter has a grey liquid on top, is it spoiled?",
            "Sourdough starter has a grey liquid on top",
        ),
        ("Hi, my name is Ruth. We keep bees behind our allotment.", "Bees behind our allotment"),
        ("日本語の話", "日本語の話"),
    ],
)
def test_a_label_is_in_words_that_were_used(message: str, label: str) -> None:
    assert label_of(message) == label


@pytest.mark.parametrize(
    "said",
    ["Back to the {}: ", "Let's go back to the {}, ", "As for the {}: ", "About the {} again: ",
     "Once more on the {}: ", "I still have a question about the {}: ", "The {}, again: ",
     "Earlier we discussed the {}. ", "Remember the {}? "],
)  # fmt: skip
def test_what_is_gone_back_to(said: str) -> None:
    assert read_return(said.format("rain gauge") + "is it dry?") == ("rain", "gauge")
    assert (
        read_return("I cannot wait to be back to dancing.")
        is read_return("About twelve people will come.")
        is None
    )
    assert read_return("Back to that: why?") == ()


def test_keywords_are_the_words_of_most_messages() -> None:
    said = [
        "Which pump for the greenhouse?",
        "How loud is the pump?",
        "The pump hums in the greenhouse at night.",
    ]
    assert keywords_of(said) == ["pump", "greenhouse", "loud", "hums", "night"]


@pytest.mark.parametrize(
    "said",
    ["Side note: ", "Okay, new subject: ", "I have a different question: ", "Incidentally, "],
)
def test_what_changes_the_subject(said: str) -> None:
    assert PATTERNS["shift"].match(f"{said}how do I prune a fig?")
    assert not PATTERNS["shift"].match("So how do I prune a fig?")


def test_words_alone_decide_when_vectors_fail(talk: Talk) -> None:
    talk.say("Anyway, help me plan the food for my father's seventieth birthday.")
    assert talk.decide("Which spices would you serve with the smoked trout?").method == "rules"

    def unreadable(texts: Sequence[str]) -> NDArray[np.float32]:
        raise Unavailable("the word vectors cannot be read")

    vectors, talk.governor = talk.governor, TopicRouter(unreadable)
    decided = talk.decide("Which spices would you serve with the smoked trout?")
    assert decided.method == "rules (words only: the word vectors cannot be read)"
    assert decided.topic is talk.blocks["block_1"]  # in doubt it goes on
    assert talk.goes_to("Back to the rain gauge: which bearing would rust least?") == "block_0"
    assert talk.goes_to("By the way, my knee hurts when I walk down the stairs.") == ""
    talk.governor = vectors
    assert talk.decide("Which spices would you serve with the smoked trout?").method == "rules"
