"""What a long history costs: processor time of writes and of looks back, beside logs of a hundred and of many changes.

    python bench/history.py [CHANGES]      (100,000)

Makes a vault in a temporary folder, gives it a log of that many lines, and prints milliseconds of processor time.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from simplemem import EnhancedStore, Settings
from simplemem.store.history import moment_of, notes_then

_PLAIN = Settings.model_validate({"embed": {"provider": "none"}, "write": {"durability": "fast"}})
_NOTES = 2_000


def log_of(count: int) -> str:
    """So many changes of two thousand notes by one agent, over ten months."""
    lines = []
    for number in range(1, count + 1):
        before, after = (hashlib.sha256(str(n).encode()).hexdigest() for n in (number, number + _NOTES))
        version = f"v{number:06d}"
        line = {"id": version, "group": version, "path": f"folder/note {number % _NOTES}.md", "new_path": None}
        line["when"] = f"2026-{1 + number * 10 // (count + 1):02d}-{1 + number % 28:02d}T10:00:00.000Z"
        line |= {"op": "update", "who": "agent 1.0", "tool": "update_memory", "reason": "", "before": before}
        lines.append(json.dumps(line | {"after": after, "trash": None}, separators=(",", ":")) + "\n")
    return "".join(lines)


def measured(count: int) -> dict[str, float]:
    """Milliseconds of each thing one does, on a log of `count` changes."""
    with tempfile.TemporaryDirectory() as room:
        log = Path(room) / ".simplemem/history/log.jsonl"
        log.parent.mkdir(parents=True)
        log.write_text(log_of(count), encoding="utf-8")
        with EnhancedStore(Path(room), _PLAIN) as store:
            store.sync()
            store.create("a", "one", who="me")
            store.create("b", "one", who="me")
            asked: dict[str, Callable[[], Any]] = {
                "create": lambda: store.create("c", "one"),
                "undo of the last change": lambda: store.undo("c"),
                "open, with nothing to thin": store.sync,
                "history, newest 20": store.history,
                "history of one note": lambda: store.history("folder/note 7"),
                "history of a client": lambda: store.history(by="me", limit=1000),
                "a note as it was": lambda: store.read("a", at=f"v{count + 1}"),
                "all of a client, looked at": lambda: store.undo_all("me", f"v{count}", preview=True),
                "the whole vault at a moment": lambda: list(
                    notes_then(store._core, moment_of(store._core, "2026-09-01"))
                ),
                "thinning": store._core.vault.thin_history,
            }
            return {what: _milliseconds(ask) for what, ask in asked.items()}


def _milliseconds(ask: Callable[[], Any]) -> float:
    began = time.process_time()
    ask()
    return 1000 * (time.process_time() - began)


def main() -> None:
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    few, long = measured(100), measured(many)
    print(f"{'milliseconds of processor time':32}{'100 changes':>14}{f'{many:,} changes':>18}")
    for what, each in few.items():
        print(f"{what:32}{each:14.1f}{long[what]:18.1f}")


if __name__ == "__main__":
    main()
