"""Does meaning work in other languages? Facts are asked about in other words.

    python bench/languages.py [--facts FILE.json]

`bench/languages.json` has 24 facts in 14 languages, each with a question that shares no content
word with it. For each language, a vault of its facts, one note each, is asked in that language; and
the English vault is asked in each language. Prints how many of the right notes are among the first
three, by meaning alone, by both, and by both with the questions of the English facts.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

FACTS: Final = Path(__file__).with_name("languages.json")
PLACES: Final = 3

Facts = list[dict[str, Any]]
"""Each fact: `facts` and `questions` have its sentence and its question by language."""


def main() -> None:
    """Print a row for each language."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--facts", type=Path, default=FACTS)
    options = parser.parse_args()

    facts = read_facts(options.facts)
    print(f"{len(facts)} facts, right notes among the first {PLACES}\n")
    print("| language | meaning | both | English facts, meaning | English facts, both |")
    print("|---|---|---|---|---|")
    for language in facts[0]["facts"]:
        questions = texts_of(facts, "questions", language)
        cells = []
        for notes in (language, "en"):
            cells += count_found(texts_of(facts, "facts", notes), questions)
        print(f"| {language} | {' | '.join(map(str, cells))} |", flush=True)


def read_facts(file: Path) -> Facts:
    """Return the facts of a file."""
    facts: Facts = json.loads(file.read_text(encoding="utf-8"))
    return facts


def texts_of(facts: Facts, kind: str, language: str) -> list[str]:
    """Return the facts or the questions in a language."""
    return [fact[kind][language] for fact in facts]


def count_found(facts: Sequence[str], questions: Sequence[str]) -> list[int]:
    """Return how many right notes are found by meaning, and by words and meaning."""
    with tempfile.TemporaryDirectory() as folder:
        for number, fact in enumerate(facts):
            Path(folder, f"fact {number}.md").write_text(f"{fact}\n", encoding="utf-8")
        with EnhancedStore(Path(folder), Settings()) as store:
            store.sync()
            return [_count_in_mode(store, questions, mode) for mode in ("semantic", "hybrid")]


def _count_in_mode(store: EnhancedStore, questions: Sequence[str], mode: str) -> int:
    """Return how many right notes are among the first hits in a mode of search."""
    found = 0
    for number, question in enumerate(questions):
        hits = store.search(question, limit=PLACES, mode=mode).hits
        found += f"fact {number}" in [hit.name for hit in hits]
    return found


if __name__ == "__main__":
    main()
