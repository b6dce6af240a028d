"""Read the time that a question speaks of: "last week", "in March", "before I moved".

`time_phrases/` has the names and phrases of each language, as `dates.plain_words` writes them.
`bench/time_names.py` makes these files, and bench/time_phrases.toml describes their sections. This
module is imported only for a question with a word of time (`dates.languages_of_time`).

Days are local, and weeks begin on Monday. docs/internals/ranking.md describes what phrases mean.
"""

from __future__ import annotations

import json
import re
from calendar import monthrange
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args

from simplemem.note.words import language_of
from simplemem.search.dates import Period, Relation, TimeAsked, plain_words

_PHRASES: Final = Path(__file__).with_name("time_phrases")
_LANGUAGES: Final = frozenset("en es pt fr de it nl pl ru zh ja ko ar hi".split())

# A text with one of these words is read as English only: "mars" and "mai" are months elsewhere.
_ENGLISH_WORDS: Final = frozenset(
    "the what did who when where how which were you with this that does have our".split()
)

_UNSPACED: Final = ("zh", "ja", "ko")
_KANA: Final = re.compile(r"[\u3041-\u30ff]")
_HAN: Final = re.compile(r"[\u4e00-\u9fff]")
_HANGUL: Final = re.compile(r"[\uac00-\ud7a3]")

# Vowel signs of Devanagari belong to words, but not to `\w`.
_LETTER: Final = r"[\w\u0900-\u0963]"
_IN_CLAUSE: Final = r"[^?.,;!:\u3001\u3002\uff0c\u061f\u060c\u0964]"
_YEAR: Final = r"(?P<year>(?:19|20)\d\d)(?!\d)"

_ONE_LETTER: Final = re.compile(_LETTER)
_YEAR_AFTER: Final = re.compile(rf" (?:(?:of|de) )?{_YEAR}")
_MAX_NUMBER_WORDS: Final = 3  # "a couple of"

_RELATIONS: Final[Sequence[Relation]] = get_args(Relation)
_RELATION_OF_NAME: Final[Mapping[str, Relation]] = {name: name for name in _RELATIONS}

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

# A clock outside of these years is wrong. Within them, a year next to today is in the calendar.
_FIRST_TODAY: Final = date(1000, 1, 1)
_LAST_TODAY: Final = date(9000, 1, 1)

_DAY: Final = timedelta(days=1)
_LAST_DAY: Final = date.max

# "3 weeks ago" means the days around that day. By unit: how many days on each side of it belong to
# the period, and how many more still count a little.
_HALF_LENGTHS: Final = {"day": 0, "week": 3, "weekend": 2, "month": 12, "year": 183}
_SLACKS: Final = {"day": 1, "week": 4, "weekend": 3, "month": 12, "year": 90}
_WEEK_SLACK: Final = 1  # in some countries weeks begin on Sunday
_HOLIDAY_SLACK: Final = 2

# The value of days before or after an event. It is low because most such questions are answered by
# the note about the event itself.
_EVENT_WEIGHT: Final = 0.5

# A month without a year is most likely the last one, but may be that of any year. Likewise, "last
# Monday" may be that of last week.
_OTHER_YEAR_WEIGHT: Final = 0.8
_YEARS_BACK: Final = 30

_SATURDAY: Final = 5
_SUNDAY: Final = 6


class _Mention(NamedTuple):
    """A time that a text names, at the offsets from `start` until before `stop`."""

    start: int
    stop: int
    periods: tuple[Period, ...]  # empty if the calendar has none

    # The number of the month if the text names only that, else 0.
    month: int = 0

    # Whether it is a whole year.
    is_year: bool = False

    # Whether it counts only as the limit of a period: "since 2020" is a time, "room 2020" is none.
    is_limit: bool = False


class _Template(NamedTuple):
    """A phrase with a gap for one word: what is before and after it, and what the phrase means."""

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
    """The words and phrases of one language."""

    is_spaced: bool  # whether words have spaces between them

    # What words mean. 0 is Monday; the day of a holiday is "12-25" for 25 December, or "easter".
    number_of_word: Mapping[str, int]
    unit_of_word: Mapping[str, str]
    weekday_of_name: Mapping[str, int]
    month_of_name: Mapping[str, int]
    month_of_short_name: Mapping[str, int]
    day_of_holiday: Mapping[str, str]

    # Names of months that mean something else too, and the words after which they are months.
    ambiguous: Collection[str]
    prepositions: Sequence[str]

    # Whole phrases: for a time, with a meaning that `_periods_of_meaning` reads, and for an order.
    meaning_of_phrase: Mapping[str, str]
    order: Sequence[str]

    # These find the words that fill the gaps of templates.
    numbers: re.Pattern[str]
    names: re.Pattern[str]  # of weekdays, months and holidays

    dates: re.Pattern[str]  # with the name of a month

    # Templates. The gap of `ago` and `within` is a number, and their meaning is a unit.
    ago: Sequence[_Template]
    within: Sequence[_Template]
    named: Sequence[_Template]  # the gap is a name; the meaning is "on", "last" or "next"
    years: Sequence[_Template]  # the gap is a year; there is no meaning
    sides: Sequence[_Template]  # the gap is a date; the meaning is a relation

    # Phrases in which an event limits the time. The group `event` has the words of the event.
    events: Sequence[tuple[Relation, re.Pattern[str]]]


def read_time(text: str, candidates: Iterable[str], now: datetime) -> TimeAsked | None:
    """Return the time that a question speaks of; None if it speaks of none.

    `candidates` are the languages that `languages_of_time` returns for it. `now` is the local time
    that "yesterday" refers to. An event is returned only if the question names no other time. Never
    raises: a time outside of the calendar is none.
    """
    likely = _likely_languages(text, frozenset(candidates))
    languages = [_language(name) for name in sorted(likely)]
    text = plain_words(text)
    today = min(max(now.date(), _FIRST_TODAY), _LAST_TODAY)

    mentions = list(_mentions_by_digits(text, today))
    for language in languages:
        mentions += _mentions_in_language(text, language, today)
    mentions = _merge_month_and_year(_without_overlaps(mentions))

    periods: list[Period] = []
    for mention in mentions:
        periods += _periods_of_mention(mention, text, languages, today)

    in_order = any(_asks_for_order(text, language) for language in languages)
    asked = TimeAsked(tuple(periods), in_order=in_order)
    if not periods:
        asked = _with_event(asked, text, languages)
    if asked == TimeAsked():
        return None
    return asked


# -- languages


def _likely_languages(text: str, candidates: frozenset[str]) -> frozenset[str]:
    """Return the languages in which to read a text: one that it is surely in, or several.

    `candidates` are as in `read_time`; "any" among them says that the text has a number. With no
    other candidate, they are the languages of its script.
    """
    names = candidates - {"any"}
    if not text.isascii() and not names.isdisjoint(_UNSPACED):
        names -= _excluded_by_script(text)

    words = set(re.findall(r"\w+", text.casefold()))
    if not words.isdisjoint(_ENGLISH_WORDS):
        return frozenset({"en"})

    language = language_of(text)
    is_candidate = language in names
    if is_candidate or ("any" in candidates and language in _LANGUAGES):
        return frozenset({language})
    if not names:
        return _languages_of_script(text)
    return names


def _languages_of_script(text: str) -> frozenset[str]:
    """Return the languages of Chinese, Japanese or Korean letters in a text, else English."""
    if _HANGUL.search(text):
        return frozenset({"ko"})
    if not _HAN.search(text):
        return frozenset({"en"})
    if _KANA.search(text):
        return frozenset({"ja"})
    return frozenset({"ja", "zh"})


def _excluded_by_script(text: str) -> frozenset[str]:
    """Return those of Chinese, Japanese and Korean that a text, by its letters, is not in."""
    if _HANGUL.search(text):
        return frozenset({"zh", "ja"})
    if _KANA.search(text):
        return frozenset({"zh", "ko"})
    return frozenset({"ko"})


@cache
def _language(name: str) -> _Language:
    """Read and compile the phrases of a language, such as `en`, once."""
    file = _PHRASES / f"{name}.json"
    data = json.loads(file.read_text(encoding="utf-8"))
    is_spaced: bool = data["spaced"]

    number = r"\d{1,4}"
    if data["numbers"]:
        number = f"(?:{number}|{_alternatives(data['numbers'])})"
    names = [*data["weekdays"], *data["months"], *data["holidays"]]
    names_of_months = data["months"] | data["short_months"]

    named: list[_Template] = []
    for position in ("on", "last", "next"):
        named += _templates(dict.fromkeys(data[position], position), "{name}")
    sides: list[_Template] = []
    for relation in _RELATIONS:
        sides += _templates(dict.fromkeys(data[relation], relation), "{date}")

    return _Language(
        is_spaced=is_spaced,
        number_of_word=data["numbers"],
        unit_of_word=data["units"],
        weekday_of_name=data["weekdays"],
        month_of_name=data["months"],
        month_of_short_name=data["short_months"],
        day_of_holiday=data["holidays"],
        ambiguous=data["ambiguous"],
        prepositions=data["prepositions"],
        meaning_of_phrase=data["periods"],
        order=data["order"],
        numbers=_compile(number, is_spaced),
        names=_compile(_alternatives(names), is_spaced),
        dates=_date_pattern(names_of_months, is_spaced),
        ago=_templates(data["ago"], "{count}"),
        within=_templates(data["within"], "{count}"),
        named=_longest_first(named),
        years=_templates(dict.fromkeys(data["year"], ""), "{year}"),
        sides=_longest_first(sides),
        events=_events(data, is_spaced),
    )


def _alternatives(phrases: Iterable[str]) -> str:
    """Return a pattern that matches one of some phrases, the longest first; nothing if none."""
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
    """Return the templates of the phrases that have a placeholder, the longest first.

    `meanings` are the meanings of the phrases. The placeholder, such as "{count}", is the gap.
    """
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
    """Yield the phrases that are in a text with the part from `start` to `stop` in their gap.

    They are in the order of `templates`. If `is_spaced`, they begin and end with whole words.
    """
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
    """Return whether no letter or digit is directly before or after a part of a text."""
    before = text[start - 1 : start]
    after = text[stop : stop + 1]
    return not (_ONE_LETTER.match(before) or _ONE_LETTER.match(after))


def _starts_of_phrase(text: str, phrase: str, is_spaced: bool) -> Iterator[int]:
    """Yield the offsets at which a text has a phrase; if `is_spaced`, only as whole words."""
    start = text.find(phrase)
    while start >= 0:
        stop = start + len(phrase)
        if not is_spaced or _is_between_words(text, start, stop):
            yield start
        start = text.find(phrase, stop)


def _asks_for_order(text: str, language: _Language) -> bool:
    """Return whether a question asks in what order things happened."""
    for phrase in language.order:
        starts = _starts_of_phrase(text, phrase, language.is_spaced)
        if next(starts, None) is not None:
            return True
    return False


def _date_pattern(months: Mapping[str, int], is_spaced: bool) -> re.Pattern[str]:
    """Compile a pattern for dates with the name of a month: `8th of May, 2023` or `March`.

    Its groups are `month`, `year` and `day`. If `is_spaced`, `day_after` is a day after the month.
    """
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
    """Compile the phrases in which an event limits the time, such as `before I moved`.

    `data` is the file of a language. If the language has `subjects`, an event begins with one,
    unless it is at the beginning of the phrase.
    """
    subjects = data["subjects"]
    last_event = f"(?P<event>{_IN_CLAUSE}+)"
    if subjects:
        last_event = rf"(?P<event>{_alternatives(subjects)} {_IN_CLAUSE}+)"
    first_event = f"(?P<event>{_IN_CLAUSE}+?)"

    events: list[tuple[Relation, re.Pattern[str]]] = []
    for relation in _RELATIONS:
        for template in data[relation]:
            before, gap, after = template.partition("{event}")
            if not gap:
                continue
            event = last_event if before else first_event
            whole = f"{re.escape(before)}{event}{re.escape(after)}"
            events.append((relation, _compile(whole, is_spaced)))
    return events


# -- what phrases mean


def _mentions_by_digits(text: str, today: date) -> Iterator[_Mention]:
    """Yield the dates that digits alone name, such as `2026-01-24`, `24.1.2026` or `1月`."""
    for pattern in (_ISO_DATE, _DOTTED_DATE, _NUMBERED_DATE):
        for match in pattern.finditer(text):
            year = int(match["year"] or 0)
            month = int(match["month"])
            day = int(match["day"] or 0)
            mention = _mention_of_date(match, year, month, day, today)
            if mention is not None:
                yield mention

    for match in _BARE_YEAR.finditer(text):
        year = int(match["year"])
        yield _Mention(*match.span(), (_whole_year(year),), is_limit=True)


def _mentions_in_language(text: str, language: _Language, today: date) -> Iterator[_Mention]:
    """Yield the times that a text names in one language; they may overlap."""
    yield from _mentions_by_phrase(text, language, today)
    yield from _mentions_by_number(text, language, today)
    yield from _mentions_by_year(text, language)
    yield from _mentions_by_date(text, language, today)
    yield from _mentions_by_name(text, language, today)


def _mentions_by_phrase(text: str, language: _Language, today: date) -> Iterator[_Mention]:
    """Yield the times of whole phrases, such as "last week"; each phrase counts once."""
    for phrase, meaning in language.meaning_of_phrase.items():
        is_relative = meaning.startswith(("ago", "within"))
        is_year = meaning.endswith(" year") and not is_relative
        for start in _starts_of_phrase(text, phrase, language.is_spaced):
            stop = start + len(phrase)
            if _is_of_something(phrase, text, stop):
                continue
            periods = _periods_of_meaning(meaning, today, language.is_spaced)
            yield _Mention(start, stop, periods, is_year=is_year)
            break


def _is_of_something(phrase: str, text: str, stop: int) -> bool:
    """Return whether an English phrase ends before "of": "the last week of the project"."""
    words = phrase.split()
    is_last = "last" in words or "past" in words
    return is_last and text.startswith(" of ", stop)


def _mentions_by_number(text: str, language: _Language, today: date) -> Iterator[_Mention]:
    """Yield the times with a number of units: "two weeks ago", "the last 3 days"."""
    is_spaced = language.is_spaced
    for match in language.numbers.finditer(text):
        start, stop = match.span()
        count = _number(match[0], language)
        for place in _around(text, start, stop, language.ago, is_spaced):
            periods = _ago(count, place.meaning, today)
            yield _Mention(place.start, place.stop, periods)
        for place in _around(text, start, stop, language.within, is_spaced):
            periods = _within(count, place.meaning, today)
            yield _Mention(place.start, place.stop, periods)


def _mentions_by_year(text: str, language: _Language) -> Iterator[_Mention]:
    """Yield the years in phrases that make them times: "in 2023"."""
    for match in _BARE_YEAR.finditer(text):
        start, stop = match.span()
        periods = (_whole_year(int(match["year"])),)
        for place in _around(text, start, stop, language.years, language.is_spaced):
            yield _Mention(place.start, place.stop, periods, is_year=True)


def _whole_year(year: int) -> Period:
    """Return the period of a whole year."""
    return Period(date(year, 1, 1), date(year + 1, 1, 1))


def _number(text: str, language: _Language) -> int:
    """Return the number that digits or a word of `number_of_word` mean.

    Raises ValueError for more than 4,300 digits.
    """
    if text.isdecimal():
        return int(text)
    return language.number_of_word[text]


def _mentions_by_date(text: str, language: _Language, today: date) -> Iterator[_Mention]:
    """Yield the dates with the name of a month.

    Without a day and a year, a short name such as "Jan" is left out, and an ambiguous one such as
    "may" counts only after a preposition.
    """
    for match in language.dates.finditer(text):
        parts = match.groupdict()
        day = int(parts["day"] or parts.get("day_after") or 0)
        year = int(parts["year"] or 0)
        name = parts["month"]

        if not day and not year:
            if name in language.month_of_short_name:
                continue
            is_ambiguous = name in language.ambiguous
            if is_ambiguous and not _is_after_preposition(text, match.start(), language):
                continue

        month = language.month_of_name.get(name) or language.month_of_short_name[name]
        mention = _mention_of_date(match, year, month, day, today)
        if mention is not None:
            yield mention


def _is_after_preposition(text: str, start: int, language: _Language) -> bool:
    """Return whether the word before an offset is one of the prepositions."""
    before = f" {text[:start]}"
    endings = tuple(f" {word} " for word in language.prepositions)
    return before.endswith(endings)


def _mention_of_date(
    match: re.Match[str], year: int, month: int, day: int, today: date
) -> _Mention | None:
    """Return the time that a date means; None if the calendar does not have it.

    `year` or `day` is 0 if the date lacks it. Without a year, it means that of many years.
    """
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
    return _Mention(*match.span(), tuple(periods), month=only_month)


def _years_around(today: date) -> list[int]:
    """Return the next year, this one and the 30 before it, the latest first."""
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
    """Return periods of which the last one that has begun counts most and comes first.

    `periods` are in different years, the latest first. If none has begun, they stay as they are.
    """
    begun = [period for period in periods if period.start <= today]
    if not begun:
        return list(periods)

    last = begun[0]
    others = [period._replace(weight=_OTHER_YEAR_WEIGHT) for period in periods if period != last]
    return [last, *others]


def _mentions_by_name(text: str, language: _Language, today: date) -> Iterator[_Mention]:
    """Yield the weekdays, months and holidays that a text names, such as "last Monday".

    A weekday without such a phrase is a limit only. A holiday may have a year after it.
    """
    for match in language.names.finditer(text):
        name = match[0]
        start, stop = match.span()
        weekday = language.weekday_of_name.get(name)
        for place in _around(text, start, stop, language.named, language.is_spaced):
            if place.meaning != "on" or weekday is not None:
                periods = _named_periods(name, place.meaning, language, today)
                yield _Mention(place.start, place.stop, periods)

        if weekday is not None:
            periods = _weekday(weekday, "last", today)
            yield _Mention(start, stop, periods, is_limit=True)
        if name in language.day_of_holiday:
            year = _YEAR_AFTER.match(text, stop)
            if year is not None:
                stop = year.end()
            number = int(year["year"]) if year else 0
            periods = _holiday(language.day_of_holiday[name], number, today)
            yield _Mention(start, stop, periods)


def _named_periods(
    name: str, position: str, language: _Language, today: date
) -> tuple[Period, ...]:
    """Return the last or next weekday, month or holiday of a name.

    `position` is "next", "last" or, for a weekday only, "on". The last month or holiday is over.
    Returns none if there is none in the next year or the 30 before it.
    """
    if name in language.weekday_of_name:
        return _weekday(language.weekday_of_name[name], position, today)

    if name in language.month_of_name:
        month = language.month_of_name[name]
        months = [_month_or_day(year, month, 0) for year in _years_around(today)]
        periods = [period for period in months if period is not None]
    else:
        periods = list(_holiday(language.day_of_holiday[name], 0, today))

    if position == "next":
        matching = [period for period in periods if period.start > today][-1:]
    else:
        matching = [period for period in periods if period.end <= today][:1]
    return tuple(period._replace(weight=1.0) for period in matching)


def _weekday(weekday: int, position: str, today: date) -> tuple[Period, ...]:
    """Return the day of the week, 0 for Monday, that is nearest to today.

    `position` is "next" for a day after today, "on" for today or a day before it, and "last" for a
    day before today; then that of last week comes second, and counts less.
    """
    days_back = (today.weekday() - weekday) % 7
    if position == "next":
        return (_day(today + (7 - days_back) * _DAY),)
    if position == "on":
        return (_day(today - days_back * _DAY),)

    last = today - (days_back or 7) * _DAY
    monday_of_last_week = today - (today.weekday() + 7) * _DAY
    of_last_week = _day(monday_of_last_week + weekday * _DAY)
    return (_day(last), of_last_week._replace(weight=_OTHER_YEAR_WEIGHT))


def _day_after(day: date) -> date:
    """Return the next day; the last day of the calendar has none, so it returns itself."""
    return day if day == _LAST_DAY else day + _DAY


def _day(day: date) -> Period:
    """Return a period of one day."""
    return Period(day, _day_after(day))


def _holiday(meaning: str, year: int, today: date) -> tuple[Period, ...]:
    """Return a holiday of a year; if `year` is 0, of many years, the last one that began first.

    `meaning` is month and day, such as "12-25", or "easter".
    """
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
    """Return Easter Sunday of a year, by Gauss's method for the Gregorian calendar."""
    century = year // 100
    moon = (15 + century - century // 4 - (8 * century + 13) // 25) % 30
    age = (19 * (year % 19) + moon) % 30
    if age == 29 or (age == 28 and year % 19 > 10):
        age -= 1
    sunday = (4 + century - century // 4) % 7
    days = (2 * (year % 4) + 4 * (year % 7) + 6 * age + sunday) % 7
    return date(year, 3, 22) + (age + days) * _DAY


def _periods_of_meaning(meaning: str, today: date, is_spaced: bool) -> tuple[Period, ...]:
    """Return the periods of a meaning: `-1 week`, `ago 2 month`, `within 1 year`, `-1 weekday 0`.

    Returns none if they are outside of the calendar.
    """
    first, second, *rest = meaning.split(" ")
    try:
        if first == "ago":
            return _ago(int(second), rest[0], today)
        if first == "within":
            return _within(int(second), rest[0], today)

        offset = int(first)
        if second == "weekday":
            return _relative_weekday(offset, int(rest[0]), today, is_spaced)
        return (_calendar_period(offset, second, today),)
    except (ValueError, OverflowError):
        return ()


def _relative_weekday(
    offset: int, weekday: int, today: date, is_spaced: bool
) -> tuple[Period, ...]:
    """Return a weekday, 0 for Monday, of the last or next week: `offset` is -1 or 1, or 0 for this.

    If `is_spaced`, it is the last or next day of this name, and 0 counts as next.
    """
    if is_spaced:
        return _weekday(weekday, "last" if offset < 0 else "next", today)
    # In Chinese, Japanese and Korean, the phrase says "of last week".
    monday = today - today.weekday() * _DAY
    return (_day(monday + (7 * offset + weekday) * _DAY),)


def _calendar_period(offset: int, unit: str, today: date) -> Period:
    """Return the day, week, weekend, month or year that is `offset` units after this one.

    Raises ValueError or OverflowError outside of the calendar.
    """
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
    """Return the same day some months later, or the last day of a shorter month.

    A negative `count` goes back. Raises ValueError or OverflowError outside of the calendar.
    """
    number = day.year * 12 + day.month - 1 + count
    year, month = divmod(number, 12)
    last_day = monthrange(year, month + 1)[1]
    return date(year, month + 1, min(day.day, last_day))


def _units_before(day: date, count: int, unit: str) -> date:
    """Return the day that is `count` units before another; a negative `count` goes forward.

    Raises ValueError or OverflowError outside of the calendar.
    """
    if unit == "month":
        return _months_later(day, -count)
    if unit == "year":
        return _months_later(day, -12 * count)
    days_per_unit = {"day": 1, "week": 7, "weekend": 7}
    return day - count * days_per_unit[unit] * _DAY


def _ago(count: int, unit: str, today: date) -> tuple[Period, ...]:
    """Return the days around the one that is `count` units before today.

    Returns none if they are outside of the calendar.
    """
    half_length = _HALF_LENGTHS[unit] * _DAY
    try:
        day = _units_before(today, count, unit)
        return (Period(day - half_length, day + half_length + _DAY, _SLACKS[unit]),)
    except (ValueError, OverflowError):
        return ()


def _within(count: int, unit: str, today: date) -> tuple[Period, ...]:
    """Return the last `count` units, with today; none if they begin outside of the calendar."""
    try:
        return (Period(_units_before(today, count, unit), today + _DAY),)
    except (ValueError, OverflowError):
        return ()


# -- what times mean together


def _without_overlaps(mentions: Iterable[_Mention]) -> list[_Mention]:
    """Return the mentions with periods that do not overlap, in the order of the text.

    Of those that overlap, the longest stays; of equally long ones, the first in `mentions`.
    """
    chosen: list[_Mention] = []
    longest_first = sorted(mentions, key=lambda mention: mention.start - mention.stop)
    for mention in longest_first:
        overlaps = any(
            mention.start < other.stop and other.start < mention.stop for other in chosen
        )
        if mention.periods and not overlaps:
            chosen.append(mention)
    return sorted(chosen)


def _merge_month_and_year(mentions: Sequence[_Mention]) -> list[_Mention]:
    """Return the mentions; if one is a year, months without a year are in it and replace it.

    So "in March last year" is one month.
    """
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


def _periods_of_mention(
    mention: _Mention, text: str, languages: Sequence[_Language], today: date
) -> Sequence[Period]:
    """Return the periods that a mention in a text means.

    In a phrase such as "before May" or "since Monday", it is one that the first of its periods
    limits. Otherwise it is all of its periods, and none for a mention that is a limit only.
    """
    limit = mention.periods[0]
    for language in languages:
        places = _around(text, mention.start, mention.stop, language.sides, language.is_spaced)
        for place in places:
            relation = _RELATION_OF_NAME[place.meaning]
            return _at_distance(limit, relation, text[: place.start], language, today)

    if mention.is_limit:
        return ()
    return mention.periods


def _at_distance(
    limit: Period, relation: Relation, text_before: str, language: _Language, today: date
) -> tuple[Period, ...]:
    """Return the period beside another one, such as "before May" or "two weeks before May".

    Before "before" or "after", `text_before` may end with the distance: a number and a unit, a unit
    or a weekday. Returns none if the period is outside of the calendar.
    """
    words = text_before.split()
    word = words[-1] if words else ""
    is_distance = word in language.unit_of_word or word in language.weekday_of_name
    if not is_distance or relation not in ("before", "after"):
        return (_period_beside(limit, relation, today),)

    if relation == "before":
        sign = 1
        day = limit.start
    else:
        sign = -1
        day = limit.end - _DAY
    try:
        if word in language.weekday_of_name:
            days = (day.weekday() - language.weekday_of_name[word]) * sign % 7 or 7
            return (_day(day - sign * days * _DAY),)

        unit = language.unit_of_word[word]
        count = _last_number(words[:-1], language)
        if count is not None:
            return _ago(sign * count, unit, day)

        # "The week before May" is the whole way to the day.
        far = _units_before(day, sign, unit)
        return (Period(min(far, day), max(far, day + _DAY)),)
    except (ValueError, OverflowError):
        return ()


def _last_number(words: Sequence[str], language: _Language) -> int | None:
    """Return the number that the last 1, 2 or 3 words mean, the fewest first; None if none do.

    Raises ValueError for a number of more than 4,300 digits.
    """
    for length in range(1, _MAX_NUMBER_WORDS + 1):
        text = " ".join(words[-length:])
        if text.isdecimal() or text in language.number_of_word:
            return _number(text, language)
    return None


def _period_beside(limit: Period, relation: Relation, today: date) -> Period:
    """Return the period before, after, since or until another one.

    "since" and "until" include it. "since" ends with today, or with the first day of `limit` if
    that is later.
    """
    if relation == "before":
        return Period(date.min, limit.start)
    if relation == "until":
        return Period(date.min, limit.end)
    if relation == "after":
        return Period(limit.end, _LAST_DAY)
    return Period(limit.start, _day_after(max(today, limit.start)))


def beside_event(day: date, relation: Relation, now: datetime) -> Period:
    """Return the period before, after, since or until an event, with the day of the event.

    Its days count half. `now` is the local time; "since" ends today. Never raises.
    """
    limit = _day(day)
    if relation == "before":
        relation = "until"
    elif relation == "after":
        limit = Period(day, day)
    period = _period_beside(limit, relation, now.date())
    return period._replace(weight=_EVENT_WEIGHT)


def _with_event(asked: TimeAsked, text: str, languages: Sequence[_Language]) -> TimeAsked:
    """Return the time with the first event that limits it in the text, or as it is if none does."""
    for language in languages:
        for relation, pattern in language.events:
            match = pattern.search(text)
            if match is not None:
                return replace(asked, event=match["event"].strip(), relation=relation)
    return asked
