"""The profile of the user: who the user is, what holds, what is planned, what was said lately.

It is made of the profile's note, the notes of facts, and the slots that the statements of all turns
fill. Questions, opinions and credentials are in none of its parts. Changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

from simplemem.errors import SimplememError
from simplemem.features.answers import ProfileStatement, UserProfile
from simplemem.features.changes import (
    Change,
    StatedSubject,
    find_doubtful,
    read_change,
    subject_of,
)
from simplemem.features.conversations.service import ConversationService
from simplemem.features.conversations.topic import Topic, Turn
from simplemem.features.conversations.trait_reading import read_traits
from simplemem.features.conversations.trait_rules import trait_languages
from simplemem.features.fact import Fact
from simplemem.features.facts.decay import is_current, is_past
from simplemem.features.facts.key_notes import stated_at
from simplemem.features.facts.language import LANGUAGES, plain_text, words_of
from simplemem.features.facts.memory_type import memory_type_of
from simplemem.features.facts.message_rules import names_credential
from simplemem.features.facts.reader import read_text
from simplemem.features.facts.reading import Reading, read_statement
from simplemem.note.secrets import find_secrets

_FIRST_PERSON: Final = frozenset("i we my our yo ich wir mein je nous mon ma".split())
_MAX_INTERESTS: Final = 5  # topics that the profile lists
_MAX_TURNS: Final = 5_000  # the last ones, which are read for statements
_MAX_STATEMENTS: Final = 50  # of each part
_MAX_STATEMENT: Final = 200  # characters
_PLANNED: Final = timedelta(days=60)  # for which a plan without a date is shown
_RECENT: Final = timedelta(days=14)  # for which what happened is shown


@dataclass(frozen=True)
class _Statement:
    """A sentence of the user, with when it was said and until when it holds."""

    text: str
    at: datetime
    end: datetime | None = None
    disputed: datetime | None = None

    def is_past(self, now: datetime) -> bool:
        """Return whether the statement has ended."""
        return is_past(self.end, now)


class _SentenceReading(NamedTuple):
    """What the rules read in a sentence, whenever it was said."""

    sentence: str
    reading: Reading
    change: Change | None
    is_plan: bool
    is_liking: bool  # whether it says what the user likes or dislikes
    is_own_episode: bool  # whether it says what the user did


def describe_user(
    service: ConversationService, at: datetime, *, by_model: bool = False
) -> UserProfile:
    """Return what is known of the user at a time, also as text for a prompt.

    With `by_model`, the configured model writes the text, unless a note that it is made of is
    private; without an answer of the model, the text is that of the rules. `method` says who wrote
    it. Raises SimplememError if the index cannot be brought up to date.
    """
    profile = service.profile()
    all_topics = service.topics(closed=True)
    topics = [topic for topic in all_topics if topic.status != "closed"]

    reader = _StatementReader()
    for turn in _last_turns(all_topics):
        reader.read(turn)
    facts = _current_facts(service.items(Fact), at)
    tasks = [fact for fact in facts if fact.key.startswith("task_")]
    other_facts = [fact for fact in facts if fact not in tasks]

    answer = UserProfile(
        name=profile.user_name,
        preferences=dict(profile.preferences),
        last_updated=profile.modified,
        topics_of_interest=_most_frequent_labels(topics),
        constraints=list(profile.constraints),
        identity=list(profile.identity),
        facts=_rows([*reader.current(at), *map(_as_statement, other_facts)]),
        plans=_rows([*reader.plans(at), *_recent_tasks(tasks, at)]),
        recent=_rows(reader.recent(at)),
        text="",
        method="rules",
    )
    answer["text"] = render_profile(answer)
    if by_model:
        paths = {topic.path for topic in all_topics} | {fact.path for fact in facts}
        if profile.path:
            paths.add(profile.path)
        _write_by_model(service, answer, paths)
    return answer


def _write_by_model(service: ConversationService, answer: UserProfile, paths: set[str]) -> None:
    """Replace the text of a profile by that of the configured model, and say so in `method`.

    Nothing changes without a model, if one of the notes at `paths` is private, or if the model has
    no usable answer.
    """
    chat = service.chat
    if chat is None or not answer["text"] or service.extension.private_among(paths):
        return

    from simplemem.features.conversations.language_model import write_profile

    with suppress(SimplememError):
        text = write_profile(chat, answer["text"])
        if text:
            answer["text"] = text
            answer["method"] = chat.method


def render_profile(profile: UserProfile) -> str:
    """Return a profile as Markdown for a prompt, "" if nothing is known.

    It has a heading for each part that is not empty, and a list item for each statement.
    """
    constraints = []
    for constraint in profile["constraints"]:
        line = f"{constraint['text']} ({constraint['severity']})"
        if "until" in constraint:
            line += f", until {constraint['until']}"
        if "disputed" in constraint:
            line += f", disputed since {constraint['disputed']}"
        constraints.append(line)
    identity = list(profile["identity"])
    if profile["name"]:
        identity.insert(0, f"Name: {profile['name']}")

    parts = {
        "The user": identity,
        "Constraints to respect": constraints,
        "Preferences": list(profile["preferences"].values()),
        "What holds": _lines(profile["facts"]),
        "Planned": _lines(profile["plans"]),
        "Lately": _lines(profile["recent"]),
    }
    sections = []
    for heading, lines in parts.items():
        if lines:
            items = "\n".join(f"- {line}" for line in lines)
            sections.append(f"## {heading}\n{items}")
    return "\n\n".join(sections)


def _lines(rows: Iterable[ProfileStatement]) -> list[str]:
    """Return statements with their days, as lines of text."""
    lines = []
    for row in rows:
        line = f"{row['text']} ({row['since']}"
        if "until" in row:
            line += f", until {row['until']}"
        if "disputed" in row:
            line += f", disputed since {row['disputed']}"
        lines.append(f"{line})")
    return lines


def _rows(statements: Iterable[_Statement]) -> list[ProfileStatement]:
    """Return at most 50 statements as answers have them, the last said first.

    Disputed ones are behind all others.
    """
    newest_first = sorted(statements, key=lambda statement: statement.at, reverse=True)
    ordered = sorted(newest_first, key=lambda statement: statement.disputed is not None)
    return [_row(statement) for statement in ordered[:_MAX_STATEMENTS]]


def _row(statement: _Statement) -> ProfileStatement:
    """Return a statement as answers have it, with its days in local time."""
    row = ProfileStatement(text=statement.text, since=f"{statement.at.astimezone():%Y-%m-%d}")
    if statement.end is not None:
        row["until"] = f"{statement.end:%Y-%m-%d}"
    if statement.disputed is not None:
        row["disputed"] = f"{statement.disputed.astimezone():%Y-%m-%d}"
    return row


def _last_turns(topics: Sequence[Topic]) -> list[Turn]:
    """Return the last turns of all topics, in the order of time."""
    turns = [turn for topic in topics for turn in topic.turns]
    turns.sort(key=lambda turn: (turn.at, turn.id))
    return turns[-_MAX_TURNS:]


class _StatementReader:
    """Reads turns in the order of time. Guards what holds for the user by relation, and plans."""

    def __init__(self) -> None:
        """Make a reader that has read nothing."""
        self._by_slot: dict[str, _Statement] = {}
        self._subjects: dict[str, StatedSubject] = {}
        self._plans = list[_Statement]()
        self._happened = list[_Statement]()

    def read(self, turn: Turn) -> None:
        """Read a turn. A statement replaces an earlier one of the same relation.

        An earlier one that has changed, but for which no new value is read, becomes disputed.
        """
        for read in _read_message(turn.message):
            if read.change is not None:
                self._dispute(read.change, turn.at)
            statement = _statement_at(read.sentence, turn.at)
            if read.is_plan:
                self._plans.append(statement)
            elif read.reading.slot is not None:
                self._read_slot(read, statement)
            elif read.is_own_episode:
                self._happened.append(statement)

    def _read_slot(self, read: _SentenceReading, statement: _Statement) -> None:
        """Enter the value of a slot, or remove it if the statement says that it is not so."""
        reading = read.reading
        slot = reading.slot
        if slot is None or reading.is_one_of_several:
            return
        # The profile's note has the user's name, and what the user prefers.
        is_about_user = not slot.subject and slot.relation != "name"
        if not is_about_user or read.is_liking:
            return

        key = slot.relation
        if reading.is_affirmed:
            self._by_slot[key] = statement
            subject = subject_of(statement.text, slot.relation, slot.object)
            self._subjects[key] = StatedSubject(subject, statement.at.year)
        else:
            self._by_slot.pop(key, None)
            self._subjects.pop(key, None)

    def _dispute(self, change: Change, at: datetime) -> None:
        """Mark what a change puts in doubt. What is disputed already keeps its day."""
        keys = list(self._subjects)
        for index in find_doubtful(list(self._subjects.values()), change):
            key = keys[index]
            earlier = self._by_slot[key]
            disputed = earlier.disputed or at
            self._by_slot[key] = _Statement(earlier.text, earlier.at, earlier.end, disputed)

    def current(self, now: datetime) -> list[_Statement]:
        """Return what holds at a time, by what was read so far."""
        return [statement for statement in self._by_slot.values() if not statement.is_past(now)]

    def plans(self, now: datetime) -> list[_Statement]:
        """Return the plans that are ahead, or were made lately if they name no day."""
        plans = []
        for plan in self._plans:
            is_ahead = plan.end is not None or now - plan.at <= _PLANNED
            if is_ahead and not plan.is_past(now):
                plans.append(plan)
        return plans

    def recent(self, now: datetime) -> list[_Statement]:
        """Return what happened and was said in the last 14 days."""
        return [statement for statement in self._happened if now - statement.at <= _RECENT]


def _statement_at(sentence: str, at: datetime) -> _Statement:
    """Return a sentence as a statement that is made at a time, with its end if it says so."""
    memory_type = memory_type_of(sentence, at)
    end = memory_type.valid_to if memory_type.name == "fact" else None
    return _Statement(sentence, at, end)


@lru_cache(maxsize=20_000)
def _read_message(message: str) -> tuple[_SentenceReading, ...]:
    """Return what the rules read in a message, sentence by sentence.

    Long sentences and those with a credential are left out.
    """
    readings = []
    for sentence in read_text(message).stated:
        is_long = len(sentence) > _MAX_STATEMENT
        if is_long or _has_credential(sentence):
            continue
        is_liking = _is_liking(sentence)
        reading = _SentenceReading(
            sentence=sentence,
            reading=read_statement(sentence),
            change=read_change(sentence),
            is_plan=_is_plan(sentence),
            is_liking=is_liking,
            is_own_episode=not is_liking and _is_own_episode(sentence),
        )
        readings.append(reading)
    return tuple(readings)


def _is_own_episode(sentence: str) -> bool:
    """Return whether a sentence says what the user did or what happened to the user.

    Opinions, constraints and preferences do not.
    """
    if not read_statement(sentence).is_episode or read_traits(sentence):
        return False

    plain = plain_text(sentence)
    is_own = any(language.patterns["first_person"].match(plain) for language in LANGUAGES)
    is_own = is_own or not _FIRST_PERSON.isdisjoint(words_of(plain))
    is_opinion = any(language.patterns["opinion"].search(plain) for language in trait_languages())
    return is_own and not is_opinion


def _is_liking(sentence: str) -> bool:
    """Return whether a sentence says what the user likes or dislikes, in any language."""
    plain = plain_text(sentence)
    return any(language.matches("liking", plain) for language in LANGUAGES)


def _is_plan(sentence: str) -> bool:
    """Return whether a sentence says what the user is going to do, in any language."""
    plain = sentence.replace("’", "'")
    return any(language.patterns["plan"].search(plain) for language in trait_languages())


def _has_credential(text: str) -> bool:
    """Return whether a text names a credential or contains what looks like one."""
    return names_credential(text) or bool(find_secrets(text))


def _current_facts(facts: Iterable[Fact], at: datetime) -> list[Fact]:
    """Return the facts of conversations that hold at a time, without credentials.

    The names of other people and of things are left out too.
    """
    current = []
    for fact in facts:
        is_secret = _has_credential(f"{fact.key.replace('_', ' ')} {fact.value}")
        is_name = fact.key.endswith("name")
        if is_current(fact, at) and not is_secret and not is_name:
            current.append(fact)
    return current


def _as_statement(fact: Fact) -> _Statement:
    """Return a fact of conversations as a statement such as "dentist name: Dr Lind"."""
    text = f"{fact.key.replace('_', ' ')}: {fact.value}"
    return _Statement(text, stated_at(fact), fact.valid_to, fact.disputed)


def _recent_tasks(tasks: Iterable[Fact], at: datetime) -> list[_Statement]:
    """Return the tasks of which the user wanted to be reminded lately."""
    return [
        _Statement(task.value, stated_at(task), task.valid_to)
        for task in tasks
        if at - stated_at(task) <= _PLANNED
    ]


def _most_frequent_labels(topics: Iterable[Topic]) -> list[str]:
    """Return up to five labels, that with the most turns first.

    The turns of topics with the same label are added. Equal ones are in the order of topics. Labels
    without turns are left out.
    """
    turn_counts = Counter[str]()
    for topic in topics:
        turn_counts[topic.label] += len(topic.turns)
    return [label for label, count in turn_counts.most_common(_MAX_INTERESTS) if count]
