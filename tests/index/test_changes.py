"""The table of changes is the log, asked: read bit by bit or at once it is the same, and what is hidden is not in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simplemem.index.changes import ChangeTable
from simplemem.index.sqlite.engine import open_engine
from simplemem.vault.base import VaultOptions
from simplemem.vault.folder.dir_handles import DirHandles
from simplemem.vault.folder.history import LOG, Log
from simplemem.vault.folder.vault import FolderVault
from simplemem.vault.values import Access

PATHS = ("a.md", "b.md", "Private/a.md", "Private/b.md")
RULES = Access(hidden=("Private/",))
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("create", "update", "delete", "move")),
        st.sampled_from(PATHS),
        st.sampled_from(PATHS),
    ),
    max_size=12,
)


def table(root: Path, access: Access | None = None, name: str = "index.db") -> ChangeTable:
    vault = FolderVault(root, VaultOptions(access=access or Access()))
    return ChangeTable(
        open_engine(root / ".simplemem" / name, vault.lock), vault, lambda question: question()
    )


def rows(changes: ChangeTable) -> list[Any]:
    with changes._database.reading() as db:
        return [
            db.execute(f"SELECT * FROM {name} ORDER BY 1").fetchall()
            for name in ("changes", "lineages")
        ]


def ids(changes: ChangeTable, path: str | None = None) -> list[str]:
    return [version.id for version in (changes.recent() if path is None else changes.of(path))]


def act(root: Path, op: str, path: str, new_path: str = "") -> None:
    """Do something to a note, in the log and in the vault."""
    log = Log(str(root))
    there = root / (new_path if op == "move" else path)
    there.parent.mkdir(exist_ok=True)
    if op == "move":
        (root / path).unlink(missing_ok=True)
    there.unlink(missing_ok=True) if op == "delete" else there.write_text("text")
    number = log.next_number()
    text = f"{number:064x}"
    step: dict[str, Any] = {"path": path, "op": op, "before": text, "after": text}
    step |= {
        "create": {"before": None},
        "delete": {"after": None},
        "move": {"new_path": new_path},
    }.get(op, {})
    with DirHandles(str(root)) as here:
        log.append(here, log.new_versions([step], first=number, tool="", who="", reason=""))


@settings(max_examples=min(40, settings.default.max_examples), deadline=None)
@given(STEPS)
def test_grown_line_by_line_it_is_what_it_is_read_at_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, str]]
) -> None:
    root = tmp_path_factory.mktemp("vault")
    growing = table(root, RULES)
    for op, path, new_path in steps:
        act(root, op, path, new_path)
        shown = growing.recent()
        assert not any(RULES.hides(name) for v in shown for name in (v.path, v.new_path or v.path))
        hashes = {text for v in shown for text in (v.before, v.after) if text is not None}
        assert {text for n in range(1, 13) if growing.may_show(text := f"{n:064x}")} == hashes
    afresh = table(root, RULES, "afresh.db")
    assert ids(growing) == ids(afresh) and rows(growing) == rows(afresh)


@pytest.mark.parametrize("what", ["restored", "cut", "gone", "half a line"])
def test_another_log_in_its_place_is_read_anew(tmp_path: Path, what: str) -> None:
    changes = table(tmp_path)
    for name in ("a.md", "b.md", "a2.md"):
        act(tmp_path, "create", name)
    assert len(ids(changes)) == 3
    log = tmp_path / LOG
    lines = log.read_bytes().splitlines(keepends=True)
    if what == "restored":
        act(tmp_path, "create", "longer than before.md")
        other = json.loads(lines[0]) | {"path": "elsewhere.md"}
        log.write_bytes(
            json.dumps(other).encode()
            + b"\n"
            + b"".join(lines[:1])
            + log.read_bytes()[len(lines[0]) :]
        )
    elif what == "cut":
        log.write_bytes(lines[0])
    elif what == "gone":
        log.unlink()
    else:
        log.write_bytes(b"".join(lines) + lines[0][:30])
    assert ids(changes) == ids(table(tmp_path, name="afresh.db"))
    act(tmp_path, "create", "new.md")
    assert ids(changes) == ids(table(tmp_path, name="afresh.db")) and "new.md" in {
        v.path for v in changes.recent()
    }


def test_lines_that_are_none_are_passed_over(tmp_path: Path) -> None:
    act(tmp_path, "create", "a.md")
    log = tmp_path / LOG
    junk = b"\0\0\nnot json\n[1]\n{}\n" + b'{"id": 7}\n' + b"[" * 100_000 + b"\n"
    log.write_bytes(
        junk + log.read_bytes() + b'{"id":"v000009","group":"v1","path":"x","when":"","op":"no"}\n'
    )
    act(tmp_path, "update", "a.md")
    assert ids(table(tmp_path)) == ["v000002", "v000001"]
