"""What the graph costs at 10,000 entities and 10,000 relations, beside @modelcontextprotocol/server-memory in one run.

    python bench/graph.py [--entities 10000] [--times 15] [--folder FOLDER]

One graph is made and given to both: ours takes it in from the JSONL file that the other keeps it in, and the import is
compared with that file item by item. Then each serves it over its standard streams: the median wall time of a call as a
client meets it, some seconds after the start, and the CPU time of the server. What a write waits for the disk stands in
the wall time and not in the CPU time. Needs Node and npm for the other server, and the network the first time
(`--folder` keeps it); without them ours is measured alone. Exits with 1 when the import is not what the file says.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.conversation import Conversation, failure_in, serve
from bench.peers import installed
from simplemem.features.graph.graph import KnowledgeGraph, graph_of
from simplemem.features.graph.jsonl import format_graph
from simplemem.features.graph.values import Entity, Graph, Observation, Relation
from simplemem.settings.model import Settings
from simplemem.store import Draft, EnhancedStore

WORDS = "river stone lamp garden engine letter window harbour copper winter signal bridge orchard".split()
SETTLING = 5.0
"""Seconds after the first call, in which a server may do what it does once."""
EMBEDLESS = Settings.model_validate({"embed": {"provider": "none"}})


def name_of(number: int) -> str:
    return (
        f"{WORDS[number % len(WORDS)].title()} {number}"
        if number % 50
        else f"{WORDS[number % 7]}/part {number}"
    )


def made(count: int) -> Graph:
    """The same graph every time: three observations an entity, one relation from each."""

    def fact(number: int, k: int) -> Observation:
        return Observation(
            f"{WORDS[(number * k) % len(WORDS)]} fact {number * 31 + k} of {WORDS[(number + k) % 11]}"
        )

    numbers, kinds = range(count), ("uses", "depends on", "knows")
    entities = (
        Entity(name_of(n), f"type {n % 17}", tuple(fact(n, k) for k in (1, 2, 3))) for n in numbers
    )
    relations = (Relation(name_of(n), kinds[n % 3], name_of((n * 7 + 1) % count)) for n in numbers)
    return Graph(tuple(entities), tuple(relations))


CALLS: dict[str, Callable[[int, int], tuple[str, dict[str, Any]]]] = {
    "search_nodes, one hit": lambda k, n: (
        "search_nodes",
        {"query": f"fact {(k * 77 % n) * 31 + 2} of"},
    ),
    "search_nodes, no hit": lambda k, _: ("search_nodes", {"query": f"nowhere {k}"}),
    "open_nodes, one": lambda k, n: ("open_nodes", {"names": [name_of(k * 131 % n)]}),
    "add_observations, one": lambda k, n: (
        "add_observations",
        {"observations": [{"entityName": name_of(k * 53 % n), "contents": [f"added {k}"]}]},
    ),
    "create_entities, one": lambda k, _: (
        "create_entities",
        {"entities": [{"name": f"new {k}", "entityType": "t", "observations": ["x"]}]},
    ),
    "create_entities, a hundred": lambda k, _: (
        "create_entities",
        {
            "entities": [
                {"name": f"batch {k} {i}", "entityType": "t", "observations": ["x"]}
                for i in range(100)
            ]
        },
    ),
    "delete_entities, one": lambda k, _: ("delete_entities", {"entityNames": [f"new {k}"]}),
    "read_graph": lambda _k, _n: ("read_graph", {}),
}


def measured(
    command: list[str], env: dict[str, str], entities: int, times: int
) -> dict[str, tuple[float, float]]:
    """Milliseconds of wall time (median) and CPU time (mean) for each kind of call."""
    figures = {}
    with Conversation(command, env=env, quiet=True) as talk:
        talk.use("open_nodes", names=["nobody"])
        time.sleep(SETTLING)
        for what, call in CALLS.items():
            rounds = times if "hundred" not in what and what != "read_graph" else max(3, times // 5)
            seconds, cpu = [], talk.figures().cpu
            for k in range(rounds):
                tool, arguments = call(k, entities)
                began = time.perf_counter()
                failure = failure_in(talk.use(tool, **arguments))
                seconds.append(time.perf_counter() - began)
                assert not failure, (what, failure)
            figures[what] = (
                1000 * statistics.median(seconds),
                1000 * (talk.figures().cpu - cpu) / rounds,
            )
    return figures


def taken_in(graph: Graph, vault: Path) -> bool:
    """Import, told; whether every item is there as it was."""
    with EnhancedStore(vault, EMBEDLESS) as store:
        began, cpu = time.perf_counter(), time.process_time()
        counted = graph_of(store).merge(graph)
        print(
            f"import of {counted[0]} entities and {counted[1]} relations: {time.perf_counter() - began:.1f} s,"
            f" {time.process_time() - cpu:.1f} s CPU"
        )
    with EnhancedStore(vault, EMBEDLESS) as store:
        began = time.process_time()
        read = KnowledgeGraph(store).read()
        print(f"first read of it in another process: {time.process_time() - began:.2f} s CPU")
    same = [(e.name, e.type, e.texts) for e in read.entities] == [
        (e.name, e.type, e.texts) for e in graph.entities
    ]
    related = sorted(each.key for each in read.relations) == sorted(
        {each.key for each in graph.relations}
    )
    print("compared item by item:", "equal" if same and related else "NOT EQUAL")
    return same and related


def batch_ratio(vault: Path) -> tuple[float, float]:
    """CPU milliseconds of a hundred entities made together, and of as many plain notes of that size."""
    spent: dict[str, list[float]] = {"entities": [], "notes": []}
    with EnhancedStore(vault, EMBEDLESS) as store:
        graph = graph_of(store)
        graph.read()
        sample = (store.root / "graph" / f"{name_of(1)}.md").read_text()
        for turn in range(5):
            began = time.process_time()
            graph.create_entities(
                [Entity(f"made {turn} {k}", "t", (Observation("x"),)) for k in range(100)]
            )
            spent["entities"].append(time.process_time() - began)
            drafts = [Draft(f"plain/note {turn} {k}.md", sample) for k in range(100)]
            began = time.process_time()
            store.extension.change(lambda drafts=drafts: drafts, who="", tool="bench", reason="")
            spent["notes"].append(time.process_time() - began)
    return 1000 * min(spent["entities"]), 1000 * min(spent["notes"])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--entities", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=15)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    graph = made(given.entities)
    with tempfile.TemporaryDirectory(prefix="simplemem-graph-") as room:
        vault = Path(room) / "vault"
        right = taken_in(graph, vault)
        entities, notes = batch_ratio(vault)
        print(
            f"a hundred entities together: {entities:.0f} ms CPU, notes: {notes:.0f}, ratio {entities / notes:.2f}"
        )
        with EnhancedStore(vault) as store:
            store.sync()  # its vectors as well, so that no server makes them while it is measured
        columns = {
            "simplemem": measured(
                serve(vault, "--profile", "server-memory"), {}, given.entities, given.times
            )
        }
        found = (
            installed((given.folder or Path(room) / "npm").absolute())
            if shutil.which("node")
            else None
        )
        if found is not None:
            program, version = found
            file = Path(room) / "memory.jsonl"
            file.write_text(format_graph(graph))
            env = {"MEMORY_FILE_PATH": str(file)}
            columns[f"server-memory {version}"] = measured(
                ["node", str(program)], env, given.entities, given.times
            )
        else:
            print(
                "Node and npm are not here, or npm cannot reach its registry: simplemem alone is measured."
            )
        print(
            f"\nat {given.entities} entities and as many relations, ms a call: wall (CPU of the server)"
        )
        print(f"{'':28}" + "".join(f"{name:>28}" for name in columns))
        for what in CALLS:
            cells = [f"{each[what][0]:.1f} ({each[what][1]:.1f})" for each in columns.values()]
            print(f"{what:28}" + "".join(f"{cell:>28}" for cell in cells))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
