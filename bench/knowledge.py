"""What the knowledge of an agent costs: CPU time of keeping and finding an entry, and of each analysis.

python bench/knowledge.py [--entries 1000] [--entries 10000]
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
import uuid
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
SAID = ("fails under load", "is lost after a restart", "must be renewed each month", "blocks the deploy")


def write_entries(folder: Path, count: int) -> None:
    """The same entries every time; a tenth of them are linked."""
    dice = random.Random(1)
    for number in range(count):
        kind = dice.choice(TYPES)
        text = f"The {dice.choice(THINGS)} of the {dice.choice(SUBJECTS)} {dice.choice(SAID)}, seen {number}."
        link = f"\n## Relations\n\n- fixes [[e{number - 1}]]\n" if number % 10 == 9 else ""
        header = f"type: knowledge\nid: {uuid.UUID(int=dice.getrandbits(128))}\nknowledge_type: {kind}"
        header += f"\nconfidence: {dice.random():.2f}\ntags: [a]\ncreated: 2026-{number % 12 + 1:02}-01"
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
            knowledge, numbers = knowledge_of(store), iter(range(1000))
            narrow = {"kind": "error", "least_confidence": 0.5}
            print(f"\n{count:,} entries, CPU")
            for what, work, times in (
                ("entries read, the first time", knowledge.entries, 1),
                ("search", lambda: knowledge.search("pool of the gateway lost"), 9),
                ("search, narrowed", lambda: knowledge.search("pool of the gateway lost", **narrow), 9),
                ("save", lambda: knowledge.save("error", f"new {next(numbers)}", confidence=0.5), 9),
                ("contradictions", lambda: analysis_of(store).contradictions(), 1),
                ("themes", lambda: analysis_of(store).themes(), 1),
                ("insights", lambda: analysis_of(store).insights(), 1),
            ):
                print(f"  {what:32} {measured(work, times):9.1f} ms")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--entries", type=int, action="append")
    for count in parser.parse_args().entries or [1000, 10_000]:
        costs(count)
