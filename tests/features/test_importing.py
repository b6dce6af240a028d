"""The file of a graph memory server, taken over into a vault: whole, once, and added to what is there."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from simplemem.errors import SimplememError
from simplemem.features.graph.jsonl import format_graph, import_file, parse_graph
from simplemem.features.graph.service import graph_of
from simplemem.features.graph.values import Entity, Observation
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Three hundred entities with odd names among them, and more relations, some to nobody."""
    chance = random.Random(7)
    names = [f"Thing {k}" for k in range(300)]
    names += ["", "a/b", "../x", "CON", "a\nb", "\ud800", "x\x00", "thing 1", "é", "e\u0301"]
    lines: list[dict[str, Any]] = [
        {
            "type": "entity",
            "name": name,
            "entityType": f"kind {k % 5}",
            "observations": [f"says {k}", name],
        }
        for k, name in enumerate(names)
    ]
    ends = [*names, "ghost", "phantom"]
    keys = {
        (chance.choice(ends), chance.choice(ends), f"is {chance.randrange(4)}") for _ in range(180)
    }
    lines += [
        {"type": "relation", "from": a, "to": b, "relationType": kind}
        for a, b, kind in sorted(keys)
    ]
    file = tmp_path / "memory.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    return file


def test_each_item_of_a_file_is_in_the_graph_and_comes_back_out_of_it(
    store: EnhancedStore, file: Path
) -> None:
    before = file.read_bytes()
    planned = import_file(store, file, dry_run=True)
    assert not list(store.names())
    done = import_file(store, file, who="test")
    assert done is not None
    assert planned == replace(done, since="")
    whole = parse_graph(before)[0]
    assert (done.entities, done.relations, done.broken) == (
        len(whole.entities),
        len(whole.relations),
        (),
    )
    exported = parse_graph(format_graph(graph_of(store).read()).encode())[0]
    assert exported.entities == whole.entities
    assert {each.key for each in exported.relations} == {each.key for each in whole.relations}
    assert file.read_bytes() == before


def test_what_is_there_is_added_to_and_an_import_done_again_changes_nothing(
    store: EnhancedStore, file: Path
) -> None:
    graph_of(store).create_entities(
        [Entity("Thing 3", "mine", (Observation("of my own"), Observation("says 3")))]
    )
    done = import_file(store, file)
    assert (done.entities_there, done.observations) == (1, 1)
    three = graph_of(store).entity("Thing 3")
    assert three is not None
    assert (three.type, three.texts) == ("mine", ["of my own", "says 3", "Thing 3"])
    first = graph_of(store).read()
    again = import_file(store, file)
    assert (again.entities, again.relations, again.observations, again.since) == (0, 0, 0, "")
    assert graph_of(store).read() == first


def test_once_is_once_even_for_what_was_deleted_since(store: EnhancedStore, file: Path) -> None:
    assert import_file(store, file, once=True) is not None
    graph_of(store).delete_entities(["Thing 1", "Thing 2"])
    assert import_file(store, file, once=True) is None
    assert graph_of(store).entity("Thing 1") is None
    other = file.with_name("other.jsonl")
    other.write_bytes(file.read_bytes())
    assert import_file(store, other, once=True) is not None
    assert graph_of(store).entity("Thing 1") is not None


@pytest.mark.skipif(os.name == "nt", reason="making a link needs a right there")
def test_a_link_in_the_place_of_the_record_is_not_written_through(
    store: EnhancedStore, file: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("keep")
    graph_of(store).create_entities([Entity("A", "t")])
    (store.root / ".simplemem" / "imports.jsonl").symlink_to(outside)
    with pytest.raises(SimplememError):
        import_file(store, file, once=True)
    assert (outside.read_text(), graph_of(store).entity("Thing 1")) == ("keep", None)


_BOTH = """
import sys
from dataclasses import replace
from pathlib import Path
from simplemem import open_store
from simplemem.features.graph.jsonl import import_file
with open_store(sys.argv[1]) as store:
    print(import_file(store, Path(sys.argv[2]), once=True) is not None)
"""


def test_of_two_that_start_at_once_one_imports_and_the_other_waits(vault: Path, file: Path) -> None:
    command = [sys.executable, "-c", _BOTH, str(vault), str(file)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert sorted(each.communicate(timeout=120)[0].strip() for each in both) == ["False", "True"]
    with EnhancedStore(vault, Settings()) as store:
        assert len(graph_of(store).read().entities) == len(
            parse_graph(file.read_bytes())[0].entities
        )


# -- the file


def test_lines_of_other_programs_are_read_and_broken_ones_are_told() -> None:
    entity = '{"type":"entity","name":"A","entityType":"t"'
    right = [
        f'{entity},"observations":["1"]}}',
        f'{entity},"observations":null,"id":7}}\r',
        f"{entity}}}",
        "",
        "  \r",
    ]
    relation = '{"type":"relation","from":"A","to":"B"'
    odd = [
        f'{entity},"observations":"x"}}',
        f'{entity},"observations":[1]}}',
        f"{relation}}}",
        '{"type":"note"}',
        "[]",
    ]
    lines = [*right, f'{relation},"relationType":"r"}}', *odd, '{"type":"entity","na']
    graph, broken = parse_graph(b"\xef\xbb\xbf" + "\n".join(lines).encode() + b"\n\xff")
    assert ([each.name for each in graph.entities], [each.key for each in graph.relations]) == (
        ["A"],
        [("A", "r", "B")],
    )
    assert [each.line for each in broken] == list(range(7, 14))
    assert {each.why for each in broken[:5]} == {"it is neither an entity nor a relation"}
    assert {each.why for each in broken[5:]} == {"it is not JSON"}


def entity_line(name: str, *observations: str) -> str:
    return json.dumps(
        {"type": "entity", "name": name, "entityType": name, "observations": observations}
    )


def test_a_hostile_file_changes_no_other_note_and_what_is_too_long_is_left_out(
    store: EnhancedStore, file: Path
) -> None:
    vault = store.root
    store.create("people/Ann", "Ann.\n")
    store.create("keep", "[[Ann]] [[x]]\n")
    names = [
        "../../pwned", "/etc/passwd", "..", ".", " ", "..\\x", "C:\\x", "a/../../b", ".simplemem/config", "keep",
        "people/Ann", "\u202e", "CON.md", "x.md", "#", "|", "[[a]]", "%%", "---", "`", "Dup", "dup", "DUP", "dup ", "dup.",
        "n" * 100_000,
    ]  # fmt: skip
    texts = [
        "---\nprivate: false\n---",
        "## Relations\n- a [[b]]",
        "%% x=1 %%",
        "```\nunclosed",
        "<!--",
        "%%",
        "\0\ud800",
    ]
    lines = [entity_line(name, name, *texts) for name in names]
    lines += [entity_line("deep").replace("[]", "[" * 100_000), entity_line("big", "x" * 6_000_000)]
    lines += [
        entity_line("number").replace("[]", "9" * 10_000),
        '{"type":"relation","from":"`","to":"`","relationType":"`"}',
    ]
    file.write_text("\n".join(lines))
    before = {
        path: path.read_bytes()
        for path in vault.parent.rglob("*")
        if path.suffix in (".md", ".jsonl")
    }
    done = import_file(store, file)
    assert done is not None and (done.entities, done.relations) == (len(names), 1)
    reasons = ["it is not JSON", "it is longer than the limit for a note", "it is not JSON"]
    assert [each.why for each in done.broken] == reasons
    assert {each.name: each.texts for each in graph_of(store).read().entities} == {
        n: [n, *texts] for n in names
    }
    after = {
        path: path.read_bytes()
        for path in vault.parent.rglob("*")
        if path.suffix in (".md", ".jsonl")
    }
    assert {path for path in after if after[path] != before.get(path)} == {
        path
        for path in after
        if path.is_relative_to(vault / "graph") or path.is_relative_to(vault / ".simplemem")
    }


def test_one_name_twice_is_one_entity_that_says_all_of_it_and_a_relation_twice_is_one() -> None:
    twice = (
        '{"type":"entity","name":"A","entityType":"t","observations":["1","1"]}\n'
        '{"type":"relation","from":"A","to":"A","relationType":"r"}\n'
        '{"type":"entity","name":"A","entityType":"u","observations":["2","1"]}\n'
        '{"type":"relation","from":"A","to":"A","relationType":"r"}'
    )
    graph = parse_graph(twice.encode())[0]
    assert [(each.name, each.type, each.texts) for each in graph.entities] == [
        ("A", "t", ["1", "1", "2"])
    ]
    assert len(graph.relations) == 1
