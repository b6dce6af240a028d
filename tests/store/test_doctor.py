"""The doctor finds what is wrong with a vault, its index or its disk, says what to do, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from simplemem.index import comparison
from simplemem.models import Finding
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore
from simplemem.store.doctor import PlaceChecks

Write = Callable[[str, str | bytes], Path]


def of(store: EnhancedStore, check: str) -> list[Finding]:
    """What one check finds in the vault as it is now."""
    store.sync()
    found = list(store.doctor(only=[check]))
    assert {finding.check for finding in found} <= {check}
    return found


def test_a_vault_in_order_has_no_findings_and_is_left_as_it_was(
    store: EnhancedStore, write: Write, vault: Path
) -> None:
    write("a.md", "---\ntags: [x]\naliases: [Al]\n---\n# One\n\nplum [[b]]\n")
    write("b.md", "![[plan.png]] 京都に行きました\n")
    write("plan.png", b"\x89PNG")
    store.sync()

    def files() -> dict[Path, bytes]:
        return {
            path: path.read_bytes()
            for path in vault.rglob("*")
            if path.is_file() and ".simplemem" not in path.parts
        }

    before = files()
    assert store.doctor() == () and files() == before
    assert not list((vault / ".simplemem").glob("index*.new*"))


def test_a_vault_whose_notes_have_no_word_is_in_order(
    store: EnhancedStore, write: Write, vault: Path
) -> None:
    write("+.md", "")
    store.sync()
    assert store.doctor() == ()


# -- the index


def test_equal_indexes_are_told_without_putting_their_rows_side_by_side(
    store: EnhancedStore, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("c", "a", "b"):  # in another order than a rebuilt one has them
        write(f"{name}.md", f"# {name}\n\nplum [[a]] and {name} #fruit\n")
        store.sync()
    monkeypatch.setattr(comparison, "merge", lambda *_, **__: pytest.fail("they are equal"))
    assert of(store, "index") == []


@pytest.mark.parametrize(
    "spoil",
    [
        "UPDATE links SET path = NULL",
        "DELETE FROM tags",
        "INSERT INTO properties VALUES (999, 0, 'left', '1')",
        "UPDATE places SET line = line + 1",
        "DELETE FROM segments",
    ],
)
def test_an_index_that_is_not_what_a_rebuilt_one_would_be_is_an_error(
    store: EnhancedStore, write: Write, spoil: str
) -> None:
    write("a.md", "---\ntags: [x]\naliases: [Al]\n---\n# One\n\nplum [[b]]\n")
    write("b.md", "![[plan.png]]\n")
    write("plan.png", b"\x89PNG")
    store.sync()
    with store._parts.index.database.writing() as db:
        db.execute(spoil).fetchall()
    errors = [finding for finding in store.doctor() if finding.level == "error"]
    assert errors and all(
        finding.check == "index" and "--rebuild" in finding.hint for finding in errors
    )
    store.sync(rebuild=True)
    assert store.doctor() == ()


MEANWHILE: dict[str, Callable[[EnhancedStore, Path], object]] = {
    "create": lambda other, _: other.create("n300", "pear"),
    "append": lambda other, _: other.update("n3", append="pear [[n7]]"),
    "move": lambda other, _: other.move("n3", "sub/m3"),
    "delete": lambda other, _: other.delete("n3"),
    "edit": lambda _, vault: (vault / "n3.md").write_text("changed in an editor [[n9]]\n"),
    "attach": lambda _, vault: (vault / "plan.png").write_bytes(b"\x89PNG"),
    "remove": lambda _, vault: (vault / "n3.md").unlink(),
}


@pytest.mark.parametrize("doing", MEANWHILE)
def test_what_others_change_while_it_looks_is_no_difference(
    plain_store: EnhancedStore, write: Write, vault: Path, doing: str
) -> None:
    for k in range(100):
        write(f"n{k}.md", f"plum {k} [[n{k + 1}]]\n")
    plain_store.sync()
    done: list[str] = []
    with EnhancedStore(vault, plain_store.settings) as other:

        def meanwhile(stage: str, _done: int, _total: int) -> None:
            """Another server or program, at the moment when the index beside ours has been filled."""
            if stage == "text" and not done:
                done.append(doing)
                MEANWHILE[doing](other, vault)

        assert [finding.message for finding in plain_store.doctor(meanwhile, only=["index"])] == []
    assert done == [doing]


# -- notes


TOKEN = "ghp_" + "x7Kq9ZbT2mVw4RsD8nLc1YhPf5GjA3uE6oBi"


@pytest.mark.parametrize(
    ("check", "files", "told"),
    [
        (
            "headers",
            {"a.md": "---\nx: [\n---\n", "b.md": b"caf\xe9"},
            {("a.md", 3): "its frontmatter cannot be read"},
        ),
        (
            "notes",
            {"binary.md": b"\x00\x01\x02plum"},
            {("binary.md", 0): "an extension other than .md"},
        ),
        (
            "notes",
            {"latin.md": b"caf\xe9", "good.md": "caf\u00e9"},
            {("latin.md", 0): "byte 3 is not UTF-8"},
        ),
        (
            "notes",
            {"huge.md": "plum " * 5000},
            {("huge.md", 0): "25000 bytes; notes over 10485 are not indexed"},
        ),
        (
            "secrets",
            {"a.md": f"plum\n\nThe token is {TOKEN}\n", "b.md": "The password is with Ada."},
            {("a.md", 3): "GitHub"},
        ),
        (
            "secrets",
            {"hf_aB3dE5gH7jK9mN1pQ3sT5vX7zA9cD1fG3h.md": "Nothing else.\n"},
            {
                (
                    "hf_aB3dE5gH7jK9mN1pQ3sT5vX7zA9cD1fG3h.md",
                    0,
                ): "its name contains a Hugging Face token: hf_…"
            },
        ),
        (
            "conflicts",
            {
                "a.md": "1",
                "a.sync-conflict-20260101-120000-ABCDEFG.md": "2",
                "Chapter 2.md": "x",
                "Chapter.md": "y",
            },
            {
                (
                    "a.sync-conflict-20260101-120000-ABCDEFG.md",
                    0,
                ): "a conflict copy of a by Syncthing"
            },
        ),
    ],
)
def test_what_is_wrong_with_a_note_is_told_with_its_line_and_what_to_do(
    vault: Path,
    write: Write,
    check: str,
    files: dict[str, str | bytes],
    told: dict[tuple[str, int], str],
) -> None:
    for path, text in files.items():
        write(path, text)
    settings = Settings.model_validate(
        {"embed": {"provider": "none"}, "index": {"max_note_mb": 0.01}}
    )
    with EnhancedStore(vault, settings) as store:
        found = of(store, check)
    assert [(finding.path, finding.line) for finding in found] == list(told)
    assert all(finding.level == "warning" and finding.hint for finding in found)
    assert all(
        said in f"{each.message} {each.hint}"
        for each, said in zip(found, told.values(), strict=True)
    )
    assert TOKEN[4:12] not in repr(found), "a secret is never shown"


# -- what the vault is on


def test_an_index_in_a_synced_folder_is_warned_of(tmp_path: Path) -> None:
    def place(folder: str, **settings: object) -> list[Finding]:
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        given = Settings.model_validate({"embed": {"provider": "none"}, **settings})
        with EnhancedStore(tmp_path / folder, given) as store:
            return of(store, "place")

    assert place("notes") == []
    (finding,) = place("Dropbox/notes")
    assert (
        finding.level == "warning"
        and "its index are in a synced folder (Dropbox)" in finding.message
    )
    (finding,) = place("Dropbox/notes", db=str(tmp_path / "cache/notes.db"))
    assert finding.level == "note" and "the lock" in finding.message
    (tmp_path / "shared/.stfolder").mkdir(parents=True)
    assert [(each.level, "Syncthing" in each.message) for each in place("shared/notes")] == [
        ("warning", True)
    ]


@pytest.mark.parametrize(("kind", "levels"), [("nfs4", ["note", "warning"]), ("ext4", [])])
def test_a_disk_that_other_computers_write_to_is_told(
    plain_store: EnhancedStore, monkeypatch: pytest.MonkeyPatch, kind: str, levels: list[str]
) -> None:
    monkeypatch.setattr("simplemem.store.doctor.file_system", lambda _path: kind)
    assert [
        (each.level, "a disk of type nfs4" in each.message) for each in of(plain_store, "place")
    ] == [(e, True) for e in levels]


def test_an_index_in_a_server_that_was_not_compared_yet_has_no_time_of_a_comparison(
    plain_store: EnhancedStore,
) -> None:
    parts = plain_store._parts
    checks = PlaceChecks(
        parts.vault, parts.index, parts.database, parts.keeper, is_index_local=False
    )

    def remark() -> str:
        (finding,) = checks.check_place(lambda *_: None)
        return finding.message

    assert "not yet compared with the notes" in remark()
    plain_store.sync()
    assert "not yet" not in remark()
