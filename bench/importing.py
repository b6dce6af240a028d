"""What an import costs: so many memories of mem0, or chats of 15 questions of ChatGPT, brought in, brought in again, and
undone, by the command line."""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path


def chat(id_: str, at: float, dice: random.Random, words: list[str]) -> dict[str, object]:
    """A chat of 15 questions of 40 words, with answers of 180."""
    mapping: dict[str, object] = {}
    for k in range(30):
        content = {
            "content_type": "text",
            "parts": [" ".join(dice.choices(words, k=180 if k % 2 else 40))],
        }
        message = {
            "author": {"role": "assistant" if k % 2 else "user"},
            "create_time": at + 600 * k,
            "content": content,
        }
        mapping[f"{id_}-{k}"] = {"message": message, "parent": f"{id_}-{k - 1}" if k else None}
    return {
        "conversation_id": id_,
        "title": f"Chat {id_}",
        "mapping": mapping,
        "current_node": f"{id_}-29",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--chats", type=int, default=0)
    given = parser.parse_args()
    kind, number = ("chatgpt", given.chats) if given.chats else ("mem0", given.memories)
    words = [f"word{k}" for k in range(3000)]
    dice = random.Random(1)
    rows = [
        {"id": f"m{k}", "memory": " ".join(dice.choices(words, k=40)), "categories": ["a"]}
        for k in range(given.memories)
    ]
    if kind == "chatgpt":
        rows = [chat(f"c{k}", 1_600_000_000.0 + 40_000 * k, dice, words) for k in range(number)]
    with tempfile.TemporaryDirectory() as room:
        export, vault = Path(room, "memories.json"), Path(room, "vault")
        export.write_text(json.dumps(rows))
        vault.mkdir()
        for what in (*[["import", kind, str(export), "--yes"]] * 2, ["undo"]):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            command = [sys.executable, "-m", "simplemem", *what, "--vault", str(vault)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            print(
                f"{what[0]:<7} {number:,} of {kind}: {spent:.1f} s CPU, at most {after.ru_maxrss / 1000:.0f} MB so far"
            )


if __name__ == "__main__":
    main()
