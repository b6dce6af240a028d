"""What comes in comes as one step; what is there is known again, and never overwritten."""

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


def planned(store: EnhancedStore, kind: str, file: Path, folder: str = "in") -> Plan:
    return make_plan(store, kind, str(file), folder, SOURCES[kind].read(file))


def files(vault: Path) -> dict[str, bytes]:
    every = (each for each in vault.rglob("*") if each.is_file() and ".simplemem" not in each.parts)
    return {each.relative_to(vault).as_posix(): each.read_bytes() for each in every}


@pytest.fixture
def export(tmp_path: Path) -> Path:
    file = tmp_path / "memories.json"
    file.write_text(
        json.dumps({"results": [TEA, {"id": "b2", "memory": "Lives in Paris"}, {"id": "c3"}]})
    )
    return file


def test_a_plan_writes_nothing_and_names_what_is_left_out(tmp_path: Path, export: Path) -> None:
    with open_store(tmp_path / "vault") as store:
        what = planned(store, "mem0", export)
        assert (what.new, what.unchanged, [each.origin for each in what.skipped]) == (
            2,
            0,
            ["memory 3"],
        )
        assert files(store.root) == {}


def test_one_undo_takes_all_of_it_back_and_a_second_run_adds_nothing(
    tmp_path: Path, export: Path
) -> None:
    with open_store(tmp_path / "vault") as store:
        store.create("mine", "Lives in Paris")
        before = files(store.root)
        carried = apply_plan(store, planned(store, "mem0", export), who="test")
        assert len(files(store.root)) == 3
        assert (again := planned(store, "mem0", export)).drafts == ()
        assert again.unchanged == 2
        store.undo(carried.written[0].version)
        assert files(store.root) == before


def test_a_note_is_known_again_wherever_it_lies_and_whatever_it_is_called(
    tmp_path: Path, export: Path
) -> None:
    with open_store(tmp_path / "vault") as store:
        apply_plan(store, planned(store, "mem0", export))
        store.move("in/Lives in Paris", "people/Home")
        assert planned(store, "mem0", export, "elsewhere").drafts == ()


def test_what_changed_there_is_changed_here_unless_somebody_edited_the_note(
    tmp_path: Path, export: Path
) -> None:
    with open_store(tmp_path / "vault") as store:
        apply_plan(store, planned(store, "mem0", export))
        store.update("in/Lives in Paris", append="Since 2020.")
        export.write_text(
            json.dumps([TEA | {"memory": "Likes coffee"}, {"id": "b2", "memory": "Lives in Rome"}])
        )
        what = planned(store, "mem0", export)
        assert (what.new, what.changed, len(what.skipped)) == (0, 1, 1)
        apply_plan(store, what)
        assert "Likes coffee" in store.read("in/Likes tea strong").content
        assert "Paris" in store.read("in/Lives in Paris").content
        assert planned(store, "mem0", export).changed == 0


def test_a_folder_of_notes_comes_as_it_is_and_nothing_is_overwritten(tmp_path: Path) -> None:
    old = tmp_path / "old"
    (old / "sub").mkdir(parents=True)
    (old / "sub" / "a.md").write_bytes(b"\xef\xbb\xbf---\r\nkey:   'v'\r\n---\r\nText")
    (old / "picture.png").write_bytes(bytes(range(256)))
    (old / "link.md").symlink_to("/etc/hostname")
    with open_store(tmp_path / "vault") as store:
        store.create("in/b", "mine")
        (old / "b.md").write_text("theirs")
        what = planned(store, "markdown", old)
        assert sorted(each.origin for each in what.skipped) == ["b.md", "link.md"]
        apply_plan(store, what)
        assert files(store.root)["in/sub/a.md"] == (old / "sub" / "a.md").read_bytes()
        assert files(store.root)["in/picture.png"] == bytes(range(256))
        assert store.read("in/b").content.strip() == "mine"


def test_a_folder_of_notes_may_come_in_a_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "old.zip", "w") as archive:
        for name in ("sub/a.md", ".obsidian/app.json", "__MACOSX/._a.md"):
            archive.writestr(name, "Text\r\n")
    with open_store(tmp_path / "vault") as store:
        apply_plan(store, planned(store, "markdown", tmp_path / "old.zip"))
        assert files(store.root) == {"in/sub/a.md": b"Text\r\n"}
        assert planned(store, "markdown", tmp_path / "old.zip").unchanged == 1


@pytest.mark.parametrize("source", sorted(SOURCES))
def test_the_page_of_imports_describes_every_source(source: str) -> None:
    page = Path(__file__).parents[2] / "docs" / "import.md"
    assert f"| `{source}` |" in page.read_text(encoding="utf-8")
