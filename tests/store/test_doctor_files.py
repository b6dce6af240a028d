"""What the doctor says of files: attachments, notes that are no text, secrets, conflict copies, names."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from simplemem.config import Settings
from simplemem.errors import Invalid
from simplemem.memory import Finding
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]


def of(store: EnhancedStore, check: str) -> list[Finding]:
    store.sync()
    found = list(store.doctor(only=[check]))
    assert {finding.check for finding in found} <= {check}
    return found


def test_a_file_that_no_note_speaks_of_is_noted_with_its_size(plain_store: EnhancedStore, write: Write) -> None:
    write("img/linked.png", b"\x89PNG")
    write("img/embedded.png", b"\x89PNG")
    write("img/in html.png", b"\x89PNG")
    write("img/on canvas é.png", b"\x89PNG")
    write("img/cover.jpg", b"\xff\xd8")
    write("img/alone.png", b"\x89PNG" * 500)
    write(
        "a.md", "---\ncover: img/cover.jpg\n---\n[x](img/linked.png) ![[embedded.png]] <img src='img/in%20html.png'>\n"
    )
    write("board.canvas", '{"nodes": [{"type": "file", "file": "img/on canvas \\u00e9.png"}], "edges": []}')
    (finding,) = of(plain_store, "attachments")
    assert (finding.level, finding.path, finding.fix) == ("note", "img/alone.png", "")
    assert finding.message == "no note links to it (2,000 bytes)"


def test_an_attachment_is_never_thrown_away(plain_store: EnhancedStore, write: Write) -> None:
    write("alone.png", b"\x89PNG")
    plain_store.sync()
    assert plain_store.plan_mending(only=["attachments"]).is_empty


def test_bytes_that_are_no_text_are_told_with_what_to_do(plain_store: EnhancedStore, write: Write) -> None:
    write("binary.md", b"\x00\x01\x02plum")
    write("latin.md", b"caf\xe9")
    write("utf16.md", "plum".encode("utf-16"))
    write("good.md", "caf\u00e9")
    binary, latin, utf16 = of(plain_store, "notes")
    assert (binary.path, binary.level) == ("binary.md", "warning")
    assert "another extension" in binary.hint
    assert "byte 3 is not UTF-8" in latin.message
    assert "UTF-16" in utf16.message and "UTF-8" in utf16.hint
    assert of(plain_store, "headers") == []


def test_a_note_that_is_too_large_is_told_once(vault: Path, write: Write) -> None:
    write("huge.md", "plum " * 5000)
    settings = Settings.model_validate({"embed": {"provider": "none"}, "index": {"max_note_mb": 0.01}})
    with EnhancedStore(vault, settings) as store:
        (finding,) = of(store, "notes")
        assert finding.message == "25,000 bytes: notes over 10,485 are not indexed"
        assert "index.max_note_mb" in finding.hint


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_note_that_may_not_be_read_is_told(plain_store: EnhancedStore, write: Write) -> None:
    write("closed.md", "plum").chmod(0)
    (finding,) = of(plain_store, "notes")
    assert finding.path == "closed.md" and "permission" in finding.message


def test_a_secret_is_told_by_kind_and_line_and_never_shown(plain_store: EnhancedStore, write: Write) -> None:
    token = "ghp_" + "x7Kq9ZbT2mVw4RsD8nLc1YhPf5GjA3uE6oBi"
    write("a.md", f"plum\n\nThe token is {token}\n")
    write("b.md", "The password is with Ada, the token too.\n")
    write("c.md", f"# {'0123456789abcdef' * 4}\n")
    (finding,) = of(plain_store, "secrets")
    assert (finding.level, finding.path, finding.line) == ("warning", "a.md", 3)
    assert "GitHub" in finding.message
    assert token not in repr(finding) and token[4:12] not in repr(finding)
    assert plain_store.plan_mending(only=["secrets"]).is_empty


def test_a_name_that_holds_a_key_is_told(plain_store: EnhancedStore, write: Write) -> None:
    write("keys/hf_aB3dE5gH7jK9mN1pQ3sT5vX7zA9cD1fG3h.md", "Nothing else.\n")
    write("keys/of the house.md", "They hang by the door.\n")
    (finding,) = of(plain_store, "secrets")
    assert finding.message == "its name holds a Hugging Face token: hf_… (37 characters)" and finding.line == 0


def test_a_conflict_copy_is_told_with_what_it_is_a_copy_of(plain_store: EnhancedStore, write: Write) -> None:
    write("a.md", "plum\n")
    write("a.sync-conflict-20260101-120000-ABCDEFG.md", "pear\n")
    write("Chapter 2.md", "another\n")
    write("Chapter.md", "one\n")
    (finding,) = of(plain_store, "conflicts")
    assert finding.message == "a conflict copy of a by Syncthing (ABCDEFG)"
    assert finding.hint == "`simplemem conflicts` shows what differs, and merges the two."


def test_names_apart_by_more_than_case_are_no_collision(plain_store: EnhancedStore, write: Write) -> None:
    write("Tea.md", "")
    write("sub/tea.md", "")
    write("Teas.md", "")
    assert of(plain_store, "names") == []


def test_a_write_that_is_under_way_is_no_stray(plain_store: EnhancedStore, write: Write) -> None:
    write("a.md", "plum")
    plain_store.sync()
    write(f".simplemem-{os.getpid()}-0123456789abcdef01234567.tmp", "half")
    stray = write("sub/.simplemem-99999999-0123456789abcdef01234567.tmp", "half")
    findings = plain_store.doctor(only=["strays"])
    assert [finding.path for finding in findings] == [f"sub/{stray.name}"]


def test_the_next_start_puts_a_stray_of_ours_away_and_keeps_what_it_held(
    plain_store: EnhancedStore, write: Write
) -> None:
    write(".simplemem-99999999-0123456789abcdef01234567.tmp", "half")
    assert of(plain_store, "strays") == []
    (kept,) = plain_store.history()
    assert plain_store._core.vault.history.content(kept.sha256 or "") == b"half"


def test_a_check_that_does_not_exist_is_told(plain_store: EnhancedStore) -> None:
    with pytest.raises(Invalid, match="no check 'link'"):
        plain_store.doctor(only=["links", "link"])


def test_one_check_asks_for_no_other(plain_store: EnhancedStore, write: Write) -> None:
    write("a.md", "[[Nobody]]\n")
    plain_store.sync()
    with plain_store._core.index.database.writing() as db:
        db.execute("UPDATE notes SET title = 'Other'").fetchall()
    assert [finding.check for finding in plain_store.doctor(only=["links"])] == ["links"]
    assert [finding.check for finding in plain_store.doctor(only=["links", "index"])] == ["index", "links"]
