"""What a second process would save of a first index: `python bench/handing_over.py`. CPU seconds to read notes and take them
apart, which could be done beside, and to hand over what came of it."""

from __future__ import annotations

import pickle
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.vaults import make_vault
from simplemem.index.facts import facts_of
from simplemem.note.note import read_note

T = TypeVar("T")
_AT_ONCE = 100  # notes


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="simplemem-handing-over-") as made:
        make_vault(Path(made), 10_000)
        files = sorted(Path(made).rglob("*.md"))
        raw = _told("read", lambda: [file.read_bytes() for file in files])
        facts = _told("taken apart", lambda: [facts_of("note.md", read_note(data), 0) for data in raw])
        parcels = [facts[k : k + _AT_ONCE] for k in range(0, len(facts), _AT_ONCE)]
        packed = _told("packed", lambda: [pickle.dumps(parcel, pickle.HIGHEST_PROTOCOL) for parcel in parcels])
        _told("unpacked", lambda: [pickle.loads(parcel) for parcel in packed])


def _told(what: str, work: Callable[[], T]) -> T:
    began = time.process_time()
    done = work()
    print(f"{what}: {time.process_time() - began:.2f} s cpu")
    return done


if __name__ == "__main__":
    main()
