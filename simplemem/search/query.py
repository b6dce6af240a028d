"""Read a query: its words and filters, the forms its words are searched in, the dates it names.

Everything a person types is words, except `"a phrase"`, `tag:x`, `tag:key=value`, `type:x`,
`path:folder/`, `author:x`, `archive:`, `begin*`, and `-word` after a space. Nothing of a query
reaches SQLite as syntax. docs/search.md describes queries for their users.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, time, timedelta
from itertools import pairwise
from typing import NamedTuple

from simplemem.errors import Invalid
from simplemem.index.door import AnyOf, Row, Standing, Term
from simplemem.index.text import instant
from simplemem.note.code_names import parts_of_names, sequences_in
from simplemem.note.dates import date_in_name
from simplemem.note.formatting import well_formed
from simplemem.note.languages import find_stop_words
from simplemem.note.letters import is_unspaced
from simplemem.note.names import base_name
from simplemem.note.stems import MARKS, stem
from simplemem.note.words import (
    content_words,
    neighbouring_words,
    unique_words,
    words_in_order,
    words_key,
)

# `Sidecar.vocabulary`. For each group of terms it returns how many notes contain one of them, and
# it returns the index status.
Vocabulary = Callable[[Sequence[AnyOf]], tuple[Sequence[int], Standing]]

# Characters of a query that are read.
MAX_CHARACTERS = 2_000
_MAX_WORDS = 64
_MAX_SEQUENCES = 16

# The last word of a query may be half typed, unless one of these follows it.
_SENTENCE_ENDS = (".", "?", "!", "。", "？", "！")

# A shorter beginning would match too many words.
_MIN_BEGINNING = 3

_SYNTAX = re.compile(
    r"""(?:(?<=\s)|^)(?:(?P<archive>archive:)|(?:
        (?P<minus>-)?"(?P<phrase>[^"\n]{1,200})"
      | (?P<not>-)?(?P<field>tag|type|path|author):
        (?:"(?P<quoted_value>[^"\n]{1,200})"|(?P<value>[^\s"]{1,200}))
      | (?P<beginning>[^\W\d_][^\s"*]{1,60})\*
      | -(?P<word>[^\W\d_][\w'\x80-\U0010ffff-]{0,60})
    )(?=\s|$))""",
    re.VERBOSE,
)

# The days that a query names change the order of this many of the best notes; they filter nothing.
DATED_NOTES = 40

# Beside 1 of all other signals. The ranking is equally good from 0.05 to 0.2.
DATED_WEIGHT = 0.15

_MONTHS = (
    "january february march april may june july august september october november december".split()
)
# Months that are words as well, so a date needs more than their name.
_AMBIGUOUS_MONTHS = ("march", "may")

_DAY = timedelta(days=1)
# From the first day of any month, this leads into the next one.
_MORE_THAN_A_MONTH = 32 * _DAY

_AGO = re.compile(r"(?P<count>\d{1,4}) (?P<unit>minute|hour|day|week|month|year)s? ago")
_UNITS = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": _DAY,
    "week": 7 * _DAY,
    "month": 30 * _DAY,
    "year": 365 * _DAY,
}
# "2 hours ago" is a moment, "2 days ago" is a whole day.
_MOMENT_UNITS = ("minute", "hour")

# After these, "may", "march" and a number of four digits are dates.
_DATE_PREPOSITIONS = ("in", "on", "of", "during", "from", "by", "early", "late", "last", "this")

# After these, a date only limits a period: "two weeks before 11 August" is not about 11 August.
_LIMIT_PREPOSITIONS = ("before", "until", "till", "after", "since")

_DATE = re.compile(
    rf"""\b(?P<iso>(?:19|20)\d\d-\d\d(?:-\d\d)?)\b
      | \b(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?(?P<month>{"|".join(_MONTHS)})\b
        (?:\s+(?P<day_after>\d{{1,2}})(?:st|nd|rd|th)?\b)?(?:,?\s+(?P<year>(?:19|20)\d\d)\b)?
      | \b(?P<only_year>(?:19|20)\d\d)\b
      | \b(?P<relative>yesterday|today|(?:last|this)\ (?:week|month|year)
        |\d{{1,3}}\ (?:day|week|month|year)s?\ ago)\b""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Query:
    """A query in its parts: the words that rank notes, and the filters."""

    text: str

    # The words that rank, each once.
    words: tuple[str, ...]

    # All words in their order, including stop words.
    spoken: tuple[str, ...] = ()

    # Neighbouring words.
    pairs: tuple[tuple[str, str], ...] = ()

    phrases: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    tags: dict[str, str] = field(default_factory=dict)
    type: str = ""
    prefix: str = ""
    author: str = ""

    # Whether to search past sessions.
    archive: bool = False

    # Words that were written as one, such as `path/to.py`. Each sequence ranks as one more word.
    sequences: tuple[tuple[str, ...], ...] = ()

    # Words that were written as `begin*`.
    beginnings: tuple[str, ...] = ()

    # The last word, if it may be half typed; else "".
    last: str = ""

    # What a word is searched as, besides itself.
    forms: Mapping[str, tuple[Term, ...]] = field(default_factory=dict)

    # The stems of neighbouring words.
    stem_pairs: tuple[Term, ...] = ()

    # The stems of `without`.
    without_forms: tuple[str, ...] = ()

    # Sentences about what was searched for instead of the text, "" if nothing was.
    instead: str = ""

    # For each of `words`, how many notes contain it.
    holders: tuple[int, ...] = ()

    # Words that no note contains, in any form.
    absent: tuple[str, ...] = ()

    def asks_nothing(self) -> bool:
        """Return whether the text has neither words nor filters: `???`, but not an empty text."""
        return bool(self.text.strip()) and not self.words and not self.has_filters()

    def has_filters(self) -> bool:
        """Return whether the text contains filters."""
        filters = (
            self.phrases,
            self.without,
            self.tags,
            self.type,
            self.prefix,
            self.author,
            self.archive,
        )
        return any(filters)

    def forms_of(self, word: str) -> tuple[Term, ...]:
        """Return everything that a word is searched as, the word itself first."""
        return (Term((word,)), *self.forms.get(word, ()))

    def terms(self) -> tuple[Term, ...]:
        """Return what to search for: a note that contains any of these terms is a candidate.

        Few notes contain all words of a question, so a search for all of them finds nothing.
        """
        terms = [term for word in self.words for term in self.forms_of(word)]
        terms += [Term(sequence) for sequence in self.sequences]
        return tuple(dict.fromkeys(terms))

    def names(self) -> tuple[str, ...]:
        """Return the names that the whole query may be of a note, in the form of `words_key`.

        These are all its words, and its words without the stop words around them: `What is a MOC?`
        names `MOC`.
        """
        ranking_places = [place for place, word in enumerate(self.spoken) if word in self.words]
        inner_words: tuple[str, ...] = ()
        if ranking_places:
            inner_words = self.spoken[ranking_places[0] : ranking_places[-1] + 1]

        keys = [words_key(" ".join(words)) for words in (self.spoken, inner_words)]
        return tuple(key for key in dict.fromkeys(keys) if key)

    def side_by_side(self) -> tuple[Term, ...]:
        """Return the pairs of neighbouring words, and of their stems."""
        return (*map(Term, self.pairs), *self.stem_pairs)


@dataclass
class _Syntax:
    """The filters that were read from a query so far, and the text that remains as words."""

    words_text: str = ""
    phrases: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)
    beginnings: list[str] = field(default_factory=list)
    tags: dict[str, str] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)
    archive: bool = False

    def excludes_only(self) -> bool:
        """Return whether nothing but exclusions was read."""
        includes = (
            self.words_text.strip(),
            self.phrases,
            self.tags,
            any(self.fields.values()),
            self.archive,
        )
        return bool(self.without) and not any(includes)


def read_query(text: str) -> Query:
    """Read a query as a person types it. Never raises: what is not valid syntax is words."""
    notices: list[str] = []
    if len(text) > MAX_CHARACTERS:
        notices.append(f"Only the first {MAX_CHARACTERS:,} characters of the query were read.")
    text = well_formed(text[:MAX_CHARACTERS]).replace("\0", "\ufffd")

    syntax = _read_syntax(text)
    if syntax.excludes_only():
        # "-5 degrees" alone leaves nothing to search for, so it is words.
        syntax.words_text = text
        syntax.without = []
    words_text = syntax.words_text

    words = words_in_order(words_text)
    name_parts = words_in_order(parts_of_names(words_text))
    ranking_words = content_words(list(dict.fromkeys(words + name_parts)))
    if len(ranking_words) > _MAX_WORDS:
        notices.append(f"Only the first {_MAX_WORDS} words of the query were searched for.")
        ranking_words = ranking_words[:_MAX_WORDS]

    beginnings = [word for word in syntax.beginnings if word in ranking_words and len(word) > 1]
    last = ""
    if words and not words_text.rstrip().endswith(_SENTENCE_ENDS):
        last = words[-1]
    return Query(
        text,
        words=tuple(ranking_words),
        spoken=tuple(words[:_MAX_WORDS]),
        pairs=tuple(neighbouring_words(words)[:_MAX_WORDS]),
        phrases=tuple(syntax.phrases),
        without=tuple(syntax.without),
        tags=syntax.tags,
        type=syntax.fields.get("type", ""),
        prefix=syntax.fields.get("path", ""),
        author=syntax.fields.get("author", ""),
        archive=syntax.archive,
        sequences=tuple(sequences_in(words_text)[:_MAX_SEQUENCES]),
        beginnings=tuple(beginnings),
        last=last,
        instead=" ".join(notices),
    )


def _read_syntax(text: str) -> _Syntax:
    """Separate the filters of a query from its words."""
    syntax = _Syntax()
    end = 0
    for match in _SYNTAX.finditer(text):
        if _is_words(match):
            continue
        words = _take_filter(syntax, match)
        syntax.words_text += f"{text[end : match.start()]} {words} "
        end = match.end()
    syntax.words_text += text[end:]
    return syntax


def _is_words(match: re.Match[str]) -> bool:
    """Return whether a match stays words: a negated field, or a phrase without a word."""
    if match["not"]:
        return True
    phrase = match["phrase"]
    return phrase is not None and not unique_words(phrase)


def _take_filter(syntax: _Syntax, match: re.Match[str]) -> str:
    """Add a filter to `syntax`, and return the part of it that ranks as words too."""
    phrase = match["phrase"]
    if match["archive"]:
        syntax.archive = True
        return ""

    if match["word"] or match["minus"]:
        syntax.without.append(match["word"] or phrase)
        return ""

    if phrase is not None:
        syntax.phrases.append(phrase)
        return phrase

    beginning = match["beginning"]
    if beginning:
        syntax.beginnings += words_in_order(beginning)[-1:]
        return beginning

    value = match["quoted_value"] or match["value"]
    if match["field"] == "tag":
        key, _, tag_value = value.lstrip("#").partition("=")
        syntax.tags[key] = tag_value
    else:
        syntax.fields[match["field"]] = value
    return ""


def with_forms(query: Query, vocabulary: Vocabulary) -> tuple[Query, Standing]:
    """Return the query with all forms its words are searched in, and the index status.

    The forms are stems in the languages of the vault. If no note contains a word, its beginning or
    its characters may be searched for; `instead` then says so.
    """
    if not (query.words or query.without):
        _, status = vocabulary(())
        return query, status

    # A note in a language other than English contains the mark of the language.
    marks_and_words = [*MARKS.values(), *query.words]
    counts, status = vocabulary([(Term((word,)),) for word in marks_and_words])
    mark_counts = zip(MARKS, counts, strict=False)
    languages = [language for language, count in mark_counts if count]

    counts = counts[len(MARKS) :]
    if languages:
        query, counts = _with_stems(query, counts, languages, vocabulary)
    query = replace(query, holders=tuple(counts))

    missing = [word for word, count in zip(query.words, counts, strict=True) if not count]
    if missing or query.beginnings:
        query = _with_substitutes(query, missing, vocabulary)
    return query, status


def _with_stems(
    query: Query, counts: Sequence[int], languages: Collection[str], vocabulary: Vocabulary
) -> tuple[Query, Sequence[int]]:
    """Return the query with the useful stems of its words, and the note count of each word.

    `counts` are the numbers of notes that contain each word as it is spelled. The returned counts
    are the numbers of notes that contain any of its forms.
    """
    counts_as_spelled = dict(zip(query.words, counts, strict=True))
    query = _in_languages(query, languages)
    counts_of_forms, _ = vocabulary([query.forms_of(word) for word in query.words])

    query = _without_idle_stems(query, counts_as_spelled, counts_of_forms)
    query = replace(query, stem_pairs=_stem_pairs(query, languages))
    return query, counts_of_forms


def _in_languages(query: Query, languages: Collection[str]) -> Query:
    """Return the query with the stems of its words, without the stop words of its language."""
    stop_words = find_stop_words(query.words, languages)
    words = tuple(word for word in query.words if word not in stop_words) or query.words
    forms = {word: _stem_terms((word,), languages) for word in words}
    pairs = tuple(pair for pair in query.pairs if not stop_words.issuperset(pair))
    without = [stem for word in query.without for stem in _stems(word.lower(), languages)]
    return replace(query, words=words, pairs=pairs, forms=forms, without_forms=tuple(without))


def _without_idle_stems(
    query: Query, counts_as_spelled: Mapping[str, int], counts_of_forms: Sequence[int]
) -> Query:
    """Return the query without the stems that add no note to those that contain the word itself.

    Such stems would only favour the notes of their language.
    """
    counts = zip(query.words, counts_of_forms, strict=True)
    useful = {word for word, count in counts if count > counts_as_spelled[word]}
    forms = {word: terms for word, terms in query.forms.items() if word in useful}
    return replace(query, forms=forms)


def _stem_pairs(query: Query, languages: Collection[str]) -> tuple[Term, ...]:
    """Return the stems of neighbouring words, if at least one of the two has a useful stem."""
    pairs = [pair for pair in pairwise(query.words) if not query.forms.keys().isdisjoint(pair)]
    return tuple(term for pair in pairs for term in _stem_terms(pair, languages))


def _stem_terms(words: tuple[str, ...], languages: Collection[str]) -> tuple[Term, ...]:
    """Return the stems of neighbouring words, one term per language; none if a word has no stem."""
    stems_of_words = [_stems(word, languages) for word in words]
    stems_by_language = zip(*stems_of_words, strict=False)
    return tuple(Term(stems, stem_of=words) for stems in stems_by_language)


def _stems(word: str, languages: Collection[str]) -> tuple[str, ...]:
    """Return the stem of a word in each language; none for numbers and scripts without spaces."""
    if not word.isalpha() or is_unspaced(word):
        return ()
    return tuple(stem(word, language) for language in languages)


def _with_substitutes(query: Query, missing: Sequence[str], vocabulary: Vocabulary) -> Query:
    """Return the query with what to search for in place of the words that no note contains."""
    forms = dict(query.forms)
    for word in query.beginnings:
        forms[word] = (*forms.get(word, ()), Term((word,), beginning=True))

    characters = _characters_of_missing(query, missing, vocabulary)
    completions = _completions_of_last(query, missing, vocabulary)
    forms |= characters
    forms |= completions

    notices = [query.instead] if query.instead else []
    by_characters = [word for word, terms in characters.items() if terms]
    notices += [
        f'No note contains "{word}"; its characters were searched for.'
        for word in by_characters[:1]
    ]
    notices += [
        f'No note contains "{word}"; words that begin with it were searched for.'
        for word in completions
    ]

    absent = [word for word in missing if forms.get(word, ()) == query.forms.get(word, ())]
    return replace(query, forms=forms, instead=" ".join(notices), absent=tuple(absent))


def _characters_of_missing(
    query: Query, missing: Sequence[str], vocabulary: Vocabulary
) -> dict[str, tuple[Term, ...]]:
    """Return the characters of each word in a script without spaces.

    Returns nothing if a note contains one of these words.
    """
    unspaced = [word for word in query.words if is_unspaced(word)]
    if not set(unspaced) <= set(missing):
        return {}
    return {
        word: _terms_in_notes([Term((character,)) for character in word], vocabulary)
        for word in unspaced
    }


def _completions_of_last(
    query: Query, missing: Sequence[str], vocabulary: Vocabulary
) -> dict[str, tuple[Term, ...]]:
    """Return the last word as a beginning, if notes contain only words that begin with it."""
    word = query.last
    is_candidate = (
        word in missing
        and word not in query.beginnings
        and not is_unspaced(word)
        and len(word) >= _MIN_BEGINNING
    )
    if not is_candidate:
        return {}

    terms = _terms_in_notes([Term((word,), beginning=True)], vocabulary)
    return {word: terms} if terms else {}


def _terms_in_notes(terms: Sequence[Term], vocabulary: Vocabulary) -> tuple[Term, ...]:
    """Return those terms that at least one note contains."""
    counts, _ = vocabulary([(term,) for term in terms])
    return tuple(term for term, count in zip(terms, counts, strict=True) if count)


class _Period(NamedTuple):
    """A period of time: its first moment and the first moment after it; of a moment, the same."""

    start: datetime
    end: datetime


def read_when(text: str, now: datetime, *, end: bool = False) -> str:
    """Return the moment a text means, or with `end` the end of its period, as notes are sorted.

    Raises Invalid for a text that is no date.
    """
    period = _period_of(" ".join(text.casefold().split()), now)
    if period is None:
        raise Invalid(
            f"{text!r} is not a valid date",
            hint='Use 2026-01-24, 2026-01, 2026-01-24T12:00, "yesterday", "last week", '
            '"3 days ago" or "10 minutes ago".',
        )

    moment = period.end if end else period.start
    return moment.strftime("%Y-%m-%dT%H:%M:%S")


def _period_of(text: str, now: datetime) -> _Period | None:
    """Return the period that a text in small letters names; None if it is no date."""
    named_periods = _named_periods(now)
    if text in named_periods:
        return named_periods[text]

    try:
        ago = _AGO.fullmatch(text)
        if ago is not None:
            return _period_ago(int(ago["count"]), ago["unit"], now)
        if re.fullmatch(r"\d{4}(-\d{2})?", text):
            return _year_or_month(text)
        return _day_or_second(text)
    except (ValueError, OverflowError):
        return None


def _named_periods(now: datetime) -> dict[str, _Period]:
    today = datetime.combine(now, time.min)
    monday = today - today.weekday() * _DAY
    month = today.replace(day=1)
    year = today.replace(month=1, day=1)
    return {
        "now": _Period(now, now),
        "today": _Period(today, today + _DAY),
        "yesterday": _Period(today - _DAY, today),
        "this week": _Period(monday, monday + 7 * _DAY),
        "last week": _Period(monday - 7 * _DAY, monday),
        "this month": _Period(month, _next_month(month)),
        "last month": _Period((month - _DAY).replace(day=1), month),
        "this year": _Period(year, year.replace(year=year.year + 1)),
        "last year": _Period(year.replace(year=year.year - 1), year),
    }


def _next_month(month: datetime) -> datetime:
    return (month + _MORE_THAN_A_MONTH).replace(day=1)


def _period_ago(count: int, unit: str, now: datetime) -> _Period:
    """Return the day so long ago, or the moment if the unit is an hour or a minute.

    Raises OverflowError for a moment before the year 1.
    """
    moment = now - count * _UNITS[unit]
    if unit in _MOMENT_UNITS:
        return _Period(moment, moment)

    day = datetime.combine(moment, time.min)
    return _Period(day, day + _DAY)


def _year_or_month(text: str) -> _Period:
    """Return the year or month of `2026` or `2026-01`.

    Raises ValueError or OverflowError if there is no such year or month.
    """
    month = int(text[5:] or 1)
    start = datetime(int(text[:4]), month, 1)  # noqa: DTZ001  (local time, as notes are)
    if len(text) == len("2026"):
        return _Period(start, start.replace(year=start.year + 1))
    return _Period(start, _next_month(start))


def _day_or_second(text: str) -> _Period:
    """Return the day of an ISO date, or the second of an ISO date with a time.

    Raises ValueError or OverflowError for any other text.
    """
    start = datetime.fromisoformat(instant(text.upper()) or "")
    length = _DAY if len(text) == len("2026-01-24") else timedelta(seconds=1)
    return _Period(start, start + length)


def days_in(text: str, now: datetime) -> tuple[str, ...]:
    """Return the days, months and years that a text speaks of, as beginnings of ISO days.

    A month or day without a year is `-06` or `-06-03`: June, or 3 June, of any year.
    """
    text = " ".join(text.casefold().split())
    days: list[str] = []
    for match in _DATE.finditer(text):
        _, _, previous_word = text[: match.start()].rstrip().rpartition(" ")
        if previous_word not in _LIMIT_PREPOSITIONS:
            days += _days_of_match(match, previous_word, now)
    return tuple(days)


def _days_of_match(match: re.Match[str], previous_word: str, now: datetime) -> list[str]:
    """Return the beginnings of ISO days that one match of `_DATE` means; none if it is no date."""
    follows_preposition = previous_word in _DATE_PREPOSITIONS
    if match["month"]:
        return _days_of_month(match, follows_preposition)
    if match["iso"]:
        return [match["iso"]]
    if match["only_year"]:
        # Any other number of four digits is a number: "2000 seats".
        return [match["only_year"]] if follows_preposition else []

    period = _period_of(match["relative"], now)
    if period is None:
        return []
    day_count = (period.end - period.start).days
    return [(period.start + offset * _DAY).date().isoformat() for offset in range(day_count)]


def _days_of_month(match: re.Match[str], follows_preposition: bool) -> list[str]:
    """Return the beginning of the ISO day that the name of a month means.

    Returns nothing if the name is another word, such as the verb "may".
    """
    month = match["month"]
    day = match["day"] or match["day_after"]
    year = match["year"] or ""
    is_other_word = month in _AMBIGUOUS_MONTHS and not (day or year or follows_preposition)
    if is_other_word:
        return []

    iso_month = f"{year}-{_MONTHS.index(month) + 1:02d}"
    return [f"{iso_month}-{int(day):02d}" if day else iso_month]


def is_of(row: Row, days: tuple[str, ...]) -> bool:
    """Return whether a note belongs to one of the days, which are in the form of `days_in`.

    The day in its name or title decides. A note without one belongs to the days of its creation and
    last change.
    """
    named_day = date_in_name(base_name(row.path)) or day_in(row.title)
    days_of_note = (named_day,) if named_day else (row.created[:10], row.modified[:10])
    return any(day.startswith(days) or day[4:].startswith(days) for day in days_of_note)


def day_in(title: str) -> str:
    """Return the first full day in a title as an ISO day; "" if there is none.

    A full day is `8 May, 2023` or `2023-05-08`.
    """
    if not any(map(str.isdigit, title)):
        return ""

    any_moment = datetime(2000, 1, 1)  # noqa: DTZ001
    days = days_in(title, any_moment)
    return next((day for day in days if len(day) == len("2023-05-08")), "")
