"""A vault can be read as if some of its files were others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from simplemem.errors import NotFound, ReadOnly
from simplemem.vault.laid_over import LaidOver, Sheet
from simplemem.vault.vault import Change

Write = Callable[[str, str | bytes], Path]


@pytest.fixture
def laid(vault: Path, write: Write) -> LaidOver:
    write("same.md", "as it lies there")
    write("changed.md", "as it is now")
    write("new.md", "not there then")
    return LaidOver(
        vault,
        {
            "changed.md": Sheet(b"as it was", 1_000),
            "new.md": Sheet(None, 0),
            "folder/gone.md": Sheet(b"only then", 2_000),
        },
    )


def test_what_is_laid_over_is_read_and_all_else_is_read_from_the_disk(laid: LaidOver) -> None:
    assert [entry.path for entry in laid.scan()] == ["changed.md", "folder/gone.md", "same.md"]
    assert laid.read("same.md").data == b"as it lies there"
    assert laid.read("changed.md").data == b"as it was"
    gone = laid.read("folder/gone.md")
    assert (gone.data, gone.entry.size, gone.entry.mtime_ns) == (b"only then", 9, 2_000)
    assert [entry.path for entry in laid.entries_below("folder")] == ["folder/gone.md"]


def test_what_was_not_there_is_not_there(laid: LaidOver) -> None:
    assert laid.entry("new.md") is None
    with pytest.raises(NotFound):
        laid.read("new.md")
    assert laid.lies_over("new.md") and not laid.lies_over("same.md")


def test_nothing_can_be_written(laid: LaidOver) -> None:
    with pytest.raises(ReadOnly):
        laid.create("other.md", b"x", Change("create"))
