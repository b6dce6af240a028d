"""Does search by meaning work in many languages? Questions use other words than the facts.

    python bench/languages.py [--facts FILE.json]

`bench/languages.json` has 24 facts in 14 languages, each with a question that shares no content
word with it. Each language has a vault of its facts, one note per fact. A row of the printed table
has the questions of one language, which are asked of the vault of that language and of the English
vault, each by meaning alone and by words and meaning ("both"). Prints how many of the right notes
are among the first three.
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
"""Per fact an object with two keys: `facts` has its sentence by language, `questions` its
question by language. All facts have the same languages."""


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
    """Return the facts of a file in the format of `bench/languages.json`."""
    facts: Facts = json.loads(file.read_text(encoding="utf-8"))
    return facts


def texts_of(facts: Facts, kind: str, language: str) -> list[str]:
    """Return the sentences ("facts") or the questions ("questions") in a language, in order."""
    return [fact[kind][language] for fact in facts]


def count_found(facts: Sequence[str], questions: Sequence[str]) -> list[int]:
    """Return how many right notes are found: by meaning alone, then by words and meaning."""
    with tempfile.TemporaryDirectory() as folder:
        for number, fact in enumerate(facts):
            Path(folder, f"fact {number}.md").write_text(f"{fact}\n", encoding="utf-8")
        with EnhancedStore(Path(folder), Settings()) as store:
            store.sync()
            return [_count_in_mode(store, questions, mode) for mode in ("semantic", "hybrid")]


def _count_in_mode(store: EnhancedStore, questions: Sequence[str], mode: str) -> int:
    """Return how many right notes are among the first three hits in a mode of search."""
    found = 0
    for number, question in enumerate(questions):
        hits = store.search(question, limit=PLACES, mode=mode).hits
        found += f"fact {number}" in [hit.name for hit in hits]
    return found


if __name__ == "__main__":
    main()
