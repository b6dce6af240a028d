"""Which questions about the natural material find the turn that answers, and what that costs.

Each chat and each person's statements are recorded in a vault of their own, by rules and with the
topics that an agent names; then all are recorded in one vault. The questions are asked of
`recall`, which `retrieve_memory` calls. Run it with `python bench/natural_recall.py`; `--data`
names another half of the material.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from simplemem.features.conversations.exchange import new_exchange
from simplemem.features.conversations.recall import recall
from simplemem.features.conversations.service import ConversationService, conversation_service
from simplemem.note.words import count_tokens
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

_DATA: Final = Path(__file__).parents[1] / "tests" / "data" / "natural" / "development"


@dataclass
class Exchange:
    """A message with its answer, the numbers of both in their chat, and the topic."""

    numbers: list[int]
    message: str
    time: str
    topic: str = ""
    answers: list[str] = field(default_factory=list)


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


class Material(NamedTuple):
    """The questions of a half of the material, and the exchanges that they are about."""

    questions: list[dict[str, Any]]
    exchanges: dict[str, list[Exchange]]


def read_material(data: Path) -> Material:
    """Return the questions, and the exchanges of each chat and each person they ask about."""
    questions = json.loads((data / "questions.json").read_text())["questions"]
    sources = dict.fromkeys(question["of"] for question in questions)
    return Material(questions, {source: _read_source(data, source) for source in sources})


def _read_source(data: Path, source: str) -> list[Exchange]:
    """Return the exchanges of a chat ("chat 01") or the statements of a person ("p1")."""
    if not source.startswith("chat"):
        rows = json.loads((data / "statements" / f"{source}.json").read_text())["statements"]
        return [Exchange([n], row["text"], row["date"]) for n, row in enumerate(rows)]

    number = source.removeprefix("chat ")
    turns = json.loads((data / "chats" / f"{number}.json").read_text())["turns"]
    gold = json.loads((data / "chats" / f"{number}.gold.json").read_text())
    labels = {topic["id"]: topic["label"] for topic in gold["topics"]}
    exchanges = list[Exchange]()
    for n, turn in enumerate(turns):
        if turn["role"] == "user":
            topic = labels[gold["turns"][n]["topic"]]
            exchanges.append(Exchange([n], turn["text"], turn["time"], topic))
        elif exchanges:
            exchanges[-1].numbers.append(n)
            exchanges[-1].answers.append(turn["text"])
    return exchanges


def record(
    service: ConversationService, exchanges: Sequence[Exchange], session: str, *, named: bool
) -> dict[int, str]:
    """Record exchanges, with their topics if `named`. Return the ids of turns by number."""
    ids = dict[int, str]()
    for exchange in exchanges:
        recorded = service.record(
            new_exchange(
                exchange.message,
                response="\n".join(exchange.answers),
                timestamp=exchange.time,
                topic=exchange.topic if named else "",
                session=session,
            )
        )
        ids |= dict.fromkeys(exchange.numbers, recorded["turn_id"])
    return ids


def ask(
    service: ConversationService, question: dict[str, Any], ids: dict[int, str], tally: Tally
) -> None:
    """Ask a question, and count what it found."""
    started = time.thread_time()
    answer = recall(service, question["question"])
    tally.seconds += time.thread_time() - started

    turns = [turn for memory in answer["memories"] for turn in memory["turns"]]
    found = {turn["turn_id"] for turn in turns}
    tally.asked += 1
    tally.turns += len(turns)
    tally.tokens += sum(
        count_tokens(f"{turn['user_message']} {turn['ai_response']}") for turn in turns
    )
    if question["answerable"]:
        tally.answerable += 1
        tally.found += any(ids[number] in found for number in question["evidence"])

    outdated = str(question["outdated"] or "").casefold()
    for fact in answer["facts"]:
        is_marked = "disputed" in fact or "until" in fact
        if outdated and outdated in fact["value"].casefold() and not is_marked:
            tally.stale += 1


def measure(material: Material, groups: Sequence[Sequence[str]], *, named: bool) -> Tally:
    """Return what the questions find if each group of sources is recorded in its own vault."""
    tally = Tally()
    for group in groups:
        with tempfile.TemporaryDirectory() as folder, EnhancedStore(Path(folder), Settings()) as s:
            service = conversation_service(s)
            ids = dict[str, dict[int, str]]()
            for source in group:
                session = source.replace(" ", "-")
                ids[source] = record(service, material.exchanges[source], session, named=named)
            recall(service, "What was said first?")  # loads the vectors, which is not counted
            for question in material.questions:
                if question["of"] in group:
                    ask(service, question, ids[question["of"]], tally)
    return tally


def _rows(material: Material) -> Iterator[tuple[str, Tally]]:
    """Yield each row of the table: its title, and its counts."""
    each = [[source] for source in material.exchanges]
    for named in (False, True):
        topics = "agent names topics" if named else "topics by rules"
        yield f"a vault each, {topics}", measure(material, each, named=named)
        yield (
            f"one vault for all, {topics}",
            measure(material, [list(material.exchanges)], named=named),
        )


def main() -> None:
    """Print one row per way of recording."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, default=_DATA)
    material = read_material(parser.parse_args().data)
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
