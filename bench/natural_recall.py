"""Which questions about the natural material find the turn that answers, and what that costs.

Each chat and each person's statements are recorded in a vault of their own, by rules and with the
topics that an agent names; then all are recorded in one vault. The questions are asked of
`recall`, which `retrieve_memory` calls. Run it with `python bench/natural_recall.py`; `--data`
names another half of the material.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.natural_material import (
    ROOT,
    Chat,
    Exchange,
    Material,
    Person,
    Question,
    Statement,
    read_folder,
)
from simplemem.features.conversations.exchange import new_exchange
from simplemem.features.conversations.recall import recall
from simplemem.features.conversations.service import ConversationService, conversation_service
from simplemem.note.words import count_tokens
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

_DATA: Final = ROOT / "development"


@dataclass
class Tally:
    """Counts what questions found."""

    asked: int = 0
    answerable: int = 0
    found: int = 0
    stale: int = 0
    turns: int = 0
    tokens: int = 0
    seconds: float = 0.0


def exchanges_by_source(material: Material) -> dict[str, list[Exchange]]:
    """Return the exchanges of each chat and person that questions are about, in their order.

    The topic of an exchange is its label. A statement is an exchange without an answer and topic.
    """
    chats = {chat.id: chat for chat in material.chats}
    people = {person.id: person for person in material.people}
    exchanges = dict[str, list[Exchange]]()
    for question in material.questions:
        if question.chat:
            exchanges[source_of(question)] = _labelled(chats[question.chat])
        else:
            exchanges[source_of(question)] = _statements_of(people[question.person])
    return exchanges


def source_of(question: Question) -> str:
    """Return the session in which a question's chat or person is recorded."""
    return f"chat-{question.chat}" if question.chat else question.person


def _labelled(chat: Chat) -> list[Exchange]:
    return [replace(exchange, topic=chat.labels[exchange.topic]) for exchange in chat.exchanges]


def _statements_of(person: Person) -> list[Exchange]:
    return [_exchange_of(statement) for statement in person.statements]


def _exchange_of(statement: Statement) -> Exchange:
    return Exchange(
        turn_numbers=(statement.number,),
        at=statement.at,
        message=statement.text,
        response="",
        topic="",
        is_change=False,
        is_digression=False,
    )


def record(
    service: ConversationService, exchanges: Sequence[Exchange], session: str, *, named: bool
) -> dict[int, str]:
    """Record exchanges, with their topics if `named`. Return the ids of turns by number."""
    ids = dict[int, str]()
    for exchange in exchanges:
        recorded = service.record(
            new_exchange(
                exchange.message,
                response=exchange.response,
                timestamp=exchange.at.isoformat(),
                topic=exchange.topic if named else "",
                session=session,
            )
        )
        ids |= dict.fromkeys(exchange.turn_numbers, recorded["turn_id"])
    return ids


def ask(
    service: ConversationService, question: Question, ids: dict[int, str], tally: Tally
) -> None:
    """Ask a question, and count what it found."""
    started = time.thread_time()
    answer = recall(service, question.text)
    tally.seconds += time.thread_time() - started

    turns = [turn for memory in answer["memories"] for turn in memory["turns"]]
    found = {turn["turn_id"] for turn in turns}
    tally.asked += 1
    tally.turns += len(turns)
    tally.tokens += sum(
        count_tokens(f"{turn['user_message']} {turn['ai_response']}") for turn in turns
    )
    if question.is_answerable:
        tally.answerable += 1
        tally.found += any(ids[number] in found for number in question.evidence)

    outdated = question.outdated.casefold()
    for fact in answer["facts"]:
        is_marked = "disputed" in fact or "until" in fact
        if outdated and outdated in fact["value"].casefold() and not is_marked:
            tally.stale += 1


def measure(
    questions: Sequence[Question],
    groups: Sequence[Mapping[str, Sequence[Exchange]]],
    *,
    named: bool,
) -> Tally:
    """Return what the questions find if each group of sources is recorded in its own vault."""
    tally = Tally()
    for group in groups:
        with tempfile.TemporaryDirectory() as folder, EnhancedStore(Path(folder), Settings()) as s:
            service = conversation_service(s)
            ids = dict[str, dict[int, str]]()
            for source, exchanges in group.items():
                ids[source] = record(service, exchanges, source, named=named)
            recall(service, "What was said first?")  # loads the vectors, which is not counted
            for question in questions:
                source = source_of(question)
                if source in group:
                    ask(service, question, ids[source], tally)
    return tally


def _rows(material: Material) -> Iterator[tuple[str, Tally]]:
    """Yield each row of the table: its title, and its counts."""
    exchanges = exchanges_by_source(material)
    separate = [{source: items} for source, items in exchanges.items()]
    for named in (False, True):
        topics = "agent names topics" if named else "topics by rules"
        yield f"a vault each, {topics}", measure(material.questions, separate, named=named)
        yield (
            f"one vault for all, {topics}",
            measure(material.questions, [exchanges], named=named),
        )


def main() -> None:
    """Print one row per way of recording."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, default=_DATA)
    material = read_folder(parser.parse_args().data)
    for title, tally in _rows(material):
        turns = tally.turns / tally.asked
        tokens = tally.tokens / tally.asked
        milliseconds = 1000 * tally.seconds / tally.asked
        print(
            f"{title}: {tally.found} of {tally.answerable} find the turn that answers;"
            f" {tally.stale} stale facts; {turns:.0f} turns and {tokens:.0f} tokens per answer;"
            f" {milliseconds:.1f} ms of CPU"
        )


if __name__ == "__main__":
    main()
