"""Questions with the notes that answer them, as values and as the file they are kept in. No vault is touched."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simplemem.errors import Invalid, NotFound

KINDS = ("title", "alias", "heading", "link", "description", "sentence")
WHATS = frozenset(KINDS)
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Held:
    """What is taken out of one note while a question is asked. A `link` is the sentence around a link that shows `text`."""

    note: str
    what: str
    text: str


@dataclass(frozen=True, slots=True)
class Pair:
    """A question, the names of the notes that answer it, and what must not be there while it is asked."""

    kind: str
    question: str
    gold: tuple[str, ...]
    held_out: tuple[Held, ...] = ()


@dataclass(frozen=True, slots=True)
class Questions:
    """A set of pairs and how it came about. `notes` is how many there were to choose from."""

    pairs: tuple[Pair, ...]
    notes: int
    seed: int | None = None


def in_order(kinds: Collection[str]) -> list[str]:
    """Kinds of questions as they are shown: ours first, then others by name."""
    return [kind for kind in KINDS if kind in kinds] + sorted(set(kinds) - WHATS)


FILE = "eval.json"
"""In `.simplemem/`, beside the index, so never a note."""


def write_questions(file: Path, questions: Questions) -> None:
    """Keep a set of questions, one a paragraph, in place of the file that was there: whole or not at all."""
    head = {"format": _FORMAT, "notes": questions.notes, "seed": questions.seed}
    lines = ",\n".join(_paragraph(pair) for pair in questions.pairs)
    text = json.dumps(head, indent=2).removesuffix("\n}") + f',\n  "pairs": [\n{lines}\n  ]\n}}\n'
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, staged = tempfile.mkstemp(dir=file.parent, prefix=".eval-", suffix=".json")
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as out:
            out.write(text)
        os.replace(staged, file)
    except BaseException:
        Path(staged).unlink(missing_ok=True)
        raise


def _paragraph(pair: Pair) -> str:
    held = [{"note": each.note, "what": each.what, "text": each.text} for each in pair.held_out]
    shown = {"kind": pair.kind, "question": pair.question, "gold": list(pair.gold), "held_out": held}
    return "    " + json.dumps(shown, ensure_ascii=False, indent=2).replace("\n", "\n    ")


def read_questions(file: Path) -> Questions:
    """The questions that a file keeps. Raises NotFound or Invalid, and says what to do."""
    try:
        raw = file.read_bytes()
    except FileNotFoundError as error:
        raise NotFound(f"there are no questions at {file}", hint="`simplemem eval init` makes them.") from error
    try:
        data = json.loads(raw.decode("utf-8-sig"))
        if data["format"] != _FORMAT:
            raise Invalid(f"{file} has format {data['format']!r}, not {_FORMAT}", hint="`simplemem eval init` again.")
        pairs = tuple(_pair(each) for each in data["pairs"])
        return Questions(pairs, int(data["notes"]), data.get("seed"))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Invalid(
            f"{file} is not a file of questions: {type(error).__name__}: {error}",
            hint="`simplemem eval init` makes one; docs/eval.md tells what stands in it.",
        ) from error


def _pair(data: Mapping[str, Any]) -> Pair:
    held = tuple(Held(_text(each["note"]), _text(each["what"]), _text(each["text"])) for each in data["held_out"])
    if strange := [each.what for each in held if each.what not in WHATS]:
        raise ValueError(f"nothing called {strange[0]!r} can be held out")
    gold = tuple(_text(each) for each in data["gold"])
    question = _text(data["question"])
    if not question.strip() or not gold:
        raise ValueError("a pair needs a question, and the name of at least one note under gold")
    return Pair(_text(data["kind"]), question, gold, held)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value
