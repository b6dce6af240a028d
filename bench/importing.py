"""What an import costs: so many memories of mem0, brought in, brought in again, and undone, by the command line."""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=10_000)
    number = parser.parse_args().memories
    words = [f"word{k}" for k in range(3000)]
    dice = random.Random(1)
    rows = [{"id": f"m{k}", "memory": " ".join(dice.choices(words, k=40)), "categories": ["a"]} for k in range(number)]
    with tempfile.TemporaryDirectory() as room:
        export, vault = Path(room, "memories.json"), Path(room, "vault")
        export.write_text(json.dumps({"results": rows}))
        vault.mkdir()
        for what in (["import", "mem0", str(export), "--yes"], ["import", "mem0", str(export), "--yes"], ["undo"]):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            command = [sys.executable, "-m", "simplemem", *what, "--vault", str(vault)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            print(
                f"{what[0]:<7} {number:,} memories: {spent:.1f} s CPU, at most {after.ru_maxrss / 1000:.0f} MB so far"
            )


if __name__ == "__main__":
    main()
