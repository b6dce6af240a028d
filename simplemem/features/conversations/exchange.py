"""One exchange of a conversation: the client's texts, checked, and what they state.

Rules read the facts and traits in the message; statements of the agent take precedence. Pure.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from simplemem.errors import Invalid
from simplemem.features.agent_statements import (
    AGENT,
    NO_STATEMENTS,
    AgentFact,
    AgentStatements,
    check_statements,
)
from simplemem.features.conversations.trait_reading import Trait, read_traits
from simplemem.features.conversations.turns import Turn
from simplemem.features.fact import EPOCH
from simplemem.features.facts.keyed_facts import make_fact
from simplemem.features.facts.reader import read_text
from simplemem.features.facts.stated import StatedFact, name_of_fact
from simplemem.features.text import clean_text
from simplemem.note import dates
from simplemem.note.secrets import find_secrets
from simplemem.note.sentences import sentence_spans

MAX_LABEL: Final = 120  # characters of a topic's label, and of a session's id
_MAX_TEXT: Final = 100_000  # characters
_AGENT_CONFIDENCE: Final = 0.9  # of a fact that the agent states


class EndedFact(NamedTuple):
    """A fact that has ended without a new value."""

    id: str
    at: datetime  # its end


class Exchange(NamedTuple):
    """A turn, where the agent says that it belongs, and what it states."""

    turn: Turn
    topic: str  # a label or an id; "" if the agent names none
    session: str  # its id; "" if the client names none
    facts: Sequence[StatedFact]  # one per key
    traits: Sequence[Trait]
    agent_traits: Sequence[Trait] = ()  # those of the traits that the agent states
    ended: Sequence[EndedFact] = ()
    read_by: str = ""  # the model that read it, "" if the rules did
    has_secret_text: bool = False  # whether a text contains what looks like a credential

    @property
    def has_secret(self) -> bool:
        """Whether it states a credential, or contains something that looks like one."""
        return self.has_secret_text or any(fact.category == "secret" for fact in self.facts)


def new_exchange(
    message: str,
    context: str = "",
    response: str | None = None,
    topic: str = "",
    facts: Sequence[tuple[str, str]] = (),
    timestamp: str = "",
    session: str = "",
    stated: AgentStatements = NO_STATEMENTS,
) -> Exchange:
    """Return an exchange of checked texts, with what its message states.

    Without a `response`, `context` is the answer. `facts` are pairs of a key and a value that the
    agent read, and `stated` are its other statements; both take precedence over what the rules
    read. `topic` and `session` are put on one line and have at most 120 characters. An empty
    `timestamp` stands for now.

    Raises Invalid if the message is empty, if the time or a fact cannot be read, or if a text
    cannot be stored, and TooLong if a text exceeds its limit.
    """
    message = _clean(message, "message")
    context = _clean(context, "context")
    answer = _clean(response or "", "response")
    topic = _on_one_line(_clean(topic, "topic", MAX_LABEL))
    session = _on_one_line(_clean(session, "session_id", MAX_LABEL))
    if not message.strip():
        raise Invalid("the message is empty")
    if response is None:
        answer = context
        context = ""

    time = _parse_time(timestamp)
    turn = Turn(
        id=f"turn_{time:%Y%m%d_%H%M%S}_{secrets.token_hex(3)}",
        at=time.replace(microsecond=0),
        message=message,
        answer=answer,
        context=context,
    )

    pairs = check_statements([AgentFact(key, value) for key, value in facts])
    agent_facts = [*pairs.facts, *stated.facts]
    agent_traits = _agent_traits(stated)
    traits = dict.fromkeys([*read_traits(message), *agent_traits])
    all_text = "\n".join([message, answer, context])
    return Exchange(
        turn=turn,
        topic=topic,
        session=session,
        facts=_stated_facts(message, agent_facts),
        traits=list(traits),
        agent_traits=agent_traits,
        has_secret_text=bool(find_secrets(all_text)),
    )


def _stated_facts(message: str, agent_facts: Sequence[AgentFact]) -> list[StatedFact]:
    """Return the facts that the rules and the agent read in a message, one per key.

    Those of the agent take precedence. Raises Invalid as `_read_agent_fact` does.
    """
    facts_by_key = {fact.key: fact for fact in read_text(message).facts}
    for agent_fact in agent_facts:
        fact = _read_agent_fact(agent_fact, message)
        facts_by_key[fact.key] = fact
    return list(facts_by_key.values())


def _agent_traits(stated: AgentStatements) -> list[Trait]:
    """Return what the agent states about the user, each trait once."""
    traits = []
    if stated.user_name:
        traits.append(Trait("name", stated.user_name))
    traits += [Trait("Constraints", statement) for statement in stated.constraints]
    traits += [Trait("Preferences", statement) for statement in stated.preferences]
    return list(dict.fromkeys(traits))


def _parse_time(timestamp: str) -> datetime:
    """Return the time of a timestamp, now if it is empty or blank.

    Raises Invalid if it cannot be read, or is before 1970 or after tomorrow.
    """
    now = dates.now()
    time = dates.parse_moment(timestamp) if timestamp.strip() else now
    if time is None or not EPOCH <= time <= now + timedelta(days=1):
        raise Invalid(
            f"{timestamp[:40]!r} is not a time between 1970 and tomorrow",
            hint="Give a time such as 2026-11-20T14:05:10Z.",
        )
    return time


def _read_agent_fact(stated: AgentFact, message: str) -> StatedFact:
    """Return a fact that the agent read in a message. Its key begins with its subject, if any.

    Raises Invalid if the key has no word that distinguishes it from other keys.
    """
    name = name_of_fact(stated.subject, stated.relation)
    sentence = _sentence_with(stated.value, message)
    fact = make_fact(AGENT, name, stated.value, sentence, _AGENT_CONFIDENCE)
    if not fact.key:
        raise Invalid(
            "a fact needs a key and a value, both with words",
            hint='Give, for example, {"key": "harbour phone", "value": "0431 778"}.',
        )
    return fact._replace(
        subject=stated.subject,
        since=stated.since,
        until=stated.until,
        replaces=stated.replaced_ids,
    )


def _sentence_with(value: str, message: str) -> str:
    """Return the first sentence of a message that contains a value, else the whole message."""
    for start, stop in sentence_spans(message):
        sentence = message[start:stop]
        if value.casefold() in sentence.casefold():
            return sentence
    return message


def _clean(text: str, name: str, max_characters: int = _MAX_TEXT) -> str:
    """Return a client's text as it is stored, with `\\n` as the only line ending.

    `name` is the name of the argument, for error messages. Raises Invalid for characters that a
    note cannot contain, and TooLong for more than `max_characters`.
    """
    return clean_text(text, name, max_characters, "Nothing was stored, in full or in part.")


def _on_one_line(text: str) -> str:
    """Return a text with one space for each run of white space, and none at its ends."""
    return " ".join(text.split())
