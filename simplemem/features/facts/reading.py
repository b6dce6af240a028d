"""What a statement says, by rules: its words in a normal form, the slot it fills, its kind, and which slot a question asks
for. Cue words and patterns stand in `words/`, a file a language. A rule that is in doubt says nothing. Pure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from simplemem.features.fact import Slot
from simplemem.note.sentences import sentence_spans
from simplemem.note.stems import stem

_MOST_CHARACTERS, _MOST_STATEMENTS = (
    400,
    5,
)  # of a text whose lines or sentences are statements; more is a document
_MOST_READ: Final = 300  # characters of a statement that the rules look at
_REMEMBERED: Final = timedelta(days=23)  # after its day, until an episode fades
_LIKING: Final = "♥"  # stands for every word of liking
_WORD: Final = re.compile(
    r"(?<![\w.+-])[\w.+-]+@[\w.-]+\w|\d+(?:[.,:]\d+)*|[^\W\d_]+(?:-[^\W_]+)*|\d\w*|[^\w\s.,;:!?'\"()]"
)
_SHORT: Final = {
    "n't": " not",
    "'m": " am",
    "'re": " are",
    "'ve": " have",
    "'ll": " will",
    "can not": "cannot",
}


class _Form(NamedTuple):
    """A way to tell the value of a slot, and to ask for it."""

    relation: str  # with the names of the groups that it is made of
    told: re.Pattern[str]
    value: re.Pattern[str]
    limits: str  # the pattern of where or when alone it is so
    asks: re.Pattern[str]


class _Language:
    """The cue words and patterns of one language."""

    def __init__(self, code: str, otherwise: Mapping[str, str] | None = None) -> None:
        told = tomllib.loads(
            (Path(__file__).parent / f"words/{code}.toml").read_text(encoding="utf-8")
        )
        self.stems: str = told["stems"]
        self.words = {name: frozenset(words.split()) for name, words in told["words"].items()}
        self.cues = frozenset[str]().union(
            *(self.words[kind] for kind in ("empty", "own", "no", "likes", "telling"))
        )
        self.months = [name[:3] for name in told["words"]["months"].split()]
        alternatives = {name: "|".join(words) for name, words in self.words.items()} | {
            "months": "|".join(self.months)
        }
        self.sources: dict[str, str] = {**(otherwise or {}), **alternatives, **told["patterns"]}
        self.patterns = {name: self._pattern(source) for name, source in self.sources.items()}
        self.forms = [
            _Form(
                each["relation"],
                self._pattern(
                    each.get("form") or rf"(?P<who>(?:[\w'-]+ ){{0,4}}?){each['is']} (?P<rest>.+)"
                ),
                self._pattern(each.get("what", "(?P<value>.+)")),
                each.get("limits", "when"),
                self._pattern(each.get("asks", "(?!)")),
            )
            for each in told["slots"]
        ]

    def _pattern(self, source: str) -> re.Pattern[str]:
        while (
            filled := re.sub(r"\{([a-z_]+)\}", lambda name: self.sources[name[1]], source)
        ) != source:
            source = filled
        return re.compile(source)

    def has(self, kind: str, words: Iterable[str]) -> bool:
        """Whether one of some words is of a kind."""
        return not self.words[kind].isdisjoint(words)


_LANGUAGES: Final = [english := _Language("en"), _Language("es", english.sources)]


def _load_ends() -> list[dict[str, re.Pattern[str]]]:
    """Return how texts say until when something holds, by language."""
    file = Path(__file__).parent / "words" / "ends.toml"
    languages = tomllib.loads(file.read_text(encoding="utf-8")).values()
    return [
        {
            name: re.compile(source.replace("{day}", patterns["day"]))
            for name, source in patterns.items()
        }
        for patterns in languages
    ]


_ENDS: Final = _load_ends()


class Reading(NamedTuple):
    """A statement as the rules see it."""

    text: str
    words: tuple[
        str, ...
    ]  # stems in their order, without the scope itself, articles, negation and what ended it
    slot: Slot | None
    value: frozenset[str]  # the words of the slot's value
    limit: str  # where or when alone it holds: "on Sundays"
    sign: bool  # false for what is denied, disliked or over
    ended: bool  # "no longer"
    episode: bool  # it happened, and may happen again
    hedged: bool  # a plan, a condition, a question, another's word
    limited: bool  # "only", "except"
    one_of_several: (
        bool  # "my brother works at …" may be of another brother, unless something has changed
    )


_Filled = tuple[Slot | None, frozenset[str], str]
_NOTHING: Final[_Filled] = None, frozenset(), ""


def _plain(text: str) -> str:
    said = " ".join(text[:_MOST_READ].lower().replace("’", "'").split())
    for short, full in _SHORT.items():
        said = said.replace(short, full)
    return said.rstrip(".! ")


@lru_cache(maxsize=1_000)
def _language(said: str) -> _Language:
    words = set(re.findall(r"[^\W\d_]+", said))
    return max(
        _LANGUAGES,
        key=lambda each: (
            len(words & each.cues) + 2 * any(form.told.match(said) for form in each.forms)
        ),
    )


@lru_cache(maxsize=50_000)
def read_statement(text: str) -> Reading:
    """What a statement says."""
    plain = _plain(text)
    language = _language(plain)
    patterns = language.patterns
    said, ends = patterns["ended"].subn(" ", plain)
    said = " ".join(said.split())
    main, tokens = patterns["but"].split(said)[0], _WORD.findall(said)
    negated, hated = (language.has(kind, _WORD.findall(main)[:6]) for kind in ("no", "hates"))
    hedged = text.rstrip().endswith("?") or language.has(
        "hedges", _WORD.findall(patterns["date"].sub(" ", main))
    )
    told = (
        (form, found)
        for form in language.forms
        if not hedged and (found := form.told.fullmatch(said))
    )
    slot, value, limit = next(
        (_slot(language, form, found, text) for form, found in told), _NOTHING
    )
    happened = any(patterns[name].search(said) for name in ("happened", "lately", "dated", "date"))
    is_of_several = slot is not None and language.has("several", slot.subject.lower().split())
    return Reading(
        text, _stems(language, tokens), slot, value, limit,
        sign=not (ends or negated != hated), ended=ends > 0, episode=slot is None and happened and not ends,
        hedged=hedged, limited=language.has("limiting", tokens),
        one_of_several=is_of_several and not patterns["change"].search(plain),
    )  # fmt: skip


def _stems(language: _Language, tokens: Iterable[str]) -> tuple[str, ...]:
    """The words that make a statement what it is. All words of liking are one."""
    dropped, liking = (
        language.words["empty"] | language.words["no"],
        language.words["likes"] | language.words["hates"],
    )
    return tuple(
        _LIKING if word in liking else stem(word, language.stems) if word.isalpha() else word
        for word in tokens
        if word not in dropped
    )


def _slot(language: _Language, form: _Form, found: re.Match[str], text: str) -> _Filled:
    """The slot that a sentence fills, the words of its value, and where or when alone that is so."""
    parts, patterns = found.groupdict(), language.patterns
    rest, limit = _cut(language, parts["rest"], form.limits)
    told, subject = form.value.fullmatch(rest), _subject(language, parts.get("of") or parts["who"])
    if (
        told is None
        or subject is None
        or ("noun" not in parts and patterns["dated"].search(parts["rest"]))
    ):
        return _NOTHING
    value, relation = (
        told["value"],
        form.relation.format(**parts | told.groupdict()).replace("favorite", "favourite"),
    )
    words = frozenset(_stems(language, _WORD.findall(value)))
    is_doubtful = patterns["both"].search(value) or language.has(
        "hedges", patterns["date"].sub("", value).split()
    )
    is_of_two = relation == "name" and language.has(
        "several", subject.split()
    )  # two sisters have two names
    if _is_beside_the_point(language, relation, value, text):
        return _NOTHING
    if (
        not words
        or is_doubtful
        or is_of_two
        or ("noun" in parts and not _is_value(language, relation, value, text))
    ):
        return _NOTHING
    return Slot(_as_said(subject, text), relation, _as_said(value, text)), words, limit


def _is_beside_the_point(language: _Language, relation: str, value: str, text: str) -> bool:
    """Return whether a value is no place to live in ("moved to the sales team") or no employer ("work for fun")."""
    first, *others = value.split()
    if relation == "works at":
        return first in language.words["no_employers"]
    if relation != "lives in":
        return False

    has_article = first in language.words["own"]
    is_named = any(word[0].isupper() for word in _as_said(value, text).split()[1:2])
    is_place = is_named or language.has("places", others[:4])
    return first in language.words["no_places"] or (has_article and not is_place)


def _is_value(language: _Language, noun: str, value: str, text: str) -> bool:
    """Whether this is which it is, not what it is like: a person's name, a number or a day of what is measured."""
    if noun in language.words["people"]:
        return _as_said(value, text)[0].isupper()
    if noun.split()[-1] in language.words["measured"]:
        return any(map(str.isdigit, value)) or any(
            language.has(kind, value.split()) for kind in ("weekdays", "months")
        )
    patterns = language.patterns
    return (
        patterns["adjectives"].search(noun) is not None
        or patterns["quality"].fullmatch(value) is None
    )


def _cut(language: _Language, rest: str, limits: str) -> tuple[str, str]:
    """A value without what stands behind it, and the limit that does."""
    rest = language.patterns["tail"].sub("", f"{rest} ").strip()
    rest = language.patterns["but"].split(rest)[0].strip() if limits == "limit" else rest
    found = language.patterns[limits].search(rest) if limits else None
    return (
        (rest[: found.start()].strip(), found[0].strip()) if found and found.start() else (rest, "")
    )


def _subject(language: _Language, who: str) -> str | None:
    """Whom a sentence is about: "" for the scope itself, None where nobody knows."""
    words = [
        word
        for word in re.findall(r"[\w-]+", who.replace("'s ", " "))
        if word not in language.words["own"]
    ]
    if any(language.has(kind, words) for kind in ("pronouns", "hedges", "no", "past")):
        return None
    return " ".join(
        word
        for word in words
        if not (language.has("self", [word]) or language.has("empty", [word]))
    )


def _as_said(words: str, text: str) -> str:
    """Words with the capitals that they have in a text."""
    at = text.lower().rfind(words)
    return text[at : at + len(words)] if at >= 0 and len(text) == len(text.lower()) else words


def kind_of(text: str, at: datetime) -> tuple[str, datetime | None]:
    """The kind of a statement, and until when it holds, as far as it says so."""
    said = _plain(text)
    language = _language(said)
    bound = language.patterns["bounded"].search(said)
    if (
        bound is not None
        and (until := _day_in(language, said[bound.end() :], at, ahead=True)) is not None
    ):
        return "fact", until
    if language.patterns["liking"].search(said):
        return "preference", None
    if language.patterns["state"].search(said):
        return "fact", None
    until = _day_in(language, said, at, ahead=False) if read_statement(text).episode else None
    is_remembered = (
        until is not None and at - until < _REMEMBERED
    )  # what is told now is not forgotten now
    return ("episode", until) if is_remembered else ("fact", None)


def states_end(text: str, *, is_ahead: bool) -> bool:
    """Return whether a text says in words until when something holds; a duration counts if its end is ahead."""
    said = " ".join(text[:_MOST_READ].lower().replace("’", "'").split())
    patterns = [each["end"] for each in _ENDS]
    if is_ahead:
        patterns += [each["duration"] for each in _ENDS]
    return any(pattern.search(said) for pattern in patterns)


def _day_in(language: _Language, said: str, at: datetime, *, ahead: bool) -> datetime | None:
    """The end of the day that a sentence names: without a year the next one, or the last."""
    if (found := language.patterns["date"].search(said)) is None:
        return at if not ahead and language.patterns["lately"].search(said) else None
    parts = {name.rstrip("23"): text for name, text in found.groupdict().items() if text}
    month = int(parts["month"]) if "month" in parts else language.months.index(parts["name"]) + 1
    for year in (
        [int(parts["year"])] if "year" in parts else [at.year, at.year + (1 if ahead else -1)]
    ):
        with suppress(ValueError):  # there is none
            day = datetime(year, month, int(parts["day"]), 23, 59, 59, tzinfo=UTC)
            if "year" in parts or (day >= at if ahead else day <= at + timedelta(days=1)):
                return day
    return None


def statements_in(text: str) -> list[str] | None:
    """The statements that a short text is, word for word; None where it is a document."""
    if len(text) > _MOST_CHARACTERS:
        return None
    cut = (
        line[start:stop]
        for line in text.splitlines()
        for start, stop in sentence_spans(line) or [(0, len(line))]
    )
    parts = list(dict.fromkeys(" ".join(each.split()) for each in cut if re.search(r"\w", each)))
    return parts if 0 < len(parts) <= _MOST_STATEMENTS else None


def drawn_from(text: str) -> list[str]:
    """The sentences of a long text in which somebody states a slot or a liking of their own, word for word."""
    bare = re.sub(r"(?ms)^(?:```|~~~).*?(?:^(?:```|~~~)|\Z)|^[ \t]*[>#|].*?$", "", text)
    said = (" ".join(bare[start:stop].split()) for start, stop in sentence_spans(bare))
    return list(dict.fromkeys(each for each in said if len(each) < _MOST_READ and _is_own(each)))


def _is_own(sentence: str) -> bool:
    said = _plain(sentence)
    language = next(
        (each for each in _LANGUAGES if each.patterns["first_person"].match(said)), None
    )
    if language is None or (reading := read_statement(sentence)).hedged:
        return False
    return bool(reading.slot or language.patterns["liking"].search(said))


def to_forget(text: str) -> str | None:
    """What a text asks to forget."""
    found = (language.patterns["forget"].fullmatch(_plain(text)) for language in _LANGUAGES)
    return next((each[1] for each in found if each), None)


@lru_cache(maxsize=100)
def asked_slot(question: str) -> frozenset[str]:
    """How the relations begin that a question may ask for."""
    said = _plain(question).strip("?¿ ")
    found = (
        (form.relation, asks)
        for each in _LANGUAGES
        for form in each.forms
        if (asks := form.asks.search(said))
    )
    return frozenset(
        _head(relation.replace("{noun}", asks.groupdict().get("noun", "")))
        for relation, asks in found
    )


def _head(relation: str) -> str:
    return relation.partition("/")[0].split(" ")[0].replace("favorite", "favourite")


def answers(question: str, reading: Reading) -> float:
    """How well a statement fills the slot that a question asks for; 0 where it does not."""
    if (
        (slot := reading.slot) is None
        or not reading.sign
        or _head(slot.relation) not in asked_slot(question)
    ):
        return 0.0
    language, asked = _language(_plain(question)), read_statement(question).words
    whom, about = (
        set(_stems(language, _WORD.findall(each.lower()))) for each in (slot.subject, slot.relation)
    )
    return (
        0.5 + 0.5 * len(about.intersection(asked)) / max(1, len(about))
        if whom.issubset(asked)
        else 0.0
    )


def names_numbers(text: str, number: str) -> bool:
    """Whether a number of a statement names something, as in "step 2", "Flight 3", "iPhone 12" or "3 March"."""
    named = _language(_plain(text)).patterns["named"]
    return named.search(text[:_MOST_READ].replace(number, "№", 1)) is not None
