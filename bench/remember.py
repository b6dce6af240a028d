"""How facts are reconciled with those that are current, and what that costs.

    python bench/remember.py [--cases FILE] [--data LOCOMO.json.gz] [--speed N] [--starts]

`--cases` counts how many cases of a table the rules decide right, and how many facts they wrongly
supersede, which must be none. `--data` gives each sentence of LoCoMo's speakers to the rules, one
after the other, and prints what would be superseded, and the CPU time of a decision. `--speed`
makes a vault of N facts of one user. It compares the CPU time of an add with that of one filtered
search and one step of two notes, and the CPU time of a recall with that of two searches.
`--starts` prints what a server costs until it has listed its tools.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.conversation import Conversation, serve
from bench.measure import cpu_milliseconds, peak_memory
from simplemem.features.documents.recall import RecallRequest, recall
from simplemem.features.facts.new_fact import NewFact
from simplemem.features.facts.reading import Reading, read_statement
from simplemem.features.facts.service import fact_service
from simplemem.features.facts.statement_rules import Verdict, apply_rules
from simplemem.features.facts.statements import statements_in
from simplemem.models import Filter
from simplemem.note.sentences import sentence_spans
from simplemem.store import Draft, EnhancedStore

CASES: Final = Path(__file__).parents[1] / "tests" / "data" / "remember_cases.txt"

_USER: Final = "ann"
_THINGS: Final = ("kayak violin atlas loom lantern compass anvil teapot barometer sextant").split()
_PLACE_BEGINNINGS: Final = ("North", "South", "East", "West", "Upper")
_PLACE_ENDINGS: Final = ("ford", "ham", "wick", "stead")
_SPEED_QUESTION: Final = "where does the anvil of Southham stand"
_PROFILES: Final = ("default", "remembrances", "supermemento")
_STARTS: Final = 7  # of a server of each profile


def main() -> None:
    """Print what the options ask for; without options, the result of the cases."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--cases", type=Path, nargs="?", const=CASES)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--starts", action="store_true")
    parser.add_argument("--speed", type=int, nargs="*", default=[])
    options = parser.parse_args()

    has_other_options = options.data or options.speed or options.starts
    if options.starts:
        print_starts()
    if options.cases or not has_other_options:
        print_cases(options.cases or CASES)
    if options.data:
        print_decisions(options.data)
    for count in options.speed:
        print_speed(count)


# The cases


class Case(NamedTuple):
    """A new statement, the current ones, and what it should do to which of them."""

    expected: str  # "ADD", "UPDATES", "EXTENDS", "NOOP" or "DELETE"
    current: list[str]
    new: str
    place: int  # of the current statement that the verdict should be about
    is_wrong: bool  # the rules are known to miss it

    def verdict(self) -> Verdict:
        """Return what the rules say."""
        readings = [read_statement(statement) for statement in self.current]
        return apply_rules(read_statement(self.new), readings)

    def is_right(self) -> bool:
        """Return whether the rules say what they should."""
        verdict = self.verdict()
        if (verdict.relation or verdict.event) != self.expected:
            return False
        return self.expected == "ADD" or verdict.target_index == self.place

    def is_harmful(self) -> bool:
        """Return whether the rules supersede a statement that they should not."""
        return self.verdict().relation == "UPDATES" and not self.is_right()


def cases(file: Path = CASES) -> Iterator[Case]:
    """Yield the cases of a file. Its first lines describe its format."""
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            yield _read_case(line)


def _read_case(line: str) -> Case:
    fields = [field.strip() for field in line.split(" | ")]
    expected, current, new = fields[:3]
    place = int(fields[3]) if len(fields) > 3 else 0
    return Case(
        expected=expected,
        current=current.split(" ;; "),
        new=new.removesuffix(" wrong"),
        place=place,
        is_wrong=new.endswith(" wrong"),
    )


def print_cases(file: Path) -> None:
    """Print how many cases of a file the rules decide right, and how many do harm.

    Raises:
        AssertionError: A new statement is more than one statement, or none.
    """
    cases_of_file = list(cases(file))
    for case in cases_of_file:
        assert statements_in(case.new) == [case.new]

    right_count = sum(case.is_right() for case in cases_of_file)
    harmful_count = sum(case.is_harmful() for case in cases_of_file)
    print(f"{right_count} of {len(cases_of_file)} cases right, {harmful_count} wrongly superseding")


# The sentences of LoCoMo


def print_decisions(file: Path) -> None:
    """Decide on each sentence of each speaker, and print which statements would be superseded.

    Last come the counts of the decisions, and the CPU time of one.
    """
    readings_of: dict[tuple[str, str], list[Reading]] = defaultdict(list)
    counts: Counter[str] = Counter()
    seconds = []
    for conversation, speaker, sentence in _read_sentences(file):
        current = readings_of[conversation, speaker]
        start = time.process_time()
        reading = read_statement(sentence)
        verdict = apply_rules(reading, current)
        seconds.append(time.process_time() - start)

        counts[verdict.relation or verdict.event] += 1
        if verdict.relation == "UPDATES" and verdict.target_index is not None:
            old_text = current[verdict.target_index].text
            print(f"superseded by {verdict.rule}: {old_text!r} -> {sentence!r}")
        if verdict.event != "NOOP":
            current.append(reading)

    mean = 1000 * statistics.mean(seconds)
    print(f"{len(seconds)} sentences: {dict(counts)}; {mean:.2f} ms of CPU a decision")


def _read_sentences(file: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the conversation, the speaker and the text of each sentence."""
    data = json.loads(gzip.decompress(file.read_bytes()))
    for document in data["docs"]:
        conversation = document["id"].split("-")[1]
        for speaker, text in document["turns"]:
            for start, end in sentence_spans(text):
                yield conversation, speaker, " ".join(text[start:end].split())


# The costs


def print_speed(count: int) -> None:
    """Print what an add and a recall cost among so many facts, beside what they are made of."""
    with tempfile.TemporaryDirectory() as folder, EnhancedStore(Path(folder)) as store:
        _write_facts(store.root / "atoms" / _USER, count)
        store.sync()
        store.extension.expect_more()
        service = fact_service(store)
        service.facts(_USER)
        user_filter = Filter(prefix=f"atoms/{_USER}/")
        numbers = itertools.count()

        def add_fact() -> None:
            fact = NewFact(f"The ladder {next(numbers)} leans on the barn")
            service.add(_USER, [fact], tool="bench")

        search = _median_cost(lambda: store.search(_SPEED_QUESTION, filter=user_filter))
        add = _median_cost(add_fact)
        found = _median_cost(lambda: recall(store, RecallRequest(_SPEED_QUESTION, _USER)))
        step = _median_cost(lambda: _write_two_notes(store))

    print(
        f"{count}: search {search:.1f} ms, step {step:.1f}, add {add:.1f}, recall {found:.1f}; "
        f"add {add / (search + step):.2f} of both, "
        f"recall {found / (2 * search):.2f} of two searches; {peak_memory():.0f} MB"
    )


def _write_facts(folder: Path, count: int) -> None:
    """Write the notes of so many facts, about things at places."""
    places = []
    for beginning, ending in itertools.product(_PLACE_BEGINNINGS, _PLACE_ENDINGS):
        places.append(f"{beginning}{ending}")

    folder.mkdir(parents=True)
    for number in range(count):
        thing = _THINGS[number % len(_THINGS)]
        place = places[number // 10 % len(places)]
        text = f"The {thing} {number} of {place} stands in shed {number // 7}"
        (folder / f"{text}.md").write_text(f"{text}.\n", encoding="utf-8")


def _write_two_notes(store: EnhancedStore) -> None:
    """Write two new notes as one step."""
    stem = f"atoms/{_USER}/step {time.monotonic_ns()}"
    drafts = [Draft(f"{stem} {number}.md", f"Step {stem} {number}\n") for number in range(2)]
    store.extension.change(lambda: drafts, tool="bench")


def _median_cost(work: Callable[[], object], times: int = 15) -> float:
    """Do some work once, then so many times, and return the median of its CPU milliseconds."""
    work()
    return statistics.median(cpu_milliseconds(work) for _ in range(times))


def print_starts() -> None:
    """Print what a server of each profile costs until it has listed its tools."""
    for profile in _PROFILES:
        cpu_times = []
        sizes = []
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            command = serve(Path(folder), "--profile", profile)
            for _ in range(_STARTS):
                with Conversation(command, quiet=True) as server:
                    server.ask("tools/list", {})
                    figures = server.figures()
                cpu_times.append(figures.cpu)
                sizes.append(figures.resident)

        cpu = statistics.median(cpu_times)
        size = statistics.median(sizes)
        print(f"start, {profile}: {cpu:.2f} s CPU, {size:.0f} MB")


if __name__ == "__main__":
    main()
