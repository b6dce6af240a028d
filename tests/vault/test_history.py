"""What was, is known and kept: in the order it happened, for as long as an undo within the promised time may need it."""

from __future__ import annotations

import json
import os
import time
from itertools import pairwise
from pathlib import Path

import pytest

from simplemem.errors import Invalid, NotFound
from simplemem.vault.base import VaultOptions
from simplemem.vault.folder.dir_handles import DirHandles
from simplemem.vault.folder.vault import FolderVault
from simplemem.vault.values import Author, FileChange, sha256

CHANGE = Author("update_memory", who="agent", reason="because")


def log_of(vault: Path) -> Path:
    return vault / ".simplemem/history/log.jsonl"


def object_of(vault: Path, text: bytes) -> Path:
    sha = sha256(text)
    return vault / f".simplemem/history/objects/{sha[:2]}/{sha}"


def displaced(vault: Path) -> list[Path]:
    return list((vault / ".simplemem/history/displaced").iterdir())


def kept(vault: Path) -> set[str]:
    return {
        path.name for path in (vault / ".simplemem/history/objects").rglob("*") if path.is_file()
    }


def ids(opened: FolderVault) -> list[str]:
    return [version.id for version in opened.history.log.backwards()]


def grow(opened: FolderVault, path: str, *texts: bytes) -> list[str]:
    """Create a note and give it each text in turn; the versions that made."""
    versions = [opened.create(path, texts[0], CHANGE).version]
    for old, new in pairwise(texts):
        versions.append(opened.replace(path, new, sha256(old), CHANGE).version)
    return versions


def aged(vault: Path) -> None:
    for path in (vault / ".simplemem/history/objects").rglob("*"):
        os.utime(path, (1_500_000_000, 1_500_000_000))


def dated(vault: Path, *days: str) -> None:
    """Give the changes in the log these days, oldest first, and their texts an age that fits."""
    lines = [json.loads(line) for line in log_of(vault).read_bytes().split(b"\n") if line]
    whens = [{"when": f"{day}T00:00:00.000Z"} for day in days]
    spelled = [json.dumps(line | when) + "\n" for line, when in zip(lines, whens, strict=True)]
    log_of(vault).write_text("".join(spelled))
    aged(vault)


# --- the log --------------------------------------------------------------------------------------


def test_the_order_is_the_order_of_the_log_whatever_the_clock_says(vault: Path) -> None:
    opened = FolderVault(vault)
    made = grow(opened, "n.md", b"one", b"two")
    dated(vault, "2026-01-01", "1970-01-01")
    assert ids(opened) == made[::-1]
    os.utime(vault / "n.md", (0, 0))
    assert opened.replace("n.md", b"three", sha256(b"two"), CHANGE).version > made[-1]


def test_damaged_lines_are_passed_over_and_closed_off(vault: Path) -> None:
    opened = FolderVault(vault)
    made, log = grow(opened, "n.md", b"one", b"two"), log_of(vault)
    damage = b"\0\0\0\nnot json\n[1]\n{}\n" + b'{"id": 7}\n' + b"[" * 100_000 + b"\n"
    log.write_bytes(damage + log.read_bytes() + b'{"id":"v0000')
    assert ids(opened) == made[::-1]
    third = opened.replace("n.md", b"three", sha256(b"two"), CHANGE).version
    assert ids(opened) == [third, *made[::-1]]
    log.unlink()
    assert ids(opened) == []
    assert opened.replace("n.md", b"four", sha256(b"three"), CHANGE).changed


def test_a_long_log_is_read_whole_and_its_order_holds_beyond_a_million_changes(vault: Path) -> None:
    opened = FolderVault(vault)
    grow(opened, "n.md", b"one")
    line = json.loads(log_of(vault).read_bytes())
    others = [
        json.dumps(line | {"id": f"v{k}", "group": f"v{k}", "path": f"{k}.md", "reason": "é" * 500})
        + "\n"
        for k in range(997_000, 999_999)
    ]
    log_of(vault).write_text(json.dumps(line) + "\n" + "".join(others), encoding="utf-8")
    assert len(ids(opened)) == 3000 and [v.id for v in opened.history.log.of("n.md")] == ["v000001"]
    rewrites = [FileChange.update("n.md", sha256(b"one"), b"two")]
    first = opened.create("m.md", b"new", CHANGE, rewrites=rewrites).version
    assert [v.id for v in opened.history.log.group(first)] == ["v999999", "v1000000"]
    third = opened.replace("n.md", b"three", sha256(b"two"), CHANGE).version
    assert third == "v1000001" and opened.history.log.find("1000000").path == "n.md"
    assert [v.id for v in opened.history.log.since(999_999)] == ["v999999", "v1000000", "v1000001"]
    opened.undo(third, CHANGE)
    opened.undo(first, CHANGE)
    assert not (vault / "m.md").exists() and (vault / "n.md").read_bytes() == b"one"


# --- the texts ------------------------------------------------------------------------------------


def test_a_damaged_text_is_not_given_out(vault: Path) -> None:
    opened = FolderVault(vault)
    grow(opened, "n.md", b"one", b"two")
    sha = sha256(b"one")
    object_of(vault, b"one").write_bytes(b"damaged")
    assert opened.history.content(sha) == b"one", "the displaced file still has it"
    for path in displaced(vault):
        path.unlink()
    assert opened.history.content(sha) is None
    opened.create("again.md", b"one", CHANGE)
    assert opened.history.content(sha) == b"one", "and it is mended when the text comes by again"
    for wrong in ("", "../../lock", "x" * 64 + "/", "0" * 64):
        assert opened.history.content(wrong) is None


@pytest.mark.skipif(os.name == "nt", reason="a link needs a privilege")
def test_a_link_in_place_of_a_text_is_an_error_of_simplemem(vault: Path) -> None:
    opened = FolderVault(vault)
    versions = grow(opened, "n.md", b"one", b"two")
    text = object_of(vault, b"one")
    text.unlink()
    text.symlink_to(vault / "n.md")
    with pytest.raises(Invalid, match="symbolic link"):
        opened.history.content(sha256(b"one"))
    with pytest.raises(Invalid, match="symbolic link"):
        opened.undo(versions[1], CHANGE)


def test_a_late_save_into_the_displaced_file_becomes_a_version(vault: Path) -> None:
    opened = FolderVault(vault)
    opened.create("n.md", b"one", CHANGE)
    with (vault / "n.md").open("r+b") as editor:
        opened.replace("n.md", b"two", sha256(b"one"), CHANGE)
        editor.write(b"written by an editor that had the old file open")
    assert (vault / "n.md").read_bytes() == b"two"
    assert opened.recover()[0] == 1
    saved = next(opened.history.log.of("n.md"))
    assert saved.op == "recovered" and saved.before is None
    assert (
        opened.history.content(saved.after or "")
        == b"written by an editor that had the old file open"
    )
    assert opened.history.content(sha256(b"one")) == b"one"
    assert opened.recover()[0] == 0


@pytest.mark.skipif(
    os.utime not in os.supports_fd, reason="no time of an open file can be set here"
)
def test_a_late_save_that_set_its_time_back_is_found_before_anything_is_dropped(
    vault: Path,
) -> None:
    opened = FolderVault(vault, VaultOptions(keep_mb=0))
    opened.create("n.md", b"one", CHANGE)
    with (vault / "n.md").open("r+b") as editor:
        opened.replace("n.md", b"two", sha256(b"one"), CHANGE)
        editor.write(b"late")
        editor.flush()
        os.utime(editor.fileno(), (1_700_000_000, 1_700_000_000))
    opened.prune_history()
    late = next(opened.history.log.of("n.md"))
    assert late.op == "recovered" and opened.history.content(late.after or "") == b"late"


def test_displaced_files_rest_for_a_while_and_go_when_their_text_is_kept(vault: Path) -> None:
    opened = FolderVault(vault)
    versions = grow(opened, "n.md", b"one", b"two")
    object_of(vault, b"one").write_bytes(b"")  # as a power cut may leave what was not synced
    with DirHandles(str(vault)) as here:
        opened.history.check_displaced(here)
        assert len(displaced(vault)) == 1
        time.sleep(0.01)
        opened.history.check_displaced(here, seconds=0.0)
    assert displaced(vault) == []
    opened.undo(versions[-1], CHANGE)
    assert (vault / "n.md").read_bytes() == b"one"


# --- what need not be kept any longer -------------------------------------------------------------


def test_days_are_counted_back_from_the_newest_changes(vault: Path) -> None:
    opened = FolderVault(vault, VaultOptions(keep_days=30))
    grow(opened, "n.md", b"1", b"2", b"3", b"4", b"5")
    dated(vault, "2020-01-01", "2020-01-02", "2020-02-15", "2020-02-16", "2020-02-17")
    assert opened.prune_history() == [sha256(b"1")], "though by the clock all of it is years old"
    assert opened.history.content(sha256(b"2")) == b"2", (
        "what was there thirty days ago can still come back"
    )
    assert len(ids(opened)) == 5, "what was done remains known"
    assert opened.prune_history() == []


@pytest.mark.parametrize("wrong", ["2099-01-01", "1970-01-01", "not a date, 20 letters"])
@pytest.mark.parametrize("place", [0, 2, 4])
def test_a_day_under_a_wrong_clock_loses_nothing(vault: Path, wrong: str, place: int) -> None:
    opened = FolderVault(vault, VaultOptions(keep_days=30))
    grow(opened, "n.md", b"1", b"2", b"3", b"4", b"5")
    days = [f"2026-03-0{number}" for number in range(1, 6)]
    dated(vault, *days[:place], wrong, *days[place + 1 :])
    opened.prune_history()
    assert {sha256(b"%d" % number) for number in range(1, 6)} <= kept(vault)


def test_megabytes_are_kept_newest_first_and_the_trash_is_emptied_with_them(vault: Path) -> None:
    opened = FolderVault(vault, VaultOptions(keep_mb=1))
    big = [bytes([65 + k]) * 400_000 for k in range(4)]
    opened.create("gone.md", big[0], CHANGE)
    deleted = opened.trash("gone.md", None, CHANGE)
    grow(opened, "n.md", *big[1:])
    place = vault / (opened.history.log.find(deleted.version).trash or "")
    assert place.exists()
    dropped = opened.prune_history()
    assert dropped[-1] == sha256(big[0]) and sha256(big[3]) not in dropped
    assert not place.exists() and not place.parent.exists()
    with pytest.raises(NotFound):
        opened.undo(deleted.version, CHANGE)


def test_the_last_change_can_be_undone_however_large_it_was(vault: Path) -> None:
    opened = FolderVault(vault, VaultOptions(keep_mb=0))
    versions = grow(opened, "n.md", b"one", b"two" * 1000, b"three" * 1000)
    opened.prune_history()
    assert kept(vault) == {sha256(b"two" * 1000)}
    opened.undo(versions[-1], CHANGE)
    assert (vault / "n.md").read_bytes() == b"two" * 1000


def test_a_file_in_the_trash_that_somebody_changed_stays(vault: Path) -> None:
    opened = FolderVault(vault, VaultOptions(keep_days=30))
    opened.create("gone.md", b"gone", CHANGE)
    deleted = opened.trash("gone.md", None, CHANGE)
    place = vault / (opened.history.log.find(deleted.version).trash or "")
    place.write_bytes(b"somebody wrote here")
    grow(opened, "n.md", b"1", b"2", b"3")
    dated(vault, "2020-01-01", "2020-01-01", "2020-03-01", "2020-03-02", "2020-03-03")
    assert sha256(b"gone") in opened.prune_history()
    assert place.read_bytes() == b"somebody wrote here"


def test_it_is_looked_at_again_after_some_hours(vault: Path) -> None:
    opened = FolderVault(vault, VaultOptions(keep_mb=1))
    assert not opened.history.is_pruning_due(), "there is nothing yet"
    grow(opened, "n.md", b"one", b"two")
    assert opened.history.is_pruning_due()
    opened.prune_history()
    assert not opened.history.is_pruning_due()
    os.utime(vault / ".simplemem/history/thinned", (1_500_000_000, 1_500_000_000))
    assert opened.history.is_pruning_due(), "after some hours it is"


def test_a_line_of_the_log_without_session_and_sources_is_read_as_having_none(vault: Path) -> None:
    author = Author("update_memory", session="s1", sources=("tea", "milk"))
    opened = FolderVault(vault)
    opened.create("a.md", b"one", author)
    opened.create("b.md", b"two", author)
    opened.create("c.md", b"three", author)
    newest = next(opened.history.log.backwards())
    assert newest.session == "s1"
    assert newest.sources == ("tea", "milk")

    old, damaged, new = map(json.loads, log_of(vault).read_bytes().splitlines())
    del old["session"], old["sources"]
    damaged["sources"] = ["tea", 7]
    lines = [json.dumps(line).encode() + b"\n" for line in (old, damaged, new)]
    log_of(vault).write_bytes(b"".join(lines))

    opened = FolderVault(vault)
    versions = list(opened.history.log.backwards())
    assert [version.path for version in versions] == ["c.md", "a.md"]
    assert versions[1].session == ""
    assert versions[1].sources == ()


def test_the_log_has_the_first_ten_sources_of_a_change_and_masks_secrets_in_them(
    vault: Path,
) -> None:
    key = "AKIA2Q7XN4PL5RJ3WVA7"
    sources = (f"keys/{key}", *(f"note {number}" for number in range(20)))
    opened = FolderVault(vault)
    opened.create("a.md", b"one", Author("create_memory", sources=sources))
    version = next(opened.history.log.backwards())
    assert len(version.sources) == 10
    assert version.sources[1:3] == ("note 0", "note 1")
    assert key not in log_of(vault).read_text()
