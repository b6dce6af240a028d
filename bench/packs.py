"""How much of what answers a question is in its context pack: `python bench/packs.py --locomo FILE.json.gz [--every 4]`.

Notes are sessions, named by their dates in a folder a conversation, so that each has a day before and one after. Printed
is the share of the right sessions that speak in a pack of 1,500 tokens, with so much of a hit's score lent to its
neighbours; how many passages were come by that way, and how many of them were right; and the CPU time of a pack beside
that of a search.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from simplemem.store import EnhancedStore, packs


def write_sessions(data: dict[str, Any], vault: Path) -> dict[str, str]:
    """One note a session; the name of each by its id."""
    names = {}
    for doc in data["docs"]:
        day = datetime.strptime(doc["date"], "%I:%M %p on %d %B, %Y").astimezone()
        folder, _, number = doc["id"].rpartition("-")
        name = names[doc["id"]] = f"{folder}/{day:%Y-%m-%d} {number}"
        turns = [f"- **{who}:** {text}".replace("\n", " ") for who, text in doc["turns"]]
        (vault / folder).mkdir(exist_ok=True)
        lines = [
            "---",
            f'title: "{doc["id"]} ({doc["date"]})"',
            "---",
            "",
            f"# Chat session at {doc['date']}",
            "",
            *turns,
        ]
        (vault / f"{name}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return names


def row(store: EnhancedStore, questions: list[tuple[str, set[str]]], lent: float) -> str:
    """A line of the table."""
    packs.LENT = lent
    began = time.process_time()
    share = tokens = 0.0
    reached = right = 0
    for text, gold in questions:
        pack = store.context(text)
        share += len(gold & {str(item["name"]) for item in pack.items}) / len(gold)
        tokens += pack.tokens
        by_neighbours = {str(item["name"]) for item in pack.items if item.get("via")}
        reached, right = reached + len(by_neighbours), right + len(by_neighbours & gold)
    each = (time.process_time() - began) / len(questions) * 1000
    count = len(questions)
    return f"{lent:5.2f}  {share / count:.3f}  {tokens / count:6.0f}  {reached:7} {right:6}  {each:6.1f} ms"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--locomo", type=Path, required=True)
    options.add_argument("--every", type=int, default=4, help="ask every so manieth question")
    given = options.parse_args()
    raw = given.locomo.read_bytes()
    data = json.loads(gzip.decompress(raw) if given.locomo.suffix == ".gz" else raw)
    with tempfile.TemporaryDirectory() as room, EnhancedStore(Path(room)) as store:
        names = write_sessions(data, store.root)
        asked = [each for each in data["queries"][:: given.every] if each["gold"]]
        questions = [(each["query"], {names[id_] for id_ in each["gold"]}) for each in asked]
        store.sync()
        store._core.index.keep_vectors_in_memory()
        store.context("something to warm up with")
        began = time.process_time()
        for text, _ in questions:
            store.search(text)
        print(
            f"{len(questions)} questions; a search: {(time.process_time() - began) / len(questions) * 1000:.1f} ms of CPU"
        )
        print(" lent  share  tokens  reached  right  CPU a pack")
        for lent in (0.0, 0.05, 0.1, 0.2, 0.4):
            print(row(store, questions, lent), flush=True)


if __name__ == "__main__":
    main()
