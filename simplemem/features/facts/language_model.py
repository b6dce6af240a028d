"""What a language model is asked about statements, if a person set one: which a text states, what a new one does to those
that are there, an answer with citations, a question in other words. Whatever it gets wrong is no answer."""

from __future__ import annotations

import time
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from simplemem.errors import SimplememError, Unavailable
from simplemem.features.event_log import EventLog
from simplemem.features.fact import MEMORY_TYPES, Fact, Slot
from simplemem.features.facts.fact import NewFact, parse_time
from simplemem.features.facts.reading import states_end
from simplemem.features.service import FeatureService
from simplemem.note.dates import now
from simplemem.note.passages import text_hash
from simplemem.note.words import count_tokens
from simplemem.providers.api import ChatModel

_MOST_FACTS, _MOST_FACT, _MOST_ANSWER = 50, 1000, 4000  # characters but for the first
_MOST_SENT, _OVERLAP = 6000, 200  # tokens of one request
_LEAST: Final = 0.6  # confidence of a ruling
_QUESTIONS: Final = tomllib.loads(
    Path(__file__).with_name("questions.toml").read_text(encoding="utf-8")
)
_RELATIONS: Final = {"UPDATE": "UPDATES", "EXTEND": "EXTENDS", "DERIVE": "DERIVES"}


class Ruling(NamedTuple):
    """What a model says that a new statement does to one of those that are there."""

    target: Fact
    relation: str
    derived: str  # what follows from the two
    method: str


def _ask(keeper: FeatureService, chat: ChatModel, task: str, said: Mapping[str, Any]) -> Any:
    """The answer to one question; that it was asked is logged, without a text."""
    log = EventLog[None](keeper.extension, "state/decisions.jsonl", lambda: None, lambda *_: None)
    began, outcome = time.monotonic(), "answered"
    try:
        return chat.ask(_QUESTIONS[task], said)
    except SimplememError as error:
        outcome = error.code
        raise
    finally:
        line = {
            "at": now().isoformat(),
            "task": task,
            "asked": text_hash(repr(said)).hex()[:16],
            "model": chat.name,
        }
        log.add(line | {"ms": round(1000 * (time.monotonic() - began)), "outcome": outcome})


def _rows(found: Any) -> Iterator[defaultdict[str, str]]:
    """The objects of a list that a model answered with, all in them as text on one line, "" for what is not there."""
    if not isinstance(found, list):
        raise Unavailable("the model's answer does not have the requested format")
    for row in found:
        told = row.items() if isinstance(row, dict) else ()
        yield defaultdict(
            str, {key: " ".join(str(value).split()) for key, value in told if value is not None}
        )


def _sureness(row: Mapping[str, str]) -> float:
    with suppress(ValueError):
        return sure if 0 < (sure := float(row["confidence"])) <= 1 else 0.5
    return 0.5


def extract(keeper: FeatureService, chat: ChatModel, text: str) -> tuple[list[NewFact], str]:
    """Return the statements that a model reads in a text, and a remark on how it was read.

    An empty list is an answer: the text states nothing. Unavailable when the model lists statements, and none of
    them quotes the text.
    """
    parts = _portions(text)
    plain = " ".join(text.casefold().split())
    statements = dict[str, NewFact]()
    rejected = 0
    for part in parts:
        answer = _ask(keeper, chat, "extract", {"text": part, "today": f"{now():%Y-%m-%d}"})
        for row in _rows(answer["facts"]):
            if _is_quoted(row, plain):
                statements[row["text"]] = _statement_of(row, chat)
            else:
                rejected += 1

    if rejected and not statements:
        raise Unavailable("none of the facts that the model listed is in the text")
    remark = f"the text was read in {len(parts)} parts" if len(parts) > 1 else ""
    return list(statements.values())[:_MOST_FACTS], remark


def _is_quoted(row: Mapping[str, str], plain: str) -> bool:
    """Return whether a model's statement is of a known type and quotes the text, given in small letters."""
    quote = row["quote"].casefold()
    is_sound = 0 < len(row["text"]) <= _MOST_FACT and row["type"] in MEMORY_TYPES
    return is_sound and bool(quote) and quote in plain


def _end_of(row: Mapping[str, str]) -> datetime | None:
    """Return until when a model's statement holds, if its words say so.

    A day such as "today" tells when something began. Models give it as the end too, and the statement would expire
    as it is stored. An episode has no end but the day it happened on.
    """
    end = parse_time(row["valid_to"], is_end=True)
    if end is None or row["type"] == "episode":
        return end
    is_stated = states_end(row["text"], is_ahead=end > now()) or states_end(
        row["quote"], is_ahead=end > now()
    )
    return end if is_stated else None


def _statement_of(row: Mapping[str, str], chat: ChatModel) -> NewFact:
    """Return the statement that a model's row tells of."""
    slot = Slot(row["subject"], row["relation"], row["object"]) if row["relation"] else None
    return NewFact(
        row["text"],
        row["type"],
        slot,
        parse_time(row["valid_from"]),
        _end_of(row),
        row["quote"],
        _sureness(row),
        chat.method,
    )


def _portions(text: str) -> list[str]:
    """A text in parts that a model takes, each beginning with the end of the one before."""
    size = len(text) * _MOST_SENT // max(_MOST_SENT, count_tokens(text))
    both = size * _OVERLAP // _MOST_SENT
    return [text[at : at + size] for at in range(0, max(1, len(text) - both), size - both)]


def classify(
    keeper: FeatureService, chat: ChatModel, new: str, existing: Sequence[Fact]
) -> list[Ruling]:
    """What a model says that a new statement does to those that are there."""
    ids = {str(number): atom for number, atom in enumerate(existing, 1)}
    said = {
        "new": new,
        "existing": [{"id": id_, "text": atom.statement} for id_, atom in ids.items()],
    }
    found = list[Ruling]()
    for row in _rows(_ask(keeper, chat, "classify", said)["relations"]):
        target, relation = ids.get(row["existingMemoryId"]), _RELATIONS.get(row["relationType"])
        derived = row["derivedFact"] if len(row["derivedFact"]) <= _MOST_FACT else ""
        if target and relation and _sureness(row) >= _LEAST:
            found.append(Ruling(target, relation, derived, chat.method))
    return found


def answer(
    keeper: FeatureService,
    chat: ChatModel,
    question: str,
    memories: Sequence[tuple[str, datetime | None]],
) -> str:
    """The answer that a model gives from memories, citing some of them; "" when it gives none."""
    ids = {str(number): each for number, each in enumerate(memories, 1)}
    shown = [
        {"id": id_, "text": text, "when": when and f"{when:%Y-%m-%d}"}
        for id_, (text, when) in ids.items()
    ]
    found = _ask(keeper, chat, "answer", {"question": question, "memories": shown})
    said, cites = found["answer"], found["cites"]
    is_cited = isinstance(cites, list) and bool(cites) and all(str(each) in ids for each in cites)
    return said.strip() if isinstance(said, str) and is_cited and len(said) <= _MOST_ANSWER else ""


def rewrite(keeper: FeatureService, chat: ChatModel, question: str) -> str:
    """A question in the words that an answer might have, for searching only."""
    found = _ask(keeper, chat, "rewrite", {"question": question})
    terms = found["terms"] if isinstance(found["terms"], list) else []
    return " ".join(each for each in (found["passage"], *terms) if isinstance(each, str))[:2000]
