"""Make the names and phrases of time that search reads in questions.

    python bench/time_names.py --cldr cldr-dates-full-48.2.0.tgz

The npm package cldr-dates-full has, for each language, the names of months and weekdays and phrases
such as "last week". `bench/time_phrases.toml` has what CLDR lacks. Both become a file per language
in `simplemem/search/time_phrases/`, and the beginnings of their words become `beginnings.txt`: only
a question with one of these beginnings needs the other files. Run it again after a change of the
phrases; `--check` only says whether the files are up to date.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tarfile
import tomllib
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from simplemem.search.dates import plain_words  # noqa: E402  (after the path)

PHRASES: Final = ROOT / "bench/time_phrases.toml"
DATA: Final = ROOT / "simplemem/search/time_phrases"

SOURCE: Final = (
    "Names of months and weekdays and relative phrases: Unicode CLDR 48.2.0, (c) 1991-2026 "
    "Unicode, Inc., Unicode License v3. Made by bench/time_names.py."
)
WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
UNITS: Final = ("day", "week", "month", "year")
TEMPLATE_LISTS: Final = (
    "year",
    "on",
    "last",
    "next",
    "since",
    "until",
    "before",
    "after",
    "order",
    "ambiguous",
    "prepositions",
    "subjects",
)

# A beginning has so many letters; in scripts without spaces so many characters of a phrase.
LETTERS: Final = 4
CHARACTERS: Final = 2

_ALTERNATIVES: Final = re.compile(r"\(([^()]*)\)")
_PLACEHOLDER: Final = re.compile(r"\{\w+\}")

Json = dict[str, Any]


def main() -> None:
    """Write both files, or compare them with `--check`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--cldr", type=Path, required=True)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()

    phrases = tomllib.loads(PHRASES.read_text(encoding="utf-8"))
    texts: dict[str, str] = {}
    beginnings = ""
    with tarfile.open(options.cldr) as archive:
        for language, own in phrases.items():
            data = language_data(own, read_cldr(archive, language))
            text = json.dumps(data, ensure_ascii=False, indent=0, sort_keys=True)
            texts[f"{language}.json"] = text + "\n"
            beginnings += f"{language} {' '.join(beginnings_of(data))}\n"
    texts["beginnings.txt"] = beginnings

    DATA.mkdir(exist_ok=True)
    for name, text in texts.items():
        file = DATA / name
        if not options.check:
            file.write_text(text, encoding="utf-8")
        elif file.read_text(encoding="utf-8") != text:
            raise SystemExit(f"{name} is not what bench/time_names.py makes")


def read_cldr(archive: tarfile.TarFile, language: str) -> Json:
    """Return the calendar and the fields of a language from the package."""
    content: Json = {}
    for name in ("ca-gregorian", "dateFields"):
        file = archive.extractfile(f"package/main/{language}/{name}.json")
        assert file is not None
        content |= json.load(file)["main"][language]["dates"]
    return content


def language_data(own: Json, cldr: Json) -> Json:
    """Return what search knows of a language: the phrases of the file and those of CLDR."""
    names = cldr["calendars"]["gregorian"]
    fields = cldr["fields"]
    data: Json = {"source": SOURCE, "spaced": own.get("spaced", True)}
    for key in TEMPLATE_LISTS:
        data[key] = expanded(own.get(key, ()))

    months = own.get("months", {})
    data["months"] = names_of(names["months"], "wide") | values_by_phrase(months, int)
    short_months = names_of(names["months"], "abbreviated")
    data["short_months"] = {
        name: month for name, month in short_months.items() if name not in data["months"]
    }
    weekdays = own.get("weekdays", {})
    data["weekdays"] = names_of_weekdays(names["days"]) | values_by_phrase(weekdays, int)
    data["holidays"] = values_by_phrase(own.get("holidays", {}), str)
    data["numbers"] = values_by_phrase(own.get("numbers", {}), int)
    data["periods"] = relative_periods(fields) | values_by_phrase(own["periods"], str)
    data["ago"] = counted(fields) | units_by_phrase(own.get("ago", {}))
    data["within"] = units_by_phrase(own.get("within", {}))
    data["units"] = words_of_units(data["ago"]) if data["spaced"] else {}
    return data


def expanded(templates: Iterable[str]) -> list[str]:
    """Return all phrases that templates with alternatives stand for, in the form of search."""
    phrases: dict[str, None] = {}
    for template in templates:
        parts = _ALTERNATIVES.split(template)
        choices = [part.split("|") if place % 2 else [part] for place, part in enumerate(parts)]
        for words in product(*choices):
            phrases[plain_words("".join(words))] = None
    return list(phrases)


def values_by_phrase(phrases: Json, kind: type) -> Json:
    """Return the value of each phrase; `phrases` has the templates of each value."""
    values: Json = {}
    for value, templates in phrases.items():
        values |= dict.fromkeys(expanded(templates), kind(value))
    return values


def units_by_phrase(templates_by_unit: Json) -> Json:
    """Return the unit of each phrase with a number."""
    return values_by_phrase(templates_by_unit, str)


def names_of(months: Json, width: str) -> Json:
    """Return the number of each name of a month, in every form that CLDR has."""
    numbers: Json = {}
    for form in ("format", "stand-alone"):
        for number, name in months[form][width].items():
            numbers[plain_words(name).rstrip(".")] = int(number)
    # Japanese and Chinese names are numbers, which the dates of these languages read anyway.
    return {name: number for name, number in numbers.items() if not name[0].isdigit()}


def names_of_weekdays(days: Json) -> Json:
    """Return the number of each name of a weekday: 0 is Monday."""
    numbers: Json = {}
    for form in ("format", "stand-alone"):
        for number, key in enumerate(WEEKDAYS):
            numbers[plain_words(days[form]["wide"][key])] = number
    return numbers


def relative_periods(fields: Json) -> Json:
    """Return the phrases of CLDR for a period, such as "last week", each with its meaning."""
    periods: Json = {}
    for unit in UNITS:
        for key, phrase in fields[unit].items():
            if key.startswith("relative-type-"):
                offset = int(key.removeprefix("relative-type-"))
                periods[plain_words(phrase)] = f"{offset} {unit}"
    for number, key in enumerate(WEEKDAYS):
        for offset in (-1, 1):
            phrase = fields[key][f"relative-type-{offset}"]
            periods[plain_words(phrase)] = f"{offset} weekday {number}"
    return periods


def counted(fields: Json) -> Json:
    """Return the phrases of CLDR such as "{count} weeks ago", each with its unit."""
    units: Json = {}
    for unit in UNITS:
        for phrase in fields[unit]["relativeTime-type-past"].values():
            if "{0}" in phrase:
                units[plain_words(phrase.replace("{0}", "{count}"))] = unit
    return units


def words_of_units(units_by_phrase: Json) -> Json:
    """Return the unit of each word that stands in the phrases of one unit only, such as "weeks"."""
    units_by_word: dict[str, set[str]] = {}
    for phrase, unit in units_by_phrase.items():
        for word in _PLACEHOLDER.sub(" ", phrase).split():
            units_by_word.setdefault(word, set()).add(unit)
    return {word: units.pop() for word, units in units_by_word.items() if len(units) == 1}


def beginnings_of(data: Json) -> list[str]:
    """Return the beginnings of the words of which a question about time has at least one."""
    beginnings: set[str] = set()
    for phrase in phrases_of(data):
        text = _PLACEHOLDER.sub(" ", phrase)
        if data["spaced"]:
            words = re.findall(r"[^\s.,;:'!?]+", text)
            if words:
                # Words of one length: the last one says more, as in "last week".
                beginnings.add(max(reversed(words), key=len)[:LETTERS])
        elif text.strip():
            beginnings.add(text.strip()[:CHARACTERS].strip())
    return sorted(beginnings)


def phrases_of(data: Json) -> Iterator[str]:
    """Yield all phrases by which a question may speak of time."""
    for key in ("months", "weekdays", "holidays", "periods", "ago", "within"):
        yield from data[key]
    yield from data["order"]
    # A limit such as "before May" has a date, whose words count.
    for key in ("since", "until", "before", "after"):
        yield from (phrase for phrase in data[key] if "{event}" in phrase)


if __name__ == "__main__":
    main()
