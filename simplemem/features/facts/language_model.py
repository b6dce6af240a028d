"""What a language model is asked about facts, if the user configured one.

It is asked which facts a text states, what a new fact does to current ones, for an answer with citations, and for a
question in other words. An answer that does not have the requested format is not used.
"""

from __future__ import annotations

import time
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from simplemem.errors import SimplememError, Unavailable
from simplemem.features.event_log import EventLog
from simplemem.features.fact import MEMORY_TYPES, Fact, Slot
from simplemem.features.facts.fact import NewFact, parse_time
from simplemem.features.facts.memory_type import states_end
from simplemem.features.service import FeatureService
from simplemem.note.dates import now
from simplemem.note.passages import text_hash
from simplemem.note.words import count_tokens
from simplemem.providers.api import ChatModel

_MAX_FACTS: Final = 50  # of one text
_MAX_FACT: Final = 1000  # characters
_MAX_ANSWER: Final = 4000  # characters
_MAX_REWRITTEN: Final = 2000  # characters
_MAX_SENT: Final = 6000  # tokens of one request
_OVERLAP: Final = 200  # tokens that a part of a text shares with the one before
_MIN_CONFIDENCE: Final = 0.6  # of a ruling
_UNKNOWN_CONFIDENCE: Final = 0.5  # of a row whose confidence is no share
_QUESTIONS: Final = tomllib.loads(
    Path(__file__).with_name("questions.toml").read_text(encoding="utf-8")
)
_RELATIONS: Final = {"UPDATE": "UPDATES", "EXTEND": "EXTENDS", "DERIVE": "DERIVES"}


class Ruling(NamedTuple):
    """What a model says that a new fact does to a current one."""

    target: Fact
    relation: str
    derived: str  # what follows from the two
    method: str


def extract(service: FeatureService, chat: ChatModel, text: str) -> tuple[list[NewFact], str]:
    """Return the facts that a model reads in a text, and a remark on how it was read.

    An empty list is an answer: the text states nothing. Raise Unavailable if the model cannot be asked, or if none
    of the facts that it lists quotes the text.
    """
    parts = _split(text)
    plain = " ".join(text.casefold().split())
    facts = dict[str, NewFact]()
    rejected = 0
    for part in parts:
        answer = _ask(service, chat, "extract", {"text": part, "today": f"{now():%Y-%m-%d}"})
        for row in _read_rows(answer["facts"]):
            if _is_quoted(row, plain):
                facts[row["text"]] = _fact_of_row(row, chat)
            else:
                rejected += 1

    if rejected and not facts:
        raise Unavailable("none of the facts that the model listed is in the text")
    remark = f"the text was read in {len(parts)} parts" if len(parts) > 1 else ""
    return list(facts.values())[:_MAX_FACTS], remark


def classify(
    service: FeatureService, chat: ChatModel, new: str, existing: Sequence[Fact]
) -> list[Ruling]:
    """Return what a model says that a new statement does to current facts.

    Raise Unavailable if the model cannot be asked.
    """
    facts_by_id = {str(number): fact for number, fact in enumerate(existing, 1)}
    question = {
        "new": new,
        "existing": [{"id": id_, "text": fact.statement} for id_, fact in facts_by_id.items()],
    }
    answer = _ask(service, chat, "classify", question)

    rulings = list[Ruling]()
    for row in _read_rows(answer["relations"]):
        target = facts_by_id.get(row["existingMemoryId"])
        relation = _RELATIONS.get(row["relationType"])
        derived = row["derivedFact"]
        if len(derived) > _MAX_FACT:
            derived = ""
        if target and relation and _confidence_of(row) >= _MIN_CONFIDENCE:
            rulings.append(Ruling(target, relation, derived, chat.method))
    return rulings


def answer(
    service: FeatureService,
    chat: ChatModel,
    question: str,
    memories: Sequence[tuple[str, datetime | None]],
) -> str:
    """Return a model's answer from memories, "" if it gives none or cites none of them.

    Raise Unavailable if the model cannot be asked.
    """
    rows = list[dict[str, Any]]()
    for number, (text, at) in enumerate(memories, 1):
        rows.append({"id": str(number), "text": text, "when": at and f"{at:%Y-%m-%d}"})
    found = _ask(service, chat, "answer", {"question": question, "memories": rows})

    reply = found["answer"]
    if not isinstance(reply, str) or len(reply) > _MAX_ANSWER:
        return ""
    known_ids = {row["id"] for row in rows}
    return reply.strip() if _cites_only(found["cites"], known_ids) else ""


def _cites_only(cites: Any, known_ids: set[str]) -> bool:
    """Return whether a model cites something, and nothing that it was not given."""
    if not isinstance(cites, list) or not cites:
        return False
    return all(str(id_) in known_ids for id_ in cites)


def rewrite(service: FeatureService, chat: ChatModel, question: str) -> str:
    """Return a question in words that an answer might have, to search with.

    Raise Unavailable if the model cannot be asked.
    """
    found = _ask(service, chat, "rewrite", {"question": question})
    terms = found["terms"] if isinstance(found["terms"], list) else []
    texts = [text for text in (found["passage"], *terms) if isinstance(text, str)]
    return " ".join(texts)[:_MAX_REWRITTEN]


def _ask(service: FeatureService, chat: ChatModel, task: str, question: Mapping[str, Any]) -> Any:
    """Return the answer to a question. Log that it was asked, without its text."""
    log = EventLog[None](service.extension, "state/decisions.jsonl", lambda: None, lambda *_: None)
    start = time.monotonic()
    outcome = "answered"
    try:
        return chat.ask(_QUESTIONS[task], question)
    except SimplememError as error:
        outcome = error.code
        raise
    finally:
        log.add(
            {
                "at": now().isoformat(),
                "task": task,
                "asked": text_hash(repr(question)).hex()[:16],
                "model": chat.name,
                "ms": round(1000 * (time.monotonic() - start)),
                "outcome": outcome,
            }
        )


def _read_rows(rows: Any) -> Iterator[defaultdict[str, str]]:
    """Yield the objects of a list in a model's answer, each value as text on one line.

    A key that is missing has the value "". Raise Unavailable if it is no list.
    """
    if not isinstance(rows, list):
        raise Unavailable("the model's answer does not have the requested format")
    for row in rows:
        texts = defaultdict[str, str](str)
        if isinstance(row, dict):
            for key, value in row.items():
                if value is not None:
                    texts[key] = " ".join(str(value).split())
        yield texts


def _confidence_of(row: Mapping[str, str]) -> float:
    try:
        confidence = float(row["confidence"])
    except ValueError:
        return _UNKNOWN_CONFIDENCE
    return confidence if 0 < confidence <= 1 else _UNKNOWN_CONFIDENCE


def _is_quoted(row: Mapping[str, str], plain: str) -> bool:
    """Return whether a model's fact is of a known type and quotes the text, given in small letters."""
    quote = row["quote"].casefold()
    is_sound = 0 < len(row["text"]) <= _MAX_FACT and row["type"] in MEMORY_TYPES
    return is_sound and bool(quote) and quote in plain


def _fact_of_row(row: Mapping[str, str], chat: ChatModel) -> NewFact:
    """Return the fact in a row of a model's answer."""
    slot = None
    if row["relation"]:
        slot = Slot(row["subject"], row["relation"], row["object"])
    return NewFact(
        text=row["text"],
        memory_type=row["type"],
        slot=slot,
        valid_from=parse_time(row["valid_from"]),
        valid_to=_end_of(row),
        quote=row["quote"],
        confidence=_confidence_of(row),
        decided_by=chat.method,
    )


def _end_of(row: Mapping[str, str]) -> datetime | None:
    """Return until when a model's fact is valid, if its words say so.

    A day such as "today" says when something began. Models give it as the end too, and the fact would expire as it
    is stored. An episode has no end but the day on which it happened.
    """
    end = parse_time(row["valid_to"], is_end=True)
    if end is None or row["type"] == "episode":
        return end
    is_ahead = end > now()
    is_stated = states_end(row["text"], is_ahead=is_ahead) or states_end(
        row["quote"], is_ahead=is_ahead
    )
    return end if is_stated else None


def _split(text: str) -> list[str]:
    """Return a text in parts that fit into a request, each beginning with the end of the one before."""
    size = len(text) * _MAX_SENT // max(_MAX_SENT, count_tokens(text))
    overlap = size * _OVERLAP // _MAX_SENT
    starts = range(0, max(1, len(text) - overlap), size - overlap)
    return [text[start : start + size] for start in starts]
