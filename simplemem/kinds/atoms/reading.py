"""What a statement says, by rules: its words in a normal form, the slot it fills, its kind, and which slot a question asks
for. Cue words and patterns stand in `words/`, a file a language. A rule that is in doubt says nothing. Pure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from simplemem.kinds.atoms.atom import Slot
from simplemem.note.passages import sentence_spans
from simplemem.note.words import stem

_MOST_CHARACTERS, _MOST_STATEMENTS = 400, 5  # of a text whose lines or sentences are statements; more is a document
_MOST_READ: Final = 300  # characters of a statement that the rules look at
_REMEMBERED: Final = timedelta(days=23)  # after its day, until an episode fades
_PASSIVE: Final = ("is", "are", "am", "be", "been", "being")  # before what did not happen once
_SEVERAL: Final = re.compile(r"(?<!\S)(?:and|or|both|y|o)(?!\S)")
_BEFORE_NUMBERS: Final = re.compile(r"\w+s|have|had|for|at|on|to|by|of|over|under|about|only|every|port|up|than|or")
_LIKING: Final = "♥"  # stands for every word of liking
_WORD: Final = re.compile(
    r"(?<![\w.+-])[\w.+-]+@[\w.-]+\w|\d+(?:[.,:]\d+)*|[^\W\d_]+(?:-[^\W_]+)*|\d\w*|[^\w\s.,;:!?'\"()]"
)
_SHORT: Final = {"n't": " not", "'m": " am", "'re": " are", "'ve": " have", "'ll": " will", "can not": "cannot"}


class _Language:
    """The cue words and patterns of one language."""

    def __init__(self, code: str, told: Mapping[str, Any]) -> None:
        self.code, self._words = code, {name: frozenset(words.split()) for name, words in told["words"].items()}
        self.patterns = {name: re.compile(source) for name, source in told["patterns"].items()}
        about = told["attributes"]
        self.attributes = [re.compile(_filled(about[name], about)) for name in ("is", "turned")]
        self.attribute = re.compile(
            rf"\b(?:{about['nouns']}|(?:{about['adjectives']}) [\w-]+|[\w-]+ (?:{about['adjectives']}))\b"
        )
        self.asks, self.adjectives = re.compile(about["asks"]), re.compile(rf"\b(?:{about['adjectives']})\b")
        self.slots = [
            (each["relation"], re.compile(rf"(?P<who>(?:[\w'-]+ ){{0,4}}?){each['is']} (?P<rest>.+)"),
             re.compile(each.get("what", "(?P<value>.+)")), re.compile(each["asks"]), "by_verb" in each)
            for each in told["slots"]
        ]  # fmt: skip
        months = "|".join(name[:3] for name in told["words"]["months"].split())
        self.months = months.split("|")
        self.date = re.compile(
            rf"\b(?P<year>\d{{4}})-(?P<month>\d\d)-(?P<day>\d\d)\b"
            rf"|\b(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?(?: of| de)? (?P<name>{months})\w*\.?(?:,?(?: de)? (?P<year2>\d{{4}}))?"
            rf"|\b(?P<name3>{months})\w* (?P<day3>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<year3>\d{{4}}))?"
        )

    def has(self, kind: str, word: str) -> bool:
        return word in self._words[kind]

    def words(self, kind: str) -> frozenset[str]:
        return self._words[kind]


def _filled(source: str, about: Mapping[str, str]) -> str:
    return source.replace("{nouns}", about["nouns"]).replace("{adjectives}", about["adjectives"])


_FOLDER: Final = Path(__file__).parent / "words"
_LANGUAGES: Final = [
    _Language(code, tomllib.loads((_FOLDER / f"{code}.toml").read_text(encoding="utf-8"))) for code in ("en", "es")
]


class Reading(NamedTuple):
    """A statement as the rules see it."""

    text: str
    words: tuple[str, ...]  # stems in their order, without the scope itself, articles, negation and what ended it
    slot: Slot | None
    value: frozenset[str]  # the words of the slot's value
    limit: str  # where or when alone it holds: "on Sundays"
    sign: bool  # false for what is denied, disliked or over
    ended: bool  # "no longer"
    episode: bool  # it happened, and may happen again
    hedged: bool  # a plan, a condition, a question, another's word
    limited: bool  # "only", "except"
    one_of_several: bool  # "my brother works at …" may be of another brother, unless something has changed


_Filled = tuple[Slot | None, frozenset[str], str]  # a slot, the words of its value, and where or when alone it is so
_NOTHING: Final[_Filled] = None, frozenset(), ""


def _plain(text: str) -> str:
    said = " ".join(text[:_MOST_READ].lower().replace("’", "'").split())
    for short, full in _SHORT.items():
        said = said.replace(short, full)
    return said.rstrip(".! ")


def _language(said: str) -> _Language:
    words = set(re.findall(r"[^\W\d_]+", said))
    kinds = ("empty", "own", "no", "likes", "telling")
    known = [sum(len(words & each.words(kind)) for kind in kinds) for each in _LANGUAGES]
    slots = [any(pattern.search(said) for _, pattern, *_ in each.slots) for each in _LANGUAGES]
    known = [count + 2 * has_slot for count, has_slot in zip(known, slots, strict=True)]
    return _LANGUAGES[known[1] > known[0]]


@lru_cache(maxsize=50_000)
def read_statement(text: str) -> Reading:
    """What a statement says."""
    said = plain = _plain(text)
    language = _language(said)
    ended = language.patterns["ended"].search(said) is not None
    said = " ".join(language.patterns["ended"].sub(" ", said).split())
    main = language.patterns["but"].split(said)[0]
    tokens = _WORD.findall(said)
    negated = any(language.has("no", word) for word in _WORD.findall(main)[:6])
    hated = any(language.has("hates", word) for word in _WORD.findall(main)[:6])
    hedged = text.rstrip().endswith("?") or any(
        language.has("hedges", word) for word in _WORD.findall(language.date.sub(" ", main))
    )
    slot, value, limit = _NOTHING if hedged else _slot(language, said, text)
    happened = any(
        (language.has("past", word) or re.fullmatch(r"\w{3,}ed", word)) and before not in _PASSIVE
        for before, word in zip(["", *tokens], tokens[:3], strict=False)
    )
    dated = (
        any(language.patterns[name].search(said) for name in ("lately", "dated"))
        or language.date.search(said) is not None
    )
    slot = slot and slot._replace(subject=_as_said(slot.subject, text), object=_as_said(slot.object, text))
    return Reading(
        text, _stems(language, tokens), slot, value, limit,
        sign=not (ended or (negated != hated)), ended=ended, episode=slot is None and (happened or dated) and not ended,
        hedged=hedged, limited=any(language.has("limiting", word) for word in tokens),
        one_of_several=_is_of_several(language, slot.subject if slot else "")
        and not language.patterns["change"].search(plain),
    )  # fmt: skip


def _stems(language: _Language, tokens: list[str]) -> tuple[str, ...]:
    """The words that make a statement what it is. All words of liking are one."""
    code = "" if language.code == "en" else language.code
    kept = (word for word in tokens if not (language.has("empty", word) or language.has("no", word)))
    return tuple(
        _LIKING
        if language.has("likes", word) or language.has("hates", word)
        else stem(word, code)
        if word.isalpha()
        else word
        for word in kept
    )


def _slot(language: _Language, said: str, text: str) -> _Filled:
    """The slot that a sentence fills, the words of its value, and where or when alone that is so."""
    for relation, pattern, what, _, by_verb in language.slots:
        if (found := pattern.fullmatch(said)) is None:
            continue
        rest, limit = _cut(language, found["rest"], "limit" if by_verb else "when" if what.groups < 2 else "")
        told = what.fullmatch(rest)
        subject = _subject(language, found["who"])
        if told is None or subject is None or language.patterns["dated"].search(found["rest"]):
            return _NOTHING
        if by_verb:
            relation = said[found.end("who") : found.start("rest")].strip()
        if "about" in what.groupindex:
            relation = f"{relation.split()[0]}/{told['about']}" if relation == "prefers" else f"uses {told['about']}"
        if relation == "name" and _is_of_several(language, subject):
            return _NOTHING
        return _filled_slot(language, subject, relation, told["value"], limit)
    for pattern in language.attributes:
        if (found := pattern.fullmatch(said)) is not None:
            rest, limit = _cut(language, found["value"], "limit")
            of = found["of"] if "of" in found.groupdict() and found["of"] else found["who"]
            subject = _subject(language, of)
            names_several = found["noun"] == "name" and _is_of_several(language, subject or "")
            if subject is None or names_several or not _is_value(language, found["noun"], rest, text):
                return _NOTHING
            return _filled_slot(language, subject, found["noun"].replace("favorite", "favourite"), rest, limit)
    return _NOTHING


def _is_value(language: _Language, noun: str, value: str, text: str) -> bool:
    """Whether what is said of something is which it is, not what it is like: a name of a person, a number or a day of
    what is measured."""
    if language.has("people", noun):
        at = text.lower().rfind(value.split()[0]) if value.split() else -1
        return at >= 0 and text[at].isupper()
    if language.has("measured", noun.split()[-1]):
        days = (*language.words("weekdays"), *language.words("months"))
        return any(map(str.isdigit, value)) or any(word in days for word in value.split())
    return language.adjectives.search(noun) is not None or language.patterns["quality"].fullmatch(value) is None


def _is_of_several(language: _Language, subject: str) -> bool:
    """Whether somebody may have more than one of whom a sentence is about: two sisters have two names."""
    return any(language.has("several", word) for word in subject.lower().split())


def _cut(language: _Language, rest: str, limits: str) -> tuple[str, str]:
    """A value without what stands behind it, and the limit that does."""
    rest = language.patterns["tail"].sub("", f"{rest} ").strip()
    rest = language.patterns["but"].split(rest)[0].strip() if limits == "limit" else rest
    found = language.patterns[limits].search(rest) if limits else None
    if found is None or not found.start():
        return rest.strip(), ""
    return rest[: found.start()].strip(), found[0].strip()


def _subject(language: _Language, who: str) -> str | None:
    """Whom a sentence is about: "" for the scope itself, None where nobody knows."""
    words = [word for word in re.findall(r"[\w-]+", who.replace("'s ", " ")) if not language.has("own", word)]
    if any(language.has(kind, word) for word in words for kind in ("pronouns", "hedges", "no", "past")):
        return None
    return " ".join(word for word in words if not (language.has("self", word) or language.has("empty", word)))


def _filled_slot(language: _Language, subject: str, relation: str, value: str, limit: str) -> _Filled:
    words = frozenset(_stems(language, _WORD.findall(value)))
    is_doubtful = any(language.has("hedges", word) for word in language.date.sub("", value).split())
    return (
        _NOTHING
        if not words or _SEVERAL.search(value) or is_doubtful
        else (Slot(subject, relation, value), words, limit)
    )


def _as_said(words: str, text: str) -> str:
    """Words with the capitals that they have in a text."""
    at = text.lower().rfind(words)
    return text[at : at + len(words)] if at >= 0 and len(text) == len(text.lower()) else words


def kind_of(text: str, at: datetime) -> tuple[str, datetime | None, datetime | None]:
    """The kind of a statement, and since and until when it holds, as far as it says so."""
    said = _plain(text)
    language = _language(said)
    bound = language.patterns["bounded"].search(said)
    if bound is not None and (until := _day_in(language, said[bound.end() :], at, ahead=True)) is not None:
        return "fact", None, until
    if language.patterns["liking"].search(said):
        return "preference", None, None
    reading = read_statement(text)
    until = _day_in(language, said, at, ahead=False) if reading.episode else None
    if until is not None and at - until < _REMEMBERED:  # what is told now is not forgotten now
        return "episode", None, until
    return "fact", None, None


def _day_in(language: _Language, said: str, at: datetime, *, ahead: bool) -> datetime | None:
    """The end of the day that a sentence names: without a year the next one, or the last."""
    if (found := language.date.search(said)) is None:
        lately = language.patterns["lately"].search(said)
        return None if lately is None or ahead else at
    parts = {name.rstrip("23"): text for name, text in found.groupdict().items() if text}
    month = int(parts["month"]) if "month" in parts else language.months.index(parts["name"]) + 1
    years = [int(parts["year"])] if "year" in parts else [at.year, at.year + (1 if ahead else -1)]
    for year in years:
        try:
            day = datetime.combine(datetime(year, month, int(parts["day"]), tzinfo=UTC), time(23, 59, 59), UTC)
        except ValueError:
            return None
        if "year" in parts or (day >= at if ahead else day <= at + timedelta(days=1)):
            return day
    return None


def _sentences(text: str) -> Iterator[str]:
    for line in text.splitlines():
        spans = sentence_spans(line) or [(0, len(line))]
        yield from (" ".join(line[start:stop].split()) for start, stop in spans if re.search(r"\w", line[start:stop]))


def statements_in(text: str) -> list[str] | None:
    """The statements that a short text is, word for word; None where it is a document."""
    parts = list(dict.fromkeys(_sentences(text))) if len(text) <= _MOST_CHARACTERS else []
    return parts if 0 < len(parts) <= _MOST_STATEMENTS else None


def drawn_from(text: str) -> list[str]:
    """The sentences of a long text in which somebody states a slot or a liking of their own, word for word."""
    found = []
    bare = re.sub(r"(?ms)^(?:```|~~~).*?(?:^(?:```|~~~)|\Z)|^[ \t]*[>#|].*?$", "", text)
    for sentence in (" ".join(bare[start:stop].split()) for start, stop in sentence_spans(bare)):
        said = _plain(sentence)
        if not any(each.patterns["first_person"].match(said) for each in _LANGUAGES):  # most sentences of a document
            continue
        language = _language(said)
        is_own = language.patterns["first_person"].match(said) and len(sentence) < _MOST_READ
        reading = read_statement(sentence) if is_own else None
        if reading and not reading.hedged and (reading.slot or language.patterns["liking"].search(said)):
            found.append(sentence)
    return list(dict.fromkeys(found))


def to_forget(text: str) -> str | None:
    """What a text asks to forget."""
    found = (language.patterns["forget"].fullmatch(_plain(text)) for language in _LANGUAGES)
    return next((each[1] for each in found if each), None)


def asked_slot(question: str) -> frozenset[str]:
    """The relations that a question may ask for."""
    said = _plain(question).rstrip("?¿ ").lstrip("¿ ")
    found = set[str]()
    for language in _LANGUAGES:
        for relation, _, _, asks, by_verb in language.slots:
            if asks.search(said) and not by_verb:
                found |= {relation}
        if language.asks.search(said) and (noun := language.attribute.search(said)):
            found |= {noun[0].replace("favorite", "favourite")}
    return frozenset(found)


@lru_cache(maxsize=100)
def _asked(question: str) -> tuple[_Language, set[str], set[str], bool]:
    """The language of a question, its stems, how the relations it asks for begin, and whether it asks of oneself."""
    said = _plain(question).rstrip("?¿ ").lstrip("¿ ")
    language, is_own = _language(said), re.search(r"\b(?:i|my|me|mi|mis|we|our)\b", said) is not None
    stems = set(_stems(language, _WORD.findall(said)))
    return language, stems, {each.split()[0] for each in asked_slot(question)}, is_own


def answers(question: str, reading: Reading) -> float:
    """How well a statement fills the slot that a question asks for; 0 where it does not."""
    (language, asked, heads, is_own), slot = _asked(question), reading.slot
    if slot is None or not reading.sign or not heads.issuperset(slot.relation.partition("/")[0].split()[:1] or [""]):
        return 0.0
    whom, about = (set(_stems(language, _WORD.findall(each.lower()))) for each in (slot.subject, slot.relation))
    if not whom <= asked:
        return 0.0
    is_fit = whom or is_own or slot.subject == ""
    return (1.0 if is_fit else 0.5) * (0.5 + 0.5 * len(about & asked) / max(1, len(about)))


def names_numbers(text: str, number: str) -> bool:
    """Whether a number of a statement names something, as in "step 2", "Flight 3", "iPhone 12" or "3 March"."""
    language = _language(_plain(text))
    before, _, after = text[:_MOST_READ].partition(number)
    words, following = re.findall(r"[\w'-]+", before), re.findall(r"[^\W\d_]+", after)[:1]
    is_name = any(word != word.lower() for word in words[1:][-1:]) or any(
        language.has("names", w.lower()) for w in words[-1:]
    )
    # "Bell 4 rings": the subject of somebody's or something's own verb.
    is_of_subject = (
        language.code == "en" and len(words) < 4 and not _BEFORE_NUMBERS.fullmatch(words[-1].lower() if words else "")
    )
    is_name = is_name or (is_of_subject and not (words and language.has("self", words[0].lower().split("'")[0])))
    is_day = any(word.lower()[:3] in language.months or language.has("weekdays", word.lower()) for word in following)
    return is_name or is_day or not words
