"""An editor that knows nothing of us saves the notes that we write to: does any of its saves vanish?

    python bench/editors.py [--saves 10000] [--notes 4] [--seed 1]

Half of the saves rename a new file over the note, half write it in place. Meanwhile two stores append to the same notes as
fast as they can. Before each save the editor looks at the note: where something else than its last save is there, and a
change of ours made that, its save must be in the history. Prints what was counted; exits with 1 when a save vanished.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from simplemem.config import load_settings
from simplemem.errors import SimplememError
from simplemem.store import EnhancedStore

SETTINGS = load_settings({"embed.provider": "none", "write.durability": "fast"})
CHILD = "--as-the-editor"


def edit(vault: Path, saves: int, notes: int, seed: int) -> None:
    """The editor, in a process of its own: prints what it found in the place of its saves."""
    chance = random.Random(seed)
    last: dict[str, bytes] = {}
    replaced: list[tuple[str, str]] = []
    for k in range(saves):
        path = vault / f"n{chance.randrange(notes)}.md"
        if path.name in last and (there := path.read_bytes()) != last[path.name]:
            replaced.append((sha(last[path.name]), sha(there)))
        text = f"save {k} of the editor\n".encode() * chance.randrange(1, 30)
        if k % 2:
            beside = path.with_name(f".{path.name}.swp")
            beside.write_bytes(text)
            os.replace(beside, path)
        else:
            with path.open("r+b", buffering=0) as file:
                file.truncate()
                file.write(text)
        last[path.name] = text
        time.sleep(0.0005 * chance.randrange(8))
    print(json.dumps([replaced, {name: sha(text) for name, text in last.items()}]))


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def append_until(
    done: threading.Event, vault: Path, notes: int, me: int, counted: Counter[str], ours: set[str]
) -> None:
    chance = random.Random(me)
    with EnhancedStore(vault, SETTINGS) as store:
        k = 0
        while not done.is_set():
            k += 1
            try:
                saved = store.update(f"n{chance.randrange(notes)}", append=f"line {me}.{k}")
            except SimplememError as error:
                counted[f"refused: {error.code}"] += 1
            else:
                counted["appended"] += 1
                ours.add(saved.sha256)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--saves", type=int, default=10_000)
    parser.add_argument("--notes", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(CHILD, type=Path, dest="vault", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.vault:
        edit(given.vault, given.saves, given.notes, given.seed)
        return 0
    counted: Counter[str] = Counter()
    ours: set[str] = set()
    done = threading.Event()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="simplemem-editors-") as folder:
        vault = Path(folder)
        for k in range(given.notes):
            (vault / f"n{k}.md").write_text("start\n")
        words = [f"--saves={given.saves}", f"--notes={given.notes}", f"--seed={given.seed}", f"{CHILD}={vault}"]
        editor = subprocess.Popen([sys.executable, __file__, *words], stdout=subprocess.PIPE, text=True)
        threads = [
            threading.Thread(target=append_until, args=(done, vault, given.notes, me, counted, ours)) for me in range(2)
        ]
        for thread in threads:
            thread.start()
        said = editor.communicate()[0]
        done.set()
        for thread in threads:
            thread.join()
        replaced, last = json.loads(said)
        with EnhancedStore(vault, SETTINGS) as store:
            store.sync()
            history = store._core.vault.history
            by_us = [saved for saved, there in replaced if there in ours]
            by_us += [saved for name, saved in last.items() if sha((vault / name).read_bytes()) != saved]
            vanished = [saved for saved in by_us if history.content(saved) is None]
            faults = list(store._core.vault.strays())
            faults += [finding.message for finding in store.doctor() if finding.level == "error"]
    print(f"{given.saves} saves with seed {given.seed} in {time.monotonic() - began:.0f} s, half of them in place; "
          f"{len(by_us)} replaced by a change of ours; {dict(counted)}")  # fmt: skip
    print(*faults, sep="\n", end="\n" if faults else "")
    print(f"{len(vanished)} saves vanished" if vanished else "no save vanished")
    return 1 if vanished or faults or not by_us else 0


if __name__ == "__main__":
    sys.exit(main())
