"""Questions to a language model about facts, if the user configured one.

It extracts the facts that a text states, classifies what a new fact does to current ones, answers a
question with citations, and rewrites a question for a search. `questions.toml` has the
instructions. An answer that does not have the requested format is not used.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from simplemem.errors import SimplememError, Unavailable
from simplemem.features.event_log import EventLog
from simplemem.features.fact import MEMORY_TYPES, Fact, Slot
from simplemem.features.facts.fact import parse_time
from simplemem.features.facts.memory_type import states_end
from simplemem.features.facts.new_fact import NewFact, Ruling
from simplemem.features.model_questions import load_questions
from simplemem.features.service import FeatureService
from simplemem.note.dates import now
from simplemem.note.passages import text_hash
from simplemem.note.words import count_tokens
from simplemem.providers.api import ChatModel

_MAX_FACTS: Final = 50  # of one text
_MAX_FACT: Final = 1000  # characters
_MAX_ANSWER: Final = 4000  # characters
_MAX_REWRITTEN: Final = 2000  # characters
_MAX_TOKENS_SENT: Final = 6000  # of one request
_OVERLAP: Final = 200  # tokens that a part of a text shares with the previous one
_MIN_CONFIDENCE: Final = 0.6  # of a ruling
_UNKNOWN_CONFIDENCE: Final = 0.5  # of a row that states no confidence
_QUESTIONS: Final = load_questions(__file__)
# The fields of a fact that a model reads which name an existing fact.
_REFERENCES: Final = ("replaces", "extends", "combines_with")
_RELATIONS: Final = {"UPDATE": "UPDATES", "EXTEND": "EXTENDS", "DERIVE": "DERIVES"}


def extract(
    service: FeatureService,
    chat: ChatModel,
    text: str,
    existing: Sequence[Fact] = (),
) -> tuple[list[NewFact], str]:
    """Return the facts that a model reads in a text, and a remark on how it read the text.

    `existing` are the facts that the model is shown, so that it says which of them a new one
    replaces. Up to 50 facts are returned, none if the text states nothing. The remark says that the
    text was read in parts; it is "" if it was read as a whole. Raise Unavailable if the model
    cannot be asked, or if none of the facts that it lists is usable. A fact is usable if it quotes
    the text and names no existing fact that the model was not shown.
    """
    parts = _split(text)
    plain = " ".join(text.casefold().split())
    existing_by_id = {str(number): fact for number, fact in enumerate(existing, 1)}
    shown = [_describe(id_, fact) for id_, fact in existing_by_id.items()]
    facts: dict[str, NewFact] = {}
    rejected_count = 0
    for part in parts:
        question = {"text": part, "today": f"{now():%Y-%m-%d}", "facts": shown}
        answered = _ask(service, chat, "extract", question)
        for row in _read_rows(answered["facts"]):
            if _names_only_shown(row, existing_by_id) and _is_usable(row, plain):
                facts[row["text"]] = _fact_of_row(row, chat, existing_by_id)
            else:
                rejected_count += 1

    if rejected_count and not facts:
        raise Unavailable("none of the facts that the model listed is in the text")

    remark = ""
    if len(parts) > 1:
        remark = f"the text was read in {len(parts)} parts"
    return list(facts.values())[:_MAX_FACTS], remark


def _describe(id_: str, fact: Fact) -> dict[str, Any]:
    """Return what a model is shown of an existing fact, under a small number as its id."""
    since = f"{fact.valid_from:%Y-%m-%d}" if fact.valid_from is not None else None
    return {"id": id_, "text": fact.statement[:_MAX_FACT], "since": since}


def _names_only_shown(row: Mapping[str, str], shown_ids: Collection[str]) -> bool:
    """Return whether the model was shown all existing facts that a row of its answer names."""
    named_ids = [row[field] for field in _REFERENCES if field in row]
    return all(id_ in shown_ids for id_ in named_ids if id_)


def classify(
    service: FeatureService,
    chat: ChatModel,
    statement: str,
    facts: Sequence[Fact],
) -> list[Ruling]:
    """Return what a model says that a new statement does to current facts.

    A fact to which the statement does nothing, or of which the model is less certain than 0.6, has
    no ruling. The list is empty if no fact has one. Raise Unavailable if the model cannot be asked
    or its answer is not in the requested format.
    """
    facts_by_id = {str(number): fact for number, fact in enumerate(facts, 1)}
    existing = [{"id": id_, "text": fact.statement} for id_, fact in facts_by_id.items()]
    answered = _ask(service, chat, "classify", {"new": statement, "existing": existing})

    rulings: list[Ruling] = []
    for row in _read_rows(answered["relations"]):
        target = facts_by_id.get(row["existingMemoryId"])
        relation = _RELATIONS.get(row["relationType"])
        if target is None or relation is None or _confidence_of(row) < _MIN_CONFIDENCE:
            continue

        derived = row["derivedFact"]
        if len(derived) > _MAX_FACT:
            derived = ""
        rulings.append(Ruling(target, relation, derived, chat.method))
    return rulings


def answer(
    service: FeatureService,
    chat: ChatModel,
    question: str,
    memories: Sequence[tuple[str, datetime | None]],
) -> str:
    """Return a model's answer to a question from memories.

    A memory is its text and when it was stated, None if that is unknown. The answer is "" if the
    model gives none, or one that is too long, cites nothing, or cites what it was not sent. Raise
    Unavailable if the model cannot be asked.
    """
    rows: list[dict[str, Any]] = []
    for number, (text, stated_at) in enumerate(memories, 1):
        day = f"{stated_at:%Y-%m-%d}" if stated_at is not None else None
        rows.append({"id": str(number), "text": text, "when": day})
    answered = _ask(service, chat, "answer", {"question": question, "memories": rows})

    reply = answered["answer"]
    if not isinstance(reply, str) or len(reply) > _MAX_ANSWER:
        return ""
    ids = {row["id"] for row in rows}
    if not _cites_only(answered["cites"], ids):
        return ""
    return reply.strip()


def _cites_only(cites: Any, ids: set[str]) -> bool:
    """Return whether `cites` is a list that is not empty and names only these ids.

    It is from a model's answer, so it may be anything.
    """
    if not isinstance(cites, list) or not cites:
        return False
    return all(str(id_) in ids for id_ in cites)


def rewrite(service: FeatureService, chat: ChatModel, question: str) -> str:
    """Return words that an answer to a question might contain, for a search, as a model says.

    They are "" if the model names none. Raise Unavailable if the model cannot be asked.
    """
    answered = _ask(service, chat, "rewrite", {"question": question})
    texts = [answered["passage"]]
    if isinstance(answered["terms"], list):
        texts += answered["terms"]

    usable_texts = [text for text in texts if isinstance(text, str)]
    return " ".join(usable_texts)[:_MAX_REWRITTEN]


def _ask(service: FeatureService, chat: ChatModel, task: str, question: Mapping[str, Any]) -> Any:
    """Return a model's answer for a task, with the keys of the task's `shape` in questions.toml.

    `task` is the name of a table in that file. The values of the answer may be of any type. The
    call is logged in `state/decisions.jsonl`, with a hash of the question instead of its text.
    Raise Unavailable if there is no answer with these keys.
    """
    # This log is only written here, so it has no state.
    log = EventLog[None](service.extension, "state/decisions.jsonl", lambda: None, lambda *_: None)
    started_at = time.monotonic()
    outcome = "answered"
    try:
        return chat.ask(_QUESTIONS[task], question)
    except SimplememError as error:
        outcome = error.code
        raise
    finally:
        seconds = time.monotonic() - started_at
        log.add(
            {
                "at": now().isoformat(),
                "task": task,
                "asked": text_hash(repr(question)).hex()[:16],
                "model": chat.name,
                "ms": round(1000 * seconds),
                "outcome": outcome,
            }
        )


def _read_rows(rows: Any) -> Iterator[defaultdict[str, str]]:
    """Yield the objects of a list in a model's answer, each value as text on one line.

    `rows` is that list; an entry that is no object counts as an empty one. A value that is null, or
    missing, is "". Raise Unavailable if `rows` is no list.
    """
    if not isinstance(rows, list):
        raise Unavailable("the model's answer does not have the requested format")

    for row in rows:
        texts = defaultdict[str, str](str)
        if isinstance(row, dict):
            for key, value in row.items():
                texts[key] = "" if value is None else " ".join(str(value).split())
        yield texts


def _confidence_of(row: Mapping[str, str]) -> float:
    """Return the confidence of a row, 0.5 if it states none that is over 0 and at most 1."""
    try:
        confidence = float(row["confidence"])
    except ValueError:
        return _UNKNOWN_CONFIDENCE
    return confidence if 0 < confidence <= 1 else _UNKNOWN_CONFIDENCE


def _is_usable(row: Mapping[str, str], plain: str) -> bool:
    """Return whether a fact of a model is short, of an existing type, and quotes the text.

    `plain` is the text that the model was sent, in small letters, on one line.
    """
    if row["type"] not in MEMORY_TYPES:
        return False
    if not 0 < len(row["text"]) <= _MAX_FACT:
        return False
    quote = row["quote"].casefold()
    return bool(quote) and quote in plain


def _fact_of_row(row: Mapping[str, str], chat: ChatModel, existing: Mapping[str, Fact]) -> NewFact:
    """Return the fact in a row of a model's answer, with what it does to `existing` ones.

    `chat` is that model. A fact that says the same as an existing one does not replace it.
    """
    slot = None
    if row["relation"]:
        slot = Slot(row["subject"], row["relation"], row["object"])
    replaced = existing.get(row["replaces"]) if "replaces" in row else None
    replaces: tuple[str, ...] = ()
    if replaced is not None and replaced.statement.casefold() != row["text"].casefold():
        replaces = (replaced.id,)
    return NewFact(
        text=row["text"],
        memory_type=row["type"],
        slot=slot,
        valid_from=parse_time(row["valid_from"]),
        valid_to=_end_of(row),
        quote=row["quote"],
        confidence=_confidence_of(row),
        decided_by=chat.method,
        replaces=replaces,
        rulings=_rulings_of(row, chat, existing),
    )


def _rulings_of(
    row: Mapping[str, str], chat: ChatModel, existing: Mapping[str, Fact]
) -> tuple[Ruling, ...] | None:
    """Return what a row says that its fact extends, and what follows from it and another one.

    None if the row does not say what the fact does to existing ones: the model is then asked.
    """
    if "replaces" not in row:
        return None

    rulings = []
    extended = existing.get(row["extends"])
    if extended is not None:
        rulings.append(Ruling(extended, "EXTENDS", "", chat.method))
    combined = existing.get(row["combines_with"])
    if combined is not None and 0 < len(row["derived"]) <= _MAX_FACT:
        rulings.append(Ruling(combined, "DERIVES", row["derived"], chat.method))
    return tuple(rulings)


def _end_of(row: Mapping[str, str]) -> datetime | None:
    """Return until when a model's fact is valid, None if its words do not say that it ends.

    The end of an episode is the day on which it happened, which need not be in its words.
    """
    # A day such as "today" says when something began. Models give it as the end too, and the fact
    # would expire as it is stored.
    end = parse_time(row["valid_to"], is_end=True)
    if end is None or row["type"] == "episode":
        return end

    is_ahead = end > now()
    for text in (row["text"], row["quote"]):
        if states_end(text, is_ahead=is_ahead):
            return end
    return None


def _split(text: str) -> list[str]:
    """Return a text in parts that fit into a request, at least one.

    Each part begins with the end of the previous one.
    """
    tokens = max(_MAX_TOKENS_SENT, count_tokens(text))
    size = len(text) * _MAX_TOKENS_SENT // tokens
    overlap = size * _OVERLAP // _MAX_TOKENS_SENT

    last_start = max(1, len(text) - overlap)
    starts = range(0, last_start, size - overlap)
    return [text[start : start + size] for start in starts]
