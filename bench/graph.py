"""What the graph costs at 10,000 entities and relations, beside the server-memory of MCP.

    python bench/graph.py [--entities 10000] [--times 15] [--folder FOLDER]

One graph is made and given to both: simplemem imports it from the JSONL file in which the other
server keeps it, and what was imported is compared with that file item by item. Then each server is
measured over its standard streams: the median wall time of a call as a client sees it, some seconds
after the start, and the CPU time of the server. The wall time of a write contains the wait for the
disk; the CPU time does not.

Needs Node and npm for the other server, and the network the first time (`--folder` keeps it).
Without them only simplemem is measured. Exits with 1 if the import is not equal to the file.
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
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.conversation import Conversation, failure_in, serve
from bench.measure import cpu_seconds
from bench.peers import NOT_INSTALLED, installed
from simplemem.features.graph.jsonl import format_graph
from simplemem.features.graph.service import KnowledgeGraph, graph_of
from simplemem.features.graph.values import Entity, Graph, Observation, Relation
from simplemem.settings.model import Settings
from simplemem.store import Draft, EnhancedStore

WORDS: Final = (
    "river stone lamp garden engine letter window harbour copper winter signal bridge orchard"
).split()
RELATION_TYPES: Final = ("uses", "depends on", "knows")
SECONDS_UNTIL_IDLE: Final = 5.0
"""After its first call a server may still do what it does once."""

WITHOUT_VECTORS: Final = Settings.model_validate({"embed": {"provider": "none"}})

Times = dict[str, tuple[float, float]]
"""By the title of a row: milliseconds of wall time (median) and of CPU time (mean)."""


def main() -> int:
    """Import the graph, measure the servers, and print the table. Return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--entities", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=15)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()

    graph = make_graph(options.entities)
    with tempfile.TemporaryDirectory(prefix="simplemem-graph-") as temporary:
        root = Path(temporary)
        vault = root / "vault"
        is_equal = import_graph(graph, vault)
        print_batch_ratio(vault)
        with EnhancedStore(vault) as store:
            store.sync()  # also the vectors, so that no server makes them while it is measured

        command = serve(vault, "--profile", "server-memory")
        columns = {"simplemem": measure(command, {}, options.entities, options.times)}
        npm_folder = (options.folder or root / "npm").absolute()
        peer = installed(npm_folder) if shutil.which("node") else None
        if peer is None:
            print(NOT_INSTALLED)
        else:
            program, version = peer
            file = root / "memory.jsonl"
            file.write_text(format_graph(graph))
            env = {"MEMORY_FILE_PATH": str(file)}
            command = ["node", str(program)]
            columns[f"server-memory {version}"] = measure(
                command, env, options.entities, options.times
            )
        print_table(columns, options.entities)
    return 0 if is_equal else 1


def print_table(columns: dict[str, Times], entities: int) -> None:
    """Print a row for each kind of call and a column for each server."""
    print(f"\nat {entities} entities and as many relations, ms a call: wall (CPU of the server)")
    print(f"{'':28}" + "".join(f"{name:>28}" for name in columns))
    for title in CALLS:
        cells = [f"{times[title][0]:.1f} ({times[title][1]:.1f})" for times in columns.values()]
        print(f"{title:28}" + "".join(f"{cell:>28}" for cell in cells))


# The graph


def make_graph(count: int) -> Graph:
    """Return the same graph each time: three observations per entity, one relation from each."""
    entities = []
    relations = []
    for number in range(count):
        name = name_of(number)
        observations = tuple(_make_observation(number, position) for position in (1, 2, 3))
        entities.append(Entity(name, f"type {number % 17}", observations))
        target = name_of((number * 7 + 1) % count)
        relations.append(Relation(name, RELATION_TYPES[number % 3], target))
    return Graph(tuple(entities), tuple(relations))


def name_of(number: int) -> str:
    """Return the name of an entity. One in fifty has a slash, as paths have."""
    if number % 50 == 0:
        return f"{WORDS[number % 7]}/part {number}"
    return f"{WORDS[number % len(WORDS)].title()} {number}"


def _make_observation(number: int, position: int) -> Observation:
    first = WORDS[number * position % len(WORDS)]
    last = WORDS[(number + position) % 11]
    return Observation(f"{first} fact {number * 31 + position} of {last}")


def import_graph(graph: Graph, vault: Path) -> bool:
    """Import a graph, print what that and the first read cost, and tell whether all is there."""
    with EnhancedStore(vault, WITHOUT_VECTORS) as store:
        start = time.perf_counter()
        cpu_start = time.process_time()
        entity_count, relation_count, *_ = graph_of(store).merge(graph)
        cpu = time.process_time() - cpu_start
        wall = time.perf_counter() - start
    print(
        f"import of {entity_count} entities and {relation_count} relations: "
        f"{wall:.1f} s, {cpu:.1f} s CPU"
    )

    with EnhancedStore(vault, WITHOUT_VECTORS) as store:
        start = time.process_time()
        imported = KnowledgeGraph(store).read()
        seconds = time.process_time() - start
    print(f"first read of it in another process: {seconds:.2f} s CPU")

    is_equal = _items_of(imported) == _items_of(graph)
    print("compared item by item:", "equal" if is_equal else "NOT EQUAL")
    return is_equal


def _items_of(graph: Graph) -> tuple[object, object]:
    """Return the entities in order, and the relations as a set, as values that can be compared."""
    entities = [(entity.name, entity.type, entity.texts) for entity in graph.entities]
    relations = sorted({relation.key for relation in graph.relations})
    return entities, relations


def print_batch_ratio(vault: Path) -> None:
    """Print what a hundred entities created together cost, beside a hundred plain notes."""
    entity_times = []
    note_times = []
    with EnhancedStore(vault, WITHOUT_VECTORS) as store:
        graph = graph_of(store)
        graph.read()
        note_text = (store.root / "graph" / f"{name_of(1)}.md").read_text()
        for turn in range(5):
            entities = [
                Entity(f"made {turn} {number}", "t", (Observation("x"),)) for number in range(100)
            ]
            drafts = [Draft(f"plain/note {turn} {number}.md", note_text) for number in range(100)]
            entity_times.append(cpu_seconds(lambda items=entities: graph.create_entities(items)))
            note_times.append(cpu_seconds(lambda items=drafts: _write_drafts(store, items)))

    entities_cost = 1000 * min(entity_times)
    notes_cost = 1000 * min(note_times)
    print(
        f"a hundred entities together: {entities_cost:.0f} ms CPU, notes: {notes_cost:.0f}, "
        f"ratio {entities_cost / notes_cost:.2f}"
    )


def _write_drafts(store: EnhancedStore, drafts: list[Draft]) -> None:
    store.extension.change(lambda: drafts, who="", tool="bench", reason="")


# The calls


def _batch(number: int) -> list[dict[str, Any]]:
    return [
        {"name": f"batch {number} {item}", "entityType": "t", "observations": ["x"]}
        for item in range(100)
    ]


def _add_observation(number: int, entities: int) -> tuple[str, dict[str, Any]]:
    name = name_of(number * 53 % entities)
    observation = {"entityName": name, "contents": [f"added {number}"]}
    return "add_observations", {"observations": [observation]}


CALLS: Final[dict[str, Callable[[int, int], tuple[str, dict[str, Any]]]]] = {
    "search_nodes, one hit": lambda number, entities: (
        "search_nodes",
        {"query": f"fact {(number * 77 % entities) * 31 + 2} of"},
    ),
    "search_nodes, no hit": lambda number, _: ("search_nodes", {"query": f"nowhere {number}"}),
    "open_nodes, one": lambda number, entities: (
        "open_nodes",
        {"names": [name_of(number * 131 % entities)]},
    ),
    "add_observations, one": _add_observation,
    "create_entities, one": lambda number, _: (
        "create_entities",
        {"entities": [{"name": f"new {number}", "entityType": "t", "observations": ["x"]}]},
    ),
    "create_entities, a hundred": lambda number, _: (
        "create_entities",
        {"entities": _batch(number)},
    ),
    "delete_entities, one": lambda number, _: (
        "delete_entities",
        {"entityNames": [f"new {number}"]},
    ),
    "read_graph": lambda _number, _entities: ("read_graph", {}),
}
"""By a row's title: the tool and its arguments, by a call's number and the count of entities."""

_EXPENSIVE_CALLS: Final = {"create_entities, a hundred", "read_graph"}


def measure(command: list[str], env: dict[str, str], entities: int, times: int) -> Times:
    """Start a server, and make each kind of call so many times (a fifth of it if it is expensive).

    Raises:
        SystemExit: A call failed.
    """
    figures: Times = {}
    with Conversation(command, env=env, quiet=True) as server:
        server.use("open_nodes", names=["nobody"])
        time.sleep(SECONDS_UNTIL_IDLE)
        for title, make_call in CALLS.items():
            rounds = max(3, times // 5) if title in _EXPENSIVE_CALLS else times
            calls = [make_call(number, entities) for number in range(rounds)]
            figures[title] = _measure_calls(server, calls)
    return figures


def _measure_calls(
    server: Conversation, calls: list[tuple[str, dict[str, Any]]]
) -> tuple[float, float]:
    """Make the calls and return the median wall time and the mean CPU time, in milliseconds."""
    seconds = []
    cpu_start = server.figures().cpu
    for tool, arguments in calls:
        start = time.perf_counter()
        result = server.use(tool, **arguments)
        seconds.append(time.perf_counter() - start)
        failure = failure_in(result)
        if failure:
            raise SystemExit(f"{tool} failed: {failure}")
    cpu = server.figures().cpu - cpu_start
    return 1000 * statistics.median(seconds), 1000 * cpu / len(calls)


if __name__ == "__main__":
    sys.exit(main())
