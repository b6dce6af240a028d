"""What the knowledge of an agent costs, and what the analyses find in real notes.

    python bench/knowledge.py [--entries 1000] [--entries 10000]
    python bench/knowledge.py --notes FOLDER

The first prints, for vaults of so many entries, the CPU time of keeping and finding one and of each analysis. The second
looks at a copy of a folder of notes and prints what each rule and analysis finds there; the folder is left alone.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from simplemem.config import Settings
from simplemem.kinds.learned.analysis import analysis_of
from simplemem.kinds.learned.entry import TYPES
from simplemem.kinds.learned.knowledge import knowledge_of
from simplemem.store import EnhancedStore

SUBJECTS = "billing worker gateway cache queue index mailer exporter scheduler parser".split()
THINGS = "timeout pool retry limit port token lock batch header schema backup certificate".split()
SAID = "fails under load|is lost after a restart|must be renewed each month|was raised after the incident|blocks the deploy"


def write_entries(folder: Path, count: int) -> None:
    """The same entries every time; a tenth of them are linked."""
    dice = random.Random(1)
    for number in range(count):
        kind = dice.choice(TYPES)
        said = dice.choice(SAID.split("|"))
        text = (
            f"The {dice.choice(THINGS)} of the {dice.choice(SUBJECTS)} in cluster {number % 97} {said}, seen {number}."
        )
        link = f"\n## Relations\n\n- fixes [[e{number - 1}]]\n" if number % 10 == 9 else ""
        header = f"type: knowledge\nid: {uuid.UUID(int=dice.getrandbits(128))}\nknowledge_type: {kind}"
        header += (
            f"\nconfidence: {dice.random():.2f}\ntags: [{dice.choice(THINGS)}]\ncreated: 2026-{number % 12 + 1:02}-01"
        )
        file = folder / "knowledge" / kind / f"e{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"---\n{header}\n---\n\n{text}\n{link}", encoding="utf-8")


def measured(work: Callable[[], object], times: int = 1) -> float:
    """The median CPU time in milliseconds."""
    took = []
    for _ in range(times):
        began = time.process_time()
        work()
        took.append((time.process_time() - began) * 1000)
    return statistics.median(took)


def costs(count: int) -> None:
    with tempfile.TemporaryDirectory() as room:
        write_entries(Path(room), count)
        with EnhancedStore(Path(room), Settings()) as store:
            store.sync()
            store.start(embed=False)
            store.wait_until_settled()
            knowledge = knowledge_of(store)
            first = measured(knowledge.entries)
            numbers = iter(range(1000))
            rows = {
                "entries read, the first time": first,
                "search_knowledge": measured(lambda: knowledge.search("pool of the gateway lost"), 9),
                "search_knowledge, narrowed": measured(
                    lambda: knowledge.search("pool of the gateway lost", kind="error", least_confidence=0.5), 9
                ),
                "save_knowledge": measured(lambda: knowledge.save("error", f"new {next(numbers)}", confidence=0.5), 9),
            }
            seen = analysis_of(store)
            rows["similarity of all"] = measured(lambda: seen.similarity.pairs(0.75))
            rows["detect_contradictions"] = measured(seen.contradictions)
            rows["cluster_knowledge"] = measured(seen.clusters)
            rows["generate_insights"] = measured(seen.insights)
            rows["suggest_tags"] = measured(seen.suggestions)
            rows["analyze_patterns"] = measured(seen.patterns)
    print(f"\n{count:,} entries, CPU")
    for what, took in rows.items():
        print(f"  {what:32} {took:9.1f} ms")


def findings(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as room:
        vault = Path(room) / "vault"
        shutil.copytree(folder, vault, ignore=shutil.ignore_patterns(".simplemem", ".git"))
        with EnhancedStore(vault, Settings()) as store:
            store.sync()
            seen = analysis_of(store, "*")
            rules = Counter(each.rule for each in seen.contradictions())
            print(f"{len(seen.entries)} notes of {folder}, by {seen.method}")
            print(f"  contradictions: {dict(rules) or 'none'}")
            for each in seen.contradictions()[:10]:
                print(f"    {each.rule}: {each.one.name}: {each.said[:90]} | {each.other.name}: {each.instead[:90]}")
            print(f"  superseded: {[entry.name for entry in seen.entries if entry.is_superseded]}")
            found = seen.clusters(most=None)
            print(f"  clusters: {len(found)}, the largest of {max((len(c.members) for c in found), default=0)} notes")
            for cluster in found[:5]:
                print(f"    {len(cluster.members)}: {', '.join(cluster.words)}")
            print(f"  tags suggested: {', '.join(each.tag for each in seen.suggestions()[:12])}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--entries", type=int, action="append")
    parser.add_argument("--notes", type=Path)
    asked = parser.parse_args()
    if asked.notes is not None:
        findings(asked.notes)
        return 0
    for count in asked.entries or [1000, 10_000]:
        costs(count)
    return 0


if __name__ == "__main__":
    sys.exit(main())
