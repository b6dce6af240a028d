"""Entities get files that every system and every link can carry."""

from __future__ import annotations

import unicodedata

import pytest

from simplemem.kinds.graph.edit import file_for
from simplemem.note.names import check_name

HARD = [
    "",
    ".",
    "..",
    "a/b",
    "../x",
    "C:\\x",
    "CON",
    "con.txt",
    "a:b",
    "x.md",
    "a~b",
    "n" * 300,
    "日" * 300,
    "\x00",
    "\ud800",
]
HARD += [
    "a.",
    " a",
    "a ",
    "cafe\u0301",
    "\u202eevil",
    "[[x]]",
    "a|b",
    "%%",
    ".hidden",
    "a\nb",
    "\U0001f9e0" * 300,
    "~/home",
]


def free(_path: str) -> bool:
    return False


@pytest.mark.parametrize("name", ["Ada Lovelace", "日本語", "a.b", "it's 100 %", "\U0001f9e0", "name (old)", "README"])
def test_a_name_that_a_file_can_carry_is_the_files(name: str) -> None:
    assert file_for(name, free) == f"graph/{name}.md"


@pytest.mark.parametrize("name", HARD)
def test_any_other_name_gets_a_near_one_that_is_its_own(name: str) -> None:
    path = file_for(name, free)
    stem = path.removeprefix("graph/").removesuffix(".md")
    assert check_name(f"graph/{stem}") == f"graph/{stem}"
    assert "~" in stem and "/" not in stem and len(path.encode()) < 255
    assert unicodedata.normalize("NFC", stem) == stem


def test_a_name_that_is_taken_is_left_alone() -> None:
    taken = {"graph/alice.md"}
    path = file_for("alice", lambda path: path in taken)
    assert path != "graph/alice.md" and path.startswith("graph/alice~")
    assert file_for("alice", lambda other: other in {*taken, path}) not in {*taken, path}
