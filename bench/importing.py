"""What an import costs: memories of mem0, or ChatGPT's chats, imported, imported again, and undone.

    python bench/importing.py [--memories 10000]
    python bench/importing.py --chats 2000        chats of 15 questions each

Prints the CPU time of each command and the largest memory so far.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.measure import child_cpu_seconds

WORDS = [f"word{number}" for number in range(3000)]
FIRST_CHAT = 1_600_000_000.0
SECONDS_BETWEEN_CHATS = 40_000


def main() -> None:
    """Write an export, and measure three commands with it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--chats", type=int, default=0)
    options = parser.parse_args()

    rng = random.Random(1)
    if options.chats:
        source = "chatgpt"
        rows = [make_chat(number, rng) for number in range(options.chats)]
    else:
        source = "mem0"
        rows = [make_memory(number, rng) for number in range(options.memories)]

    with tempfile.TemporaryDirectory() as folder:
        export = Path(folder, "memories.json")
        export.write_text(json.dumps(rows))
        vault = Path(folder, "vault")
        vault.mkdir()
        import_command = ["import", source, str(export), "--yes"]
        for arguments in (import_command, import_command, ["undo"]):
            command = [sys.executable, "-m", "simplemem", *arguments, "--vault", str(vault)]
            seconds = child_cpu_seconds(command)
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000
            print(
                f"{arguments[0]:<7} {len(rows):,} of {source}: "
                f"{seconds:.1f} s CPU, at most {peak:.0f} MB so far"
            )


def make_memory(number: int, rng: random.Random) -> dict[str, object]:
    """Return a memory of 40 words, as mem0 exports it."""
    return {"id": f"m{number}", "memory": _sentence(40, rng), "categories": ["a"]}


def make_chat(number: int, rng: random.Random) -> dict[str, object]:
    """Return a chat of 15 questions of 40 words with answers of 180, as ChatGPT exports it."""
    chat_id = f"c{number}"
    start = FIRST_CHAT + number * SECONDS_BETWEEN_CHATS
    messages: dict[str, object] = {}
    for position in range(30):
        is_answer = position % 2 == 1
        message = {
            "author": {"role": "assistant" if is_answer else "user"},
            "create_time": start + 600 * position,
            "content": {
                "content_type": "text",
                "parts": [_sentence(180 if is_answer else 40, rng)],
            },
        }
        parent = f"{chat_id}-{position - 1}" if position else None
        messages[f"{chat_id}-{position}"] = {"message": message, "parent": parent}
    return {
        "conversation_id": chat_id,
        "title": f"Chat {chat_id}",
        "mapping": messages,
        "current_node": f"{chat_id}-29",
    }


def _sentence(size: int, rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=size))


if __name__ == "__main__":
    main()
