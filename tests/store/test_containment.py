"""Nothing outside the vault is read or written, whatever a link says: in the notes, among Obsidian's settings, in the
folder that is ours, and at the moment a note is swapped for a link. (Paths and names: tests/vault/test_paths.py.)"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from pathlib import Path

import pytest

from simplemem.errors import SimplememError
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="making a link needs a right there")

CANARY = "quetzalcoatl"
WORDS = Settings.model_validate({"embed": {"provider": "none"}})


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "diary.md").write_text(f"{CANARY} was here.\n")
    return folder


def everything(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


def test_links_that_lead_out_are_in_no_answer(vault: Path, outside: Path) -> None:
    (vault / "way out.md").symlink_to(outside / "diary.md")
    (vault / "folder").symlink_to(outside)
    (vault / "tea.md").write_text("See [[way out]] and [[folder/diary]].\n")
    before = everything(outside)
    with EnhancedStore(vault, WORDS) as store:
        store.sync()
        assert store.names() == ["tea"]
        said = repr(
            [
                store.search(CANARY),
                store.context(CANARY).text,
                store.inspect(),
                store.stats(),
                store.doctor(),
            ]
        )
        assert f"{CANARY} was here" not in said
        for name in ("way out", "folder/diary"):
            for ask in (
                lambda name: store.read(name),
                lambda name: store.update(name, append="x"),
                lambda name: store.create(name, "x", overwrite=True),
                lambda name: store.move("tea", name),
                lambda name: store.delete(name),
            ):
                with pytest.raises(SimplememError) as refused:
                    ask(name)
                assert CANARY not in str(refused.value.as_dict())
    assert everything(outside) == before


def test_settings_of_obsidian_that_are_a_link_are_not_read(vault: Path, outside: Path) -> None:
    (outside / "app.json").write_text(
        json.dumps({"userIgnoreFilters": ["tea"], "newLinkFormat": "absolute"})
    )
    (vault / ".obsidian").mkdir()
    (vault / ".obsidian" / "app.json").symlink_to(outside / "app.json")
    (vault / "tea.md").write_text("Oolong.\n")
    with EnhancedStore(vault, WORDS) as store:
        store.sync()
        assert store._parts.obsidian.current.link_format == "shortest"
        assert store.search("oolong").hits


def test_a_note_swapped_for_a_link_at_any_moment_gives_nothing_away(
    vault: Path, outside: Path
) -> None:
    """Read, search and write through the whole store while a link out of the vault replaces the note."""
    note, spare = vault / "note.md", vault / "spare"
    note.write_text("Oolong inside.\n")
    before = everything(outside)
    done = threading.Event()

    def flip() -> None:
        while not done.is_set():
            with contextlib.suppress(OSError):
                os.symlink(outside / "diary.md", spare)
                os.replace(spare, note)
                time.sleep(0.0005)
                (vault / "text").write_text("Oolong inside.\n")
                os.replace(vault / "text", note)
                time.sleep(0.0005)

    answered = 0
    with EnhancedStore(vault, WORDS) as store:
        store.sync()
        flipper = threading.Thread(target=flip)
        flipper.start()
        try:
            end = time.monotonic() + 2.0
            while time.monotonic() < end:
                for ask in (
                    lambda: store.read("note"),
                    lambda: store.search("oolong was here"),
                    lambda: store.update("note", append="More."),
                    lambda: store.sync(),
                    lambda: store.context("oolong"),
                ):
                    with contextlib.suppress(SimplememError):
                        assert CANARY not in repr(ask())
                        answered += 1
        finally:
            done.set()
            flipper.join()
    assert answered > 0, "the race left time for answers"
    assert everything(outside) == before
    kept = b"".join(everything(vault / ".simplemem").values())
    assert CANARY.encode() not in kept
