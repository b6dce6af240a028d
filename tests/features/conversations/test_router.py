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
from simplemem.features.conversations.message_labels import keywords_of, label_of
from simplemem.features.conversations.patterns import (
    PATTERNS,
    content_words,
    has_marker,
    read_return,
)
from simplemem.features.conversations.router import Decision, TopicRouter
from simplemem.features.conversations.topic import Topic
from simplemem.features.conversations.turns import Turn

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


def test_a_name_returns_to_a_topic_whose_title_alone_has_the_word(
    conversation: Conversation,
) -> None:
    conversation.say("Anyway, help me plan the food for my father's seventieth birthday.")
    renamed = replace(conversation.topics["block_0"], label="Kayak", sha256="renamed")
    conversation.topics["block_0"] = renamed
    assert conversation.goes_to("Back to the kayak: what is left to do?") == "block_0"


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
    } and not decision.is_certain
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
    assert decision[0] is None and not decision.ranked and not decision.is_certain


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


def test_a_message_without_a_question_before_it_may_leave_after_some_hours(
    conversation: Conversation,
) -> None:
    news = "My landlord wants to sell the flat, and the kitchen window does not close."
    conversation.say("The bucket tips too early, at two millimetres.", "Move the screw outwards.")
    assert conversation.say(news, minutes=240) == "block_1"


def test_a_reply_to_the_question_of_the_assistant_stays_in_the_topic(
    conversation: Conversation,
) -> None:
    conversation.say("It tips too early.", "How far from the wall does the gauge stand?")
    assert conversation.say("about forty steps, behind the old pear tree, my sister says") == (
        "block_0"
    )


def test_a_message_that_answers_first_belongs_where_its_end_belongs(
    conversation: Conversation,
) -> None:
    conversation.say("Anyway, help me plan the food for my father's seventieth birthday.")
    conversation.say("He likes trout, but my aunt eats no fish.", "Then a roast beside the trout.")
    assert (
        conversation.say("Fine, we do that. The bucket of the rain gauge is tipping too early.")
        == "block_0"
    )


def test_the_answer_helps_to_find_the_topic_of_a_message(conversation: Conversation) -> None:
    conversation.say("Anyway, help me plan the food for my father's seventieth birthday.")
    conversation.say("He likes trout, but my aunt eats no fish.", "Then a roast beside the trout.")
    conversation.now += timedelta(hours=3)
    topics, current = list(conversation.topics.values()), conversation.topics["block_1"]

    def nearest(answer: str) -> Topic:
        message = "it happened again during the night, twice, I am so annoyed"
        decision = conversation.router.decide(
            message, conversation.now, topics, current, answer=answer
        )
        return decision.ranked[0]

    about_rain = "If the tipping bucket of the gauge tips without rain, wind shakes the rain gauge."
    about_food = "If the trout for the birthday spoils, order the food for your aunt and father."
    assert nearest(about_rain) is conversation.topics["block_0"]
    assert nearest(about_food) is conversation.topics["block_1"]


def test_a_topic_that_an_agent_named_continues_until_it_names_another(
    conversation: Conversation,
) -> None:
    named = replace(conversation.topics["block_0"], named_by="agent", sha256="named")
    conversation.topics["block_0"] = named
    news = "My landlord wants to sell the flat, and the kitchen window does not close."
    assert conversation.goes_to(news) == "block_0"
    assert conversation.goes_to(f"By the way, {news}") == ""
    conversation.now += timedelta(days=1)
    assert conversation.goes_to(news) == "block_0"


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("Volvamos a la gata: come poco", "gata"),
        ("Respecto al alquiler, cuánto falta?", "alquiler"),
        ("Zurück zum Regenmesser: ist Messing besser?", "regenmesser"),
        ("Revenons au pluviomètre : il fuit.", "pluviomètre"),
    ],
)
def test_what_a_message_in_another_language_returns_to(message: str, words: str) -> None:
    assert words in (read_return(message) or ())


@pytest.mark.parametrize(
    "message",
    ["Por cierto, se me ha roto el coche", "Übrigens, mein Auto ist kaputt",
     "Au fait, ma voiture est en panne"],
)  # fmt: skip
def test_what_changes_the_topic_in_another_language(message: str) -> None:
    assert has_marker("shift", message)


def test_words_that_say_nothing_in_spanish_are_no_content() -> None:
    assert content_words("me han llamado y estoy llorando en la cocina") == (
        "llamado",
        "llorando",
        "cocina",
    )


@pytest.mark.parametrize(
    "announcement",
    ["Quick aside: ", "By the way, unrelated: ", "quick question, ", "Just a random thing: ",
     "Antes de que se me olvide, ", "Una pregunta rápida: ", "Kurze Zwischenfrage: ",
     "Nur kurz: ", "Petite parenthèse : "],
)  # fmt: skip
def test_an_announced_digression_stays_in_the_topic_but_not_for_certain(
    conversation: Conversation, announcement: str
) -> None:
    decision = conversation.decide(f"{announcement}how do I get red wine out of a white shirt?")
    assert decision.topic is conversation.topics["block_0"] and not decision.is_certain
    about = conversation.decide("Quick question about the rain gauge: is brass better?")
    assert about.reason.startswith("returns to")


def test_the_rules_are_certain_of_a_name_a_reply_and_a_short_word(
    conversation: Conversation,
) -> None:
    conversation.say("It tips too early.", "How far from the wall does the gauge stand?")
    reply = "about forty steps, behind the old pear tree, my sister says"
    for message in ("Back to the rain gauge: is brass better?", "Why?", reply):
        assert conversation.decide(message).is_certain
    conversation.now += timedelta(minutes=40)
    assert conversation.decide("Back to the rain gauge: is brass better?").is_certain
    assert not conversation.decide("Why?").is_certain
    assert not conversation.decide(reply).is_certain


def test_the_rules_are_never_certain_of_a_change_without_a_name(
    conversation: Conversation,
) -> None:
    news = "By the way, my landlord wants to sell the flat, and the kitchen window does not close."
    decision = conversation.decide(news)
    assert decision.topic is None and not decision.is_certain
