"""What is remembered, measured: `python bench/remember.py [--cases FILE] [--data LOCOMO.json.gz] [--speed N] [--starts]`.

`--cases` counts what the rules make of a table of cases: right, and wrongly superseding, which must be none. `--data` tells
every sentence of LoCoMo's speakers to the rules, one after the other, prints whatever would be superseded, and the time of a
decision. `--speed` compares, among N statements of one scope, an add with one filtered search and one step of two notes, and
both searches with two filtered ones, in CPU seconds. `--starts` says what a server costs until its list of tools.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.conversation import Conversation, serve
from simplemem.features.facts.reading import Reading, read_statement
from simplemem.features.facts.reconciling import Verdict, reconcile
from simplemem.features.facts.statements import statements_in
from simplemem.note.sentences import sentence_spans

CASES = Path(__file__).parents[1] / "tests" / "data" / "remember_cases.txt"


class Case(NamedTuple):
    """A new statement, what is known, and what it does to which of that."""

    wanted: str
    known: list[str]
    new: str
    place: int
    is_wrong: bool  # the rules are known to miss it

    def verdict(self) -> Verdict:
        return reconcile(read_statement(self.new), [read_statement(each) for each in self.known])

    def is_right(self) -> bool:
        found = self.verdict()
        return (found.relation or found.event) == self.wanted and (
            self.wanted == "ADD" or found.place == self.place
        )


def cases(file: Path = CASES) -> Iterator[Case]:
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            wanted, known, new, *place = (each.strip() for each in line.split(" | "))
            yield Case(
                wanted,
                known.split(" ;; "),
                new.removesuffix(" wrong"),
                int((place or ["0"])[0]),
                new.endswith(" wrong"),
            )


def told(file: Path) -> None:
    """Tell every sentence of every speaker, and print what would be superseded."""
    known: dict[tuple[str, str], list[Reading]] = defaultdict(list)
    counts, seconds, sentences = Counter[str](), list[float](), 0
    for doc in json.loads(gzip.decompress(file.read_bytes()))["docs"]:
        for who, text in doc["turns"]:
            for start, stop in sentence_spans(text):
                sentence, mine = (
                    " ".join(text[start:stop].split()),
                    known[doc["id"].split("-")[1], who],
                )
                began = time.process_time()
                reading = read_statement(sentence)
                found = reconcile(reading, mine)
                seconds.append(time.process_time() - began)
                sentences += 1
                counts[found.relation or found.event] += 1
                if found.relation == "UPDATES" and found.place is not None:
                    print(f"superseded by {found.rule}: {mine[found.place].text!r} -> {sentence!r}")
                if found.event != "NOOP":
                    mine.append(reading)
    print(
        f"{sentences} sentences: {dict(counts)}; {1000 * statistics.mean(seconds):.2f} ms of CPU a decision"
    )


def speed(number: int) -> None:
    """Compare adding and asking with what they are made of."""
    from simplemem.features.documents.recall import RecallRequest, recall
    from simplemem.features.facts.fact import NewFact
    from simplemem.features.facts.service import fact_service
    from simplemem.models import Filter
    from simplemem.store import Draft, EnhancedStore

    places = [
        f"{a}{b}"
        for a in ("North", "South", "East", "West", "Upper")
        for b in ("ford", "ham", "wick", "stead")
    ]
    things = "kayak violin atlas loom lantern compass anvil teapot barometer sextant".split()
    with tempfile.TemporaryDirectory() as folder, EnhancedStore(Path(folder)) as store:
        memories, notes = fact_service(store), Path(folder) / "atoms" / "ann"
        notes.mkdir(parents=True)
        for k in range(number):
            said = f"The {things[k % 10]} {k} of {places[k // 10 % 20]} stands in shed {k // 7}"
            (notes / f"{said}.md").write_text(f"{said}.\n", encoding="utf-8")
        store.sync()
        store.extension.expect_more()
        memories.facts("ann")
        narrowed, asked = Filter(prefix="atoms/ann/"), "where does the anvil of Southham stand"

        def step() -> None:
            stem = f"atoms/ann/step {time.monotonic_ns()}"
            store.extension.change(
                lambda: [Draft(f"{stem} {k}.md", f"Step {stem} {k}\n") for k in range(2)],
                tool="bench",
            )

        each = iter(range(10_000))
        search = cpu(lambda: store.search(asked, filter=narrowed))
        add = cpu(
            lambda: memories.add(
                "ann", [NewFact(f"The ladder {next(each)} leans on the barn")], tool="bench"
            )
        )
        found = cpu(lambda: recall(store, RecallRequest(asked, "ann")))
        two = cpu(step)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    shares = f"add {add / (search + two):.2f} of both, recall {found / (2 * search):.2f} of two searches; {memory:.0f} MB"
    print(
        f"{number}: search {search:.1f} ms, step {two:.1f}, add {add:.1f}, recall {found:.1f}; {shares}"
    )


def cpu(work: Callable[[], object], times: int = 15) -> float:
    """The median of the CPU milliseconds that something takes."""
    work()
    taken = []
    for _ in range(times):
        began = time.process_time()
        work()
        taken.append(1000 * (time.process_time() - began))
    return statistics.median(taken)


def starts() -> None:
    """What a server costs until its list of tools, by profile."""
    for profile in ("default", "remembrances", "supermemento"):
        costs, sizes = list[float](), list[float]()
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            for _ in range(7):
                with Conversation(serve(Path(folder), "--profile", profile), quiet=True) as talk:
                    talk.ask("tools/list", {})
                    figures = talk.figures()
                    costs.append(figures.cpu)
                    sizes.append(figures.resident)
        print(
            f"start, {profile}: {statistics.median(costs):.2f} s CPU, {statistics.median(sizes):.0f} MB"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=Path, nargs="?", const=CASES)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--starts", action="store_true")
    parser.add_argument("--speed", type=int, nargs="*", default=[])
    given = parser.parse_args()
    if given.starts:
        starts()
    if given.cases or not (given.data or given.speed or given.starts):
        every = list(cases(given.cases or CASES))
        harmed = [
            each for each in every if each.verdict().relation == "UPDATES" and not each.is_right()
        ]
        assert all(statements_in(each.new) == [each.new] for each in every)
        print(
            f"{sum(each.is_right() for each in every)} of {len(every)} cases right, {len(harmed)} wrongly superseding"
        )
    if given.data:
        told(given.data)
    for number in given.speed:
        speed(number)


if __name__ == "__main__":
    main()
