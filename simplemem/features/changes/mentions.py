"""Find the earlier facts that a vague change may be about, or that are about a topic. Pure.

These are the facts with the rarest words in common; for a correction, those of the message before;
for an appointment, the one that lies ahead. They are in doubt, and never replaced: only a reader
can tell. Facts are given and returned by their indexes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import product
from typing import Final, NamedTuple

from simplemem.features.changes.cues import languages_of
from simplemem.features.changes.statement_words import (
    amounts_in,
    beginning_of,
    measured_in,
    naming_words,
    numbers_in,
)
from simplemem.features.changes.vague import VagueChange
from simplemem.note.stems import MARKS

_MAX_CORRECTED_AGE: Final = timedelta(days=7)  # of a message that a correction is about
_MAX_MESSAGE_TIME: Final = timedelta(seconds=1)  # between the facts of one message
_MAX_DIFFERENCE: Final = 0.15  # of two amounts that may be of the same thing, of the larger one
_MAX_FACTS_OF_WORD: Final = 2  # that have a word, if the word alone tells which fact is meant
_MIN_SHARE_OF_BEST: Final = 0.7  # of the score of the fact that is named best
_MAX_BEST: Final = 3  # facts that are named best
_MAX_FACTS_OF_RARE_WORD: Final = 3  # that have a word by which facts belong together
_MIN_BEGINNING: Final = 5  # letters of a word at the beginning of a compound
_MARKS_OF_STEMS: Final = "".join(MARKS.values())  # at the end of a stem that is not English


class Mention(NamedTuple):
    """An earlier fact, as far as a vague change may be about it."""

    statement: str
    stated: datetime | None
    ends: datetime | None  # of an appointment: the end of its day


def find_possibly_outdated(
    mentions: Sequence[Mention], change: VagueChange, at: datetime
) -> list[int]:
    """Return the indexes of the earlier facts that a vague change may be about, in their order.

    `at` is when the change was stated. The list is empty if no fact stands out.
    """
    named = (
        _with_denied_number(mentions, change)
        or _named_by_words(mentions, change, at)
        or _of_other_number(mentions, change)
        or _of_similar_amount(mentions, change)
    )
    return _with_their_messages(mentions, named)


def find_about(mentions: Sequence[Mention], topic: str) -> list[int]:
    """Return the indexes of the facts that are about a topic, in their order; [] if none is.

    The topic is in the messages that have all its words: in those of their facts that have one of
    these words, and in those that go on with them.
    """
    topic_words = naming_words(topic)
    words_of_messages = defaultdict[float, set[str]](set)
    for mention in mentions:
        words_of_messages[_moment_of(mention)] |= naming_words(mention.statement)

    named: list[int] = []
    for index, mention in enumerate(mentions):
        has_word = not topic_words.isdisjoint(naming_words(mention.statement))
        if has_word and topic_words <= words_of_messages[_moment_of(mention)]:
            named.append(index)
    return _with_their_messages(mentions, named)


# Facts that a change names by words


def _named_by_words(mentions: Sequence[Mention], change: VagueChange, at: datetime) -> list[int]:
    """Return the facts that the words of a change name best, as its kind demands."""
    if change.kind == "measured":
        return []  # Only numbers tell.

    candidates: Iterable[int] = range(len(mentions))
    if change.kind == "correction":
        candidates = _recent(mentions, at)
    scores = _scores(mentions, candidates, change.words)
    named = list(scores)

    if change.kind == "died":
        return _with_rare_words(mentions, named)
    if change.kind == "home":
        return named
    if change.kind == "returned":
        return _latest(mentions, named)
    return _best(mentions, scores) or _if_none_is_named(mentions, change, at)


def _if_none_is_named(mentions: Sequence[Mention], change: VagueChange, at: datetime) -> list[int]:
    """Return the facts that a change may be about if its words name none of them well enough."""
    if change.kind == "ended":
        return _latest(mentions, _with_all_words(mentions, change.words))
    if change.kind == "correction":
        return _of_latest_message(mentions, change, at)
    if change.kind == "moved":
        return _next_appointment(mentions, at)
    return []


def _recent(mentions: Sequence[Mention], at: datetime) -> list[int]:
    """Return the facts that are not too old for a correction to be about them."""
    recent: list[int] = []
    for index, mention in enumerate(mentions):
        if mention.stated is not None and at - mention.stated <= _MAX_CORRECTED_AGE:
            recent.append(index)
    return recent


def _scores(
    mentions: Sequence[Mention], candidates: Iterable[int], words: frozenset[str]
) -> dict[int, float]:
    """Return how well some words name each candidate; one that shares no word has no score.

    A word counts less, the more candidates have it. The scores are in the order of the candidates.
    """
    shared_words: dict[int, frozenset[str]] = {}
    counts = Counter[str]()
    for index in candidates:
        shared = _shared_words(naming_words(mentions[index].statement), words)
        shared_words[index] = shared
        counts.update(shared)

    scores: dict[int, float] = {}
    for index, shared in shared_words.items():
        if shared:
            scores[index] = sum(1 / counts[word] for word in shared)
    return scores


def _shared_words(words: frozenset[str], named: frozenset[str]) -> frozenset[str]:
    """Return those of the named words that are among some words, alone or in a compound."""
    return frozenset(word for word in named if word in words or _begins_any(word, words))


def _begins_any(word: str, compounds: frozenset[str]) -> bool:
    """Return whether one of some stems begins with another one, as "krankgeschrieben" does."""
    beginning = word.rstrip(_MARKS_OF_STEMS)
    if len(beginning) < _MIN_BEGINNING:
        return False
    return any(compound.startswith(beginning) for compound in compounds)


def _best(mentions: Sequence[Mention], scores: Mapping[int, float]) -> list[int]:
    """Return the facts with the highest score, if that is high enough.

    Of more than three, the newest are returned.
    """
    highest = max(scores.values(), default=0.0)
    if highest < 1 / _MAX_FACTS_OF_WORD:
        return []
    best = [index for index, score in scores.items() if score >= highest * _MIN_SHARE_OF_BEST]
    newest_first = sorted(best, key=lambda index: _moment_of(mentions[index]), reverse=True)
    return sorted(newest_first[:_MAX_BEST])


def _with_rare_words(mentions: Sequence[Mention], indexes: Sequence[int]) -> list[int]:
    """Return the facts at `indexes`, and those that share a rare word with them.

    So what a person had died of is found, though a fact does not name the person.
    """
    counts = Counter[str]()
    for mention in mentions:
        counts.update(naming_words(mention.statement))
    rare_words = set[str]()
    for index in indexes:
        for word in naming_words(mentions[index].statement):
            if counts[word] <= _MAX_FACTS_OF_RARE_WORD:
                rare_words.add(word)

    related = set(indexes)
    for index, mention in enumerate(mentions):
        if not rare_words.isdisjoint(naming_words(mention.statement)):
            related.add(index)
    return sorted(related)


def _with_all_words(mentions: Sequence[Mention], words: frozenset[str]) -> list[int]:
    """Return the facts that have all of some words; none for no words."""
    if not words:
        return []
    return [
        index for index, mention in enumerate(mentions) if words <= naming_words(mention.statement)
    ]


# Facts that a change names by numbers


def _with_denied_number(mentions: Sequence[Mention], change: VagueChange) -> list[int]:
    """Return the facts with a number that a change says is wrong, however old they are.

    They share another number or a word with it. If more than two do, none is returned.
    """
    right_numbers = change.numbers - change.denied
    indexes: list[int] = []
    for index, mention in enumerate(mentions):
        numbers = numbers_in(mention.statement)
        if change.denied.isdisjoint(numbers):
            continue
        shares_number = not right_numbers.isdisjoint(numbers)
        if shares_number or change.words & naming_words(mention.statement):
            indexes.append(index)
    return _unless_many(indexes)


def _of_other_number(mentions: Sequence[Mention], change: VagueChange) -> list[int]:
    """Return the facts that have another number behind one of the measured words.

    If more than two have, none is returned.
    """
    new_numbers = defaultdict[str, set[str]](set)
    for word, number in change.measured:
        new_numbers[word].add(number)

    indexes: list[int] = []
    for index, mention in enumerate(mentions):
        if _differs_in_number(mention.statement, new_numbers):
            indexes.append(index)
    return _unless_many(indexes)


def _differs_in_number(statement: str, new_numbers: Mapping[str, set[str]]) -> bool:
    """Return whether a statement has a number behind a word of which a new number is another one.

    "I don't start on the 4th, I start on the 18th" has two numbers of one word.
    """
    for word, number in measured_in(statement):
        if any(new_number != number for new_number in new_numbers.get(word, ())):
            return True
    return False


def _unless_many(indexes: list[int]) -> list[int]:
    """Return the facts at `indexes`, [] if they are too many to tell which of them is meant."""
    return indexes if len(indexes) <= _MAX_FACTS_OF_WORD else []


def _of_similar_amount(mentions: Sequence[Mention], change: VagueChange) -> list[int]:
    """Return the latest facts with an amount that is almost one of the change.

    So 174,000 is found for 178,000.
    """
    indexes: list[int] = []
    for index, mention in enumerate(mentions):
        pairs = product(amounts_in(mention.statement), change.amounts)
        if any(_is_similar(old, new) for old, new in pairs):
            indexes.append(index)
    return _latest(mentions, indexes)


def _is_similar(old: int, new: int) -> bool:
    """Return whether two amounts may be of the same thing, though they differ."""
    return 0 < abs(old - new) <= _MAX_DIFFERENCE * max(old, new)


# Facts by their time


def _latest(mentions: Sequence[Mention], indexes: Sequence[int]) -> list[int]:
    """Return those facts at `indexes` that were stated last."""
    latest = max((_moment_of(mentions[index]) for index in indexes), default=0.0)
    return [index for index in indexes if _moment_of(mentions[index]) == latest]


def _of_latest_message(mentions: Sequence[Mention], change: VagueChange, at: datetime) -> list[int]:
    """Return the facts of the latest message, unless it is older than a week.

    If the correction has numbers, only facts with one of them are returned, or else with any.
    """
    earlier = [mention.stated for mention in mentions if mention.stated and mention.stated < at]
    latest = max(earlier, default=None)
    if latest is None or at - latest > _MAX_CORRECTED_AGE:
        return []
    indexes = [index for index, mention in enumerate(mentions) if mention.stated == latest]
    if not change.numbers:
        return indexes
    return _with_number(mentions, indexes, change.numbers)


def _with_number(
    mentions: Sequence[Mention], indexes: Sequence[int], numbers: frozenset[str]
) -> list[int]:
    """Return the facts at `indexes` that have one of some numbers, or else those that have any."""
    same_number: list[int] = []
    any_number: list[int] = []
    for index in indexes:
        stated_numbers = numbers_in(mentions[index].statement)
        if stated_numbers & numbers:
            same_number.append(index)
        if stated_numbers:
            any_number.append(index)
    return same_number or any_number


def _next_appointment(mentions: Sequence[Mention], at: datetime) -> list[int]:
    """Return the appointment ahead that was stated last, in a list, [] if there is none."""
    ahead = [index for index, mention in enumerate(mentions) if mention.ends and mention.ends >= at]
    if not ahead:
        return []
    return [max(ahead, key=lambda index: _moment_of(mentions[index]))]


def _moment_of(mention: Mention) -> float:
    """Return when a fact was stated, in seconds since 1970; 0 if that is unknown."""
    return mention.stated.timestamp() if mention.stated else 0.0


# Facts of one message


def _with_their_messages(mentions: Sequence[Mention], indexes: Sequence[int]) -> list[int]:
    """Return the facts at `indexes` and those that go on with them, in their order.

    "It's an Astra" goes on with another sentence of the same message.
    """
    related = set(indexes)
    for index, mention in enumerate(mentions):
        if any(_go_on_with_each_other(mention, mentions[named]) for named in indexes):
            related.add(index)
    return sorted(related)


def _go_on_with_each_other(one: Mention, other: Mention) -> bool:
    """Return whether two facts are of one message, and one needs the other to be understood."""
    if not _is_same_moment(one.stated, other.stated):
        return False
    return _is_dependent(one.statement) or _is_dependent(other.statement)


def _is_same_moment(one: datetime | None, other: datetime | None) -> bool:
    """Return whether two facts were stated in one message, by when they were."""
    if one is None or other is None:
        return False
    return abs(one - other) <= _MAX_MESSAGE_TIME


@lru_cache(maxsize=20_000)
def _is_dependent(statement: str) -> bool:
    """Return whether a statement is understood only together with the sentence before it."""
    text = beginning_of(statement)
    return any(cues.dependent.search(text) for cues in languages_of(text))
