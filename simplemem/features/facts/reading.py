"""Read by rules what a statement says: its words in a normal form, the slot it fills, its memory type.

Also read which slot a question asks for. `words/` has the word lists and patterns, one file per language. A rule that is
in doubt says nothing. Pure.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from simplemem.features.fact import Slot
from simplemem.note.sentences import sentence_spans
from simplemem.note.stems import stem

_MAX_CHARACTERS: Final = 400  # of a text whose lines or sentences are statements
_MAX_STATEMENTS: Final = 5  # of a text; one with more is a document
_MAX_READ: Final = 300  # characters of a statement
_MAX_NEGATION_WORDS: Final = 6  # the first words, in which a negation is looked for
_REMEMBERED: Final = timedelta(days=23)  # from the day of an episode until it is forgotten
_LIKING: Final = "♥"  # stands for all words of liking
_WORDS_FOLDER: Final = Path(__file__).parent / "words"
_WORD: Final = re.compile(
    r"(?<![\w.+-])[\w.+-]+@[\w.-]+\w|\d+(?:[.,:]\d+)*|[^\W\d_]+(?:-[^\W_]+)*|\d\w*|[^\w\s.,;:!?'\"()]"
)
_CONTRACTIONS: Final = {
    "n't": " not",
    "'m": " am",
    "'re": " are",
    "'ve": " have",
    "'ll": " will",
    "can not": "cannot",
}


class _Form(NamedTuple):
    """A way to state the value of a slot, and to ask for it."""

    relation: str  # with the names of the groups of which it is made
    told: re.Pattern[str]
    value: re.Pattern[str]
    limits: str  # the name of the pattern for where or when alone it is so
    asks: re.Pattern[str]


class _Language:
    """The word lists and patterns of one language."""

    def __init__(self, code: str, defaults: Mapping[str, str] | None = None) -> None:
        """Read the file of a language. `defaults` are the patterns that it may leave out."""
        source = (_WORDS_FOLDER / f"{code}.toml").read_text(encoding="utf-8")
        table = tomllib.loads(source)
        self.stems: str = table["stems"]
        self.words = {name: frozenset(words.split()) for name, words in table["words"].items()}
        self.cues = frozenset[str]().union(
            *(self.words[kind] for kind in ("empty", "own", "no", "likes", "telling"))
        )
        self.months = [name[:3] for name in table["words"]["months"].split()]

        alternatives = {name: "|".join(words) for name, words in self.words.items()}
        alternatives["months"] = "|".join(self.months)
        self.sources: dict[str, str] = {**(defaults or {}), **alternatives, **table["patterns"]}
        self.patterns = {name: self._compile(source) for name, source in self.sources.items()}
        self.forms = [self._read_form(slot) for slot in table["slots"]]

    def _read_form(self, slot: Mapping[str, Any]) -> _Form:
        told = slot.get("form")
        if not told:
            told = rf"(?P<who>(?:[\w'-]+ ){{0,4}}?){slot['is']} (?P<rest>.+)"
        return _Form(
            relation=slot["relation"],
            told=self._compile(told),
            value=self._compile(slot.get("what", "(?P<value>.+)")),
            limits=slot.get("limits", "when"),
            asks=self._compile(slot.get("asks", "(?!)")),
        )

    def _compile(self, source: str) -> re.Pattern[str]:
        """Return a pattern with another one in place of each `{name}`, again and again."""
        while True:
            filled = re.sub(r"\{([a-z_]+)\}", lambda name: self.sources[name[1]], source)
            if filled == source:
                return re.compile(source)
            source = filled

    def has(self, kind: str, words: Iterable[str]) -> bool:
        """Return whether one of some words is in a word list."""
        return not self.words[kind].isdisjoint(words)


_ENGLISH: Final = _Language("en")
_LANGUAGES: Final = [_ENGLISH, _Language("es", _ENGLISH.sources)]


def _load_ends() -> list[dict[str, re.Pattern[str]]]:
    """Return how texts say until when something is valid, by language."""
    languages = tomllib.loads((_WORDS_FOLDER / "ends.toml").read_text(encoding="utf-8"))
    return [
        {
            name: re.compile(source.replace("{day}", patterns["day"]))
            for name, source in patterns.items()
        }
        for patterns in languages.values()
    ]


_ENDS: Final = _load_ends()


class Reading(NamedTuple):
    """A statement as the rules read it."""

    text: str
    words: tuple[str, ...]
    """Stems in their order, without the user, articles, negations and what says that it ended."""
    slot: Slot | None
    value: frozenset[str]  # the words of the slot's value
    limit: str  # where or when alone it is so: "on Sundays"
    sign: bool  # false for what is denied, disliked or over
    ended: bool  # "no longer"
    episode: bool  # it happened, and may happen again
    hedged: bool  # a plan, a condition, a question, or what others say
    limited: bool  # "only", "except"
    one_of_several: bool
    """"My brother works at …" may be about another brother, unless something has changed."""


@dataclass(frozen=True)
class _FilledSlot:
    """A slot with the words of its value, and where or when alone it has that value."""

    slot: Slot | None = None
    words: frozenset[str] = frozenset()
    limit: str = ""


_NO_SLOT: Final = _FilledSlot()


def _plain(text: str) -> str:
    """Return the beginning of a text in small letters, with full verbs and without its full stop."""
    plain = " ".join(text[:_MAX_READ].lower().replace("’", "'").split())
    for contraction, full in _CONTRACTIONS.items():
        plain = plain.replace(contraction, full)
    return plain.rstrip(".! ")


@lru_cache(maxsize=1_000)
def _language(plain: str) -> _Language:
    """Return the language of a text, by its words and the forms that it has."""
    words = set(re.findall(r"[^\W\d_]+", plain))

    def count_cues(language: _Language) -> int:
        has_form = any(form.told.match(plain) for form in language.forms)
        return len(words & language.cues) + 2 * has_form

    return max(_LANGUAGES, key=count_cues)


@lru_cache(maxsize=50_000)
def read_statement(text: str) -> Reading:
    """Return what the rules read in a statement."""
    plain = _plain(text)
    language = _language(plain)
    patterns = language.patterns
    without_end, end_count = patterns["ended"].subn(" ", plain)
    statement = " ".join(without_end.split())
    main_clause = patterns["but"].split(statement)[0]
    tokens = _WORD.findall(statement)

    first_words = _WORD.findall(main_clause)[:_MAX_NEGATION_WORDS]
    is_negated = language.has("no", first_words)
    is_disliked = language.has("hates", first_words)
    dateless = patterns["date"].sub(" ", main_clause)
    is_hedged = text.rstrip().endswith("?") or language.has("hedges", _WORD.findall(dateless))
    filled = _NO_SLOT if is_hedged else _read_slot(language, statement, text)

    slot = filled.slot
    has_happened = any(
        patterns[name].search(statement) for name in ("happened", "lately", "dated", "date")
    )
    is_of_several = slot is not None and language.has("several", slot.subject.lower().split())
    return Reading(
        text=text,
        words=_stems(language, tokens),
        slot=slot,
        value=filled.words,
        limit=filled.limit,
        sign=not end_count and is_negated == is_disliked,
        ended=end_count > 0,
        episode=slot is None and has_happened and not end_count,
        hedged=is_hedged,
        limited=language.has("limiting", tokens),
        one_of_several=is_of_several and not patterns["change"].search(plain),
    )


def _read_slot(language: _Language, statement: str, text: str) -> _FilledSlot:
    """Return the slot that the first matching form of a language reads in a statement."""
    for form in language.forms:
        match = form.told.fullmatch(statement)
        if match:
            return _fill_slot(language, form, match, text)

    return _NO_SLOT


def _stems(language: _Language, tokens: Iterable[str]) -> tuple[str, ...]:
    """Return the words that tell a statement from others. All words of liking are one."""
    dropped = language.words["empty"] | language.words["no"]
    liking = language.words["likes"] | language.words["hates"]
    words = list[str]()
    for token in tokens:
        if token in dropped:
            continue
        if token in liking:
            words.append(_LIKING)
        else:
            words.append(stem(token, language.stems) if token.isalpha() else token)
    return tuple(words)


def _fill_slot(language: _Language, form: _Form, match: re.Match[str], text: str) -> _FilledSlot:
    """Return the slot that a form reads in a statement; an empty one if it is in doubt."""
    parts = match.groupdict()
    has_noun = "noun" in parts
    if not has_noun and language.patterns["dated"].search(parts["rest"]):
        return _NO_SLOT

    rest, limit = _split_limit(language, parts["rest"], form.limits)
    value_match = form.value.fullmatch(rest)
    subject = _read_subject(language, parts.get("of") or parts["who"])
    if value_match is None or subject is None:
        return _NO_SLOT

    value = value_match["value"]
    relation = form.relation.format(**parts | value_match.groupdict())
    relation = relation.replace("favorite", "favourite")
    words = frozenset(_stems(language, _WORD.findall(value)))
    if not words or _is_unclear(language, subject, relation, value):
        return _NO_SLOT
    if _is_beside_the_point(language, relation, value, text):
        return _NO_SLOT
    if has_noun and not _is_value(language, relation, value, text):
        return _NO_SLOT
    return _FilledSlot(
        Slot(_as_written(subject, text), relation, _as_written(value, text)), words, limit
    )


def _is_unclear(language: _Language, subject: str, relation: str, value: str) -> bool:
    """Return whether a value is two values or a guess, or its subject is several persons."""
    if language.patterns["both"].search(value):
        return True
    if language.has("hedges", language.patterns["date"].sub("", value).split()):
        return True
    # Two sisters have two names.
    return relation == "name" and language.has("several", subject.split())


def _is_beside_the_point(language: _Language, relation: str, value: str, text: str) -> bool:
    """Return whether a value is no place to live in ("moved to the sales team") or no employer ("work for fun")."""
    first, *others = value.split()
    if relation == "works at":
        return first in language.words["no_employers"]
    if relation != "lives in":
        return False

    has_article = first in language.words["own"]
    is_named = any(word[0].isupper() for word in _as_written(value, text).split()[1:2])
    is_place = is_named or language.has("places", others[:4])
    return first in language.words["no_places"] or (has_article and not is_place)


def _is_value(language: _Language, noun: str, value: str, text: str) -> bool:
    """Return whether a value says which one a noun is, not what it is like.

    That is the name of a person, and a number or a day for what is measured.
    """
    if noun in language.words["people"]:
        return _as_written(value, text)[0].isupper()
    if noun.split()[-1] in language.words["measured"]:
        has_digit = any(character.isdigit() for character in value)
        words = value.split()
        return has_digit or language.has("weekdays", words) or language.has("months", words)

    if language.patterns["adjectives"].search(noun):
        return True
    return language.patterns["quality"].fullmatch(value) is None


def _split_limit(language: _Language, rest: str, limits: str) -> tuple[str, str]:
    """Return a value without what is behind it, and the limit that is there, or ""."""
    rest = language.patterns["tail"].sub("", f"{rest} ").strip()
    if limits == "limit":
        rest = language.patterns["but"].split(rest)[0].strip()
    match = language.patterns[limits].search(rest) if limits else None
    if match is None or match.start() == 0:
        return rest, ""
    return rest[: match.start()].strip(), match[0].strip()


def _read_subject(language: _Language, who: str) -> str | None:
    """Return whom a sentence is about: "" for the user, None if it does not say."""
    found = re.findall(r"[\w-]+", who.replace("'s ", " "))
    words = [word for word in found if word not in language.words["own"]]
    if any(language.has(kind, words) for kind in ("pronouns", "hedges", "no", "past")):
        return None
    ignored = language.words["self"] | language.words["empty"]
    return " ".join(word for word in words if word not in ignored)


def _as_written(words: str, text: str) -> str:
    """Return words with the capitals that they have in a text."""
    lower = text.lower()
    start = lower.rfind(words)
    if start < 0 or len(text) != len(lower):
        return words
    return text[start : start + len(words)]


def kind_of(text: str, at: datetime) -> tuple[str, datetime | None]:
    """Return the memory type of a statement made at a time, and until when it is valid, if it says so."""
    plain = _plain(text)
    language = _language(plain)
    patterns = language.patterns
    bound = patterns["bounded"].search(plain)
    if bound is not None:
        end = _day_in(language, plain[bound.end() :], at, ahead=True)
        if end is not None:
            return "fact", end
    if patterns["liking"].search(plain):
        return "preference", None
    if patterns["state"].search(plain) or not read_statement(text).episode:
        return "fact", None

    day = _day_in(language, plain, at, ahead=False)
    # What would be forgotten as soon as it is stored is stored as a fact.
    is_remembered = day is not None and at - day < _REMEMBERED
    return ("episode", day) if is_remembered else ("fact", None)


def states_end(text: str, *, is_ahead: bool) -> bool:
    """Return whether a text says until when something is valid; a duration counts if its end is ahead."""
    plain = " ".join(text[:_MAX_READ].lower().replace("’", "'").split())
    patterns = [language["end"] for language in _ENDS]
    if is_ahead:
        patterns += [language["duration"] for language in _ENDS]
    return any(pattern.search(plain) for pattern in patterns)


def _day_in(language: _Language, plain: str, at: datetime, *, ahead: bool) -> datetime | None:
    """Return the end of the day that a sentence names.

    A day without a year is the next one with `ahead`, else the last one.
    """
    match = language.patterns["date"].search(plain)
    if match is None:
        is_lately = not ahead and language.patterns["lately"].search(plain)
        return at if is_lately else None

    parts = {name.rstrip("23"): text for name, text in match.groupdict().items() if text}
    month = int(parts["month"]) if "month" in parts else language.months.index(parts["name"]) + 1
    if "year" in parts:
        return _end_of_day(int(parts["year"]), month, int(parts["day"]))

    other_year = at.year + 1 if ahead else at.year - 1
    for year in (at.year, other_year):
        day = _end_of_day(year, month, int(parts["day"]))
        if day is None:
            continue
        if day >= at if ahead else day <= at + timedelta(days=1):
            return day
    return None


def _end_of_day(year: int, month: int, day: int) -> datetime | None:
    """Return the end of a day, None if there is no such day."""
    try:
        return datetime(year, month, day, 23, 59, 59, tzinfo=UTC)
    except ValueError:
        return None


def statements_in(text: str) -> list[str] | None:
    """Return the statements of a short text, word for word; None if it is a document."""
    if len(text) > _MAX_CHARACTERS:
        return None

    statements = dict[str, None]()
    for line in text.splitlines():
        for start, stop in sentence_spans(line) or [(0, len(line))]:
            statement = " ".join(line[start:stop].split())
            if re.search(r"\w", statement):
                statements[statement] = None
    return list(statements) if 0 < len(statements) <= _MAX_STATEMENTS else None


def drawn_from(text: str) -> list[str]:
    """Return the sentences of a long text in which somebody states a slot or a liking of their own."""
    bare = re.sub(r"(?ms)^(?:```|~~~).*?(?:^(?:```|~~~)|\Z)|^[ \t]*[>#|].*?$", "", text)
    sentences = dict[str, None]()
    for start, stop in sentence_spans(bare):
        sentence = " ".join(bare[start:stop].split())
        if len(sentence) < _MAX_READ and _is_own(sentence):
            sentences[sentence] = None
    return list(sentences)


def _is_own(sentence: str) -> bool:
    """Return whether a sentence is in the first person, and states a slot or a liking."""
    plain = _plain(sentence)
    for language in _LANGUAGES:
        if language.patterns["first_person"].match(plain):
            break
    else:
        return False

    reading = read_statement(sentence)
    if reading.hedged:
        return False
    return reading.slot is not None or language.patterns["liking"].search(plain) is not None


def to_forget(text: str) -> str | None:
    """Return what a text asks to forget, None if it asks for nothing."""
    plain = _plain(text)
    for language in _LANGUAGES:
        request = language.patterns["forget"].fullmatch(plain)
        if request:
            return request[1]

    return None


@lru_cache(maxsize=100)
def asked_slot(question: str) -> frozenset[str]:
    """Return the first words of the relations that a question may ask for."""
    plain = _plain(question).strip("?¿ ")
    heads = set[str]()
    for language in _LANGUAGES:
        for form in language.forms:
            match = form.asks.search(plain)
            if match:
                noun = match.groupdict().get("noun", "")
                heads.add(_head(form.relation.replace("{noun}", noun)))
    return frozenset(heads)


def _head(relation: str) -> str:
    """Return the first word of a relation, in one spelling."""
    return relation.partition("/")[0].split(" ")[0].replace("favorite", "favourite")


def answers(question: str, reading: Reading) -> float:
    """Return from 0 to 1 how well a statement fills the slot that a question asks for."""
    slot = reading.slot
    if slot is None or not reading.sign or _head(slot.relation) not in asked_slot(question):
        return 0.0

    language = _language(_plain(question))
    asked = read_statement(question).words
    subject = set(_stems(language, _WORD.findall(slot.subject.lower())))
    if not subject.issubset(asked):
        return 0.0
    relation = set(_stems(language, _WORD.findall(slot.relation.lower())))
    return 0.5 + 0.5 * len(relation.intersection(asked)) / max(1, len(relation))


def names_numbers(text: str, number: str) -> bool:
    """Return whether a number is part of a name, as in "step 2", "Flight 3" or "3 March"."""
    named = _language(_plain(text)).patterns["named"]
    return named.search(text[:_MAX_READ].replace(number, "№", 1)) is not None
