"""Read the time that a question speaks of: "last week", "in March", "before I moved".

`time_phrases/` has the names and phrases of each language; `bench/time_names.py` makes them.
Imported only for a question with a word of time (`dates.languages_of_time`). Days are local, and
weeks begin on Monday. docs/internals/ranking.md describes what phrases mean.
"""

from __future__ import annotations

import json
import re
from calendar import monthrange
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args

from simplemem.note.words import language_of
from simplemem.search.dates import Period, Relation, TimeAsked, plain_words

_PHRASES: Final = Path(__file__).with_name("time_phrases")
_LANGUAGES: Final = frozenset("en es pt fr de it nl pl ru zh ja ko ar hi".split())

# A text with one of these is English: names in it that are months elsewhere are none.
_ENGLISH_WORDS: Final = frozenset(
    "the what did who when where how which were you with this that does have our".split()
)
_UNSPACED: Final = ("zh", "ja", "ko")
_KANA: Final = re.compile(r"[\u3041-\u30ff]")
_HAN: Final = re.compile(r"[\u4e00-\u9fff]")
_HANGUL: Final = re.compile(r"[\uac00-\ud7a3]")

# Vowel signs of Devanagari belong to words, but not to `\w`.
_LETTER: Final = r"[\w\u0900-\u0963]"
_CLAUSE: Final = r"[^?.,;!:\u3001\u3002\uff0c\u061f\u060c\u0964]"
_YEAR: Final = r"(?P<year>(?:19|20)\d\d)(?!\d)"

_ONE_LETTER: Final = re.compile(_LETTER)
_YEAR_AFTER: Final = re.compile(rf" (?:(?:of|de) )?{_YEAR}")
_MAX_NUMBER_WORDS: Final = 3  # "a couple of"
_RELATIONS: Final[Mapping[str, Relation]] = {name: name for name in get_args(Relation)}

_ISO_DATE: Final = re.compile(
    r"(?<!\d)(?P<year>(?:19|20)\d\d)[-/](?P<month>\d\d?)(?:[-/](?P<day>\d\d?))?(?!\d)"
)
_BARE_YEAR: Final = re.compile(rf"(?<![\w-]){_YEAR}")
_DOTTED_DATE: Final = re.compile(
    r"(?<!\d)(?P<day>\d\d?)\. ?(?P<month>\d\d?)\. ?(?P<year>(?:19|20)\d\d)(?!\d)"
)
_NUMBERED_DATE: Final = re.compile(
    r"(?:(?P<year>(?:19|20)\d\d) ?[年년] ?)?(?<!\d)(?P<month>\d\d?) ?[月월]"
    r"(?: ?(?P<day>\d\d?) ?[日号號일])?"
)

# A clock outside of these years is wrong; within them, no phrase leaves the calendar unnoticed.
_FIRST_TODAY: Final = date(1000, 1, 1)
_LAST_TODAY: Final = date(9000, 1, 1)

_DAY: Final = timedelta(days=1)
_LAST_DAY: Final = date.max

# Half the length of "about so long ago", and how far outside days still count, in days.
_HALF_LENGTHS: Final = {"day": 0, "week": 3, "weekend": 2, "month": 12, "year": 183}
_SLACKS: Final = {"day": 1, "week": 4, "weekend": 3, "month": 12, "year": 90}
_WEEK_SLACK: Final = 1  # in some countries weeks begin on Sunday
_HOLIDAY_SLACK: Final = 2

# Before or after an event: most questions are answered by the note about the event itself.
_EVENT_WEIGHT: Final = 0.5

# A month without a year is most likely the last one, but may be that of any year.
_OTHER_YEAR_WEIGHT: Final = 0.8
_YEARS_BACK: Final = 30

_SATURDAY: Final = 5
_SUNDAY: Final = 6


class _Mention(NamedTuple):
    """A time that stands in a text, from `start` to `stop`.

    `month` is the number of a month, if only that is known; `is_year` says that it is a whole year,
    and `is_limit` that it is a time only as the limit of one: "since 2020", but not "room 2020".
    """

    start: int
    stop: int
    periods: tuple[Period, ...]
    month: int = 0
    is_year: bool = False
    is_limit: bool = False


class _Template(NamedTuple):
    """What stands before and after a word that a phrase leaves open, and what the phrase means."""

    before: str
    after: str
    meaning: str = ""


class _Place(NamedTuple):
    """Where a whole phrase stands in a text, and what it means."""

    start: int
    stop: int
    meaning: str


@dataclass(frozen=True, slots=True)
class _Language:
    """The phrases of one language. See bench/time_phrases.toml for what they mean.

    `numbers` and `names` find the words that templates leave open. `ago` and `within` have a unit
    as their meaning, `named` has "on", "last" or "next", `sides` and `events` a relation.
    """

    data: Mapping[str, Any]
    numbers: re.Pattern[str]
    names: re.Pattern[str]
    dates: re.Pattern[str]
    ago: Sequence[_Template]
    within: Sequence[_Template]
    named: Sequence[_Template]
    years: Sequence[_Template]
    sides: Sequence[_Template]
    events: Sequence[tuple[Relation, re.Pattern[str]]]

    @property
    def is_spaced(self) -> bool:
        """Whether words have spaces between them."""
        return bool(self.data["spaced"])


def read_time(text: str, candidates: Iterable[str], now: datetime) -> TimeAsked | None:
    """Return the time that a question speaks of; None if it speaks of none.

    `candidates` are the languages that `languages_of_time` returns for it. `now` is the local time
    that "yesterday" refers to. Never raises.
    """
    languages = [_language(name) for name in sorted(_likely(text, frozenset(candidates)))]
    text = plain_words(text)
    today = min(max(now.date(), _FIRST_TODAY), _LAST_TODAY)
    mentions: list[_Mention] = list(_mentions_by_digits(text, today))
    for language in languages:
        mentions += _mentions(text, language, today)
    mentions = _without_overlaps(mentions)

    periods: list[Period] = []
    for mention in _with_years(mentions):
        periods += _on_its_side(mention, text, languages, today)

    asked = TimeAsked(periods=tuple(periods))
    if not periods:
        asked = _with_event(asked, text, languages)
    in_order = any(_asks_for_order(text, language) for language in languages)
    asked = replace(asked, in_order=in_order)
    if asked == TimeAsked():
        return None
    return asked


# -- languages


def _likely(text: str, candidates: frozenset[str]) -> frozenset[str]:
    """Return those of the languages that a text may be in."""
    names = candidates - {"any"}
    if not text.isascii() and not names.isdisjoint(_UNSPACED):
        names -= _excluded_by_script(text)
    words = set(re.findall(r"\w+", text.casefold()))
    if not words.isdisjoint(_ENGLISH_WORDS):
        return frozenset({"en"})

    language = language_of(text)
    if language in names or ("any" in candidates and language in _LANGUAGES):
        return frozenset({language})
    if not names:
        return _languages_of_script(text)
    return names


def _languages_of_script(text: str) -> frozenset[str]:
    """Return the languages of Chinese, Japanese or Korean letters in a text, else English."""
    if _HANGUL.search(text):
        return frozenset({"ko"})
    if _HAN.search(text):
        return frozenset({"ja"}) if _KANA.search(text) else frozenset({"ja", "zh"})
    return frozenset({"en"})


def _excluded_by_script(text: str) -> frozenset[str]:
    """Return those of Chinese, Japanese and Korean whose script a text lacks."""
    if _HANGUL.search(text):
        return frozenset({"zh", "ja"})
    if _KANA.search(text):
        return frozenset({"zh", "ko"})
    return frozenset({"ko"})


@cache
def _language(name: str) -> _Language:
    """Read and compile the phrases of a language, once."""
    data = json.loads((_PHRASES / f"{name}.json").read_text(encoding="utf-8"))
    is_spaced = data["spaced"]
    months = data["months"] | data["short_months"]
    names = [*data["weekdays"], *data["months"], *data["holidays"]]
    number = r"\d{1,4}"
    if data["numbers"]:
        number = f"(?:{number}|{_alternatives(data['numbers'])})"

    named: list[_Template] = []
    for place in ("on", "last", "next"):
        named += _templates(dict.fromkeys(data[place], place), "{name}")
    sides: list[_Template] = []
    for relation in get_args(Relation):
        sides += _templates(dict.fromkeys(data[relation], relation), "{date}")
    return _Language(
        data=data,
        numbers=_compile(number, is_spaced),
        names=_compile(_alternatives(names), is_spaced),
        dates=_date_pattern(months, is_spaced),
        ago=_templates(data["ago"], "{count}"),
        within=_templates(data["within"], "{count}"),
        named=_longest_first(named),
        years=_templates(dict.fromkeys(data["year"], ""), "{year}"),
        sides=_longest_first(sides),
        events=_events(data, is_spaced),
    )


def _alternatives(phrases: Iterable[str]) -> str:
    """Return a pattern for any of the phrases, the longest first; for none, one of nothing."""
    longest_first = sorted(phrases, key=lambda phrase: (-len(phrase), phrase))
    if not longest_first:
        return r"(?!)"
    return "(?:" + "|".join(map(re.escape, longest_first)) + ")"


def _compile(pattern: str, is_spaced: bool) -> re.Pattern[str]:
    """Compile a pattern that stands between words, if words have spaces between them."""
    if is_spaced:
        pattern = rf"(?<!{_LETTER}){pattern}(?!{_LETTER})"
    return re.compile(pattern)


def _templates(meanings: Mapping[str, str], placeholder: str) -> list[_Template]:
    """Return the phrases that have a placeholder, the longest first, each with its meaning."""
    templates = []
    for phrase, meaning in meanings.items():
        before, found, after = phrase.partition(placeholder)
        if found:
            templates.append(_Template(before, after, meaning))
    return _longest_first(templates)


def _longest_first(templates: Iterable[_Template]) -> list[_Template]:
    """Return templates, those with the most letters first."""
    return sorted(templates, key=lambda template: -len(template.before + template.after))


def _around(
    text: str, start: int, stop: int, templates: Iterable[_Template], is_spaced: bool
) -> Iterator[_Place]:
    """Yield the phrases that a word at a place completes, the longest first."""
    for template in templates:
        first = start - len(template.before)
        last = stop + len(template.after)
        if first < 0 or not text.startswith(template.before, first):
            continue
        if not text.startswith(template.after, stop):
            continue
        if not is_spaced or _is_between_words(text, first, last):
            yield _Place(first, last, template.meaning)


def _is_between_words(text: str, start: int, stop: int) -> bool:
    """Return whether no letter stands directly before or after a part of a text."""
    before = text[start - 1 : start]
    after = text[stop : stop + 1]
    return not (_ONE_LETTER.match(before) or _ONE_LETTER.match(after))


def _phrases_in(text: str, phrases: Iterable[str], is_spaced: bool) -> Iterator[tuple[str, int]]:
    """Yield each of the phrases that a text has, with its first place."""
    for phrase in phrases:
        start = text.find(phrase)
        if start < 0:
            continue
        # A mark at the end of a phrase, as in "first,", needs no end of a word after it.
        if not is_spaced or _is_between_words(text, start, start + len(phrase)):
            yield phrase, start


def _asks_for_order(text: str, language: _Language) -> bool:
    """Return whether a question asks in what order things happened."""
    phrases = _phrases_in(text, language.data["order"], language.is_spaced)
    return next(phrases, None) is not None


def _date_pattern(months: Mapping[str, int], is_spaced: bool) -> re.Pattern[str]:
    """Compile dates with the name of a month, such as `8th of May, 2023` or `March`."""
    name = f"(?P<month>{_alternatives(months)})"
    if not is_spaced:
        return re.compile(rf"(?:{_YEAR} ?[年년] ?)?{name}(?: ?(?P<day>\d\d?) ?[日号號일])?")
    return re.compile(
        rf"(?<!\w)(?:(?P<day>\d\d?)(?:st|nd|rd|th|er|\.|o|a)? (?:(?:of|de|del|di) )?)?"
        rf"(?<!{_LETTER}){name}(?!{_LETTER})\.?"
        rf"(?: (?P<day_after>\d\d?)(?:st|nd|rd|th)?(?!\w))?"
        rf"(?:,? (?:(?:of|de|del) )?{_YEAR})?"
    )


def _events(data: Mapping[str, Any], is_spaced: bool) -> list[tuple[Relation, re.Pattern[str]]]:
    """Compile the phrases in which an event limits the time, such as `before I moved`."""
    subjects = data["subjects"]
    event = f"(?P<event>{_CLAUSE}+)"
    if subjects:
        event = rf"(?P<event>{_alternatives(subjects)} {_CLAUSE}+)"
    event_before = f"(?P<event>{_CLAUSE}+?)"

    events: list[tuple[Relation, re.Pattern[str]]] = []
    for relation in get_args(Relation):
        for template in data[relation]:
            if "{event}" not in template:
                continue
            is_first = template.startswith("{event}")
            pattern = event_before if is_first else event
            before, _, after = template.partition("{event}")
            whole = f"{re.escape(before)}{pattern}{re.escape(after)}"
            events.append((relation, _compile(whole, is_spaced)))
    return events


# -- what phrases mean


def _mentions_by_digits(text: str, today: date) -> Iterator[_Mention]:
    """Yield the dates that digits alone name, such as `2026-01-24`, `24.1.2026` or `1月`."""
    for pattern in (_ISO_DATE, _DOTTED_DATE, _NUMBERED_DATE):
        for match in pattern.finditer(text):
            parts = match.groupdict()
            mention = _date_mention(
                match, int(parts["year"] or 0), int(parts["month"]), int(parts["day"] or 0), today
            )
            if mention is not None:
                yield mention
    for match in _BARE_YEAR.finditer(text):
        yield _Mention(match.start(), match.end(), (_year(int(match["year"])),), is_limit=True)


def _mentions(text: str, language: _Language, today: date) -> Iterator[_Mention]:
    """Yield the times that a text names in one language; they may overlap."""
    data = language.data
    is_spaced = language.is_spaced
    for phrase, start in _phrases_in(text, data["periods"], is_spaced):
        stop = start + len(phrase)
        if _is_of_something(phrase, text, stop):
            continue
        meaning = data["periods"][phrase]
        is_year = meaning.endswith(" year") and not meaning.startswith(("ago", "within"))
        periods = _meaning(meaning, today, is_spaced)
        yield _Mention(start, stop, periods, is_year=is_year)

    for match in language.numbers.finditer(text):
        count = _number(match[0], data)
        for place in _around(text, match.start(), match.end(), language.ago, is_spaced):
            yield _Mention(place.start, place.stop, _ago(count, place.meaning, today))
        for place in _around(text, match.start(), match.end(), language.within, is_spaced):
            yield _Mention(place.start, place.stop, _within(count, place.meaning, today))

    for match in _BARE_YEAR.finditer(text):
        for place in _around(text, match.start(), match.end(), language.years, is_spaced):
            yield _Mention(place.start, place.stop, (_year(int(match["year"])),), is_year=True)

    yield from _dates(text, language, today)
    yield from _names(text, language, today)


def _is_of_something(phrase: str, text: str, stop: int) -> bool:
    """Return whether a phrase is a part of something else: "the last week of the project"."""
    words = phrase.split()
    is_last = "last" in words or "past" in words
    return is_last and text.startswith(" of ", stop)


def _year(number: int) -> Period:
    """Return a whole year."""
    return Period(date(number, 1, 1), date(number + 1, 1, 1))


def _number(text: str, data: Mapping[str, Any]) -> int:
    """Return the number of digits or of a word."""
    if text.isdecimal():
        return int(text)
    return int(data["numbers"][text])


def _dates(text: str, language: _Language, today: date) -> Iterator[_Mention]:
    """Yield the dates with the name of a month, without names that are other words there."""
    data = language.data
    for match in language.dates.finditer(text):
        parts = match.groupdict()
        day = int(parts["day"] or parts.get("day_after") or 0)
        year = int(parts["year"] or 0)
        name = parts["month"]
        is_full = bool(day or year)
        if name in data["short_months"] and not is_full:
            continue
        if name in data["ambiguous"] and not is_full:
            before = f" {text[: match.start()]}"
            if not before.endswith(tuple(f" {word} " for word in data["prepositions"])):
                continue
        month = data["months"].get(name) or data["short_months"][name]
        mention = _date_mention(match, year, month, day, today)
        if mention is not None:
            yield mention


def _date_mention(
    match: re.Match[str], year: int, month: int, day: int, today: date
) -> _Mention | None:
    """Return the time of a date; 0 stands for a part that it lacks. None if no calendar has it."""
    years = [year] if year else _years_around(today)
    periods = []
    for number in years:
        period = _month_or_day(number, month, day)
        if period is not None:
            periods.append(period)
    if not periods:
        return None
    if not year:
        periods = _with_weights(periods, today)
    only_month = 0 if year or day else month
    return _Mention(match.start(), match.end(), tuple(periods), month=only_month)


def _years_around(today: date) -> list[int]:
    """Return the next year and the years before it, the latest first."""
    return list(range(today.year + 1, today.year - _YEARS_BACK - 1, -1))


def _month_or_day(year: int, month: int, day: int) -> Period | None:
    """Return a month, or a day if `day` is not 0; None if the calendar does not have it."""
    try:
        start = date(year, month, day or 1)
    except ValueError:
        return None
    if day:
        return Period(start, start + _DAY)
    return Period(start, start + monthrange(year, month)[1] * _DAY)


def _with_weights(periods: Sequence[Period], today: date) -> list[Period]:
    """Return periods of several years: the last one that has begun counts most, and is first.

    `periods` are the latest first.
    """
    begun = [period for period in periods if period.start <= today]
    if not begun:
        return list(periods)
    last = begun[0]
    others = [period._replace(weight=_OTHER_YEAR_WEIGHT) for period in periods if period != last]
    return [last, *others]


def _names(text: str, language: _Language, today: date) -> Iterator[_Mention]:
    """Yield weekdays, months and holidays that a text names, such as "last Monday"."""
    data = language.data
    for match in language.names.finditer(text):
        name = match[0]
        start, stop = match.span()
        for place in _around(text, start, stop, language.named, language.is_spaced):
            if place.meaning != "on" or name in data["weekdays"]:
                periods = _named_periods(name, place.meaning, data, today)
                yield _Mention(place.start, place.stop, periods)
        if name in data["weekdays"]:
            periods = _weekday(data["weekdays"][name], "last", today)
            yield _Mention(start, stop, periods, is_limit=True)
        if name in data["holidays"]:
            year = _YEAR_AFTER.match(text, stop)
            number = int(year["year"]) if year else 0
            periods = _holiday(data["holidays"][name], number, today)
            yield _Mention(start, year.end() if year else stop, periods)


def _named_periods(
    name: str, place: str, data: Mapping[str, Any], today: date
) -> tuple[Period, ...]:
    """Return the last or next weekday, month or holiday of a name. `place` is on, last or next."""
    if name in data["weekdays"]:
        return _weekday(data["weekdays"][name], place, today)
    if name in data["months"]:
        month = data["months"][name]
        found = [_month_or_day(year, month, 0) for year in _years_around(today)]
        periods = [period for period in found if period is not None]
    else:
        periods = list(_holiday(data["holidays"][name], 0, today))
    if place == "next":
        future = [period for period in periods if period.start > today]
        return tuple(period._replace(weight=1.0) for period in future[-1:])
    past = [period for period in periods if period.end <= today]
    return tuple(period._replace(weight=1.0) for period in past[:1])


def _weekday(weekday: int, place: str, today: date) -> tuple[Period, ...]:
    """Return the last or next day of the week; "last Monday" may also be that of last week."""
    days_back = (today.weekday() - weekday) % 7
    if place == "next":
        return (_day(today + (7 - days_back) * _DAY),)
    if place == "on":
        return (_day(today - days_back * _DAY),)
    last = today - (days_back or 7) * _DAY
    of_last_week = today - (today.weekday() - weekday + 7) * _DAY
    return (_day(last), _day(of_last_week)._replace(weight=_OTHER_YEAR_WEIGHT))


def _day_after(day: date) -> date:
    """Return the next day; the last day of the calendar has none, so it returns itself."""
    return day if day == _LAST_DAY else day + _DAY


def _day(day: date) -> Period:
    """Return a period of one day."""
    return Period(day, _day_after(day))


def _holiday(meaning: str, year: int, today: date) -> tuple[Period, ...]:
    """Return a holiday of a year, or of all years if `year` is 0, the last one first."""
    years = [year] if year else _years_around(today)
    periods = []
    for number in years:
        if meaning == "easter":
            day = _easter(number)
        else:
            month, _, day_of_month = meaning.partition("-")
            day = date(number, int(month), int(day_of_month))
        periods.append(Period(day, day + _DAY, _HOLIDAY_SLACK))
    if not year:
        periods = _with_weights(periods, today)
    return tuple(periods)


def _easter(year: int) -> date:
    """Return Easter Sunday of a year, by the method of Gauss for the Gregorian calendar."""
    century = year // 100
    moon = (15 + century - century // 4 - (8 * century + 13) // 25) % 30
    age = (19 * (year % 19) + moon) % 30
    if age == 29 or (age == 28 and year % 19 > 10):
        age -= 1
    sunday = (4 + century - century // 4) % 7
    days = (2 * (year % 4) + 4 * (year % 7) + 6 * age + sunday) % 7
    return date(year, 3, 22) + (age + days) * _DAY


def _meaning(meaning: str, today: date, is_spaced: bool) -> tuple[Period, ...]:
    """Return the periods of a meaning, such as `-1 week` or `ago 2 month`."""
    kind, *rest = meaning.split(" ")
    try:
        if kind == "ago":
            return _ago(int(rest[0]), rest[1], today)
        if kind == "within":
            return _within(int(rest[0]), rest[1], today)
        offset = int(kind)
        if rest[0] == "weekday":
            return _relative_weekday(offset, int(rest[1]), today, is_spaced)
        return (_calendar_period(offset, rest[0], today),)
    except (ValueError, OverflowError):
        return ()  # outside of the calendar


def _relative_weekday(
    offset: int, weekday: int, today: date, is_spaced: bool
) -> tuple[Period, ...]:
    """Return a weekday of the last or next week."""
    if is_spaced:
        return _weekday(weekday, "last" if offset < 0 else "next", today)
    # In Chinese, Japanese and Korean, the phrase says "of last week".
    monday = today - today.weekday() * _DAY
    return (_day(monday + (7 * offset + weekday) * _DAY),)


def _calendar_period(offset: int, unit: str, today: date) -> Period:
    """Return the day, week, weekend, month or year so many of them from now; 0 is this one."""
    if unit == "day":
        return _day(today + offset * _DAY)

    monday = today - today.weekday() * _DAY
    if unit == "week":
        start = monday + 7 * offset * _DAY
        return Period(start, start + 7 * _DAY, _WEEK_SLACK)
    if unit == "weekend":
        saturday = monday + (7 * offset + _SATURDAY) * _DAY
        return Period(saturday, saturday + 2 * _DAY)

    if unit == "month":
        start = _months_later(today.replace(day=1), offset)
        return Period(start, _months_later(start, 1))
    start = date(today.year + offset, 1, 1)
    return Period(start, date(start.year + 1, 1, 1))


def _months_later(day: date, count: int) -> date:
    """Return the same day some months later, or the last day of a shorter month."""
    number = day.year * 12 + day.month - 1 + count
    year, month = divmod(number, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _moved(today: date, count: int, unit: str) -> date:
    """Return the day so many units ago."""
    if unit == "month":
        return _months_later(today, -count)
    if unit == "year":
        return _months_later(today, -12 * count)
    lengths = {"day": 1, "week": 7, "weekend": 7}
    return today - count * lengths[unit] * _DAY


def _ago(count: int, unit: str, today: date) -> tuple[Period, ...]:
    """Return the days around the one so many units ago; none before the calendar begins."""
    try:
        day = _moved(today, count, unit)
        half_length = _HALF_LENGTHS[unit] * _DAY
        return (Period(day - half_length, day + half_length + _DAY, _SLACKS[unit]),)
    except (ValueError, OverflowError):
        return ()


def _within(count: int, unit: str, today: date) -> tuple[Period, ...]:
    """Return the last so many units, until today."""
    try:
        return (Period(_moved(today, count, unit), today + _DAY),)
    except (ValueError, OverflowError):
        return ()


# -- what times mean together


def _without_overlaps(mentions: Iterable[_Mention]) -> list[_Mention]:
    """Return the mentions that overlap no longer one, in the order of the text."""
    kept: list[_Mention] = []
    for mention in sorted(mentions, key=lambda mention: mention.start - mention.stop):
        overlaps = [
            other for other in kept if mention.start < other.stop and other.start < mention.stop
        ]
        if mention.periods and not overlaps:
            kept.append(mention)
    return sorted(kept)


def _with_years(mentions: Sequence[_Mention]) -> list[_Mention]:
    """Return the mentions; a month and a year, as in "in March last year", become one."""
    years = [mention for mention in mentions if mention.is_year]
    months = [mention for mention in mentions if mention.month]
    if len(years) != 1 or not months:
        return list(mentions)

    year = years[0].periods[0].start.year
    merged = []
    for mention in mentions:
        if mention.month:
            period = _month_or_day(year, mention.month, 0)
            assert period is not None
            merged.append(mention._replace(periods=(period,)))
        elif not mention.is_year:
            merged.append(mention)
    return merged


def _on_its_side(
    mention: _Mention, text: str, languages: Sequence[_Language], today: date
) -> Sequence[Period]:
    """Return the periods of a mention, or the one that it limits: "before May", "since Monday"."""
    limit = mention.periods[0]
    for language in languages:
        places = _around(
            text, mention.start, mention.stop, language.sides, is_spaced=language.is_spaced
        )
        for place in places:
            relation = _RELATIONS[place.meaning]
            return _at_distance(limit, relation, text[: place.start], language, today)
    return () if mention.is_limit else mention.periods


def _at_distance(
    limit: Period, relation: Relation, text_before: str, language: _Language, today: date
) -> tuple[Period, ...]:
    """Return the period beside another one, such as "before May" or "two weeks before May".

    `text_before` ends with the distance, if there is one: a number and a unit, a unit or a weekday.
    """
    data = language.data
    words = text_before.split()
    word = words[-1] if words else ""
    is_distance = word in data["units"] or word in data["weekdays"]
    if not is_distance or relation not in ("before", "after"):
        return (_period_beside(limit, relation, today),)

    sign = 1 if relation == "before" else -1
    day = limit.start if relation == "before" else limit.end - _DAY
    if word in data["weekdays"]:
        days = (day.weekday() - data["weekdays"][word]) * sign % 7 or 7
        return (_day(day - sign * days * _DAY),)
    unit = data["units"][word]
    for length in range(1, _MAX_NUMBER_WORDS + 1):
        number = " ".join(words[-1 - length : -1])
        if number.isdecimal() or number in data["numbers"]:
            return _ago(sign * _number(number, data), unit, day)
    far = _moved(day, sign, unit)
    return (Period(min(far, day), max(far, day + _DAY)),)


def _period_beside(limit: Period, relation: Relation, today: date) -> Period:
    """Return the period before, after, since or until another one; "since" ends today."""
    if relation in ("before", "until"):
        return Period(date.min, limit.start if relation == "before" else limit.end)
    if relation == "after":
        return Period(limit.end, _LAST_DAY)
    return Period(limit.start, _day_after(max(today, limit.start)))


def beside_event(day: date, relation: Relation, now: datetime) -> Period:
    """Return the period before, after, since or until an event, with the day of the event."""
    if relation == "before":
        relation = "until"
    limit = _day(day)
    if relation == "after":
        limit = limit._replace(end=day)
    return _period_beside(limit, relation, now.date())._replace(weight=_EVENT_WEIGHT)


def _with_event(asked: TimeAsked, text: str, languages: Sequence[_Language]) -> TimeAsked:
    """Return the time with the event that limits it, if the text names one."""
    for language in languages:
        for relation, pattern in language.events:
            match = pattern.search(text)
            if match is not None:
                return replace(asked, event=match["event"].strip(), relation=relation)
    return asked
