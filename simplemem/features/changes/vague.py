"""Find earlier facts that a statement may outdate, where it names neither their thing nor value.

People correct themselves ("no sorry, it's the 6th"), move an appointment ("they pushed it a week"),
tell that something ended ("the Astra's gone") or that a person died. Such a statement says little
of what it is about. The facts that it may be about are those with the rarest words in common; for a
correction, those of the message before; for an appointment, the one that lies ahead. They are in
doubt, and never replaced: only a reader can tell. `cues/` has the words, one file per language.
Pure, but for reading those files on first use.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple

from simplemem.note.small_letters import in_small_letters
from simplemem.note.stems import MARKS, stem
from simplemem.note.words import STOP_WORDS, STOP_WORDS_BY_LANGUAGE, without_accents

_CUES_FOLDER: Final = Path(__file__).parent / "cues"
_LANGUAGE_CODES: Final = {"en": "", "es": "es", "de": "de", "fr": "fr"}  # the stemmers' names
_KINDS: Final = ("correction", "moved", "died", "home", "ended", "returned", "changed")
_MAX_READ: Final = 400  # characters of a statement
_MAX_CORRECTED_AGE: Final = timedelta(days=7)  # of a message that a correction is about
_MAX_DIFFERENCE: Final = 0.15  # of two amounts that may be of the same thing
_MAX_MESSAGE_TIME: Final = timedelta(seconds=1)  # between the facts of one message
_MAX_FACTS_OF_WORD: Final = 2  # that have a word, if the word alone tells which fact is meant
_MIN_SHARE_OF_BEST: Final = 0.7  # of the score of the fact that is named best
_MAX_RARE: Final = 3  # facts that have a word by which facts belong together
_MIN_BEGINNING: Final = 5  # letters of a word at the beginning of a compound
_MARKS_OF_STEMS: Final = "".join(MARKS.values())  # at the end of a stem that is not English
_MAX_IN_DOUBT: Final = 3  # facts that one statement puts in doubt, unless somebody died
_WORD: Final = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_NUMBER: Final = re.compile(r"\d+(?:[.,:]\d+)*")
# "Beth's", "I've", "6th": endings that are no words.
_ENDING: Final = re.compile(r"(?<=\w)['’][a-z]{1,2}\b|(?<=\d)(?:st|nd|rd|th)\b")
_LONG_NUMBER: Final = re.compile(r"(?<![\d.,:])\d{3,}(?:[.,]\d+)*\b|(?<![\d.,:])\d{1,3}[.,]\d{3}\b")
# "131/84" and "148 over 94": two numbers of one measurement, such as a blood pressure.
_PAIR: Final = re.compile(
    r"(?<![\d/.,])([89]\d|[12]\d\d)(?:/| (?:over|zu|sobre|sur) )(\d{2,3})(?![\d/])"
)
_AMOUNT: Final = re.compile(r"(?<![\d.,:])(\d{1,3})[.,](\d{3})\b|(?<![\d.,:])(\d{2,4}) ?k\b")
_MEASURED: Final = re.compile(r"\b([^\W\d_]{3,}) (?:\S{1,5} ){0,2}(\d+(?:[.,]\d+)*)(?![\d:/.-])")


class Mention(NamedTuple):
    """An earlier fact, as far as a vague statement may be about it."""

    statement: str
    stated: datetime | None
    ends: datetime | None  # of an appointment: the end of its day


class VagueChange(NamedTuple):
    """What a statement says became outdated, without saying of what exactly.

    `kind` is "correction", "moved" (an appointment), "died", "home" (somebody moved), "ended",
    "returned", "changed" or "measured" (only numbers tell, as in "the TSH is 3.1").
    """

    kind: str
    words: frozenset[str]  # the stems of words that may name it
    numbers: frozenset[str]
    measured: frozenset[tuple[str, str]] = frozenset()  # the stem of a word, and its number
    amounts: frozenset[int] = frozenset()  # of a thousand or more
    denied: frozenset[str] = frozenset()  # numbers that are wrong, as in "from 7 and not from 8"


@dataclass(frozen=True)
class _Cues:
    """The patterns of one language, and its words that name nothing."""

    stemmer: str
    kinds: Mapping[str, re.Pattern[str]]  # in the order in which they are tried
    home_words: frozenset[str]  # the stems of words that tell of a home
    hedged: re.Pattern[str]
    joint: re.Pattern[str]  # a word between two main clauses
    denied: re.Pattern[str]  # a number that the statement says is wrong, in its only group
    dependent: re.Pattern[str]  # a sentence that is understood only with the one before it
    ignored: frozenset[str]


@lru_cache(maxsize=5_000)
def read_vague_change(statement: str) -> VagueChange | None:
    """Return what a statement says became outdated, None if it says no such thing.

    A question, a plan, a condition and hearsay say nothing of the kind.
    """
    text = in_small_letters(statement[:_MAX_READ])
    cues = _language_of(text)
    numbers = frozenset(_NUMBER.findall(text))
    denied = frozenset(cues.denied.findall(text))
    for kind, pattern in cues.kinds.items():
        match = pattern.search(text)
        if match is None:
            continue
        clause = _clause_of(cues, text, match)
        if kind != "correction" and cues.hedged.search(clause):
            continue
        words = cues.home_words
        if kind != "home":
            words = _naming_words_in(clause, cues) or naming_words(statement)
        return VagueChange(kind, words, numbers, _pairs_in(text), _amounts_in(statement), denied)

    if denied and numbers != denied and not cues.hedged.search(text):
        return VagueChange("measured", naming_words(statement), numbers, denied=denied)
    measured = _measured_in(statement)
    amounts = _amounts_in(statement)
    if not (measured or amounts) or cues.hedged.search(text):
        return None
    return VagueChange("measured", frozenset(), frozenset(), measured, amounts)


def _clause_of(cues: _Cues, text: str, match: re.Match[str]) -> str:
    """Return the part of a text with a match, between words such as "and"."""
    earlier = [joint.end() for joint in cues.joint.finditer(text, 0, match.start())]
    start = max(earlier, default=0)
    joint = cues.joint.search(text, match.end())
    end = joint.start() if joint is not None else len(text)
    return text[start:end]


def find_possibly_outdated(
    mentions: Sequence[Mention], change: VagueChange, at: datetime
) -> list[int]:
    """Return the indexes of the earlier facts that a vague change may be about, in their order.

    `at` is when the change was stated. The list is empty if no fact stands out.
    """
    named = (
        _with_denied_number(mentions, change)
        or _named_facts(mentions, change, at)
        or _of_other_number(mentions, change)
        or _of_similar_amount(mentions, change)
    )
    return _with_their_messages(mentions, named)


def _with_their_messages(mentions: Sequence[Mention], indexes: Sequence[int]) -> list[int]:
    """Return the facts at `indexes` and those that go on with them, in their order.

    "It's an Astra" goes on with another sentence of the same message.
    """
    whole: set[int] = set(indexes)
    for index, mention in enumerate(mentions):
        if any(_go_on_with_each_other(mention, mentions[named]) for named in indexes):
            whole.add(index)
    return sorted(whole)


def _go_on_with_each_other(one: Mention, other: Mention) -> bool:
    """Return whether two facts are of one message, and one needs the other to be understood."""
    if not _is_same_moment(one.stated, other.stated):
        return False
    return _is_dependent(one.statement) or _is_dependent(other.statement)


@lru_cache(maxsize=20_000)
def _is_dependent(statement: str) -> bool:
    """Return whether a statement is understood only together with the sentence before it."""
    text = in_small_letters(statement[:_MAX_READ])
    return any(cues.dependent.search(text) for cues in _languages_of(text))


def _is_same_moment(one: datetime | None, other: datetime | None) -> bool:
    """Return whether two facts were stated in one message, by when they were."""
    return one is not None and other is not None and abs(one - other) <= _MAX_MESSAGE_TIME


def find_about(mentions: Sequence[Mention], topic: str) -> list[int]:
    """Return the indexes of the facts that are about a topic, in their order; [] if none is.

    The topic is in the messages that have all its words: in those of their facts that have one of
    these words, and in those that go on with them.
    """
    words = naming_words(topic)
    return _with_their_messages(mentions, _in_messages_with(mentions, words))


def _in_messages_with(mentions: Sequence[Mention], words: frozenset[str]) -> list[int]:
    """Return the facts with one of some words, of messages that have all of them."""
    words_of_messages: dict[float, frozenset[str]] = {}
    for mention in mentions:
        moment = _order(mention)
        earlier = words_of_messages.get(moment, frozenset())
        words_of_messages[moment] = earlier | naming_words(mention.statement)

    indexes: list[int] = []
    for index, mention in enumerate(mentions):
        is_shared = bool(words & naming_words(mention.statement))
        if is_shared and words <= words_of_messages[_order(mention)]:
            indexes.append(index)
    return indexes


def _named_facts(mentions: Sequence[Mention], change: VagueChange, at: datetime) -> list[int]:
    """Return the facts that a change names best, as `find_possibly_outdated` does."""
    if change.kind == "measured":
        return _of_other_number(mentions, change)
    if change.kind == "correction":
        mentions = [_if_recent(mention, at) for mention in mentions]

    scores = _scores(mentions, change)
    if change.kind == "died":
        return _with_rare_words(mentions, list(scores))
    if change.kind == "home":
        return sorted(scores)
    if change.kind == "returned":
        return _latest(mentions, list(scores))

    best = _best(scores, mentions)
    if best:
        return best
    if change.kind == "ended":
        return _latest(mentions, _with_all_words(mentions, change.words))
    if change.kind == "correction":
        return _of_latest_message(mentions, change, at)
    if change.kind == "moved":
        return _next_appointment(mentions, at)
    return []


def _with_denied_number(mentions: Sequence[Mention], change: VagueChange) -> list[int]:
    """Return the facts with a number that a change says is wrong, however old they are.

    They share another number or a word with it. If more than two do, none is returned.
    """
    right_numbers = change.numbers - change.denied
    indexes: list[int] = []
    for index, mention in enumerate(mentions):
        numbers = frozenset(_NUMBER.findall(mention.statement))
        has_denied = not change.denied.isdisjoint(numbers)
        shares_number = not right_numbers.isdisjoint(numbers)
        if has_denied and (shares_number or change.words & naming_words(mention.statement)):
            indexes.append(index)
    return indexes if len(indexes) <= _MAX_FACTS_OF_WORD else []


def _of_other_number(mentions: Sequence[Mention], change: VagueChange) -> list[int]:
    """Return the facts that have another number behind one of the measured words."""
    numbers = dict(change.measured)
    indexes: list[int] = []
    for index, mention in enumerate(mentions):
        for word, number in _measured_in(mention.statement):
            if numbers.get(word, number) != number:
                indexes.append(index)
    return indexes if len(indexes) <= _MAX_FACTS_OF_WORD else []


def _of_similar_amount(mentions: Sequence[Mention], change: VagueChange) -> list[int]:
    """Return the facts with another amount that is almost one of the change: 174,000 of 178,000."""
    indexes: list[int] = []
    for index, mention in enumerate(mentions):
        pairs = product(_amounts_in(mention.statement), change.amounts)
        if any(_is_similar(old, new) for old, new in pairs):
            indexes.append(index)
    return _latest(mentions, indexes)


def _is_similar(old: int, new: int) -> bool:
    """Return whether two amounts may be of the same thing, though they differ."""
    return 0 < abs(old - new) <= _MAX_DIFFERENCE * max(old, new)


def _if_recent(mention: Mention, at: datetime) -> Mention:
    """Return a fact, without its words if it is too old for a correction to be about it."""
    if mention.stated and at - mention.stated <= _MAX_CORRECTED_AGE:
        return mention
    return mention._replace(statement="")


def _scores(mentions: Sequence[Mention], change: VagueChange) -> dict[int, float]:
    """Return how much of each fact's words a change names, for facts that share a word with it.

    A word counts less, the more facts have it.
    """
    counts: Counter[str] = Counter()
    words_of_mentions = [naming_words(mention.statement) for mention in mentions]
    for words in words_of_mentions:
        counts.update(_shared_words(words, change.words))

    scores: dict[int, float] = {}
    for index, words in enumerate(words_of_mentions):
        shared = _shared_words(words, change.words)
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


def _best(scores: dict[int, float], mentions: Sequence[Mention]) -> list[int]:
    """Return the facts with the highest score, if that is high enough, at most three."""
    highest = max(scores.values(), default=0.0)
    if highest < 1 / _MAX_FACTS_OF_WORD:
        return []
    best = [index for index, score in scores.items() if score >= highest * _MIN_SHARE_OF_BEST]
    newest_first = sorted(best, key=lambda index: _order(mentions[index]), reverse=True)
    return sorted(newest_first[:_MAX_IN_DOUBT])


def _with_rare_words(mentions: Sequence[Mention], indexes: Sequence[int]) -> list[int]:
    """Return the facts at `indexes`, and those with a word that else only these have.

    So what a person had died of is found, though a fact does not name the person.
    """
    counts: Counter[str] = Counter()
    words_of_mentions = [naming_words(mention.statement) for mention in mentions]
    for words in words_of_mentions:
        counts.update(words)
    rare_words = frozenset[str]()
    for index in indexes:
        rare_words |= {word for word in words_of_mentions[index] if counts[word] <= _MAX_RARE}

    found = set(indexes)
    for index, words in enumerate(words_of_mentions):
        if words & rare_words:
            found.add(index)
    return sorted(found)


def _with_all_words(mentions: Sequence[Mention], words: frozenset[str]) -> list[int]:
    """Return the facts that have all of some words; none for no words."""
    if not words:
        return []
    return [
        index for index, mention in enumerate(mentions) if words <= naming_words(mention.statement)
    ]


def _latest(mentions: Sequence[Mention], indexes: Sequence[int]) -> list[int]:
    """Return those facts at `indexes` that were stated last."""
    latest = max((_order(mentions[index]) for index in indexes), default=0.0)
    return [index for index in indexes if _order(mentions[index]) == latest]


def _of_latest_message(mentions: Sequence[Mention], change: VagueChange, at: datetime) -> list[int]:
    """Return the facts of the latest message, unless it is older than a week.

    If the correction has a number, only facts with the same number are returned, or with any.
    """
    stated = [mention.stated for mention in mentions if mention.stated and mention.stated < at]
    latest = max(stated, default=None)
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
    same_number = []
    any_number = []
    for index in indexes:
        stated_numbers = frozenset(_NUMBER.findall(mentions[index].statement))
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
    return [max(ahead, key=lambda index: _order(mentions[index]))]


def _order(mention: Mention) -> float:
    """Return what facts are ordered by: when they were stated."""
    return mention.stated.timestamp() if mention.stated else 0.0


@lru_cache(maxsize=20_000)
def naming_words(statement: str) -> frozenset[str]:
    """Return the stems of the words of a statement that may name what it is about."""
    text = in_small_letters(statement[:_MAX_READ])
    return _naming_words_in(text, _language_of(text))


def _naming_words_in(text: str, cues: _Cues) -> frozenset[str]:
    """Return the stems of the naming words of a text in small letters, in a language."""
    stems = set[str](_LONG_NUMBER.findall(text))
    for word in _WORD.findall(_ENDING.sub("", text)):
        if not _is_empty(cues, word):
            stems.add(stem(word, cues.stemmer))
    return frozenset(stems)


@lru_cache(maxsize=20_000)
def _measured_in(statement: str) -> frozenset[tuple[str, str]]:
    """Return the words of a statement behind which a number stands, as stems, and the numbers."""
    text = in_small_letters(statement[:_MAX_READ])
    cues = _language_of(text)
    measured = set[tuple[str, str]]()
    for word, number in _MEASURED.findall(text):
        if not _is_empty(cues, word):
            measured.add((stem(word, cues.stemmer), number))
    return frozenset(measured) | _pairs_in(text)


def _pairs_in(text: str) -> frozenset[tuple[str, str]]:
    """Return the pairs of numbers in a text in small letters, as of the word "/"."""
    pairs: list[tuple[str, str]] = _PAIR.findall(text)
    return frozenset(("/", f"{first}/{second}") for first, second in pairs)


@lru_cache(maxsize=20_000)
def _amounts_in(statement: str) -> frozenset[int]:
    """Return the numbers of a thousand or more in a text, "178.000" and "178k" among them."""
    amounts = set[int]()
    for thousands, rest, short in _AMOUNT.findall(in_small_letters(statement[:_MAX_READ])):
        amounts.add(int(f"{short}000" if short else thousands + rest))
    return frozenset(amounts)


def _is_empty(cues: _Cues, word: str) -> bool:
    """Return whether a word in small letters names nothing by which a fact could be known."""
    is_stop_word = without_accents(word) in _stop_words(cues)
    return is_stop_word or word in cues.ignored or len(word) < 2


def _language_of(text: str) -> _Cues:
    """Return the first language with the most stop words in a text in small letters."""
    return _languages_of(text)[0]


def _languages_of(text: str) -> list[_Cues]:
    """Return the languages with the most stop words in a text in small letters."""
    words = [without_accents(word) for word in _WORD.findall(_ENDING.sub("", text))]
    counts: list[int] = []
    for cues in _languages():
        stop_words = _stop_words(cues)
        counts.append(sum(word in stop_words for word in words))

    most = max(counts)
    return [cues for cues, count in zip(_languages(), counts, strict=True) if count == most]


def _stop_words(cues: _Cues) -> frozenset[str]:
    """Return the stop words of a language, without accents."""
    if not cues.stemmer:
        return STOP_WORDS
    return STOP_WORDS_BY_LANGUAGE[cues.stemmer]


@cache
def _languages() -> tuple[_Cues, ...]:
    """Return the cues of all languages. Their files are read by the first call."""
    return tuple(_load(code, stemmer) for code, stemmer in _LANGUAGE_CODES.items())


def _load(code: str, stemmer: str) -> _Cues:
    """Return the cues of a language. Raise KeyError or re.error if its file is not complete."""
    table = tomllib.loads((_CUES_FOLDER / f"{code}.toml").read_text(encoding="utf-8"))
    return _Cues(
        stemmer=stemmer,
        kinds={kind: re.compile(table[kind]) for kind in _KINDS},
        home_words=frozenset(stem(word, stemmer) for word in table["home_words"].split()),
        hedged=re.compile(table["hedged"]),
        joint=re.compile(table["joint"]),
        denied=re.compile(table["denied"]),
        dependent=re.compile(table["dependent"]),
        ignored=frozenset(table["ignored"].split()),
    )
