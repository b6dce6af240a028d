"""What a language model is asked about statements, if a person set one: which a text states, what a new one does to those
that are there, an answer with citations, a question in other words. Whatever it gets wrong is no answer."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from simplemem.errors import SimplememError, Unavailable
from simplemem.kinds.atoms.atom import MEMORY_TYPES, Slot, Statement, moment
from simplemem.kinds.kind import Keeper, StateLog
from simplemem.note.clock import now
from simplemem.note.passages import text_hash
from simplemem.note.words import count_tokens
from simplemem.services.chat import Chat, questions_in

_MOST_FACTS, _MOST_FACT, _MOST_ANSWER = 50, 1000, 4000  # characters but for the first
_MOST_SENT, _OVERLAP = 6000, 200  # tokens of one request
_LEAST: Final = 0.6  # confidence of a ruling
_QUESTIONS: Final = questions_in(Path(__file__).with_name("questions.toml"))
_RELATIONS: Final = {"UPDATE": "UPDATES", "EXTEND": "EXTENDS", "DERIVE": "DERIVES"}


class Ruling(NamedTuple):
    """What a model says of a new statement and one of those that are there."""

    place: int
    relation: str
    derived: str


def _ask(keeper: Keeper, chat: Chat, task: str, said: Mapping[str, Any]) -> Any:
    """The answer to one question; that it was asked is logged, without a text."""
    log = StateLog[None](keeper.bench, "state/decisions.jsonl", lambda: None, lambda *_: None)
    began, outcome = time.monotonic(), "answered"
    try:
        return chat.ask(_QUESTIONS[task], said)
    except SimplememError as error:
        outcome = error.code
        raise
    finally:
        line = {"at": now().isoformat(), "task": task, "asked": text_hash(repr(said)).hex()[:16], "model": chat.name}
        log.add(line | {"ms": round(1000 * (time.monotonic() - began)), "outcome": outcome})


def _rows(found: Any) -> Iterator[dict[str, str]]:
    """The objects of a list that a model answered with, all in them as text on one line."""
    if not isinstance(found, list):
        raise Unavailable("the model answered in another shape than was asked for")
    rows = (each for each in found if isinstance(each, dict))
    return ({key: "" if value is None else _plain(str(value)) for key, value in row.items()} for row in rows)


def _plain(text: str) -> str:
    return " ".join(text.split())


def _sureness(row: Mapping[str, str]) -> float:
    try:
        return sure if 0 < (sure := float(row.get("confidence", ""))) <= 1 else 0.5
    except ValueError:
        return 0.5


def extract(keeper: Keeper, chat: Chat, text: str) -> tuple[list[Statement], str]:
    """The statements that a model reads in a text, as far as it quotes them; and what is to be said of that."""
    parts, found, plain = _portions(text), dict[str, Statement](), _plain(text).casefold()
    for part in parts:
        for row in _rows(_ask(keeper, chat, "extract", {"text": part, "today": f"{now():%Y-%m-%d}"})["facts"]):
            said, quote = row.get("text", ""), row.get("quote", "")
            is_quoted = quote and quote.casefold() in plain
            if is_quoted and 0 < len(said) <= _MOST_FACT and row.get("type") in MEMORY_TYPES:
                subject, relation, value = (row.get(key, "") for key in ("subject", "relation", "object"))
                since, until = moment(row.get("valid_from", "")), moment(row.get("valid_to", ""), ends=True)
                slot = Slot(subject, relation, value) if relation else None
                found[said] = Statement(said, row["type"], slot, since, until, quote, _sureness(row), chat.method)
    cut = f"the text was read in {len(parts)} parts" if len(parts) > 1 else ""
    return list(found.values())[:_MOST_FACTS], cut


def _portions(text: str) -> list[str]:
    """A text in parts that a model takes, each beginning with the end of the one before."""
    tokens = max(1, count_tokens(text))
    size = len(text) if tokens <= _MOST_SENT else len(text) * _MOST_SENT // tokens
    step = max(1, size - size * _OVERLAP // _MOST_SENT) if size < len(text) else len(text)
    return [text[at : at + size] for at in range(0, len(text), step)]


def classify(keeper: Keeper, chat: Chat, new: str, existing: Sequence[str]) -> list[Ruling]:
    """What a model says that a new statement does to those that are there."""
    ids = {str(number): number - 1 for number in range(1, len(existing) + 1)}
    said = {"new": new, "existing": [{"id": each, "text": existing[place]} for each, place in ids.items()]}
    rows = _rows(_ask(keeper, chat, "classify", said)["relations"])
    found = [
        (ids.get(row.get("existingMemoryId", "")), _RELATIONS.get(row.get("relationType", "")), row) for row in rows
    ]
    return [
        Ruling(place, relation, derived if len(derived := row.get("derivedFact", "")) <= _MOST_FACT else "")
        for place, relation, row in found
        if place is not None and relation and _sureness(row) >= _LEAST
    ]


def answer(keeper: Keeper, chat: Chat, question: str, memories: Sequence[tuple[str, datetime | None]]) -> str:
    """The answer that a model gives from memories, citing some of them; "" when it gives none."""
    ids = {str(number): each for number, each in enumerate(memories, 1)}
    shown = [{"id": id_, "text": text, "when": when and f"{when:%Y-%m-%d}"} for id_, (text, when) in ids.items()]
    found = _ask(keeper, chat, "answer", {"question": question, "memories": shown})
    said, cites = found["answer"], found["cites"]
    is_cited = isinstance(cites, list) and bool(cites) and all(str(each) in ids for each in cites)
    return said.strip() if isinstance(said, str) and is_cited and len(said) <= _MOST_ANSWER else ""


def rewrite(keeper: Keeper, chat: Chat, question: str) -> str:
    """A question in the words that an answer might have, for searching only."""
    found = _ask(keeper, chat, "rewrite", {"question": question})
    words = [each for each in found["terms"] if isinstance(each, str)] if isinstance(found["terms"], list) else []
    return " ".join([str(found["passage"]), *words])[:2000]
