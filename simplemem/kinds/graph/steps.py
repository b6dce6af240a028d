"""How the graph is changed: a change is drafted on what is there at that moment and written as one step, or not at all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from simplemem.errors import Conflict
from simplemem.kinds.graph.draft import Drafting, Gone
from simplemem.kinds.graph.known import Known
from simplemem.store.bench import Bench, Draft, Read, stat_of

T = TypeVar("T")
_TRIES = 50


class Steps:
    """The steps of one graph. `lock` guards what is known of it."""

    def __init__(self, bench: Bench, known: Known, lock: threading.RLock) -> None:
        self._bench = bench
        self._known = known
        self._lock = lock

    def take(self, draft: Callable[[Drafting], T], who: str, tool: str, reason: str) -> T:
        """Draft on what is there now, and write it as one step; again when somebody saved one of the notes meanwhile."""
        self._bench.catch_up()
        with self._lock, self._bench.alone():
            for tries_left in range(_TRIES, -1, -1):
                self._known.refresh()
                drafting = Drafting(self._bench)
                try:
                    answer = draft(drafting)
                except Gone as gone:
                    if not tries_left:
                        raise Conflict(f"{gone.path} comes and goes", current_sha256=None) from gone
                    self._known.look_again([gone.path])
                    continue
                drafts = drafting.drafts()
                if not drafts:
                    return answer
                try:
                    self.write(drafts, who, tool, reason)
                except Conflict:
                    if not tries_left:
                        raise
                    paths = {each.path for each in drafts}
                    self._bench.look_at(paths)
                    self._known.look_again(paths)
                    continue
                return answer
        raise AssertionError("unreachable")

    def write(self, drafts: Sequence[Draft], who: str, tool: str, reason: str) -> None:
        """Write drafts as one step, and know what was written."""
        carried = self._bench.write(drafts, who=who, tool=tool, reason=reason)
        read = [
            Read(each.path, carried.texts[each.path], each.sha256 or "", stat_of(each.entry), "")
            for each in carried.written
            if each.path in carried.texts and each.entry is not None
        ]
        new = [each.path for each in drafts if each.before is None]
        self._known.take(read, [each.path for each in drafts if each.text is None], new, ours=True)
