"""What need not be kept any longer goes, and nothing that an undo within the promised time needs."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path

import pytest

from simplemem.errors import NotFound
from simplemem.vault.disk import sha256
from simplemem.vault.vault import Change, Vault

CHANGE = Change("update_memory", who="agent")


def log_of(vault: Path) -> Path:
    return vault / ".simplemem/history/log.jsonl"


def grow(opened: Vault, path: str, *texts: bytes) -> list[str]:
    """Create a note and give it each text in turn; the versions that made."""
    versions = [opened.create(path, texts[0], CHANGE).version]
    for old, new in pairwise(texts):
        versions.append(opened.replace(path, new, sha256(old), CHANGE).version)
    return versions


def dated(vault: Path, *days: str) -> None:
    """Give the changes in the log these days, oldest first, and their texts an age that fits."""
    lines = [json.loads(line) for line in log_of(vault).read_bytes().split(b"\n") if line]
    for line, day in zip(lines, days, strict=True):
        line["when"] = f"{day}T00:00:00.000Z"
    spelled = [json.dumps(line, separators=(",", ":")) + "\n" for line in lines]
    log_of(vault).write_bytes("".join(spelled).encode())
    aged(vault)


def aged(vault: Path) -> None:
    for kept in (vault / ".simplemem/history/objects").rglob("*"):
        os.utime(kept, (1_500_000_000, 1_500_000_000))


def kept(vault: Path) -> set[str]:
    return {path.name for path in (vault / ".simplemem/history/objects").rglob("*") if path.is_file()}


def test_days_are_counted_back_from_the_newest_changes(vault: Path) -> None:
    opened = Vault(vault, keep_days=30)
    grow(opened, "n.md", b"1", b"2", b"3", b"4", b"5")
    dated(vault, "2020-01-01", "2020-01-02", "2020-02-15", "2020-02-16", "2020-02-17")
    assert opened.thin_history() == [sha256(b"1")], "though by the clock all of it is years old"
    assert opened.history.content(sha256(b"2")) == b"2", "what was there thirty days ago can still come back"
    assert len(list(opened.history.log.backwards())) == 5, "what was done remains known"
    assert opened.thin_history() == []


def test_a_vault_that_rested_for_years_loses_nothing_when_it_is_taken_up(vault: Path) -> None:
    opened = Vault(vault, keep_days=30)
    grow(opened, "n.md", b"1", b"2", b"3", b"4")
    dated(vault, "2020-01-01", "2020-01-02", "2020-01-03", "2026-05-01")
    assert opened.thin_history() == []


@pytest.mark.parametrize("wrong", ["2099-01-01", "1970-01-01", "not a date, 20 letters"])
@pytest.mark.parametrize("place", [0, 2, 3, 4])
def test_a_day_under_a_wrong_clock_loses_nothing(vault: Path, wrong: str, place: int) -> None:
    opened = Vault(vault, keep_days=30)
    grow(opened, "n.md", b"1", b"2", b"3", b"4", b"5")
    days = ["2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04", "2026-03-05"]
    dated(vault, *days[:place], wrong, *days[place + 1 :])
    opened.thin_history()
    needed = {sha256(b"%d" % number) for number in range(1, 6)}
    assert needed <= kept(vault)


def test_megabytes_are_kept_newest_first_and_the_trash_is_emptied_with_them(vault: Path) -> None:
    opened = Vault(vault, keep_mb=1)
    big = [bytes([65 + k]) * 400_000 for k in range(4)]
    opened.create("gone.md", big[0], CHANGE)
    deleted = opened.trash("gone.md", None, CHANGE)
    grow(opened, "n.md", *big[1:])
    place = vault / (opened.history.log.find(deleted.version).trash or "")
    assert place.exists()
    dropped = opened.thin_history()
    assert dropped[-1] == sha256(big[0]) and sha256(big[3]) not in dropped
    assert not place.exists() and not place.parent.exists()
    with pytest.raises(NotFound):
        opened.undo(deleted.version, CHANGE)


def test_the_last_change_can_be_undone_however_large_it_was(vault: Path) -> None:
    opened = Vault(vault, keep_mb=0)
    versions = grow(opened, "n.md", b"one", b"two" * 1000, b"three" * 1000)
    opened.thin_history()
    assert kept(vault) == {sha256(b"two" * 1000)}
    opened.undo(versions[-1], CHANGE)
    assert (vault / "n.md").read_bytes() == b"two" * 1000


def test_the_order_of_the_log_says_what_is_oldest(vault: Path) -> None:
    opened = Vault(vault, keep_mb=1)
    big = [bytes([65 + k]) * 400_000 for k in range(4)]
    grow(opened, "n.md", *big)
    dated(vault, "2026-03-04", "2026-03-03", "2026-03-02", "2026-03-01")
    assert opened.thin_history() == [sha256(big[1]), sha256(big[0])]


def test_what_lies_in_the_trash_goes_with_its_text_even_if_a_crash_came_between(vault: Path) -> None:
    opened = Vault(vault, keep_days=30)
    opened.create("gone.md", b"gone", CHANGE)
    deleted = opened.trash("gone.md", None, CHANGE)
    grow(opened, "n.md", b"1", b"2", b"3")
    dated(vault, "2020-01-01", "2020-01-01", "2020-03-01", "2020-03-02", "2020-03-03")
    place = vault / (opened.history.log.find(deleted.version).trash or "")
    (vault / f".simplemem/history/objects/{sha256(b'gone')[:2]}/{sha256(b'gone')}").unlink()
    opened.thin_history()
    assert not place.exists()


def test_a_file_in_the_trash_that_somebody_changed_stays(vault: Path) -> None:
    opened = Vault(vault, keep_days=30)
    opened.create("gone.md", b"gone", CHANGE)
    deleted = opened.trash("gone.md", None, CHANGE)
    place = vault / (opened.history.log.find(deleted.version).trash or "")
    place.write_bytes(b"somebody wrote here")
    grow(opened, "n.md", b"1", b"2", b"3")
    dated(vault, "2020-01-01", "2020-01-01", "2020-03-01", "2020-03-02", "2020-03-03")
    assert sha256(b"gone") in opened.thin_history()
    assert place.read_bytes() == b"somebody wrote here"


def test_a_text_that_no_change_names_rests_a_day_before_it_goes(vault: Path) -> None:
    opened = Vault(vault)
    grow(opened, "n.md", b"1", b"2")
    with opened.lock(), opened._beneath() as here:
        opened.history.keep(here, b"put there a moment ago", sha256(b"put there a moment ago"))
    assert opened.thin_history() == []
    aged(vault)
    assert opened.thin_history() == [sha256(b"put there a moment ago")]


def test_displaced_files_are_read_before_anything_is_dropped(vault: Path) -> None:
    opened = Vault(vault, keep_mb=0)
    grow(opened, "n.md", b"one", b"two")
    [displaced] = (vault / ".simplemem/history/displaced").iterdir()
    displaced.write_bytes(b"a late save")
    opened.thin_history()
    late = next(opened.history.log.of("n.md"))
    assert late.op == "recovered" and late.after == sha256(b"a late save")
    assert opened.history.content(late.after) == b"a late save"


@pytest.mark.skipif(os.utime not in os.supports_fd, reason="no time of an open file can be set here")
def test_a_late_save_that_set_its_time_back_is_found_too(vault: Path) -> None:
    opened = Vault(vault)
    opened.create("n.md", b"one", CHANGE)
    os.utime(vault / "n.md", (1_700_000_000, 1_700_000_000))
    with (vault / "n.md").open("r+b") as editor:
        opened.replace("n.md", b"two", sha256(b"one"), CHANGE)
        editor.write(b"late")
        editor.flush()
        os.utime(editor.fileno(), (1_700_000_000, 1_700_000_000))
    opened.recover()
    opened.thin_history()
    late = next(opened.history.log.of("n.md"))
    assert late.op == "recovered" and opened.history.content(late.after or "") == b"late"


def test_a_displaced_file_goes_only_when_its_text_is_kept(vault: Path) -> None:
    opened = Vault(vault)
    versions = grow(opened, "n.md", b"one", b"two")
    torn = vault / f".simplemem/history/objects/{sha256(b'one')[:2]}/{sha256(b'one')}"
    torn.write_bytes(b"")  # as a power cut may leave what was not synced
    opened.history.settle(seconds=0.0)
    opened.history.settle(seconds=0.0)
    assert list((vault / ".simplemem/history/displaced").iterdir()) == []
    opened.undo(versions[-1], CHANGE)
    assert (vault / "n.md").read_bytes() == b"one"


def test_it_is_looked_at_again_after_some_hours_or_much_text(vault: Path) -> None:
    opened = Vault(vault, keep_mb=1)
    assert not opened.history.is_full(), "there is nothing yet"
    grow(opened, "n.md", b"one", b"two")
    assert opened.history.is_full()
    opened.thin_history()
    opened.create("m.md", b"x", CHANGE)
    assert not opened.history.is_full(), "one more change is no reason"
    os.utime(vault / ".simplemem/history/thinned", (1_500_000_000, 1_500_000_000))
    assert opened.history.is_full(), "after some hours it is"
    opened.thin_history()
    opened.create("big.md", b"x" * 60_000, CHANGE)
    assert opened.history.is_full(), "nor need much text wait"
