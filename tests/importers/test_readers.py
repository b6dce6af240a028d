"""Each format is imported with all names, dates, tags and links."""

import io
import json
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from simplemem import open_store
from simplemem.errors import Unreadable
from simplemem.importers import SOURCES
from simplemem.importers.plan import Plan, apply_plan, make_plan
from simplemem.store import EnhancedStore

A, B, C, D, F = (letter * 32 for letter in "abcdf")
PALACE = """
CREATE TABLE collections (id TEXT PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE segments (id TEXT PRIMARY KEY, type TEXT NOT NULL, scope TEXT NOT NULL, collection TEXT NOT NULL);
CREATE TABLE embeddings (id INTEGER PRIMARY KEY, segment_id TEXT NOT NULL, embedding_id TEXT NOT NULL);
CREATE TABLE embedding_metadata (id INTEGER, key TEXT NOT NULL, string_value TEXT, int_value INTEGER,
                                 float_value REAL, bool_value INTEGER, PRIMARY KEY (id, key));
INSERT INTO collections VALUES ('c', 'mempalace_drawers'), ('o', 'mempalace_closets');
INSERT INTO segments VALUES ('v', 'hnsw', 'VECTOR', 'c'), ('s', 'sqlite', 'METADATA', 'c'), ('t', 'sqlite', 'METADATA', 'o');
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EnhancedStore]:
    with open_store(tmp_path / "vault") as store:
        yield store


def import_and_check(store: EnhancedStore, kind: str, file: Path, folder: str = "in") -> Plan:
    """Import an export, and check that it can be imported again, undone and repeated."""
    plan = make_plan(store, kind, str(file), folder, SOURCES[kind].read(file))
    result = apply_plan(store, plan, who="test")
    again = make_plan(store, kind, str(file), folder, SOURCES[kind].read(file))
    assert (again.drafts, again.unchanged) == ((), plan.new)
    store.undo(result.written[0].version)
    assert not list(store.names())
    apply_plan(
        store, make_plan(store, kind, str(file), folder, SOURCES[kind].read(file)), who="test"
    )
    return plan


def zipped(**files: str | bytes) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return data.getvalue()


def test_pages_of_notion_keep_their_links_properties_and_dates(
    store: EnhancedStore, tmp_path: Path
) -> None:
    table = '\ufeffName,Status,Tags,Created time\nDo it,Done,"x, y z","January 5, 2026 10:00 AM"\n'
    pages = {
        f"Home {A}.md": f"# Home\n\n[Plan](Home%20{A}/Plan%20{B}.md#why) [DB](Home%20{A}/Tasks%20{C}.csv) "
        f"![](Home%20{A}/image.png) [web](https://a.b/c_(d))\n\nNote: this is prose\n",
        f"Home {A}/Plan {B}.md": f"# Plan\n\nback [Home](../Home%20{A}.md), task [t](Tasks%20{C}/Do%20it%20{D}.md)\n",
        f"Home {A}/Plan {F}.md": "# Plan\n\nAnother one.\n",
        f"Home {A}/image.png": b"\x89PNG",
        f"Home {A}/Tasks {C}.csv": table,
        f"Home {A}/Tasks {C}_all.csv": table,
        f"Home {A}/Tasks {C}/Do it {D}.md": "# Do it\n\nStatus: Done\nTags: x, y z\n"
        "Created time: January 5, 2026 10:00 AM\n\nBody: yes\n",
    }
    export = tmp_path / "Export.zip"
    export.write_bytes(zipped(**{"ExportBlock-1-Part-1.zip": zipped(**pages)}))
    assert import_and_check(store, "notion", export).new == 7
    home, task = store.read("in/Home"), store.read("in/Home/Tasks/Do it")
    assert [link.target for link in home.links] == [
        "in/Home/Plan",
        "in/Home/Tasks.csv",
        "in/Home/image.png",
    ]
    assert "Note: this is prose" in home.content
    assert "(https://a.b/c_(d))" in home.content
    assert [link.target for link in store.read("in/Home/Plan").links] == [
        "in/Home",
        "in/Home/Tasks/Do it",
    ]
    assert "Another one." in store.read("in/Home/Plan 2").content
    assert (task.created, task.tags, task.frontmatter["Status"]) == (
        "2026-01-05T10:00:00",
        ("x", "y-z"),
        "Done",
    )
    assert task.content.split() == ["#", "Do", "it", "Body:", "yes"]
    tables = {file.name for file in (store.root / "in" / "Home").glob("*.csv")}
    assert tables == {"Tasks.csv", "Tasks_all.csv"}


def test_paths_that_lead_out_of_an_archive_are_skipped_and_a_broken_archive_is_refused(
    store: EnhancedStore, tmp_path: Path
) -> None:
    export = tmp_path / "Export.zip"
    export.write_bytes(
        zipped(
            **{
                "../../evil.md": "x",
                "/etc/evil.md": "x",
                f"Fine {A}.md": "# Fine\n",
                "bad.md": b"\xff",
            }
        )
    )
    plan = import_and_check(store, "notion", export)
    assert (plan.new, [part.origin for part in plan.skipped]) == (
        1,
        ["../../evil.md", "/etc/evil.md", "bad.md"],
    )
    export.write_bytes(b"PK\x03\x04 no zip")
    with pytest.raises(Unreadable):
        list(SOURCES["notion"].read(export))


def test_drawers_of_a_file_become_one_note_and_each_other_drawer_its_own(
    store: EnhancedStore, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "chroma.sqlite3")) as db:
        db.executescript(PALACE)
        drawers = [
            {
                "wing": "app",
                "room": "decisions",
                "source_file": "/x/why.md",
                "chunk_index": 1,
                "chroma:document": "Two.",
            },
            {
                "wing": "app",
                "room": "decisions",
                "source_file": "/x/why.md",
                "chunk_index": 0,
                "chroma:document": "One.",
            },
            {
                "wing": "me",
                "room": "tastes",
                "filed_at": "2026-05-02T10:00:00",
                "chroma:document": "I like oolong.",
            },
            {"wing": "me", "room": "tastes"},
            {
                "parent_drawer_id": "whole",
                "chunk_index": 1,
                "chroma:document": "long that it is cut.",
            },
            {"parent_drawer_id": "whole", "chunk_index": 0, "chroma:document": "So "},
            {"source_file": "/x/o.md", "chunk_index": 0, "chroma:document": f"First. {'x' * 40}"},
            {"source_file": "/x/o.md", "chunk_index": 1, "chroma:document": f"{'x' * 40} Last."},
            {
                "source_file": "/x/seen.jsonl",
                "ingest_mode": "registry",
                "chroma:document": "[registry]",
            },
        ]
        for number, drawer in enumerate(drawers, 1):
            db.execute("INSERT INTO embeddings VALUES (?, 's', ?)", (number, f"drawer_{number}"))
            values = [
                (number, k, *((v, None) if isinstance(v, str) else (None, v)))
                for k, v in drawer.items()
            ]
            db.executemany("INSERT INTO embedding_metadata VALUES (?, ?, ?, ?, NULL, NULL)", values)
        db.execute("INSERT INTO embeddings VALUES (99, 't', 'closet')")
        db.commit()
    plan = import_and_check(store, "mempalace", tmp_path)
    assert (plan.new, len(plan.skipped)) == (4, 1)
    assert store.read("in/So").content.strip() == "So long that it is cut."
    assert store.read("in/o").content.strip() == f"First. {'x' * 40} Last."
    assert store.read("in/app/decisions/why").content.split() == ["One.", "Two."]
    assert store.read("in/me/tastes/I like oolong").created == "2026-05-02T10:00:00"


def test_claude_codes_memories_are_imported_by_project(
    store: EnhancedStore, tmp_path: Path
) -> None:
    memory = tmp_path / "projects" / "-home-ida-app" / "memory"
    memory.mkdir(parents=True)
    fact = "---\nname: build\ndescription: how it is built\nmetadata:\n  type: project\n---\n\nUse make. See [[tests]].\n"
    (memory / "build.md").write_text(fact)
    (memory / "MEMORY.md").write_text("- [build](build.md)\n")
    (memory.parent / "session.jsonl").write_text("{}\n")
    assert import_and_check(store, "claude-memory", tmp_path / "projects").new == 2
    assert (tmp_path / "vault/in/home-ida-app/build.md").read_text() == fact.replace(
        "  type: project\n", "  type: project\nsource: claude-code:-home-ida-app/build.md\n"
    )
    (memory / "build.md").write_text(fact.replace("make", "just"))
    plan = make_plan(
        store,
        "claude-memory",
        "projects",
        "in",
        SOURCES["claude-memory"].read(tmp_path / "projects"),
    )
    assert (plan.new, plan.changed, plan.unchanged) == (0, 1, 1)


def test_apple_notes_get_the_dates_of_their_files(store: EnhancedStore, tmp_path: Path) -> None:
    import os

    note = tmp_path / "Notes" / "Trips" / "Rome.md"
    note.parent.mkdir(parents=True)
    note.write_text("# Rome\n\n![](Attachments/map.png) #travel\n")
    (note.parent / "Attachments").mkdir()
    (note.parent / "Attachments" / "map.png").write_bytes(b"\x89PNG")
    os.utime(note, (1_700_000_000, 1_700_000_000))
    assert import_and_check(store, "apple-notes", tmp_path / "Notes").new == 2
    read = store.read("in/Trips/Rome")
    assert (read.modified[:10], read.tags) == ("2023-11-14", ("travel",))
    assert [link.target for link in read.links] == ["in/Trips/Attachments/map.png"]


def test_deleted_memories_of_openmemory_are_skipped(store: EnhancedStore, tmp_path: Path) -> None:
    rows = [
        {"id": "u1", "content": "Prefers trains", "state": "active", "created_at": 1_700_000_000}
    ]
    rows += [
        {"id": "u2", "content": "Prefers cars", "state": "deleted", "created_at": 1_600_000_000}
    ]
    export = tmp_path / "memories_export.zip"
    export.write_bytes(
        zipped(**{"memories.json": json.dumps({"user": {"id": "x"}, "memories": rows})})
    )
    assert import_and_check(store, "mem0", export).new == 1
    assert store.read("in/Prefers trains").created.startswith("2023-11-14")


@pytest.mark.parametrize("kind", [name for name, source in SOURCES.items() if source.reader])
def test_a_file_of_another_format_is_refused(
    store: EnhancedStore, tmp_path: Path, kind: str
) -> None:
    from simplemem.errors import SimplememError

    noise = tmp_path / "noise"
    noise.write_bytes(b"\x00\xff\x00 not what was meant")
    if SOURCES[kind].reader.startswith("simplemem.importers.markdown:") and kind != "notion":
        noise.unlink()
        noise.mkdir()
    with pytest.raises(SimplememError) as error:
        make_plan(store, kind, str(noise), "in", SOURCES[kind].read(noise))
    assert error.value.hint
    with pytest.raises(SimplememError):
        make_plan(store, kind, "gone", "in", SOURCES[kind].read(tmp_path / "gone"))


def test_links_of_basic_memory_by_title_and_permalink_lead_to_the_file(
    store: EnhancedStore, tmp_path: Path
) -> None:
    coffee = "---\ntitle: 'Coffee: Brewing'\npermalink: main/coffee/coffee-brewing\n---\n\n- relates_to [[Tea]]\n"
    tea = "---\ntitle: Tea\npermalink: main/tea\n---\n\n- x [[Coffee: Brewing]] [[coffee/coffee-brewing#y]] [[gone]]\n"
    (tmp_path / "project" / "coffee").mkdir(parents=True)
    (tmp_path / "project" / "coffee" / "Coffee- Brewing.md").write_text(coffee)
    (tmp_path / "project" / "Tea.md").write_text(tea)
    assert import_and_check(store, "basic-memory", tmp_path / "project").new == 2
    assert (tmp_path / "vault/in/coffee/Coffee- Brewing.md").read_text() == coffee
    assert (tmp_path / "vault/in/Tea.md").read_text() == tea.replace(
        "[[Coffee: Brewing]] [[coffee/coffee-brewing#y]]",
        "[[Coffee- Brewing|Coffee: Brewing]] [[Coffee- Brewing#y]]",
    )


@pytest.mark.parametrize(("kind", "new"), [("mem0", 3), ("basic-memory", 4)])
def test_files_that_the_programs_wrote_are_imported_completely(
    store: EnhancedStore, kind: str, new: int
) -> None:
    """Written by mem0ai 2.2.1 (`get_all`) and basic-memory 0.20.3 (its tools)."""
    exports = Path(__file__).parents[1] / "data" / "imports"
    plan = import_and_check(store, kind, exports / ("mem0.json" if kind == "mem0" else kind))
    assert (plan.new, plan.skipped) == (new, ())
    if kind == "mem0":
        assert {store.read(name).tags for name in store.names()} == {
            ("a", "b", "tag")
        }  # the last one stands in the text
    else:
        links = store.read("in/drinks/hot/Tea").links + store.read("in/drinks/日本 茶").links
        assert {link.target for link in links} == {"in/coffee/Coffee- Brewing-Methods"}


def test_a_file_that_the_memory_server_wrote_is_imported_completely(store: EnhancedStore) -> None:
    """Written by the tools of @modelcontextprotocol/server-memory."""
    from simplemem.features.graph.jsonl import import_file, parse_graph
    from simplemem.features.graph.service import graph_of

    file = Path(__file__).parents[1] / "data" / "imports" / "server-memory.jsonl"
    done = import_file(store, file)
    assert done is not None
    assert (done.broken, len(store.history(limit=99, steps=True))) == ((), 1)
    graph = parse_graph(file.read_bytes())[0]
    imported = graph_of(store).read()
    assert [entity.as_dict() for entity in imported.entities] == [
        entity.as_dict() for entity in graph.entities
    ]
    assert {relation.key for relation in imported.relations} == {
        relation.key for relation in graph.relations
    }
    store.undo(done.since)
    assert not list(store.names())
