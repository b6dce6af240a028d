"""Names of the same thing in many languages, from the Unicode CLDR as npm packages have it.

`npm install cldr-annotations-full cldr-localenames-full cldr-dates-full cldr-units-full` gets the
data; its licence is Unicode-3.0.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

LANGUAGES: Final = (
    "en es pt fr de it nl pl ru uk zh ja ko ar hi sv da no fi cs hu tr el he ro id vi ca".split()
)

Names = dict[str, list[str]]
"""The names of one thing by language, most usual first. No language has an empty list."""


def read_names(packages: Path) -> list[Names]:
    """Return the names of emoji, territories, languages, months, days and units.

    `packages` is the folder `node_modules`. The order depends on the data alone.
    """
    things: dict[str, Names] = defaultdict(dict)
    for language in LANGUAGES:
        for thing, name in _names_in(packages, language):
            names = things[thing].setdefault(language, [])
            if name not in names:
                names.append(name)
    return [things[thing] for thing in sorted(things)]


def _names_in(packages: Path, language: str) -> Iterator[tuple[str, str]]:
    """Yield a key of each thing, which is the same in all languages, and a name of it.

    A thing with several names is yielded once per name.
    """
    annotations = _read(packages / f"cldr-annotations-full/annotations/{language}/annotations.json")
    for emoji, texts in annotations["annotations"]["annotations"].items():
        for name in (*texts.get("tts", ()), *texts.get("default", ())):
            yield emoji, name  # first the usual name ("tts"), then words for the emoji

    for kind in ("territories", "languages"):
        file = packages / f"cldr-localenames-full/main/{language}/{kind}.json"
        for code, name in _read(file)["main"][language]["localeDisplayNames"][kind].items():
            if "-alt" not in code and not code.isdigit():
                yield f"{kind} {code}", name

    file = packages / f"cldr-dates-full/main/{language}/ca-gregorian.json"
    calendar = _read(file)["main"][language]["dates"]["calendars"]["gregorian"]
    for kind in ("months", "days"):
        for use in ("format", "stand-alone"):
            for number, name in calendar[kind][use]["wide"].items():
                yield f"{kind} {number}", name

    file = packages / f"cldr-units-full/main/{language}/units.json"
    for unit, texts in _read(file)["main"][language]["units"]["long"].items():
        if isinstance(texts, dict) and "displayName" in texts:
            yield f"unit {unit}", texts["displayName"]


def _read(file: Path) -> Any:
    """Return the JSON of a file."""
    return json.loads(file.read_text(encoding="utf-8"))
