"""Read benchmarks as they are published: LongMemEval, LoCoMo, BEAM, and our sets of languages.

Each loader takes a file, or a folder for BEAM, and returns a `Benchmark`. The names of documents
never say which of them contain evidence. Files may be compressed with gzip or xz.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from bench.retrieval.data import Benchmark, Document, Question, valid_name

LANGUAGES_FILE: Final = Path(__file__).parents[1] / "languages.json"
_ABSTENTION_SUFFIX: Final = "_abs"  # of the id of a question of LongMemEval
_SESSION_OF_EVIDENCE: Final = re.compile(r"D:?(\d+):\d+")  # LoCoMo has "D8:6; D9:17" and "D:11:26"
_LOCOMO_KINDS: Final = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
_ADVERSARIAL: Final = 5
_BEAM_MARK: Final = re.compile(r"\s*->-> [\d,]+\s*$")  # of the generator, behind a message


class WrongFormat(Exception):
    """A file does not have the format that its loader reads."""


def read_json(file: Path) -> Any:
    """Return the JSON of a file, which may be compressed.

    Raises:
        WrongFormat: The file is not JSON.
    """
    raw = file.read_bytes()
    if raw.startswith(b"\x1f\x8b"):
        raw = gzip.decompress(raw)
    elif raw.startswith(b"\xfd7zXZ\x00"):
        raw = lzma.decompress(raw)
    try:
        return json.loads(raw)
    except ValueError as error:
        raise WrongFormat(f"{file} is not JSON: {error}") from error


# LongMemEval


def load_longmemeval(file: Path) -> Benchmark:
    """Read LongMemEval: `longmemeval_s.json` as it is published, or a part with shared sessions.

    Each session is a note with its date and its turns. Each question has a haystack of its own.
    The published ids of sessions begin with `answer` if they are evidence, so names are hashes.
    """
    data = read_json(file)
    if isinstance(data, list):
        return _load_official_longmemeval(data)
    if isinstance(data, dict) and "sessions" in data:
        return _load_longmemeval_part(data)
    raise WrongFormat(f"{file} is neither longmemeval_s.json nor a part of it")


def _load_official_longmemeval(items: list[dict[str, Any]]) -> Benchmark:
    haystacks = {}
    questions = []
    for item in items:
        documents = []
        sessions = zip(
            item["haystack_session_ids"],
            item["haystack_dates"],
            item["haystack_sessions"],
            strict=True,
        )
        for id_, date, turns in sessions:
            texts = [(turn["role"], turn["content"]) for turn in turns]
            documents.append(_longmemeval_note(_hashed(id_), date, texts))

        id_ = item["question_id"]
        haystacks[id_] = _unique(documents)
        evidence = map(_hashed, item["answer_session_ids"])
        questions.append(_longmemeval_question(id_, item["question_type"], item, evidence))
    return Benchmark("longmemeval", haystacks, tuple(questions))


def _load_longmemeval_part(data: dict[str, Any]) -> Benchmark:
    haystacks = {}
    questions = []
    for item in data["questions"]:
        haystacks[item["id"]] = _unique(longmemeval_notes(data, item))
        questions.append(_longmemeval_question(item["id"], item["type"], item, item["evidence"]))
    return Benchmark("longmemeval", haystacks, tuple(questions))


def longmemeval_notes(data: dict[str, Any], question: dict[str, Any]) -> list[Document]:
    """Return the haystack of a question of our part: each session as a note with its date."""
    documents = []
    for name, date in zip(question["haystack"], question["dates"], strict=True):
        turns = [tuple(turn) for turn in data["sessions"][name]["turns"]]
        documents.append(_longmemeval_note(name, date, turns))
    return documents


def _longmemeval_question(
    id_: str, kind: str, item: dict[str, Any], evidence: Iterable[str]
) -> Question:
    names = frozenset(evidence)
    if id_.endswith(_ABSTENTION_SUFFIX):
        names = frozenset()
    return Question(item["question"], kind, id_, names)


def _longmemeval_note(name: str, date: str, turns: Iterable[tuple[str, str]]) -> Document:
    """Return a session as a note. The date is in the form that `longmemeval_time` reads."""
    created = longmemeval_time(date)
    body = "\n\n".join(f"**{role.title()}:** {text}" for role, text in turns)
    return Document(name, f"---\ncreated: {created:%Y-%m-%dT%H:%M:%S}\n---\n\n{body}\n")


def longmemeval_time(text: str) -> datetime:
    """Return the local time of a text such as `2023/05/30 (Tue) 10:18`."""
    day, _, time = text.partition(" (")
    return datetime.strptime(day + time.split(")")[1], "%Y/%m/%d %H:%M")  # noqa: DTZ007


def _hashed(id_: str) -> str:
    """Return a name for an id that does not show what the id says."""
    return "s" + hashlib.sha256(id_.encode()).hexdigest()[:10]


# LoCoMo


def load_locomo(file: Path) -> Benchmark:
    """Read LoCoMo: `locomo10.json` as it is published, or our half (`docs` and `queries`).

    Each session is a note with one list item per turn. A haystack is a conversation. Captions of
    images are left out. Questions without evidence in the file are left out as well.
    """
    data = read_json(file)
    if isinstance(data, list):
        return _load_official_locomo(data)
    if isinstance(data, dict) and "docs" in data:
        return _load_locomo_half(data)
    raise WrongFormat(f"{file} is neither locomo10.json nor our half of it")


def _load_official_locomo(samples: list[dict[str, Any]]) -> Benchmark:
    haystacks = {}
    questions = []
    for number, sample in enumerate(samples):
        prefix = f"locomo-c{number:02}"
        haystacks[prefix] = tuple(_official_locomo_notes(prefix, sample["conversation"]))
        names = {document.name for document in haystacks[prefix]}
        for item in sample["qa"]:
            sessions = _SESSION_OF_EVIDENCE.findall(" ".join(item.get("evidence") or ()))
            evidence = names.intersection(f"{prefix}-s{int(session):02}" for session in sessions)
            if evidence:
                kind = _locomo_kind(item["category"])
                questions.append(Question(item["question"], kind, prefix, frozenset(evidence)))
    return Benchmark("locomo", haystacks, tuple(questions))


def _official_locomo_notes(prefix: str, conversation: dict[str, Any]) -> Iterator[Document]:
    for key, turns in conversation.items():
        match = re.fullmatch(r"session_(\d+)", key)
        if match:
            name = f"{prefix}-s{int(match[1]):02}"
            texts = [(turn["speaker"], turn["text"]) for turn in turns]
            yield locomo_note(name, conversation[f"{key}_date_time"], texts)


def _load_locomo_half(data: dict[str, Any]) -> Benchmark:
    haystacks: dict[str, list[Document]] = {}
    for session in data["docs"]:
        id_ = str(session["id"])
        note = locomo_note(id_, session["date"], session["turns"])
        haystacks.setdefault(_conversation_of(id_), []).append(note)

    questions = []
    for query in data["queries"]:
        evidence = frozenset(valid_name(str(id_)) for id_ in query["gold"])
        if evidence:
            haystack = _conversation_of(min(evidence))
            kind = _locomo_kind(query["category"])
            questions.append(Question(query["query"], kind, haystack, evidence))
    return Benchmark("locomo", _as_tuples(haystacks), tuple(questions))


def locomo_note(id_: str, date: str, turns: Iterable[Sequence[str]]) -> Document:
    """Return a session of LoCoMo as a note with one list item per turn."""
    lines = [f"- **{who}:** {text}".replace("\n", " ") for who, text in turns]
    title = json.dumps(f"{id_} ({date})", ensure_ascii=False)
    header = f"---\ntitle: {title}\n---\n\n# Chat session at {date}\n\n"
    return Document(valid_name(id_), header + "\n".join(lines) + "\n")


def _conversation_of(id_: str) -> str:
    """Return the part of a session's id that names the conversation."""
    return id_.rpartition("-")[0]


def _locomo_kind(category: int) -> str:
    """Return the name of a category. Projects name 1 to 4 differently, so the number stays."""
    if category == _ADVERSARIAL:
        return "5 adversarial"
    return f"{category} {_LOCOMO_KINDS[category]}"


# BEAM


def load_beam(folder: Path) -> Benchmark:
    """Read BEAM: a folder of chats, such as `chats/100K` of its repository.

    Each chat is a folder with `chat.json` and `probing_questions/probing_questions.json`, and a
    haystack. Each message of the user with the answers that follow is a note. The evidence is
    `source_chat_ids`, the ids of messages. A question without them cannot be answered if its kind
    is abstention, and is left out otherwise.

    Raises:
        WrongFormat: The folder contains no chat.
    """
    chats = sorted(folder.rglob("chat.json"), key=_chat_key)
    haystacks = {}
    questions: list[Question] = []
    for file in chats:
        questions_file = file.with_name("probing_questions") / "probing_questions.json"
        if not questions_file.exists():
            continue
        key = valid_name(file.parent.relative_to(folder).as_posix())
        notes, note_of = _beam_notes(key, read_json(file))
        haystacks[key] = tuple(notes)
        questions += _beam_questions(key, read_json(questions_file), note_of)
    if not haystacks:
        raise WrongFormat(f"{folder} contains no chat.json with probing questions")
    return Benchmark("beam", haystacks, tuple(questions))


def _chat_key(file: Path) -> tuple[int, str]:
    """Return a key that sorts chats by their number."""
    name = file.parent.name
    return (int(name) if name.isdigit() else 0, str(file))


def _beam_notes(chat: str, batches: Any) -> tuple[list[Document], dict[int, str]]:
    """Return the notes of a chat, and the name of the note that contains each message."""
    notes = []
    note_of: dict[int, str] = {}
    date = ""
    exchange: list[dict[str, Any]] = []

    def finish() -> None:
        if exchange:
            name = f"beam-{chat}-{len(notes):04}"
            notes.append(_beam_note(name, date, exchange))
            for message in exchange:
                note_of.setdefault(message["id"], name)
            exchange.clear()

    for message in _beam_messages(batches):
        if message["role"] == "user":
            finish()
        date = message.get("time_anchor") or date
        exchange.append(message)
    finish()
    return notes, note_of


def _beam_messages(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the messages of a chat in order, however batches, plans and turns are nested.

    A batch's date is put on its first message if that has none.
    """
    if isinstance(value, list):
        for item in value:
            yield from _beam_messages(item)
    elif "role" in value:
        yield value
    else:
        anchor = value.get("time_anchor")
        for child in value.values():
            if not isinstance(child, (list, dict)):
                continue
            for message in _beam_messages(child):
                if anchor and not message.get("time_anchor"):
                    message = {**message, "time_anchor": anchor}
                anchor = None
                yield message


def _beam_note(name: str, date: str, messages: Iterable[dict[str, Any]]) -> Document:
    texts = []
    for message in messages:
        content = _BEAM_MARK.sub("", message["content"])
        texts.append(f"**{message['role'].title()}:** {content}")
    header = f"# Chat at {date}\n\n" if date else ""
    return Document(name, header + "\n\n".join(texts) + "\n")


def _beam_questions(
    chat: str, questions_by_kind: dict[str, list[dict[str, Any]]], note_of: dict[int, str]
) -> Iterator[Question]:
    for kind, items in questions_by_kind.items():
        for item in items:
            ids = set(_numbers_in(item.get("source_chat_ids")))
            evidence = frozenset(note_of[id_] for id_ in ids if id_ in note_of)
            if evidence or kind == "abstention":
                yield Question(item["question"], kind, chat, evidence)


def _numbers_in(value: Any) -> Iterator[int]:
    """Yield the numbers in a list, or in an object of lists, such as first and second statement."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _numbers_in(item)
    elif isinstance(value, int):
        yield value


# Languages


def load_languages(file: Path) -> Benchmark:
    """Read facts in several languages, each with a question that shares no content word with it.

    The kind of a question is its language; `de > en` asks the English facts in German. A haystack
    has the facts of one language, one note each.
    """
    facts = read_json(file)
    languages = list(facts[0]["facts"])
    haystacks = {}
    for language in languages:
        haystacks[language] = tuple(
            Document(_fact_name(languages, language, number), f"{fact['facts'][language]}\n")
            for number, fact in enumerate(facts)
        )

    questions = []
    for language in languages:
        for haystack in dict.fromkeys((language, "en")):
            kind = language if haystack == language else f"{language} > {haystack}"
            for number, fact in enumerate(facts):
                evidence = frozenset({_fact_name(languages, haystack, number)})
                text = fact["questions"][language]
                questions.append(Question(text, kind, haystack, evidence))
    return Benchmark("languages", haystacks, tuple(questions))


def _fact_name(languages: Sequence[str], language: str, number: int) -> str:
    """Return a name without a word of any language, since names are searched as well."""
    return f"{1000 * languages.index(language) + number}"


def _unique(documents: Iterable[Document]) -> tuple[Document, ...]:
    """Return documents without those whose name came before."""
    by_name: dict[str, Document] = {}
    for document in documents:
        by_name.setdefault(document.name, document)
    return tuple(by_name.values())


def _as_tuples(haystacks: dict[str, list[Document]]) -> dict[str, tuple[Document, ...]]:
    return {key: tuple(documents) for key, documents in haystacks.items()}


LOADERS: Final[dict[str, Callable[[Path], Benchmark]]] = {
    "longmemeval": load_longmemeval,
    "locomo": load_locomo,
    "beam": load_beam,
    "languages": load_languages,
}
