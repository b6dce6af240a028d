"""What is remembered of statements of the natural material, and what becomes of it.

Each person has a vault of their own. Statements go through `add_memory`, one call each, at their
own times. What is stored is read with `list_memories`, and questions are asked with
`search_memory`. `bench/natural.py` prints the figures.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from bench.natural_figures import Count, content_stems, overlap, sum_counts
from bench.natural_material import FactId, GoldFact, Person, Question, Statement
from bench.tool_caller import ToolCaller, open_tools, set_clock

_PROFILES: Final = ("remembrances", "supermemento")
_AFTER_END: Final = timedelta(hours=12)  # from the end of a fact until it is looked for
_AFTER_LAST: Final = timedelta(minutes=10)  # from the last statement until questions are asked
_MAX_ROWS: Final = 1000  # the most that the tool lists
_MAX_HITS: Final = 10  # of a question, which is the default of the tool
_STORING_EVENTS: Final = ("ADD", "UPDATE")


@dataclass(frozen=True)
class StatementFigures:
    """What was measured of statements.

    The *memory of a fact* is the one among those which its statement stored, or repeated, that has
    the largest share of the content words of the fact's subject, key and value (the first of equal
    ones). A memory is *current* if `list_memories` lists it without `include_expired`.

    - `outdated`: facts that a later statement replaces, and how many have a memory that, right
      after that statement, is superseded, disputed, forgotten or not current. A fact that was never
      stored counts as missed.
    - `never_stored`: how many of these facts have no memory. They are missed in `outdated`.
    - `wrong`: memories with facts that were superseded or deleted though no statement up to then
      replaces, or asks to forget, any of their facts. The total is that of memories with facts.
    - `lost`: facts in superseded or deleted memories that no statement up to then replaces or asks
      to forget, because they share the memory with another fact or because of `wrong`. Facts that
      have ended are left out. The total is that of stored facts.
    - `doubted`: memories with facts that are disputed after the last statement though all their
      facts still hold. The total is that of memories with facts.
    - `noise`: statements that should not be stored (greetings, questions, hearsay, conditions,
      sarcasm; not wishes to forget), and how many added or updated a memory or a document.
    - `kept`: statements that should be stored and state a fact, and how many have a memory of one.
    - `ended`: facts with a last day, and how many have a memory that was current right after the
      statement, and is not current 12 hours after that day. Left out are facts that ended before
      they were stated, and those that are replaced before they end.
    - `ended_wrongly`: stored facts without a last day that nothing replaces and nobody asked to
      forget, and how many of their memories are active but no longer current on the last day.
    - `forgotten`: stored facts that a statement asks to forget, and how many have no current memory
      right after it.
    - `found`: answerable questions, and how many got a memory of a statement with evidence from
      `search_memory`.
    - `stale`: questions with an outdated answer, and how many returned an outdated memory as the
      current one: without a mark (disputed or outdated), and before the first memory of a statement
      with evidence. Outdated memories are those of the facts that the evidence replaces, directly
      or over several steps. If values of these facts share words with the outdated answer, only
      those count.
    - `stale_anywhere`: the same, wherever the outdated memory stands among the hits.
    """

    outdated: Count
    never_stored: Count
    wrong: Count
    lost: Count
    doubted: Count
    noise: Count
    kept: Count
    ended: Count
    ended_wrongly: Count
    forgotten: Count
    found: Count
    stale: Count
    stale_anywhere: Count

    @classmethod
    def sum_of(cls, figures: Sequence[StatementFigures]) -> StatementFigures:
        """Return the figures of several people together."""
        sums = {}
        for count in fields(cls):
            sums[count.name] = sum_counts(getattr(one, count.name) for one in figures)
        return cls(**sums)


class Speaker(Protocol):
    """Decides with which arguments a client stores a statement."""

    def __call__(
        self, call: ToolCaller, person: Person, statement: Statement, known: Mapping[FactId, str]
    ) -> dict[str, Any] | None:
        """Return the arguments of `add_memory` for a statement, None to store nothing.

        `known` has the ids of the memories of the facts that were stored so far.
        """


def word_for_word(
    call: ToolCaller,  # noqa: ARG001
    person: Person,
    statement: Statement,
    known: Mapping[FactId, str],  # noqa: ARG001
) -> dict[str, Any]:
    """Return the text of a statement and the user, and nothing that a client understood."""
    return {"content": statement.text, "user_id": person.id}


class StatementObserver(Protocol):
    """Learns whose statements are being stored."""

    def open_person(self, person: Person) -> None:
        """Take note that the statements of a person will be stored, from the first one on."""


def measure_statements(
    people: Iterable[Person],
    questions: Sequence[Question],
    *,
    speaker: Speaker | None = None,
    observer: StatementObserver | None = None,
    settings: Mapping[str, Any] | None = None,
) -> StatementFigures:
    """Store the statements of each person in a new vault, ask questions, and return the figures.

    The caller restores the clock.
    """
    figures = []
    for person in people:
        if observer is not None:
            observer.open_person(person)
        own_questions = [question for question in questions if question.person == person.id]
        with (
            tempfile.TemporaryDirectory() as folder,
            open_tools(Path(folder), *_PROFILES, settings=settings) as call,
        ):
            play = _Play(call, person, speaker or word_for_word)
            figures.append(play.measure(own_questions))
    return StatementFigures.sum_of(figures)


class _Memory(NamedTuple):
    """A memory as the store lists it at one time."""

    is_current: bool
    is_disputed: bool
    status: str

    @property
    def is_superseded(self) -> bool:
        """Whether another one replaced it, or a wish to forget ended it."""
        return self.status in ("superseded", "forgotten")


class _State(dict[str, _Memory]):
    """All memories of a person by their ids."""

    def is_plainly_current(self, memory_id: str) -> bool:
        """Return whether a memory is current, and nothing puts it in doubt."""
        memory = self.get(memory_id)
        return memory is not None and memory.is_current and not memory.is_disputed

    def is_current(self, memory_id: str) -> bool:
        """Return whether a memory is current, disputed or not."""
        return memory_id in self and self[memory_id].is_current

    def is_gone(self, memory_id: str) -> bool:
        """Return whether a memory was superseded, forgotten or deleted."""
        return memory_id not in self or self[memory_id].is_superseded


@dataclass
class _Stored:
    """What one statement stored."""

    is_new: bool = False  # it added or updated a memory or a document
    texts: dict[str, str] = field(default_factory=dict)  # of memories, by their ids


def _read_stored(answer: Mapping[str, Any]) -> _Stored:
    """Return what the answer of `add_memory` says that it stored or found again."""
    stored = _Stored(is_new=bool(answer["document"]))
    for event in answer["events"]:
        if event["event"] in _STORING_EVENTS:
            stored.is_new = True
        if event["event"] != "DELETE":
            stored.texts[event["id"]] = event["memory"]
    return stored


class _Ending(NamedTuple):
    """When to look whether a fact that has ended is still current."""

    at: datetime
    fact_id: FactId


class _Answer(NamedTuple):
    """What a question found. None stands for what was not asked for."""

    is_found: bool | None  # a memory of a statement with evidence
    is_stale: bool | None  # an outdated memory before all with evidence
    has_stale: bool | None  # an outdated memory anywhere


class _Play:
    """The statements of one person, as they are stored. Guards what was stored and measured."""

    def __init__(self, call: ToolCaller, person: Person, speaker: Speaker) -> None:
        """Prepare to store the statements of a person in an empty vault, in which `call` calls."""
        self._call = call
        self._person = person
        self._speaker = speaker
        self._facts = {fact.id: fact for fact in person.facts()}
        self._replaced_by = _first_replacements(person)
        self._forgotten_by = _first_wishes(person)
        self._stored: dict[int, _Stored] = {}
        self._memory_of: dict[FactId, str] = {}
        self._facts_of: dict[str, list[FactId]] = defaultdict(list)
        self._current_once: set[str] = set()  # memories that were current when they were stored
        self._gone: set[str] = set()  # memories that were counted as superseded or deleted

        self._outdated: list[bool] = []
        self._never_stored: list[bool] = []
        self._wrong_count = 0
        self._lost_count = 0
        self._forgotten: list[bool] = []
        self._ended: list[bool] = []

    def measure(self, questions: Sequence[Question]) -> StatementFigures:
        """Store the statements in their order, and return the figures.

        Between them, the store is looked at when a fact has ended. Facts that end later than the
        last statement are looked at when the questions have been asked.
        """
        endings = self._endings()
        for statement in self._person.statements:
            while endings and endings[0].at <= statement.at:
                self._check_ending(endings.pop(0))
            self._store(statement)

        last_at = self._person.statements[-1].at + _AFTER_LAST
        set_clock(last_at)
        self._call.index()
        ended_wrongly = self._count_ended_wrongly()
        doubted = self._count_doubted()
        answers = [self._ask(question) for question in questions]
        for ending in endings:
            self._check_ending(ending)

        return StatementFigures(
            outdated=Count.of(self._outdated),
            never_stored=Count.of(self._never_stored),
            wrong=Count(self._wrong_count, len(self._facts_of)),
            lost=Count(self._lost_count, len(self._memory_of)),
            doubted=doubted,
            noise=self._count_noise(),
            kept=self._count_kept(),
            ended=Count.of(self._ended),
            ended_wrongly=ended_wrongly,
            forgotten=Count.of(self._forgotten),
            found=Count.of(answer.is_found for answer in answers if answer.is_found is not None),
            stale=Count.of(answer.is_stale for answer in answers if answer.is_stale is not None),
            stale_anywhere=Count.of(
                answer.has_stale for answer in answers if answer.has_stale is not None
            ),
        )

    # Storing

    def _store(self, statement: Statement) -> None:
        """Store a statement at its time, and count what it did to the memories before it."""
        set_clock(statement.at)
        arguments = self._speaker(self._call, self._person, statement, self._memory_of)
        stored = _Stored()
        if arguments is not None:
            stored = _read_stored(self._call("add_memory", **arguments))
        self._stored[statement.number] = stored

        for fact in statement.facts:
            memory_id = memory_of(fact, stored.texts)
            if memory_id:
                self._memory_of[fact.id] = memory_id
                self._facts_of[memory_id].append(fact.id)

        state = self._state()
        self._current_once.update(filter(state.is_current, stored.texts))
        self._count_outdated(statement, state)
        self._count_forgotten(statement, state)
        self._count_gone(statement, state)

    def _state(self) -> _State:
        """Return all memories as they are now."""
        page = {"container_tag": self._person.id, "limit": _MAX_ROWS}
        current_rows = self._call("list_memories", **page)["memories"]
        all_rows = self._call("list_memories", **page, include_expired=True)["memories"]
        current_ids = {row["id"] for row in current_rows}
        state = _State()
        for row in all_rows:
            state[row["id"]] = _Memory(
                is_current=row["id"] in current_ids,
                is_disputed=row["disputed"] is not None or row["status"] == "disputed",
                status=row["status"],
            )
        return state

    def _count_outdated(self, statement: Statement, state: _State) -> None:
        """Count the facts that this statement is the first to replace."""
        for fact_id, number in self._replaced_by.items():
            if number != statement.number:
                continue
            memory_id = self._memory_of.get(fact_id)
            self._never_stored.append(memory_id is None)
            is_out = memory_id is not None and not state.is_plainly_current(memory_id)
            self._outdated.append(is_out)

    def _count_forgotten(self, statement: Statement, state: _State) -> None:
        """Count the stored facts that this statement asks to forget."""
        for fact_id in statement.forgets:
            memory_id = self._memory_of.get(fact_id)
            if memory_id is not None:
                self._forgotten.append(not state.is_current(memory_id))

    def _count_gone(self, statement: Statement, state: _State) -> None:
        """Count the memories that this statement wrongly superseded or deleted, and their facts."""
        for memory_id, fact_ids in self._facts_of.items():
            if memory_id in self._gone or not state.is_gone(memory_id):
                continue
            self._gone.add(memory_id)
            lost = [fact_id for fact_id in fact_ids if self._holds(fact_id, statement)]
            self._lost_count += len(lost)
            is_justified = any(self._is_out(fact_id, statement.number) for fact_id in fact_ids)
            if not is_justified:
                self._wrong_count += 1

    def _is_out(self, fact_id: FactId, number: int) -> bool:
        """Return whether a statement up to this one replaces a fact or asks to forget it."""
        causes = (self._replaced_by.get(fact_id), self._forgotten_by.get(fact_id))
        return any(cause is not None and cause <= number for cause in causes)

    def _holds(self, fact_id: FactId, statement: Statement) -> bool:
        """Return whether a fact still holds once a statement was made."""
        end = self._facts[fact_id].ends_at
        has_ended = end is not None and end <= statement.at
        return not has_ended and not self._is_out(fact_id, statement.number)

    # What time ends

    def _endings(self) -> list[_Ending]:
        """Return when to look for each fact that ends, earliest first.

        Facts that ended before they were stated, or are replaced before they end, are left out.
        """
        times = {statement.number: statement.at for statement in self._person.statements}
        endings = []
        for fact in self._facts.values():
            end = fact.ends_at
            if end is None or end <= times[fact.id.statement]:
                continue
            replacing = self._replaced_by.get(fact.id)
            if replacing is not None and times[replacing] <= end + _AFTER_END:
                continue
            endings.append(_Ending(end + _AFTER_END, fact.id))
        return sorted(endings)

    def _check_ending(self, ending: _Ending) -> None:
        """Look whether the memory of a fact that has ended is still current."""
        set_clock(ending.at)
        memory_id = self._memory_of.get(ending.fact_id, "")
        was_current = memory_id in self._current_once
        self._ended.append(was_current and not self._state().is_current(memory_id))

    def _count_ended_wrongly(self) -> Count:
        """Count the facts that hold, but whose memories time has ended."""
        state = self._state()
        last = self._person.statements[-1]
        results = []
        for fact_id, memory_id in self._memory_of.items():
            is_lasting = not self._facts[fact_id].until
            if is_lasting and not self._is_out(fact_id, last.number):
                is_ended = not state.is_current(memory_id) and not state.is_gone(memory_id)
                results.append(is_ended)
        return Count.of(results)

    def _count_doubted(self) -> Count:
        """Count the memories that are disputed though all their facts hold."""
        state = self._state()
        last = self._person.statements[-1]
        results = []
        for memory_id, fact_ids in self._facts_of.items():
            is_true = all(self._holds(fact_id, last) for fact_id in fact_ids)
            is_disputed = memory_id in state and state[memory_id].is_disputed
            results.append(is_true and is_disputed)
        return Count.of(results)

    # What is worth storing

    def _count_noise(self) -> Count:
        """Count the statements that should not be stored, and those that stored something."""
        noise = [statement for statement in self._person.statements if statement.is_noise]
        return Count.of(self._stored[statement.number].is_new for statement in noise)

    def _count_kept(self) -> Count:
        """Count the statements that should be stored, and those that have a memory of a fact."""
        worth_storing = [
            statement
            for statement in self._person.statements
            if statement.is_worth_storing and statement.facts
        ]
        return Count.of(self._has_memory(statement) for statement in worth_storing)

    def _has_memory(self, statement: Statement) -> bool:
        """Return whether a fact of a statement was stored."""
        return any(fact.id in self._memory_of for fact in statement.facts)

    # Questions

    def _ask(self, question: Question) -> _Answer:
        """Ask a question, and return what it found."""
        answer = self._call(
            "search_memory", query=question.text, user_id=self._person.id, limit=_MAX_HITS
        )
        hits = [*answer["facts"], *answer["memories"]]
        evidence = self._memories_with_evidence(question)
        is_found = None
        if question.is_answerable:
            is_found = any(hit["id"] in evidence for hit in hits)
        if not question.outdated:
            return _Answer(is_found, None, None)

        outdated = self._outdated_memories(question) - evidence
        stale_ranks = []
        current_ranks = [len(hits)]
        for rank, hit in enumerate(hits):
            is_marked = "disputed" in hit or "outdated" in hit
            if hit["id"] in evidence:
                current_ranks.append(rank)
            elif hit["id"] in outdated and not is_marked:
                stale_ranks.append(rank)
        is_stale = bool(stale_ranks) and min(stale_ranks) < min(current_ranks)
        return _Answer(is_found, is_stale, bool(stale_ranks))

    def _memories_with_evidence(self, question: Question) -> set[str]:
        """Return the ids of all memories of the statements that answer a question."""
        memory_ids: set[str] = set()
        for number in question.evidence:
            memory_ids.update(self._stored[number].texts)
        return memory_ids

    def _outdated_memories(self, question: Question) -> set[str]:
        """Return the ids of the memories of facts that the evidence makes outdated."""
        evidence = [self._person.statements[number] for number in question.evidence]
        outdated = outdated_facts(evidence, self._facts)
        wanted = content_stems(question.outdated)
        named = [fact for fact in outdated if wanted & content_stems(fact.value)]
        memory_ids = set()
        for fact in named or outdated:
            if fact.id in self._memory_of:
                memory_ids.add(self._memory_of[fact.id])
        return memory_ids


def memory_of(fact: GoldFact, texts: Mapping[str, str]) -> str:
    """Return the id of the memory that has a fact, among those of its statement; "" without any."""
    best_id = ""
    best_share = -1.0
    for memory_id, text in texts.items():
        share = overlap(f"{fact.subject} {fact.key} {fact.value}", text)
        if share > best_share:
            best_id = memory_id
            best_share = share
    return best_id


def outdated_facts(
    statements: Iterable[Statement], facts: Mapping[FactId, GoldFact]
) -> list[GoldFact]:
    """Return the facts that the facts of statements replace, directly or over several steps."""
    outdated: dict[FactId, GoldFact] = {}
    waiting = [fact for statement in statements for fact in statement.facts]
    while waiting:
        for fact_id in waiting.pop().replaces:
            if fact_id not in outdated:
                outdated[fact_id] = facts[fact_id]
                waiting.append(facts[fact_id])
    return list(outdated.values())


def _first_replacements(person: Person) -> dict[FactId, int]:
    """Return the number of the first statement that replaces each replaced fact."""
    replacements: dict[FactId, int] = {}
    for fact in person.facts():
        for fact_id in fact.replaces:
            replacements.setdefault(fact_id, fact.id.statement)
    return replacements


def _first_wishes(person: Person) -> dict[FactId, int]:
    """Return the number of the first statement that asks to forget each such fact."""
    wishes: dict[FactId, int] = {}
    for statement in person.statements:
        for fact_id in statement.forgets:
            wishes.setdefault(fact_id, statement.number)
    return wishes
