"""Which topic a message belongs to: by its vagueness, a name, a marker, and else by similarity."""

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


class Conversation:
    """A conversation whose turns go to the topics that the router decides for. It holds them."""

    def __init__(self) -> None:
        self.router = TopicRouter()
        self.topics: dict[str, Topic] = {}
        self.current = ""
        self.now = START

    def decide(self, message: str) -> Decision:
        return self.router.decide(
            message, self.now, list(self.topics.values()), self.topics.get(self.current)
        )

    def goes_to(self, message: str) -> str:
        topic = self.decide(message).topic
        return topic.id if topic else ""

    def say(self, message: str, reply: str = "", minutes: int = 3) -> str:
        self.now += timedelta(minutes=minutes)
        self.current = self.goes_to(message) or f"block_{len(self.topics)}"
        new = Topic(self.current, label_of(message), "active", self.now, (), path="")
        old = self.topics.get(self.current, new)
        turn = Turn(f"turn_{len(self.topics)}_{len(old.turns)}", self.now, message, reply, "")
        self.topics[self.current] = replace(
            old, turns=(*old.turns, turn), sha256=str(len(old.turns))
        )
        return self.current


@pytest.fixture
def conversation() -> Conversation:
    conversation = Conversation()
    conversation.say("I want to build a rain gauge with a tipping bucket for the garden.")
    return conversation


def test_the_first_message_of_all_starts_a_topic() -> None:
    assert Conversation().goes_to("Why?") == ""


@pytest.mark.parametrize(
    "vague", ["Why?", "Tell me more.", "ok, and then?", "How do I count the tips of the bucket?"]
)
def test_a_vague_or_similar_message_continues_the_topic(
    conversation: Conversation, vague: str
) -> None:
    assert conversation.say(vague) == "block_0"


def test_a_marker_starts_a_topic_and_a_name_returns_to_one_weeks_later(
    conversation: Conversation,
) -> None:
    assert (
        conversation.say("Anyway, help me plan the food for my father's seventieth birthday.")
        == "block_1"
    )
    assert conversation.say("He likes trout, but my aunt eats no fish.") == "block_1"
    assert not conversation.decide("Back to the rain gauge: which bearing would rust least?").ranked
    assert (
        conversation.say("Back to the rain gauge: which bearing would rust least?", minutes=30_000)
        == "block_0"
    )
    assert conversation.say("Back to that thing.") == "block_0"


def test_a_closed_topic_is_reached_by_its_name_alone(conversation: Conversation) -> None:
    conversation.say("Anyway, help me plan the food for my father's seventieth birthday.")
    conversation.topics["block_0"] = replace(
        conversation.topics["block_0"], status="closed", sha256="closed"
    )
    decision = conversation.decide(
        "How often does the tipping bucket of the gauge tip in heavy rain?"
    )
    assert conversation.topics["block_0"] not in (decision.topic, *decision.ranked)
    assert conversation.goes_to("About the rain gauge again: is brass better?") == "block_0"


def test_scores_that_decide_rank_all_topics(conversation: Conversation) -> None:
    conversation.say("Anyway, help me plan the food for my father's seventieth birthday.")
    decision = conversation.decide(
        "Which spices and herbs would you serve with the smoked trout fillets?"
    )
    assert {topic.id for topic in decision.ranked} == {
        "block_0",
        "block_1",
    } and not decision.is_close
    assert decision.reason and "\n" not in decision.reason


def test_a_topic_is_represented_again_when_its_note_changed() -> None:
    conversation = Conversation()
    conversation.say("I want to build a rain gauge with a tipping bucket for the garden.")
    conversation.say("Anyway, help me plan the food for my father's seventieth birthday.")
    question = "Which yeast makes the crumb of a rye loaf light and open?"
    first = conversation.decide(question)
    corrected = (
        conversation.topics["block_0"]
        .turns[0]
        ._replace(message="My rye loaf has a dense crumb. Which yeast is best?")
    )
    conversation.topics["block_0"] = replace(
        conversation.topics["block_0"], turns=(corrected,), sha256="corrected"
    )
    second = conversation.decide(question)
    assert (first.ranked[0].id, second.ranked[0].id) == ("block_1", "block_0")


def test_vague_words_continue_a_topic_only_for_some_hours(conversation: Conversation) -> None:
    conversation.now += timedelta(hours=9)
    assert conversation.decide("Tell me more.").ranked
    conversation.now -= timedelta(hours=2)
    assert not conversation.decide("Tell me more.").ranked


def test_a_greeting_with_news_is_not_vague(conversation: Conversation) -> None:
    assert conversation.decide("Hey, good to see you! What's up?").ranked


def test_closed_topics_alone_leave_nothing_to_continue(conversation: Conversation) -> None:
    conversation.topics["block_0"] = replace(
        conversation.topics["block_0"], status="closed", sha256="closed"
    )
    decision = conversation.router.decide(
        "How do I count the tips?", conversation.now, list(conversation.topics.values()), None
    )
    assert decision[0] is None and not decision.ranked and not decision.is_close


@given(
    messages=st.lists(
        st.text() | st.sampled_from(["Back to the ", "By the way, ", "hey Mel! ", "?"]), max_size=6
    )
)
def test_any_text_is_routed(messages: list[str]) -> None:
    conversation = Conversation()
    for message in messages:
        assert conversation.say(message, reply=message) in conversation.topics
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
def test_a_label_is_in_words_of_the_message(message: str, label: str) -> None:
    assert label_of(message) == label


@pytest.mark.parametrize(
    "prefix",
    ["Back to the {}: ", "Let's go back to the {}, ", "As for the {}: ", "About the {} again: ",
     "Once more on the {}: ", "I still have a question about the {}: ", "The {}, again: ",
     "Earlier we discussed the {}. ", "Remember the {}? "],
)  # fmt: skip
def test_what_a_message_returns_to(prefix: str) -> None:
    assert read_return(prefix.format("rain gauge") + "is it dry?") == ("rain", "gauge")
    assert (
        read_return("I cannot wait to be back to dancing.")
        is read_return("About twelve people will come.")
        is None
    )
    assert read_return("Back to that: why?") == ()


def test_keywords_are_the_words_of_most_messages() -> None:
    messages = [
        "Which pump for the greenhouse?",
        "How loud is the pump?",
        "The pump hums in the greenhouse at night.",
    ]
    assert keywords_of(messages) == ["pump", "greenhouse", "loud", "hums", "night"]


@pytest.mark.parametrize(
    "prefix",
    ["Side note: ", "Okay, new subject: ", "I have a different question: ", "Incidentally, "],
)
def test_what_changes_the_topic(prefix: str) -> None:
    assert PATTERNS["shift"].match(f"{prefix}how do I prune a fig?")
    assert not PATTERNS["shift"].match("So how do I prune a fig?")


def test_words_alone_decide_when_vectors_fail(conversation: Conversation) -> None:
    conversation.say("Anyway, help me plan the food for my father's seventieth birthday.")
    assert (
        conversation.decide("Which spices would you serve with the smoked trout?").method == "rules"
    )

    def unreadable(texts: Sequence[str]) -> NDArray[np.float32]:
        raise Unavailable("the word vectors cannot be read")

    router, conversation.router = conversation.router, TopicRouter(unreadable)
    decision = conversation.decide("Which spices would you serve with the smoked trout?")
    assert decision.method == "rules (words only: the word vectors cannot be read)"
    assert decision.topic is conversation.topics["block_1"]  # in doubt it continues
    assert (
        conversation.goes_to("Back to the rain gauge: which bearing would rust least?") == "block_0"
    )
    assert conversation.goes_to("By the way, my knee hurts when I walk down the stairs.") == ""
    conversation.router = router
    assert (
        conversation.decide("Which spices would you serve with the smoked trout?").method == "rules"
    )
