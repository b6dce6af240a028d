"""A link saved by hand a moment before a move follows it, at the first move of a store and at every later one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from simplemem.config import Settings
from simplemem.store import EnhancedStore

Write = Callable[..., Any]
_walked: list[Any] = []
_counting = False


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _counting and event == "os.scandir":
        _walked.append(arguments)


sys.addaudithook(_hook)


@pytest.fixture(params=["auto", "off"])
def store(request: Any, vault: Path, write: Write) -> Iterator[EnhancedStore]:
    """With the kernel's list of changes, and without it. It has moved notes before."""
    for number in range(4):
        write(f"n{number}.md", f"Note {number}")
    settings = {"embed": {"provider": "none"}, "index": {"watch": request.param}}
    with EnhancedStore(vault, Settings.model_validate(settings)) as opened:
        opened.sync()
        opened.move("n0", "first/n0")
        opened.move("n1", "first/n1")
        yield opened


def test_a_link_in_a_vault_whose_index_was_thrown_away(store: EnhancedStore, vault: Path, write: Write) -> None:
    write("hand.md", "See [[n2]].")
    for left in (vault / ".simplemem").glob("index.db*"):
        left.unlink()
    store.move("n2", "first/other")
    assert (vault / "hand.md").read_text() == "See [[other]]."


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel's list is Linux's")
def test_where_nothing_was_changed_nothing_is_walked_through(store: EnhancedStore) -> None:
    global _counting
    _walked.clear()
    _counting = True
    try:
        store.move("n2", "first/other")
    finally:
        _counting = False
    listens = store._core.settings.index.watch == "auto"
    assert bool(_walked) is not listens
