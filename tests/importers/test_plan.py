"""An import is one step; existing notes are recognised and never overwritten."""

import json
import zipfile
from pathlib import Path

import pytest

from simplemem import open_store
from simplemem.importers import SOURCES
from simplemem.importers.plan import Plan, apply_plan, make_plan
from simplemem.store import EnhancedStore

TEA = {
    "id": "a1",
    "memory": "Likes tea: strong",
    "user_id": "alex",
    "created_at": "2026-01-02T03:04:05Z",
}


def plan_import(store: EnhancedStore, kind: str, file: Path, folder: str = "in") -> Plan:
    return make_plan(store, kind, str(file), folder, SOURCES[kind].read(file))


def files(vault: Path) -> dict[str, bytes]:
    paths = [path for path in vault.rglob("*") if path.is_file()]
    own_paths = [path for path in paths if ".simplemem" not in path.parts]
    return {path.relative_to(vault).as_posix(): path.read_bytes() for path in own_paths}


@pytest.fixture
def export(tmp_path: Path) -> Path:
    file = tmp_path / "memories.json"
    file.write_text(
        json.dumps({"results": [TEA, {"id": "b2", "memory": "Lives in Paris"}, {"id": "c3"}]})
    )
    return file


def test_a_plan_writes_nothing_and_names_what_is_skipped(tmp_path: Path, export: Path) -> None:
    with open_store(tmp_path / "vault") as store:
        plan = plan_import(store, "mem0", export)
        assert (plan.new, plan.unchanged, [part.origin for part in plan.skipped]) == (
            2,
            0,
            ["memory 3"],
        )
        assert files(store.root) == {}


def test_one_undo_reverts_an_import_and_a_second_import_adds_nothing(
    tmp_path: Path, export: Path
) -> None:
    with open_store(tmp_path / "vault") as store:
        store.create("mine", "Lives in Paris")
        old_files = files(store.root)
        result = apply_plan(store, plan_import(store, "mem0", export), who="test")
        assert len(files(store.root)) == 3
        assert (again := plan_import(store, "mem0", export)).drafts == ()
        assert again.unchanged == 2
        store.undo(result.written[0].version)
        assert files(store.root) == old_files


def test_a_note_is_recognised_after_it_was_moved(tmp_path: Path, export: Path) -> None:
    with open_store(tmp_path / "vault") as store:
        apply_plan(store, plan_import(store, "mem0", export))
        store.move("in/Lives in Paris", "people/Home")
        assert plan_import(store, "mem0", export, "elsewhere").drafts == ()


def test_a_changed_record_updates_its_note_unless_the_note_was_edited(
    tmp_path: Path, export: Path
) -> None:
    with open_store(tmp_path / "vault") as store:
        apply_plan(store, plan_import(store, "mem0", export))
        store.update("in/Lives in Paris", append="Since 2020.")
        export.write_text(
            json.dumps([TEA | {"memory": "Likes coffee"}, {"id": "b2", "memory": "Lives in Rome"}])
        )
        plan = plan_import(store, "mem0", export)
        assert (plan.new, plan.changed, len(plan.skipped)) == (0, 1, 1)
        apply_plan(store, plan)
        assert "Likes coffee" in store.read("in/Likes tea strong").content
        assert "Paris" in store.read("in/Lives in Paris").content
        assert plan_import(store, "mem0", export).changed == 0


def test_a_folder_of_notes_is_copied_and_nothing_is_overwritten(tmp_path: Path) -> None:
    old = tmp_path / "old"
    (old / "sub").mkdir(parents=True)
    (old / "sub" / "a.md").write_bytes(b"\xef\xbb\xbf---\r\nkey:   'v'\r\n---\r\nText")
    (old / "picture.png").write_bytes(bytes(range(256)))
    (old / "link.md").symlink_to("/etc/hostname")
    with open_store(tmp_path / "vault") as store:
        store.create("in/b", "mine")
        (old / "b.md").write_text("theirs")
        plan = plan_import(store, "markdown", old)
        assert sorted(part.origin for part in plan.skipped) == ["b.md", "link.md"]
        apply_plan(store, plan)
        assert files(store.root)["in/sub/a.md"] == (old / "sub" / "a.md").read_bytes()
        assert files(store.root)["in/picture.png"] == bytes(range(256))
        assert store.read("in/b").content.strip() == "mine"


def test_a_folder_of_notes_can_be_a_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "old.zip", "w") as archive:
        for name in ("sub/a.md", ".obsidian/app.json", "__MACOSX/._a.md"):
            archive.writestr(name, "Text\r\n")
    with open_store(tmp_path / "vault") as store:
        apply_plan(store, plan_import(store, "markdown", tmp_path / "old.zip"))
        assert files(store.root) == {"in/sub/a.md": b"Text\r\n"}
        assert plan_import(store, "markdown", tmp_path / "old.zip").unchanged == 1


@pytest.mark.parametrize("source", sorted(SOURCES))
def test_the_import_page_describes_every_source(source: str) -> None:
    page = Path(__file__).parents[2] / "docs" / "import.md"
    assert f"| `{source}` |" in page.read_text(encoding="utf-8")
