"""The doctor finds what is wrong with a vault or its index, says what to do, and changes nothing."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from simplemem.config import Settings
from simplemem.memory import Finding
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]


def of(store: EnhancedStore, check: str) -> list[Finding]:
    return [finding for finding in store.doctor() if finding.check == check]


def test_a_vault_in_order_has_no_findings_and_is_left_as_it_was(
    store: EnhancedStore, write: Write, vault: Path
) -> None:
    write("a.md", "---\ntags: [x]\naliases: [Al]\n---\n# One\n\nplum [[b]]\n")
    write("b.md", "![[plan.png]] 京都に行きました\n")
    write("plan.png", b"\x89PNG")
    store.sync()
    before = {path: path.read_bytes() for path in vault.rglob("*") if path.is_file() and ".simplemem" not in path.parts}
    assert store.doctor() == ()
    after = {path: path.read_bytes() for path in vault.rglob("*") if path.is_file() and ".simplemem" not in path.parts}
    assert after == before
    assert sorted(path.name for path in (vault / ".simplemem").glob("index*.new*")) == []


@pytest.mark.parametrize(
    "spoil",
    [
        "UPDATE notes SET title = 'Other' WHERE path = 'a.md'",
        "UPDATE notes SET modified = '1999' WHERE path = 'a.md'",
        "UPDATE links SET path = NULL",
        "DELETE FROM tags",
        "DELETE FROM tag_pairs",
        "DELETE FROM properties",
        "INSERT INTO properties VALUES (999, 0, 'left', '1')",
        "DELETE FROM aliases",
        "UPDATE blocks SET line = line + 1",
        "DELETE FROM passages",
        "UPDATE vectors SET vector = zeroblob(256)",
        "DELETE FROM files WHERE path = 'plan.png'",
        "DELETE FROM note_text WHERE rowid = (SELECT id FROM notes WHERE path = 'a.md')",
        "DELETE FROM block_text",
    ],
)
def test_an_index_that_is_not_what_a_rebuilt_one_would_be_is_an_error(
    store: EnhancedStore, write: Write, spoil: str
) -> None:
    write("a.md", "---\ntags: [x]\naliases: [Al]\n---\n# One\n\nplum [[b]]\n")
    write("b.md", "![[plan.png]]\n")
    write("plan.png", b"\x89PNG")
    store.sync()
    with store._core.index.database.writing() as db:
        db.execute(spoil).fetchall()
    errors = [finding for finding in store.doctor() if finding.level == "error"]
    assert errors
    assert all(finding.check == "index" for finding in errors)
    assert all("--rebuild" in finding.hint for finding in errors)
    store.sync(rebuild=True)
    assert store.doctor() == ()


def test_one_missing_row_is_one_finding(store: EnhancedStore, write: Write) -> None:
    for name in "abcdef":
        write(f"{name}.md", f"plum {name}\n")
    store.sync()
    with store._core.index.database.writing() as db:
        db.execute("DELETE FROM files WHERE path = 'b.md'").fetchall()
    (finding,) = of(store, "index")
    assert "b.md" in finding.message


def test_a_damaged_file_is_named_as_such(plain_store: EnhancedStore, write: Write) -> None:
    write("a.md", "plum")
    plain_store.sync()
    with plain_store._core.index.database.writing() as db:
        db.execute("DELETE FROM note_text_data WHERE id > 10").fetchall()
    assert any("damaged" in finding.message for finding in of(plain_store, "index"))


def test_a_file_that_is_no_index_any_more_is_a_finding_not_a_failure(plain_store: EnhancedStore, write: Write) -> None:
    write("a.md", "plum")
    plain_store.sync()
    path = plain_store._core.index.path
    plain_store.close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xaa" * (size - 100))
    with EnhancedStore(plain_store.root, plain_store.settings) as store:
        assert any("damaged" in finding.message for finding in store.doctor()) or store.doctor() == ()
        store.sync(rebuild=True)
        assert store.doctor() == ()


def test_vectors_that_are_still_to_come_are_no_error(store: EnhancedStore, write: Write) -> None:
    write("a.md", "plum")
    write("b.md", "pear")
    store.sync(embed=False)
    assert store.state().pending == 2
    assert [finding for finding in store.doctor() if finding.level == "error"] == []


def test_broken_and_ambiguous_links_are_noted_with_their_line(plain_store: EnhancedStore, write: Write) -> None:
    write("a.md", "one\n\n[[Nobody]] and [[Twin]]\n")
    write("x/Twin.md", "")
    write("y/Twin.md", "")
    plain_store.sync()
    broken, ambiguous = of(plain_store, "links")
    assert (broken.level, broken.path, broken.line) == ("note", "a.md", 3)
    assert broken.message == "[[Nobody]] leads nowhere"
    assert ambiguous.message == "[[Twin]] could mean x/Twin, y/Twin"


def test_headers_that_cannot_be_read_are_warned_of(plain_store: EnhancedStore, write: Write) -> None:
    write("a.md", "---\nx: [\n---\n")
    write("b.md", b"caf\xe9")
    plain_store.sync()
    assert [(finding.level, finding.path, finding.line) for finding in of(plain_store, "headers")] == [
        ("warning", "a.md", 3)
    ]
    assert [(finding.level, finding.path) for finding in of(plain_store, "notes")] == [("warning", "b.md")]


def test_files_that_are_not_indexed_are_warned_of(vault: Path, write: Write) -> None:
    write("huge.md", "plum " * 5000)
    settings = Settings.model_validate({"embed": {"provider": "none"}, "index": {"max_note_mb": 0.01}})
    with EnhancedStore(vault, settings) as store:
        store.sync()
        (finding,) = of(store, "notes")
        assert (finding.level, finding.path) == ("warning", "huge.md")


def test_files_whose_names_cannot_be_spelled_are_warned_of(
    plain_store: EnhancedStore, write: Write, vault: Path
) -> None:
    write("a.md", "plum")
    try:
        (Path(os.fsdecode(os.fsencode(vault) + b"/caf\xe9.md"))).write_text("pear")
    except OSError:
        pytest.skip("no such name can be made here")
    plain_store.sync()
    (finding,) = of(plain_store, "notes")
    assert finding.level == "warning"
    assert "caf" in finding.path
    assert plain_store.stats()["skipped"]


def test_several_may_be_examined_at_once(plain_store: EnhancedStore, write: Write) -> None:
    for k in range(20):
        write(f"n{k}.md", f"plum {k}")
    plain_store.sync()
    answers: list[object] = []

    def examine() -> None:
        try:
            answers.append(plain_store.doctor())
        except BaseException as error:
            answers.append(error)

    threads = [threading.Thread(target=examine) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [()] * 4


@pytest.mark.parametrize("doing", ["create", "append", "move", "delete", "edit", "attach", "remove"])
def test_what_others_change_while_it_looks_is_no_difference(
    plain_store: EnhancedStore, write: Write, doing: str
) -> None:
    for k in range(300):
        write(f"n{k}.md", f"plum {k} [[n{k + 1}]]\n")
    plain_store.sync()
    with EnhancedStore(plain_store.root, plain_store.settings) as other:
        done: list[str] = []

        def meanwhile(stage: str, _done: int, _total: int) -> None:
            """Another server or program, at the moment when the index beside ours has been filled."""
            if stage != "text" or done:
                return
            done.append(doing)
            if doing == "create":
                other.create("n300", "pear")
            elif doing == "append":
                other.update("n3", append="pear [[n7]]")
            elif doing == "move":
                other.move("n3", "sub/m3")
            elif doing == "delete":
                other.delete("n3")
            elif doing == "edit":
                write("n3.md", "changed in an editor [[n9]]\n")
            elif doing == "attach":
                write("plan.png", b"\x89PNG")
            else:
                (plain_store.root / "n3.md").unlink()

        assert [finding.message for finding in plain_store.doctor(meanwhile, only=["index"])] == []
        assert done == [doing]


def test_names_that_are_one_elsewhere_are_warned_of(plain_store: EnhancedStore, write: Write) -> None:
    write("Tea.md", "")
    write("tea.md", "")
    write("cafe\u0301.md", "")
    write("café.md", "")
    write("other.md", "")
    plain_store.sync()
    assert len(of(plain_store, "names")) == 2
    assert {finding.level for finding in of(plain_store, "names")} == {"warning"}


def test_what_a_cut_off_write_left_is_named(plain_store: EnhancedStore, write: Write) -> None:
    write("a.md", "plum")
    plain_store.sync()
    stray = write(".simplemem-99999999-0123456789abcdef01234567.tmp", "half")
    assert [finding.path for finding in of(plain_store, "strays")] == [stray.name]
    assert stray.read_text() == "half"


def test_a_finding_is_a_plain_value_for_programs(plain_store: EnhancedStore, write: Write) -> None:
    write("a.md", "[[Nobody]]")
    plain_store.sync()
    (finding,) = plain_store.doctor()
    assert finding.as_dict() == {
        "check": "links", "level": "note", "path": "a.md", "message": "[[Nobody]] leads nowhere", "hint": "", "line": 1,
        "candidates": [], "fix": "",
    }  # fmt: skip
