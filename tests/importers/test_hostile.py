"""Broken, enormous and malicious exports: problems are named, and the rest is imported."""

import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from simplemem import open_store
from simplemem.errors import Conflict, Invalid, SimplememError, Unreadable
from simplemem.importers import SOURCES
from simplemem.importers import plan as planning
from simplemem.importers.plan import Plan, apply_plan, make_plan
from simplemem.settings.model import Settings, WriteSettings
from simplemem.store import EnhancedStore

A, B, C, D = (letter * 32 for letter in "abcd")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EnhancedStore]:
    with open_store(tmp_path / "vault") as store:
        yield store


def import_and_check(store: EnhancedStore, kind: str, file: Path, folder: str = "in") -> Plan:
    """Import an export, and check that a second import adds nothing."""
    plan = make_plan(store, kind, str(file), folder, SOURCES[kind].read(file))
    if plan.drafts:
        apply_plan(store, plan, who="test")
    assert make_plan(store, kind, str(file), folder, SOURCES[kind].read(file)).drafts == ()
    return plan


def memories(tmp_path: Path, *rows: object, **more: object) -> Path:
    file = tmp_path / "memories.json"
    file.write_text(json.dumps({"results": rows, **more}))
    return file


def export(tmp_path: Path, **files: str | bytes) -> Path:
    with zipfile.ZipFile(tmp_path / "Export.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return tmp_path / "Export.zip"


def test_broken_records_are_skipped_with_reasons_and_the_rest_is_imported(
    store: EnhancedStore, tmp_path: Path
) -> None:
    rows = [
        {
            "id": "1",
            "memory": "fine",
            "categories": ["1984", "", "!!!", "a b"],
            "created_at": 1e300,
        },
        {"id": "2", "memory": "nul \0"},
        {"id": "3", "memory": "half \ud800"},
        {"id": "1", "memory": "the same id"},
        {"id": "4", "memory": "../../etc/passwd", "user_id": "a\nb: \0"},
        {"id": "5", "memory": "tea/coffee", "created_at": "0001-01-01T00:00:00Z"},
        {"id": "6", "memory": "x" * 10_500_000},
        [],
    ]
    plan = import_and_check(store, "mem0", memories(tmp_path, *rows))
    assert sorted(store.names()) == ["in/-..-etc-passwd", "in/fine", "in/tea-coffee"]
    assert [part.origin for part in plan.skipped] == [f"memory {k}" for k in (2, 3, 4, 7, 8)]
    assert store.read("in/fine").tags == ("n1984", "tag", "a-b")


def test_metadata_of_mem0_becomes_properties(store: EnhancedStore, tmp_path: Path) -> None:
    row = {
        "id": "1",
        "memory": "x",
        "app_id": "p",
        "category_ids": ["c"],
        "metadata": {"source": "chat", "n": {}},
    }
    import_and_check(
        store,
        "mem0",
        memories(
            tmp_path, row, categories=[{"id": "c", "name": "work"}], apps=[{"id": "p", "name": "Q"}]
        ),
    )
    note = store.read("in/x")
    assert note.frontmatter == {
        "tags": ["work"],
        "original source": "chat",
        "app": "Q",
        "source": "mem0:1",
    }


def test_files_whose_path_cannot_be_written_are_skipped(
    store: EnhancedStore, tmp_path: Path
) -> None:
    old = tmp_path / "old"
    (old / "a").mkdir(parents=True)
    for name in ("a/b.md", "LICENSE", "B.md", "b.md", f"{'n' * 240}.png", "q?.md"):
        (old / name).write_text(name)
    (old / "/".join(["deep" * 10] * 8)).mkdir(parents=True)
    (old / "/".join(["deep" * 10] * 8) / "x.md").write_text("x")
    (old / "elsewhere").symlink_to("/etc")
    store.create("in/first", "x")
    (store.root / "in" / "a").write_text("a file")
    plan = import_and_check(store, "markdown", old)
    assert [part.origin[:9] for part in plan.skipped] == ["b.md", "elsewhere", "a/b.md"]
    assert any(name.startswith("in/deepdeep") and name.endswith("/x") for name in store.names())
    assert {"LICENSE", "B.md", "q.md", "a"} <= {path.name for path in (store.root / "in").iterdir()}
    for folder in ("../out", ".git/hooks", "a//b"):
        with pytest.raises(Invalid):
            make_plan(store, "markdown", "old", folder, SOURCES["markdown"].read(old))


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is closed to root"
)
def test_files_that_cannot_be_read_are_skipped(store: EnhancedStore, tmp_path: Path) -> None:
    (tmp_path / "old" / "closed").mkdir(parents=True)
    (tmp_path / "old" / "a.md").write_text("a")
    (tmp_path / "old" / "b.md").write_text("b")
    (tmp_path / "old" / "b.md").chmod(0)
    (tmp_path / "old" / "closed").chmod(0)
    plan = import_and_check(store, "markdown", tmp_path / "old")
    assert [part.origin for part in plan.skipped] == ["b.md", "closed"]


def test_both_forms_of_notions_export_are_read(store: EnhancedStore, tmp_path: Path) -> None:
    files = {
        f"Export-{A[:8]}-aaaa-aaaa-aaaa-{A[:12]}/Home {A}.md": f"# Home\n\n[P](Home/Plan%20{B}.md) "
        f"[online](https://www.notion.so/Do-it-{D}?pvs=21)\n",
        f"Export-{A[:8]}-aaaa-aaaa-aaaa-{A[:12]}/Home/Plan {B}.md": "# Plan\n",
        f"Home/Tasks v1.2 {C}.csv": "Name,path,Source,Created\n",
        f"Home/Tasks v1.2/Do it {D}.md": "# Do it\n\npath: /x\nSource: web\nCreated: 5 janvier\n\nText\n",
        "__MACOSX/._a.md": b"\0",
        ".git/hooks/post-commit": "x",
        f".NET {'e' * 32}.md": "# .NET\n",
    }
    import_and_check(store, "notion", export(tmp_path, **files))
    assert sorted(store.names()) == [
        "in/Home",
        "in/Home/Plan",
        "in/Home/Tasks v1.2/Do it",
        "in/NET",
    ]
    assert [link.target for link in store.read("in/Home").links] == [
        "in/Home/Plan",
        "in/Home/Tasks v1.2/Do it",
    ]
    properties = store.read("in/Home/Tasks v1.2/Do it").frontmatter
    assert (properties["path"], properties["original Source"], properties["Created"]) == (
        "/x",
        "web",
        "5 janvier",
    )


def test_links_follow_pages_that_got_another_name(store: EnhancedStore, tmp_path: Path) -> None:
    store.create("in/Home", "mine")
    home = f"# Home\n\n[P](Home%20{A}/Plan%20{B}.md) ![](Home%20{A}/image.png)\n"
    import_and_check(
        store,
        "notion",
        export(
            tmp_path,
            **{
                f"Home {A}.md": home,
                f"Home {A}/Plan {B}.md": f"# Plan\n[H](../Home%20{A}.md)\n",
                f"Home {A}/image.png": b"1",
            },
        ),
    )
    assert [link.target for link in store.read("in/Home/Plan").links] == ["in/Home 2"]
    store.move("in/Home/Plan", "work/Plan")
    more = f"# New\n[P](Home%20{A}/Plan%20{B}.md) ![](Home%20{A}/image.png)\n"
    import_and_check(
        store,
        "notion",
        export(
            tmp_path,
            **{
                f"New {C}.md": more,
                f"Home {A}/Plan {B}.md": f"# Plan\n[H](../Home%20{A}.md)\n",
                f"Home {A}/image.png": b"2",
            },
        ),
    )
    assert [link.target for link in store.read("in/New").links] == [
        "work/Plan",
        "in/Home/image 2.png",
    ]


def test_nested_archives_are_limited_in_depth_and_size(
    store: EnhancedStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from simplemem.importers import export as exports

    file = export(tmp_path, **{f"Page {A}.md": "# Page\n", "bomb.bin": bytes(3_000_000)})
    file = export(tmp_path, **{"Part-1.zip": file.read_bytes(), "Part-2.zip": file.read_bytes()})
    monkeypatch.setattr(exports, "_MAX_TOTAL_BYTES", 5_000_000)
    with pytest.raises(SimplememError, match="more files or bytes than one import can read"):
        make_plan(store, "notion", str(file), "in", SOURCES["notion"].read(file))
    monkeypatch.setattr(exports, "_MAX_TOTAL_BYTES", 10_000_000)
    monkeypatch.setattr(planning, "_MAX_BYTES", 1_000_000)
    plan = make_plan(store, "notion", str(file), "in", SOURCES["notion"].read(file))
    assert (plan.new, plan.skipped[0].origin) == (1, "bomb.bin")


def test_archives_in_an_archive_cannot_fill_the_disk(
    store: EnhancedStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from simplemem.importers import export as exports

    # Each inner zip is valid, contains little, and unpacks to 3 MB of bytes before its data.
    page = export(tmp_path, **{f"Page {A}.md": "# Page\n"}).read_bytes()
    padded = bytes(3_000_000) + page
    file = export(tmp_path, **{"Part-1.zip": padded, "Part-2.zip": padded})
    assert file.stat().st_size < 100_000
    make_plan(store, "notion", str(file), "in", SOURCES["notion"].read(file))
    monkeypatch.setattr(exports, "_MAX_TOTAL_BYTES", 5_000_000)
    with pytest.raises(SimplememError, match="more files or bytes than one import can read"):
        make_plan(store, "notion", str(file), "in", SOURCES["notion"].read(file))


def test_a_broken_file_in_an_archive_is_skipped(store: EnhancedStore, tmp_path: Path) -> None:
    file = export(tmp_path, **{f"Page {A}.md": "# Page\n", f"Other {B}.md": "# Other\n" * 50})
    data = bytearray(file.read_bytes())
    at = data.index(b"Other") + len(f"Other {B}.md")
    data[at : at + 8] = b"\xff" * 8
    file.write_bytes(data)
    plan = import_and_check(store, "notion", file)
    assert (plan.new, [part.origin for part in plan.skipped]) == (1, [f"Other {B}.md"])
    file = export(
        tmp_path,
        **{"memories.json": json.dumps([{"id": str(k), "memory": "x"} for k in range(99)])},
    )
    data = bytearray(file.read_bytes())
    data[50:58] = b"\xff" * 8
    file.write_bytes(data)
    with pytest.raises(Unreadable, match="cannot be read"):
        list(SOURCES["mem0"].read(file))


def test_a_broken_file_that_lzma_packed_is_named(tmp_path: Path) -> None:
    memories = [{"id": str(k), "memory": "x"} for k in range(99)]
    file = tmp_path / "export.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("memories.json", json.dumps(memories))
    data = bytearray(file.read_bytes())
    start = data.index(b"memories.json") + len("memories.json")
    data[start + 20 : start + 40] = b"\xff" * 20
    file.write_bytes(data)
    with pytest.raises(Unreadable, match="cannot be read"):
        list(SOURCES["mem0"].read(file))


def test_two_projects_of_the_same_name_become_two_notes(
    store: EnhancedStore, tmp_path: Path
) -> None:
    for above in ("one", "two"):
        (tmp_path / above / "app").mkdir(parents=True)
        (tmp_path / above / "app" / "CLAUDE.md").write_text(f"---\nsource: me\n---\n{above}\n")
        import_and_check(store, "claude-memory", tmp_path / above / "app" / "CLAUDE.md")
    assert sorted(store.read(name).content.strip() for name in store.names()) == ["one", "two"]
    assert {store.read(name).frontmatter["original source"] for name in store.names()} == {"me"}


def test_an_edited_note_is_skipped_only_if_its_record_has_changed(
    store: EnhancedStore, tmp_path: Path
) -> None:
    row = {"id": "1", "memory": "Likes tea", "updated_at": "2026-01-02T03:04:05Z"}
    import_and_check(store, "mem0", memories(tmp_path, row))
    store.move("in/Likes tea", "people/Tea")
    more = row | {"memory": "Likes coffee", "updated_at": "2026-05-02T03:04:05Z"}
    assert import_and_check(store, "mem0", memories(tmp_path, more)).changed == 1
    assert store.read("people/Tea").modified.startswith("2026-05-02")
    store.update("people/Tea", append="Strong.")
    assert import_and_check(store, "mem0", memories(tmp_path, more)).unchanged == 1
    assert (
        len(
            import_and_check(
                store, "mem0", memories(tmp_path, row | {"memory": "Likes juice"})
            ).skipped
        )
        == 1
    )


def test_a_note_saved_between_plan_and_import_is_not_overwritten(
    store: EnhancedStore, tmp_path: Path
) -> None:
    file = memories(tmp_path, {"id": "1", "memory": "Tea"}, {"id": "2", "memory": "Milk"})
    plan = make_plan(store, "mem0", str(file), "in", SOURCES["mem0"].read(file))
    store.create("in/Milk", "mine")
    with pytest.raises((Conflict, SimplememError)):
        apply_plan(store, plan, who="test")
    assert (store.read("in/Milk").content.strip(), len(list(store.names()))) == ("mine", 1)


def test_if_secrets_are_refused_notes_with_one_are_skipped(tmp_path: Path) -> None:
    settings = Settings(write=WriteSettings(secrets="refuse"))
    key = f"the key is AKIA{'3KX2XO4DWOT42WLI'}"
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "a.md").write_text(key)
    with open_store(tmp_path / "vault", settings=settings) as store:
        rows = {"id": "1", "memory": f"Deploy\n{key}"}, {"id": "2", "memory": "fine"}
        assert [
            part.origin
            for part in import_and_check(store, "mem0", memories(tmp_path, *rows)).skipped
        ] == ["memory 1"]
        assert len(import_and_check(store, "markdown", tmp_path / "old").skipped) == 1
