"""The same for every change that the store offers: the note is old or new, and the next start's index knows which."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import crash_harness as harness
import pytest
from crash_cases import Files, notes

from simplemem.features.collection import ChangeSet
from simplemem.features.graph.service import graph_of
from simplemem.features.graph.values import Entity, Observation
from simplemem.index.sqlite.engine import SqliteEngine
from simplemem.settings.loading import load_settings
from simplemem.store import EnhancedStore

if sys.platform == "win32":
    pytest.skip("the harness forks", allow_module_level=True)

SETTINGS = load_settings({"embed.provider": "none"})
TRANSACTIONS = [(SqliteEngine, "writing")]  # SQLite writes without `os`
STAMP = re.compile(rb"^(created|modified): .*$", re.MULTILINE)
NOTES = {
    "tea.md": b"---\ntitle: Tea\ntags:\n  - drink\n---\nOolong, see [[water]].\n",
    "deep/milk.md": b"---\ntags: {status: open}\n---\nWith [[tea]] and [[Tea#Part|the part]].\n",
    "deep/er/cup.md": b'---\nrelated: "[[tea]]"\n---\n# Part\n\n![[tea]] in a cup.\n',
    "water.md": b"Plain water. [t](tea.md)\n",
}
CHANGES: dict[str, Callable[[EnhancedStore], Any]] = {
    "create": lambda s: s.create("new/sugar", "Sweet [[tea]].", {"tags": {"status": "done"}}),
    "create what steals a link": lambda s: s.create("deep/tea", "Another tea.", overwrite=True),
    "replace": lambda s: s.update("tea", content="Green tea.\n\nFrom [[water]]."),
    "append": lambda s: s.update("tea", append="And more."),
    "edit": lambda s: s.update("tea", edits=[{"old": "Oolong", "new": "Sencha"}]),
    "change properties": lambda s: s.update("tea", metadata={"title": "Camellia", "rating": 5}),
    "change a tag": lambda s: s.change_tags("tea", {"drink": None, "status": "done"}),
    "move": lambda s: s.move("tea", "drinks/green tea"),
    "delete": lambda s: s.delete("tea"),
    "undo": lambda s: s.undo("water"),
    "restore": lambda s: s.restore("water", at="before v1"),
    "undo of all that somebody did": lambda s: s.undo_all("agent", "v1"),
    "merge of a conflict copy": lambda s: s.merge_conflict(s.conflict_merges()[0], keep="marked"),
    # One step of the graph is notes together: all of them, or none.
    "create three entities": lambda s: graph_of(s).create_entities(ENTITIES),
    "delete two entities and what leads there": lambda s: graph_of(s).delete_entities(
        ["Ada", "Bob"]
    ),
    "a note with a file beside it": lambda s: graph_of(s).pages.change(with_file, {}),
}


def with_file(step: ChangeSet) -> None:
    step.put("deep/cup.pdf", b"%PDF\x00\xff")
    step.put("deep/saucer.md", "Under the [[cup.pdf]].\n")


SAID = (Observation("Likes tea"),)
ENTITIES = [Entity(name, "person", SAID) for name in ("Dan", "Eve", "a/b")]


GRAPH = {
    "graph/Ada.md": "Likes tea",
    "graph/Bob.md": "Likes tea",
    "graph/Cleo.md": "Likes coffee\n\n## Relations\n- knows [[Ada]]\n- knows [[Bob]]",
}
"""The entities that the steps of the graph are about; only those steps have them in their vault."""


CONFLICT = "deep/milk.sync-conflict-20260101-120000-ABCDEFG.md"


def make(root: Path, name: str) -> None:
    if " entit" in name:
        (root / "graph").mkdir(parents=True)
        for path, said in GRAPH.items():
            text = f"---\ntype: entity\nentity_type: person\n---\n\n## Observations\n- {said}\n"
            (root / path).write_bytes(text.encode())
    for path, data in NOTES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    if "conflict" in name:
        (root / CONFLICT).write_bytes(NOTES["deep/milk.md"] + b"And sugar.\n")
    with EnhancedStore(root, SETTINGS) as store:
        store.sync(embed=False)
        store.update("water", append="Sparkling.", who="agent 1")
        store.create("plan", "To boil [[water]].", who="agent 1")
        store.move("plan", "plans/plan", who="agent 1")


def change(root: Path, name: str) -> Any:
    with EnhancedStore(root, SETTINGS) as store:
        return CHANGES[name](store)


def without_times(files: Files) -> Files:
    return {path: STAMP.sub(rb"\1: now", data) for path, data in files.items()}


_ALWAYS = {"replace", "delete", "undo"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in _ALWAYS else pytest.mark.slow) for name in CHANGES],
)
def test_dying_before_any_call_leaves_old_or_new_notes_and_an_index_that_knows_them(
    room: Path, name: str
) -> None:
    make(room / "first", name)
    old = without_times(notes(room / "first"))
    work = room / "work"
    shutil.copytree(room / "first", work)
    whole = harness.run(lambda: change(work, name), also=TRANSACTIONS)
    new = without_times(notes(work))
    assert whole.error is None and new != old
    assert "writing" in whole.calls, "the index is written too"
    states = []
    for at, call in enumerate(whole.calls, 1):
        shutil.rmtree(work)
        shutil.copytree(room / "first", work)
        ended = harness.run(lambda: change(work, name), at=at, also=TRANSACTIONS)
        # Ids differ between runs, so the folder for each of up to three kept texts, whose making takes
        # three calls, may be there already. Then the run has fewer calls, and is simply done.
        assert ended.died or (at > len(ended.calls) >= len(whole.calls) - 9), (at, call)
        with EnhancedStore(work, SETTINGS) as store:
            store.sync(embed=False)
            states.append(without_times(notes(work)))
            assert states[-1] in (old, new), (at, call)
            wrong = [finding for finding in store.doctor() if finding.level == "error"]
            assert not wrong, (at, call, wrong)
            there = {
                path.removesuffix(".md")
                for path in states[-1]
                if path.endswith(".md") and path != CONFLICT
            }
            assert set(store.names()) == there
            assert len(store.conflict_copies()) == (CONFLICT in states[-1]), (at, call)
    assert states[0] == old and new in states
