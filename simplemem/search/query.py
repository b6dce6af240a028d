"""A question as the index can be asked it. Everything typed is words, but for `"a phrase"`, `tag:x`, `tag:key=value`,
`type:x`, `path:folder/`, `author:x`, `archive:`, `begin*` and `-word` after a space. Nothing reaches SQLite as syntax."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, time, timedelta
from itertools import pairwise

from simplemem.errors import Invalid
from simplemem.index.door import AnyOf, Row, Standing, Term
from simplemem.index.text import instant
from simplemem.note import words as lexicon
from simplemem.note.names import base_name, date_in

Vocabulary = Callable[[Sequence[AnyOf]], tuple[Sequence[int], Standing]]  # `Sidecar.vocabulary`
MAX_CHARACTERS = 2_000  # of a question; the rest is not read
_MAX_WORDS = 64
_MAX_SEQUENCES = 16
_ENDS = (".", "?", "!", "。", "？", "！")  # of a sentence: its last word is typed to its end
_SHORTEST_START = 3  # letters of the beginning of a word

_TERM = re.compile(
    r"""(?:(?<=\s)|^)(?:(?P<archive>archive:)|(?:
        (?P<minus>-)?"(?P<phrase>[^"\n]{1,200})"
      | (?P<not>-)?(?P<field>tag|type|path|author):(?:"(?P<quotedvalue>[^"\n]{1,200})"|(?P<value>[^\s"]{1,200}))
      | (?P<start>[^\W\d_][^\s"*]{1,60})\*
      | -(?P<word>[^\W\d_][\w'\x80-\U0010ffff-]{0,60})
    )(?=\s|$))""",
    re.VERBOSE,
)
# Dates as people say them are a moment or a span for a filter. The days a question speaks of order what was found.
DATED_NOTES = 40  # so many of the best are ordered by the days a question names
DATED_WEIGHT = 0.15  # beside 1 of all else; a plateau from 0.05 to 0.2
_MONTHS = (
    "january february march april may june july august september october november december".split()
)
_DAY = timedelta(days=1)
_AGO = re.compile(r"(\d{1,4}) (minute|hour|day|week|month|year)s? ago")
_MOMENT_UNITS = ("minute", "hour")  # "2 hours ago" is a moment, "2 days ago" is a whole day
_UNITS = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": _DAY,
    "week": 7 * _DAY,
    "month": 30 * _DAY,
    "year": 365 * _DAY,
}
_IN = (
    "in",
    "on",
    "of",
    "during",
    "from",
    "by",
    "early",
    "late",
    "last",
    "this",
)  # *may* and *march* are words as well
_OPEN = (
    "before",
    "until",
    "till",
    "after",
    "since",
)  # "two weeks before 11 August" is not of that day
_SPOKEN_OF = re.compile(
    rf"""\b(?P<iso>(?:19|20)\d\d-\d\d(?:-\d\d)?)\b
      | \b(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?(?P<month>{"|".join(_MONTHS)})\b
        (?:\s+(?P<day_after>\d{{1,2}})(?:st|nd|rd|th)?\b)?(?:,?\s+(?P<year>(?:19|20)\d\d)\b)?
      | \b(?P<alone>(?:19|20)\d\d)\b
      | \b(?P<said>yesterday|today|(?:last|this)\ (?:week|month|year)|\d{{1,3}}\ (?:day|week|month|year)s?\ ago)\b""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Query:
    """A question taken apart: the words to rank by, and what narrows."""

    text: str
    words: tuple[str, ...]
    spoken: tuple[str, ...] = ()  # all its words in order, also those that only hold it together
    pairs: tuple[tuple[str, str], ...] = ()
    phrases: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    tags: dict[str, str] = field(default_factory=dict)
    type: str = ""
    prefix: str = ""
    author: str = ""
    archive: bool = False  # whether past sessions are asked for
    sequences: tuple[
        tuple[str, ...], ...
    ] = ()  # words written as one: they rank as a word of their own
    beginnings: tuple[str, ...] = ()  # words asked as the beginning of words
    last: str = ""  # the word that may not be typed to its end
    forms: Mapping[str, tuple[Term, ...]] = field(
        default_factory=dict
    )  # what else a word is asked as
    stem_pairs: tuple[Term, ...] = ()  # the stems of neighbouring words
    without_forms: tuple[str, ...] = ()
    instead: str = ""  # what was asked instead of what stands there
    holders: tuple[int, ...] = ()  # how many notes hold each word
    absent: tuple[str, ...] = ()  # words that no note holds, in any form

    def asks_nothing(self) -> bool:
        """Whether it holds something, but no word and nothing that narrows: `???` is not an empty question."""
        narrows = (
            self.phrases,
            self.without,
            self.tags,
            self.type,
            self.prefix,
            self.author,
            self.archive,
        )
        return bool(self.text.strip()) and not self.words and not any(narrows)

    def forms_of(self, word: str) -> tuple[Term, ...]:
        """All that a word is asked as."""
        return (Term((word,)), *self.forms.get(word, ()))

    def terms(self) -> tuple[Term, ...]:
        """What notes are looked for by: any of these (all of them finds nothing for a question, retrieval.md §3)."""
        words = [term for word in self.words for term in self.forms_of(word)]
        return tuple(dict.fromkeys([*words, *map(Term, self.sequences)]))

    def names(self) -> tuple[str, ...]:
        """What a note is called that the question names: all of it, or without the words around it that only hold it
        together (`What is a MOC?`)."""
        telling = [place for place, word in enumerate(self.spoken) if word in self.words]
        named = self.spoken[telling[0] : telling[-1] + 1] if telling else ()
        keys = (lexicon.words_key(" ".join(words)) for words in (self.spoken, named))
        return tuple(key for key in dict.fromkeys(keys) if key)

    def side_by_side(self) -> tuple[Term, ...]:
        """The pairs of neighbouring words, and of their stems."""
        return (*map(Term, self.pairs), *self.stem_pairs)


def read_query(text: str) -> Query:
    """Take a question apart. Never raises: what is not syntax on purpose is words."""
    said = f"Only the first {MAX_CHARACTERS:,} characters of the query were read."
    instead = [said] if len(text) > MAX_CHARACTERS else []
    text = lexicon.well_formed(text[:MAX_CHARACTERS]).replace("\0", "\ufffd")
    phrases, without, beginnings = list[str](), list[str](), list[str]()
    tags: dict[str, str] = {}
    fields = {"type": "", "path": "", "author": ""}
    plain, last, archive = "", 0, False
    for term in _TERM.finditer(text):
        phrase, value, ranks = term["phrase"], term["quotedvalue"] or term["value"], ""
        if term["not"] or (phrase is not None and not lexicon.words_of(phrase)):
            continue  # a negated field is not offered: it stays words
        if term["archive"]:
            archive = True
        elif term["word"] or term["minus"]:
            without.append(term["word"] or phrase)
        elif phrase is not None:
            phrases.append(ranks := phrase)
        elif term["start"]:
            beginnings += lexicon.words_in_order(ranks := term["start"])[-1:]
        elif term["field"] == "tag":
            key, _, wanted = value.lstrip("#").partition("=")
            tags[key] = wanted
        else:
            fields[term["field"]] = value
        plain += f"{text[last : term.start()]} {ranks} "
        last = term.end()
    plain += text[last:]
    if not plain.strip() and without and not (phrases or tags or any(fields.values()) or archive):
        plain, without = text, []  # "-5 degrees" alone excludes nothing: there is nothing to keep
    words = lexicon.words_in_order(plain)
    ranked = lexicon.content_words(
        list(dict.fromkeys(words + lexicon.words_in_order(lexicon.parts_of_names(plain))))
    )
    if len(ranked) > _MAX_WORDS:
        instead.append(f"Only the first {_MAX_WORDS} words of the query were searched for.")
    ranked = ranked[:_MAX_WORDS]
    return Query(
        text,
        words=tuple(ranked),
        spoken=tuple(words[:_MAX_WORDS]),
        pairs=tuple(lexicon.neighbouring_words(words)[:_MAX_WORDS]),
        phrases=tuple(phrases),
        without=tuple(without),
        tags=tags,
        type=fields["type"],
        prefix=fields["path"],
        author=fields["author"],
        archive=archive,
        sequences=tuple(lexicon.sequences_in(plain)[:_MAX_SEQUENCES]),
        beginnings=tuple(word for word in beginnings if word in ranked and len(word) > 1),
        last=words[-1] if words and not plain.rstrip().endswith(_ENDS) else "",
        instead=" ".join(instead),
    )


def with_forms(query: Query, vocabulary: Vocabulary) -> tuple[Query, Standing]:
    """The question with the forms its words are asked in and what was asked instead; and how far the index is."""
    if not (query.words or query.without):
        return query, vocabulary(())[1]
    held, standing = vocabulary(
        [(Term((word,)),) for word in (*lexicon.MARKS.values(), *query.words)]
    )
    languages = [each for each, is_held in zip(lexicon.MARKS, held, strict=False) if is_held]
    held = held[len(lexicon.MARKS) :]
    if languages:
        by_word = dict(zip(query.words, held, strict=True))
        query = _in_languages(query, languages)
        held = vocabulary([query.forms_of(word) for word in query.words])[0]
        query = _without_idle_stems(query, by_word, held)
        query = replace(query, stem_pairs=_stem_pairs(query, languages))
    query = replace(query, holders=tuple(held))
    unknown = [word for word, is_held in zip(query.words, held, strict=True) if not is_held]
    if not unknown and not query.beginnings:
        return query, standing
    forms, said = dict(query.forms), [query.instead] if query.instead else []
    for word in query.beginnings:
        forms[word] = (*forms.get(word, ()), Term((word,), beginning=True))
    unspaced = [word for word in query.words if lexicon.is_unspaced(word)]
    if unspaced and set(unspaced) <= set(unknown):
        characters = [
            _held([Term((character,)) for character in word], vocabulary) for word in unspaced
        ]
        forms |= dict(zip(unspaced, characters, strict=True))
        said += [
            f'No note contains "{word}"; its characters were searched for.'
            for word in unspaced
            if forms[word]
        ][:1]
    begun = {*unknown}.difference(unspaced, query.beginnings)
    last = query.last if query.last in begun and len(query.last) >= _SHORTEST_START else ""
    if last and (found := _held([Term((last,), beginning=True)], vocabulary)):
        forms[last] = found
        said.append(f'No note contains "{last}"; words that begin with it were searched for.')
    absent = tuple(word for word in unknown if (forms.get(word) or ()) == query.forms.get(word, ()))
    return replace(query, forms=forms, instead=" ".join(said), absent=absent), standing


def _in_languages(query: Query, languages: Collection[str]) -> Query:
    """The question with the stems of its words in the languages of the vault, without the small words of its own."""
    small = lexicon.holding_together(query.words, languages)
    words = tuple(word for word in query.words if word not in small) or query.words
    forms = {word: _stem_terms((word,), languages) for word in words}
    pairs = tuple(pair for pair in query.pairs if not small.issuperset(pair))
    without = [each for word in query.without for each in _stems(word.lower(), languages)]
    return replace(query, words=words, pairs=pairs, forms=forms, without_forms=tuple(without))


def _without_idle_stems(query: Query, by_word: Mapping[str, int], by_forms: Sequence[int]) -> Query:
    """The question without the stems that lead to no further note: notes hold each word itself as often (`by_word`) as
    any of its forms (`by_forms`). Such stems would only favour the notes of their language."""
    counts = zip(query.words, by_forms, strict=True)
    useful = {word for word, held in counts if held > by_word[word]}
    return replace(
        query, forms={word: terms for word, terms in query.forms.items() if word in useful}
    )


def _stem_pairs(query: Query, languages: Collection[str]) -> tuple[Term, ...]:
    """The stems of neighbouring words, where one of the two is asked by its stem."""
    pairs = [pair for pair in pairwise(query.words) if not query.forms.keys().isdisjoint(pair)]
    return tuple(term for pair in pairs for term in _stem_terms(pair, languages))


def _stem_terms(words: tuple[str, ...], languages: Collection[str]) -> tuple[Term, ...]:
    """Words side by side by their stems, once for each language."""
    by_language = zip(*(_stems(word, languages) for word in words), strict=False)
    return tuple(Term(stems, stem_of=words) for stems in by_language)


def _stems(word: str, languages: Collection[str]) -> tuple[str, ...]:
    is_one = word.isalpha() and not lexicon.is_unspaced(word)
    return tuple(lexicon.stem(word, language) for language in languages) if is_one else ()


def _held(asked: Sequence[Term], vocabulary: Vocabulary) -> tuple[Term, ...]:
    held = vocabulary([(term,) for term in asked])[0]
    return tuple(term for term, is_held in zip(asked, held, strict=True) if is_held)


def read_when(text: str, now: datetime, *, end: bool = False) -> str:
    """The moment a text means, in the form notes are sorted by; with `end`, the end of the span it names."""
    if (span := _span_said(" ".join(text.casefold().split()), now)) is None:
        hint = 'Use 2026-01-24, 2026-01, 2026-01-24T12:00, "yesterday", "last week", "3 days ago" or "10 minutes ago".'
        raise Invalid(f"{text!r} is not a valid date", hint=hint)
    return span[end].strftime("%Y-%m-%dT%H:%M:%S")


def _span_said(said: str, now: datetime) -> tuple[datetime, datetime] | None:
    """The span that a text names, from its first moment to before its last; None for what is no date."""
    today = datetime.combine(now, time.min)
    monday, month, year = (
        today - today.weekday() * _DAY,
        today.replace(day=1),
        today.replace(month=1, day=1),
    )
    named = {
        "now": (now, now),
        "today": (today, today + _DAY),
        "yesterday": (today - _DAY, today),
        "this week": (monday, monday + 7 * _DAY),
        "last week": (monday - 7 * _DAY, monday),
        "this month": (month, (month + 32 * _DAY).replace(day=1)),
        "last month": ((month - _DAY).replace(day=1), month),
        "this year": (year, year.replace(year=year.year + 1)),
        "last year": (year.replace(year=year.year - 1), year),
    }
    try:
        if said in named:
            return named[said]
        if found := _AGO.fullmatch(said):
            moment = now - int(found[1]) * _UNITS[found[2]]
            day = datetime.combine(moment, time.min)
            return (moment, moment) if found[2] in _MOMENT_UNITS else (day, day + _DAY)
        if re.fullmatch(r"\d{4}(-\d{2})?", said):
            start = datetime(int(said[:4]), int(said[5:] or 1), 1)  # noqa: DTZ001  (local time, as notes are)
            return start, start.replace(year=start.year + 1) if len(said) == 4 else (
                start + 32 * _DAY
            ).replace(day=1)
        start = datetime.fromisoformat(instant(said.upper()) or "")
        return start, start + (_DAY if len(said) == 10 else timedelta(seconds=1))
    except (ValueError, OverflowError):
        return None


def days_in(text: str, now: datetime) -> tuple[str, ...]:
    """How the ISO days begin that a text speaks of; `-06` is June of any year, where it names none."""
    lowered, found = " ".join(text.casefold().split()), list[str]()
    for term in _SPOKEN_OF.finditer(lowered):
        if (word := lowered[: term.start()].rstrip().rpartition(" ")[2]) in _OPEN:
            continue
        day, year = term["day"] or term["day_after"], term["year"] or ""
        if term["month"] and (day or year or term["month"] not in ("march", "may") or word in _IN):
            found.append(
                f"{year}-{_MONTHS.index(term['month']) + 1:02d}"
                + (f"-{int(day):02d}" if day else "")
            )
        elif term["iso"] or (term["alone"] and word in _IN):  # any other number is a number
            found.append(term["iso"] or term["alone"])
        elif term["said"] and (span := _span_said(term["said"], now)) is not None:
            found += [
                (span[0] + k * _DAY).date().isoformat() for k in range((span[1] - span[0]).days)
            ]
    return tuple(found)


def is_of(row: Row, days: tuple[str, ...]) -> bool:
    """Whether a note is of some days: by the day in its name or title; without one, by when it was made and changed."""
    named = date_in(base_name(row.path)) or day_in(row.title)
    of = (named,) if named else (row.created[:10], row.modified[:10])
    return any(day.startswith(days) or day[4:].startswith(days) for day in of)


def day_in(title: str) -> str:
    """The day that a title says in full, `8 May, 2023` or `2023-05-08`, as an ISO day; "" when there is none."""
    days = days_in(title, datetime(2000, 1, 1)) if any(map(str.isdigit, title)) else ()  # noqa: DTZ001
    return next((day for day in days if len(day) == len("2023-05-08")), "")
