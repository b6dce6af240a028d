"""A language model that answers perfectly: from the annotations of the natural material.

It stands for the best model there could be, so that the figures show what the program makes of
right answers. It is asked over HTTP, as any model (`bench/chat_server.py`). The schema of the
answer tells it the task. Each task has one function, in `_TASKS`.

The material is played one chat or person after the other, and the model is told which one, and
where each message was stored: it stands for a model that understood the turns it is shown.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from bench.chat_server import Completion, Refusal
from bench.natural_chats import RoutedExchange
from bench.natural_figures import content_stems, overlap
from bench.natural_material import (
    Chat,
    ConstraintItem,
    GoldFact,
    Material,
    Person,
    Statement,
)
from simplemem.note.sentences import sentence_spans

Json = dict[str, Any]
_MAX_LABEL_WORDS: Final = 4
_PUNCTUATION: Final = ".,;:!?\"'()«»¿¡"


class PerfectModel:
    """The model. Guards which chat or person is being played, and what it has written so far.

    Its methods `open_chat`, `stored` and `open_person` are those of the observers of the
    measurements; `answer` is for `ChatServer`.
    """

    def __init__(self, material: Material) -> None:
        """Make a model that knows the annotations of a half."""
        self._items = {item.text: item for item in material.constraints}
        self._items_by_id = {item.id: item for item in material.constraints}
        self._questions = {question.text: question for question in material.questions}
        self._chat: Chat | None = None
        self._routed: list[RoutedExchange] = []
        self._person: Person | None = None
        # What each text that the model wrote states, and each sentence of the person.
        self._facts_by_text: dict[str, list[GoldFact]] = {}

    # What is being played

    def open_chat(self, chat: Chat) -> None:
        """Take note that a chat is being played from its beginning."""
        self._chat = chat
        self._routed = []

    def stored(self, routed: RoutedExchange) -> None:
        """Take note of where the next exchange of the chat was stored."""
        self._routed.append(routed)

    def open_person(self, person: Person) -> None:
        """Take note that the statements of a person are being played."""
        self._person = person
        self._facts_by_text = {}
        for statement in person.statements:
            for fact in statement.facts:
                sentence = quote_of(fact, statement)
                self._facts_by_text.setdefault(sentence, []).append(fact)
                self._facts_by_text.setdefault(statement.text, []).append(fact)

    # Answering

    def answer(self, completion: Completion) -> object:
        """Return the answer to a request. Raise Refusal for a task that it does not know."""
        keys = _keys_of(completion.schema)
        for task_keys, task in _TASKS.items():
            if task_keys <= keys:
                right_answer = task(self, json.loads(completion.content))
                return _fit(right_answer, completion.schema)
        raise Refusal(501, f"no task has the keys {sorted(keys)}")

    def read_turn(self, content: Json) -> Json:
        """Answer what a message of a conversation states, and to which topic it belongs.

        Chats have no annotated facts, so that only the items of the constraints state something.
        """
        message = content["message"]
        answer: Json = {
            "block_id": None,
            "new": False,
            "label": "",
            "facts": [],
            "ended": [],
            "constraints": [],
            "preferences": [],
            "no_longer": [],
            "user_name": None,
        }
        item = self._items.get(message)
        if item is not None:
            answer |= self._traits_of(item, content["profile"])
        elif content["choose_topic"]:
            answer |= self.route(content)
        return answer

    def _traits_of(self, item: ConstraintItem, profile: Json) -> Json:
        """Return the keys of an answer that say which constraints and preferences an item states.

        The profile has the ones that hold so far.
        """
        traits: Json = {}
        if item.rule and item.kind != "neither":
            traits[f"{item.kind}s"] = [{"text": item.rule, "evidence": item.text}]

        withdrawn = self._items_by_id.get(item.withdraws)
        if withdrawn is not None:
            shown = [*profile["constraints"], *profile["preferences"]]
            traits["no_longer"] = [text for text in shown if text == withdrawn.rule]
        return traits

    def route(self, content: Json) -> Json:
        """Answer to which of some topics the next message of the chat belongs.

        That is the topic that has most messages of the message's subject, if this is the subject of
        most of its messages; else it is a new one.
        """
        chat = self._chat
        if chat is None:
            raise Refusal(501, "no chat is being played")
        exchange = chat.exchanges[len(self._routed)]
        offered = [topic["block_id"] for topic in content["topics"]]
        topic_id = self._topic_of_subject(exchange.topic, offered)
        label = _label_in(content["message"], chat.labels[exchange.topic])
        return {"block_id": topic_id, "new": topic_id is None, "label": label}

    def _topic_of_subject(self, subject: str, offered: Iterable[str]) -> str | None:
        """Return the offered topic that stands for a subject, None if there is none."""
        best_id = None
        best_count = 0
        for block_id in offered:
            subjects = Counter(
                item.exchange.topic for item in self._routed if item.block_id == block_id
            )
            is_main = bool(subjects) and subjects.most_common(1)[0][0] == subject
            if is_main and subjects[subject] > best_count:
                best_id = block_id
                best_count = subjects[subject]
        return best_id

    def facts_of_turns(self, content: Json) -> Json:
        """Answer which facts turns of a conversation state: none, chats have no annotated facts."""
        del content
        return {"facts": []}

    def extract(self, content: Json) -> Json:
        """Answer which facts a text states. Nothing is stated by what should not be stored.

        `facts` of the question, if it has them, are the facts that the model is shown. A row names
        one of them that it replaces. Of several that a fact makes outdated, the others get a row
        each, which says that they hold no more.
        """
        statement = self._statement(content["text"])
        if not statement.is_worth_storing:
            return {"facts": []}

        rows = []
        current = content.get("facts", [])
        for fact in statement.facts:
            outdated = [shown for shown in current if self._is_outdated_by(fact, shown["text"])]
            current = [shown for shown in current if shown not in outdated]
            row = self._extracted(fact, statement)
            row["replaces"] = outdated[0]["id"] if outdated else None
            rows.append(row)
            rows += [_ended_row(shown, row["quote"]) for shown in outdated[1:]]
        return {"facts": rows}

    def _statement(self, text: str) -> Statement:
        """Return the statement of the person with a text. Raise Refusal if there is none."""
        words = text.split()
        if self._person is not None:
            for statement in self._person.statements:
                if statement.text.split() == words:
                    return statement
        raise Refusal(501, f"nobody said: {text[:60]}")

    def _extracted(self, fact: GoldFact, statement: Statement) -> Json:
        """Return a fact as a row of an answer, and remember its text."""
        text = text_of(fact)
        self._facts_by_text.setdefault(text, []).append(fact)
        is_preference = "preference" in statement.kinds and "preference" in fact.key
        return {
            "text": text,
            "type": "preference" if is_preference else "fact",
            "subject": fact.subject,
            "relation": fact.key,
            "object": fact.value,
            "valid_from": _day_or_none(fact.since),
            "valid_to": _day_or_none(fact.until),
            "quote": quote_of(fact, statement),
            "confidence": 1,
        }

    def _is_outdated_by(self, fact: GoldFact, text: str) -> bool:
        """Return whether a fact makes one that a text of the store states outdated."""
        return any(known.id in fact.replaces for known in self._facts_in(text))

    def classify(self, content: Json) -> Json:
        """Answer which existing statements a new one makes outdated."""
        new_facts = self._facts_in(content["new"])
        replaced = {fact_id for fact in new_facts for fact_id in fact.replaces}
        rows = []
        for row in content["existing"]:
            is_outdated = any(fact.id in replaced for fact in self._facts_in(row["text"]))
            rows.append(
                {
                    "existingMemoryId": row["id"],
                    "relationType": "UPDATE" if is_outdated else "NONE",
                    "confidence": 1,
                    "derivedFact": None,
                }
            )
        return {"relations": rows}

    def _facts_in(self, text: str) -> Sequence[GoldFact]:
        """Return the facts that a text of the store states, [] if the person did not state it."""
        facts = self._facts_by_text.get(text)
        if facts is not None:
            return facts
        found = []
        for known_text, known_facts in self._facts_by_text.items():
            if text and text.casefold() in known_text.casefold():
                found += known_facts
        return found

    def answer_question(self, content: Json) -> Json:
        """Answer a question as the annotation does, if a memory has evidence for the answer."""
        question = self._questions.get(content["question"])
        cites = []
        if question is not None:
            for row in content["memories"]:
                numbers = {fact.id.statement for fact in self._facts_in(row["text"])}
                if numbers & set(question.evidence):
                    cites.append(row["id"])
        if question is None or not cites:
            return {"answer": "", "cites": []}
        return {"answer": question.answer, "cites": cites}

    def rewrite(self, content: Json) -> Json:
        """Answer with the question itself, so that the figures are those of the search."""
        return {"passage": content["question"], "terms": []}


Task = Callable[[PerfectModel, Json], Json]
"""Returns the right answer to the content of a question. It may have more keys than wanted."""

_TASKS: Final[Mapping[frozenset[str], Task]] = {
    frozenset({"block_id", "facts", "constraints"}): PerfectModel.read_turn,
    frozenset({"block_id", "new", "label"}): PerfectModel.route,
    frozenset({"facts", "evidence", "turn_id"}): PerfectModel.facts_of_turns,
    frozenset({"facts", "text", "quote"}): PerfectModel.extract,
    frozenset({"relations", "existingMemoryId"}): PerfectModel.classify,
    frozenset({"answer", "cites"}): PerfectModel.answer_question,
    frozenset({"passage", "terms"}): PerfectModel.rewrite,
}
"""The tasks by keys that only their answers have; the first one that fits counts."""


def _keys_of(schema: Json) -> frozenset[str]:
    """Return the keys of an answer, and of the objects in its lists."""
    keys = set(schema["properties"])
    for value in schema["properties"].values():
        keys.update(value.get("items", {}).get("properties", {}))
    return frozenset(keys)


def _fit(value: Any, schema: Json) -> Any:
    """Return an answer with exactly the keys of a schema. Keys that it lacks are null."""
    if isinstance(value, Mapping) and "properties" in schema:
        return {key: _fit(value.get(key), wanted) for key, wanted in schema["properties"].items()}
    if isinstance(value, list):
        return [_fit(row, schema.get("items", {})) for row in value]
    return value


def _ended_row(shown: Json, quote: str) -> Json:
    """Return a row which says that a fact that the model was shown holds no more."""
    return {
        "text": f"No longer: {shown['text']}",
        "type": "fact",
        "subject": "",
        "relation": "",
        "object": "",
        "valid_from": None,
        "valid_to": None,
        "quote": quote,
        "replaces": shown["id"],
        "confidence": 1,
    }


def text_of(fact: GoldFact) -> str:
    """Return the sentence with which the model states a fact."""
    end = f", until {fact.until}" if fact.until else ""
    return f"{fact.subject}, {fact.key}: {fact.value}{end}"


def quote_of(fact: GoldFact, statement: Statement) -> str:
    """Return the sentence of a statement that has most of a fact's words, letter for letter."""
    text = statement.text
    sentences = [text[start:end].strip() for start, end in sentence_spans(text)]
    wanted = f"{fact.subject} {fact.key} {fact.value}"
    return max(sentences, key=lambda sentence: overlap(wanted, sentence), default=text)


def _day_or_none(text: str) -> str | None:
    """Return a day of the annotation, None if it has none."""
    return text or None


def _label_in(message: str, label: str) -> str:
    """Return a label in words of a message: those of the right label, else its first ones."""
    stems_of_label = content_stems(label)
    words = [word.strip(_PUNCTUATION) for word in message.split()]
    words_of_label = [word for word in words if content_stems(word) & stems_of_label]
    content_words = [word for word in words if content_stems(word)]
    chosen = words_of_label or content_words or words
    unique_words = list(dict.fromkeys(chosen))
    return " ".join(unique_words[:_MAX_LABEL_WORDS])
