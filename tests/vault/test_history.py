"""What was, is known and kept: in the order it happened, through moves, for as long as was asked."""

from __future__ import annotations

import json
import os
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from simplemem.errors import Invalid
from simplemem.vault.disk import sha256
from simplemem.vault.vault import Change, Vault, Wish

CHANGE = Change("update_memory", who="agent", reason="because")


def log_of(vault: Path) -> Path:
    return vault / ".simplemem/history/log.jsonl"


def grow(opened: Vault, path: str, *texts: bytes) -> list[str]:
    """Create a note and give it each text in turn; the versions that made."""
    made = opened.create(path, texts[0], CHANGE)
    versions = [made.version]
    for old, new in pairwise(texts):
        versions.append(opened.replace(path, new, sha256(old), CHANGE).version)
    return versions


def test_versions_come_newest_first_and_say_everything(vault: Path) -> None:
    opened = Vault(vault)
    ids = grow(opened, "n.md", b"one", b"two", b"three")
    versions = list(opened.history.log.of("n.md"))
    assert [v.id for v in versions] == ids[::-1] == sorted(ids, reverse=True)
    latest = versions[0]
    assert (latest.op, latest.tool, latest.who, latest.reason) == (
        "update",
        "update_memory",
        "agent",
        "because",
    )
    assert (latest.before, latest.after) == (sha256(b"two"), sha256(b"three"))
    assert latest.when.endswith("Z") and latest.group == latest.id
    assert list(opened.history.log.backwards())[:1] == [latest]
    assert [opened.history.content(v.after or "") for v in versions] == [b"three", b"two", b"one"]
    assert list(opened.history.log.of("other.md")) == []


def test_the_order_is_the_order_of_the_log_whatever_the_clock_says(
    vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Vault(vault)
    ids = grow(opened, "n.md", b"one", b"two")
    lines = log_of(vault).read_bytes().splitlines()
    later = json.loads(lines[1]) | {"when": "1970-01-01T00:00:00.000Z"}
    log_of(vault).write_bytes(lines[0] + b"\n" + json.dumps(later).encode() + b"\n")
    assert [v.id for v in opened.history.log.backwards()] == ids[::-1]
    os.utime(vault / "n.md", (0, 0))
    assert opened.replace("n.md", b"three", sha256(b"two"), CHANGE).version > ids[-1]


def test_damaged_lines_are_passed_over_and_closed_off(vault: Path) -> None:
    opened = Vault(vault)
    ids = grow(opened, "n.md", b"one", b"two")
    log = log_of(vault)
    log.write_bytes(
        b"\0\0\0\nnot json\n[1]\n{}\n" + b'{"id": 7}\n' + b"[" * 100_000 + b"\n" + log.read_bytes() + b'{"id":"v0000'
    )
    assert [v.id for v in opened.history.log.backwards()] == ids[::-1]
    third = opened.replace("n.md", b"three", sha256(b"two"), CHANGE).version
    assert [v.id for v in opened.history.log.backwards()] == [third, *ids[::-1]]
    log.unlink()
    assert list(opened.history.log.backwards()) == []
    assert opened.replace("n.md", b"four", sha256(b"three"), CHANGE).changed


def test_a_long_log_is_read_from_its_end(vault: Path) -> None:
    opened = Vault(vault)
    grow(opened, "n.md", b"one", b"two")
    first, second = log_of(vault).read_bytes().splitlines()
    many = [
        json.dumps(
            json.loads(second) | {"id": f"v{k:06d}", "group": f"v{k:06d}", "reason": "é" * 500, "path": f"{k}.md"}
        )
        for k in range(3, 3000)
    ]
    log_of(vault).write_text("\n".join([first.decode(), second.decode(), *many]) + "\n", encoding="utf-8")
    assert [v.id for v in list(opened.history.log.backwards())[:3]] == ["v002999", "v002998", "v002997"]
    assert [v.id for v in opened.history.log.of("n.md")] == ["v000002", "v000001"]
    assert len(list(opened.history.log.backwards())[:10_000]) == 2999
    assert opened.create("m.md", b"x", CHANGE).version == "v003000"


def test_the_order_holds_beyond_a_million_changes(vault: Path) -> None:
    opened = Vault(vault)
    grow(opened, "n.md", b"one")
    line = json.loads(log_of(vault).read_bytes())
    log_of(vault).write_text(json.dumps(line | {"id": "v999998", "group": "v999998"}) + "\n", encoding="utf-8")
    rewrites = [Wish.update("n.md", sha256(b"one"), b"two")]
    first = opened.create("m.md", b"new", CHANGE, rewrites=rewrites).version
    assert [v.id for v in opened.history.log.group(first)] == ["v999999", "v1000000"]
    third = opened.replace("n.md", b"three", sha256(b"two"), CHANGE).version
    assert third == "v1000001" and opened.history.log.find("1000000").path == "n.md"
    assert [v.id for v in opened.history.log.of("n.md")] == ["v1000001", "v1000000", "v999998"]
    assert [v.id for v in opened.history.log.since(999_999)] == ["v999999", "v1000000", "v1000001"]
    opened.undo(third, CHANGE)
    opened.undo(first, CHANGE)
    assert not (vault / "m.md").exists() and (vault / "n.md").read_bytes() == b"one"


@pytest.mark.skipif(sys.platform == "win32", reason="no such files there")
def test_a_log_that_is_no_file_is_an_empty_one(vault: Path) -> None:
    opened = Vault(vault)
    grow(opened, "n.md", b"one")
    log_of(vault).unlink()
    os.mkfifo(log_of(vault))
    assert list(opened.history.log.backwards()) == []
    log_of(vault).unlink()
    log_of(vault).symlink_to(vault / "n.md")
    with pytest.raises(Invalid, match="symbolic link"):
        list(opened.history.log.backwards())


def test_a_damaged_text_is_not_given_out(vault: Path) -> None:
    opened = Vault(vault)
    grow(opened, "n.md", b"one", b"two")
    sha = sha256(b"one")
    kept = vault / f".simplemem/history/objects/{sha[:2]}/{sha}"
    kept.write_bytes(b"damaged")
    assert opened.history.content(sha) == b"one", "the displaced file still has it"
    for displaced in (vault / ".simplemem/history/displaced").iterdir():
        displaced.unlink()
    assert opened.history.content(sha) is None
    opened.create("again.md", b"one", CHANGE)
    assert opened.history.content(sha) == b"one", "and it is mended when the text comes by again"
    for wrong in ("", "../../lock", "x" * 64 + "/", "0" * 64):
        assert opened.history.content(wrong) is None


def test_a_late_save_into_the_displaced_file_becomes_a_version(vault: Path) -> None:
    opened = Vault(vault)
    opened.create("n.md", b"one", CHANGE)
    with (vault / "n.md").open("r+b") as editor:
        opened.replace("n.md", b"two", sha256(b"one"), CHANGE)
        editor.write(b"written by an editor that had the old file open")
    assert (vault / "n.md").read_bytes() == b"two"
    said = opened.recover()
    assert len(said) == 1 and "n.md" in said[0]
    saved = next(opened.history.log.of("n.md"))
    assert saved.op == "recovered" and saved.before is None
    assert opened.history.content(saved.after or "") == b"written by an editor that had the old file open"
    assert opened.history.content(sha256(b"one")) == b"one"
    assert opened.recover() == [] and opened.history.settle() == []


def test_displaced_files_go_when_they_have_rested(vault: Path) -> None:
    opened = Vault(vault)
    grow(opened, "n.md", b"one", b"two", b"three")
    displaced = vault / ".simplemem/history/displaced"
    opened.history.settle()
    assert len(list(displaced.iterdir())) == 2
    time.sleep(0.01)
    opened.history.settle(seconds=0.0)
    assert list(displaced.iterdir()) == []
    assert opened.history.content(sha256(b"one")) == b"one"
