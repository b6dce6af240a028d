"""Whose file it is that lies where the index should be: ours is used or made anew, and nobody else's is harmed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import apsw
import pytest

from simplemem.config import Settings
from simplemem.errors import SimplememError, Unavailable
from simplemem.index.file import APPLICATION_ID, SCHEMA_VERSION
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]
PLAIN = Settings.model_validate({"embed": {"provider": "none"}, "write": {"durability": "fast"}})


def plums(store: EnhancedStore) -> set[str]:
    return {hit.name for hit in store.search("plum", mode="text", limit=50).hits}


def test_a_newer_index_is_left_alone_and_ours_lies_beside_it(vault: Path, write: Write) -> None:
    write("a.md", "plum")
    with EnhancedStore(vault, PLAIN) as store:
        store.sync()
        path = store._core.index.path
    with closing(apsw.Connection(str(path))) as db:
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}").fetchall()
    before = path.read_bytes()
    for _ in range(2):
        with EnhancedStore(vault, PLAIN) as store:
            store.sync()
            assert plums(store) == {"a"}
            assert store._core.index.path != path
    assert path.read_bytes() == before


def test_an_older_index_is_made_anew(vault: Path, write: Write) -> None:
    write("a.md", "plum")
    path = vault / ".simplemem" / "index.db"
    path.parent.mkdir()
    with closing(apsw.Connection(str(path))) as db:
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}").fetchall()
        db.execute("PRAGMA user_version = -1; CREATE TABLE notes (other)").fetchall()
    with EnhancedStore(vault, PLAIN) as store:
        assert store._core.index.path == path
        store.sync()
        assert plums(store) == {"a"}


@pytest.mark.parametrize("mark", [0, 0x12345678])
def test_a_database_of_another_program_is_never_touched(vault: Path, tmp_path: Path, mark: int) -> None:
    theirs = tmp_path / "theirs.db"
    with closing(apsw.Connection(str(theirs))) as db:
        db.execute(f"PRAGMA application_id = {mark}").fetchall()
        db.execute("CREATE TABLE precious (x); INSERT INTO precious VALUES ('thesis')").fetchall()
    before = theirs.read_bytes()
    with (
        pytest.raises(Unavailable, match="another program"),
        EnhancedStore(vault, Settings.model_validate({"db": theirs, "embed": {"provider": "none"}})) as store,
    ):
        store.sync()
    assert theirs.read_bytes() == before


def test_a_file_that_is_no_database_is_never_replaced_where_a_setting_leads_to_it(vault: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "thesis.txt"
    theirs.write_text("Chapter one\n" * 400)
    with (
        suppress(SimplememError),
        EnhancedStore(vault, Settings.model_validate({"db": theirs, "embed": {"provider": "none"}})) as store,
    ):
        store.sync()
    assert theirs.read_text() == "Chapter one\n" * 400


def test_the_folder_of_the_index_asks_git_to_leave_it_out(plain_store: EnhancedStore) -> None:
    plain_store.sync()
    assert (plain_store.root / ".simplemem" / ".gitignore").read_text().strip() == "*"


def test_a_setting_puts_the_index_elsewhere(vault: Path, write: Write, tmp_path: Path) -> None:
    write("a.md", "plum")
    elsewhere = tmp_path / "far" / "away.db"
    with EnhancedStore(vault, Settings.model_validate({"db": elsewhere, "embed": {"provider": "none"}})) as store:
        store.sync()
        assert plums(store) == {"a"}
        assert store.stats()["index_path"] == str(elsewhere)
    assert not (vault / ".simplemem" / "index.db").exists()


def test_an_index_that_cannot_be_made_is_said_with_a_way_out(vault: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with (
        pytest.raises(SimplememError),
        EnhancedStore(vault, Settings.model_validate({"db": tmp_path / "file" / "index.db"})),
    ):
        pass
