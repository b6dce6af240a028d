"""What questions find of conversations, as plain notes and as turns that an agent told.

Each is stored with and without the names of the speakers and the days of the sessions, so that the
figures show what form, names and days have to do with it. They are recall among the first five and
the mean reciprocal rank. `bench/talk.py --finding` prints them.
"""

from __future__ import annotations

import gzip
import json
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple, Protocol

from simplemem.features.conversations.exchange import new_exchange
from simplemem.features.conversations.recall import recall
from simplemem.features.conversations.service import conversation_service
from simplemem.store import EnhancedStore, open_store

_START: Final = datetime(2026, 1, 5, 9, tzinfo=UTC)  # sessions without days end two years before
_TITLE_WIDTH: Final = 54
_RECALL_DEPTH: Final = 5
_FIRST_QUESTIONS: Final = 100  # whose figures are also printed alone


class Session(NamedTuple):
    """A session of two speakers."""

    id: str
    date: str  # as LoCoMo writes it, such as "1:56 pm on 8 May, 2023"
    turns: Sequence[Sequence[str]]  # the speaker and the text of each
    exchanges: Sequence[Sequence[str]]  # the message and the reply of each

    @property
    def speakers(self) -> list[str]:
        """The names of the speakers, in the order of their first turns."""
        return list(dict.fromkeys(name for name, _ in self.turns))

    @property
    def start(self) -> datetime:
        """The time at which it began."""
        return datetime.strptime(self.date, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


class Question(NamedTuple):
    """A question, and the ids of the sessions that answer it."""

    text: str
    answers: frozenset[str]

    def is_about(self, conversation: str) -> bool:
        """Return whether the sessions of a conversation answer it."""
        return any(conversation in session_id for session_id in self.answers)


class Score(NamedTuple):
    """How well one question was answered."""

    recall_at_5: float
    reciprocal_rank: float


@dataclass(frozen=True)
class Details:
    """What is stored of sessions besides their texts."""

    has_names: bool
    has_days: bool

    def describe(self) -> str:
        """Return this in words, as titles of rows have it."""
        if self.has_names and self.has_days:
            return "with names and days"
        if self.has_names:
            return "with names"
        return "with days" if self.has_days else "no names or days"


class Form(Protocol):
    """Sessions of one store. Guards which note or topic has which session."""

    title: str

    def __init__(self, store: EnhancedStore, details: Details) -> None: ...

    def add(self, session: Session) -> None:
        """Store a session."""

    def find(self, question: str) -> list[str]:
        """Return the ids of the sessions that a question finds, best first, at most ten."""


class PlainNotes:
    """Sessions as plain notes, one each. Guards the sessions by the names of their notes."""

    title = "plain notes"

    def __init__(self, store: EnhancedStore, details: Details) -> None:
        self._store = store
        self._details = details
        self._sessions: dict[str, str] = {}

    def add(self, session: Session) -> None:
        """Write the note of a session, with a list item per turn."""
        day = f" ({session.date})" if self._details.has_days else ""
        lines = [f"# Chat session{day}", ""]
        for speaker, text in session.turns:
            lines.append(f"- **{speaker}:** {text}" if self._details.has_names else f"- {text}")

        name = f"chats/{session.id}"
        self._store.create(name, "\n".join(lines), {"title": session.id + day})
        self._sessions[name] = session.id

    def find(self, question: str) -> list[str]:
        """Return the sessions of the notes that a search finds, best first, at most ten."""
        hits = self._store.search(question, limit=10).hits
        return [self._sessions[hit.name] for hit in hits]


class RecordedTurns:
    """Sessions as turns of conversations, a topic each. Guards the sessions by their topics."""

    title = "told"

    def __init__(self, store: EnhancedStore, details: Details) -> None:
        self._store = store
        self._details = details
        self._sessions: dict[str, str] = {}

    def add(self, session: Session) -> None:
        """Record each exchange of a session in its topic, two minutes after the one before.

        Without days, a session starts five days after the one before.
        """
        service = conversation_service(self._store)
        number = len(self._sessions)
        start = session.start
        if not self._details.has_days:
            start = _START - timedelta(days=700 - 5 * number)
        prefixes = ["", ""]
        if self._details.has_names:
            prefixes = [f"{name}: " for name in session.speakers]

        topic = session.id
        for position, texts in enumerate(session.exchanges):
            message, reply = (
                text and prefix + text for prefix, text in zip(prefixes, texts, strict=False)
            )
            at = start + timedelta(minutes=2 * position)
            exchange = new_exchange(
                message,
                response=reply,
                timestamp=f"{at:%Y-%m-%dT%H:%M:%SZ}",
                topic=topic,
            )
            # The id of a turn ends with random digits, which are words of the note. With these,
            # each run finds the same.
            turn_id = f"{exchange.turn.id[:21]}{number:03x}{position:03x}"
            turn = exchange.turn._replace(id=turn_id)
            topic = service.record(exchange._replace(turn=turn))["block_id"]
        self._sessions[topic] = session.id

    def find(self, question: str) -> list[str]:
        """Return the sessions of the topics that `retrieve_memory` answers with, at most ten."""
        memories = recall(conversation_service(self._store), question, 10)["memories"]
        return [self._sessions[memory["block_id"]] for memory in memories]


_FORMS: Final[tuple[type[Form], ...]] = (PlainNotes, RecordedTurns)


def print_findings(file: Path, conversations: Sequence[str], quality: ModuleType) -> None:
    """Print what questions find of each conversation, and of all, in both forms.

    `file` is LoCoMo's data and `quality` is the module talk_quality, which reads exchanges from it.
    """
    sessions = read_sessions(file, quality)
    questions = read_questions(file)
    headings = ("@5, 100", "MRR", "@5, all", "MRR")
    print(" " * _TITLE_WIDTH + "".join(f"{heading:>8}" for heading in headings))

    for name in conversations:
        sessions_of_name = [session for session in sessions if name in session.id]
        questions_of_name = [question for question in questions if question.is_about(name)]
        print_best_recall(name, questions_of_name)
        print_conversation(name, sessions_of_name, questions_of_name)

    details = Details(has_names=True, has_days=True)
    for form in _FORMS:
        scores = score_questions(form, details, sessions, questions[::2])
        title = f"every second question of all: {form.title}, names, days"
        _print_row(title, _means_of(scores))


def print_best_recall(name: str, questions: Sequence[Question]) -> None:
    """Print the recall that there would be if all first hits were right."""
    recalls = []
    for question in questions:
        answer_count = len(question.answers)
        recalls.append(min(_RECALL_DEPTH, answer_count) / answer_count)

    title = f"{name}: the best there could be"
    recall_of_first = statistics.mean(recalls[:_FIRST_QUESTIONS])
    recall_of_all = statistics.mean(recalls)
    print(f"{title:{_TITLE_WIDTH}}{recall_of_first:8.3f}{recall_of_all:16.3f}")


def print_conversation(
    name: str, sessions: Sequence[Session], questions: Sequence[Question]
) -> None:
    """Print what the first questions to one conversation find, and all, in all forms."""
    for form in _FORMS:
        for has_names, has_days in product((True, False), repeat=2):
            details = Details(has_names, has_days)
            scores = score_questions(form, details, sessions, questions)
            figures = [*_means_of(scores[:_FIRST_QUESTIONS]), *_means_of(scores)]
            _print_row(f"{name}: {form.title}, {details.describe()}", figures)


def _print_row(title: str, figures: Sequence[float]) -> None:
    cells = "".join(f"{figure:8.3f}" for figure in figures)
    print(f"{title:{_TITLE_WIDTH}}{cells:>32}", flush=True)


def read_sessions(file: Path, quality: ModuleType) -> list[Session]:
    """Return LoCoMo's sessions in the order of their ids."""
    exchanges = quality.sessions(file)
    sessions = []
    for document in _read_data(file)["docs"]:
        session_id = document["id"]
        conversation = session_id.split("-")[1]
        session = Session(
            id=session_id,
            date=document["date"],
            turns=document["turns"],
            exchanges=exchanges[conversation][session_id],
        )
        sessions.append(session)
    return sorted(sessions, key=lambda session: session.id)


def read_questions(file: Path) -> list[Question]:
    """Return LoCoMo's questions that a session answers."""
    queries = _read_data(file)["queries"]
    return [
        Question(query["query"], frozenset(query["gold"])) for query in queries if query["gold"]
    ]


def _read_data(file: Path) -> dict[str, list[dict[str, Any]]]:
    data: dict[str, list[dict[str, Any]]] = json.loads(gzip.decompress(file.read_bytes()))
    return data


def score_questions(
    form: type[Form],
    details: Details,
    sessions: Sequence[Session],
    questions: Sequence[Question],
) -> list[Score]:
    """Store sessions in a new vault, and return how well each question is answered from it."""
    with tempfile.TemporaryDirectory() as folder, open_store(folder) as store:
        stored = form(store, details)
        for session in sessions:
            stored.add(session)
        store.sync()
        return [_score(stored.find(question.text), question) for question in questions]


def _score(session_ids: Sequence[str], question: Question) -> Score:
    """Return how well a question is answered by sessions, best first."""
    right_ids = question.answers & set(session_ids[:_RECALL_DEPTH])
    recall_at_5 = len(right_ids) / len(question.answers)
    for rank, session_id in enumerate(session_ids, 1):
        if session_id in question.answers:
            return Score(recall_at_5, 1 / rank)
    return Score(recall_at_5, 0.0)


def _means_of(scores: Sequence[Score]) -> tuple[float, float]:
    """Return the mean recall and the mean reciprocal rank."""
    mean_recall = statistics.mean(score.recall_at_5 for score in scores)
    mean_rank = statistics.mean(score.reciprocal_rank for score in scores)
    return mean_recall, mean_rank
