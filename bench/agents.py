"""What a call costs as an agent meets it: `python bench/agents.py [--vault DIR] [--peer COMMAND] [--locomo FILE.json.gz]`.

`tools/call` over standard streams, in CPU milliseconds of the server, which has answered a few calls before. It is asked
on a copy of the vault, or on 10,000 synthetic notes: six words of a note, the same as a question, a note to read, twenty
to edit, the first search again, a note to write. With `--peer "…/markdown-vault-mcp serve"` the other server does the
same on the same notes, `--locomo` joins the sessions of such a file to 120 notes of 13 kB and asks its questions, and
`--doctor` says what `doctor` costs. `--notes 100000 --folders 1` puts very many notes in one folder.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import resource
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.conversation import Conversation, Gone, failure_in, serve
from bench.run import COMMAND, _child_cpu
from bench.vaults import make_vault
from simplemem.store import EnhancedStore

Calls = Mapping[str, Sequence[tuple[str, dict[str, Any]]]]
_BEFORE = 10  # calls, so that what is made ready at first is ready


def calls_of(vault: Path, count: int, *, of_peer: bool = False) -> Calls:
    """What is asked of a vault: the same of both servers."""
    chance, files = (
        random.Random(5),
        sorted(p for p in vault.rglob("*.md") if ".simplemem" not in p.parts),
    )
    said = []
    for file in chance.choices(files, k=count):
        words = file.read_text(encoding="utf-8").rsplit("---", 1)[-1].split()
        at = chance.randrange(max(1, len(words) - 6))
        said.append(" ".join(words[at : at + 6]))
    names = [file.relative_to(vault).as_posix() for file in chance.choices(files, k=count)]
    new = [Path(name).with_name(f"written {k}").as_posix() for k, name in enumerate(names)]
    if of_peer:
        return {
            "search, six words": [("search", {"query": each, "limit": 5}) for each in said],
            "search, a question": [("search", {"query": f"{each}?", "limit": 5}) for each in said],
            "read": [("read", {"path": name}) for name in names],
            "write": [
                ("write", {"path": f"{name}.md", "content": each})
                for name, each in zip(new, said, strict=True)
            ],
        }
    return {
        "search, six words": [("search_memories", {"query": each}) for each in said],
        "search, a question": [("search_memories", {"query": f"{each}?"}) for each in said],
        "read": [("read_memory", {"name": name.removesuffix(".md")}) for name in names],
        "edit": [
            ("update_memory", {"name": name.removesuffix(".md"), "append": "More."})
            for name in names[:20]
        ],
        "search, six words, after these edits": [
            ("search_memories", {"query": each}) for each in said
        ],
        "write": [
            ("create_memory", {"name": name, "content": each})
            for name, each in zip(new, said, strict=True)
        ],
    }


def joined(file: Path, room: Path, count: int) -> Calls:
    """The sessions of LoCoMo-shaped JSON in notes of some 13 kB, and its questions, also said as statements."""
    data = json.loads(gzip.decompress(file.read_bytes()))
    texts = [
        "\n".join(f"- **{who}:** {text}" for who, text in doc["turns"]) for doc in data["docs"]
    ]
    text, at = "", 0
    for number in range(120):
        while len(text) < 13_000:
            text += f"## Session {at}\n\n{texts[at % len(texts)]}\n\n"
            at += 1
        (room / f"talk {number}.md").write_text(
            f"# Talk {number}\n\n{text[:13_000]}\n", encoding="utf-8"
        )
        text = text[13_000:]
    asked = [
        each["query"].strip("?") for each in random.Random(5).choices(data["queries"], k=count)
    ]
    return {
        "long notes, a question": [("search_memories", {"query": f"{each}?"}) for each in asked],
        "long notes, a statement": [
            ("search_memories", {"query": f"About {each}"}) for each in asked
        ],
        "long notes, by words": [
            ("search_memories", {"query": f"{each}?", "mode": "text"}) for each in asked
        ],
    }


def measure(command: Sequence[str], env: Mapping[str, str], calls: Calls) -> None:
    began = time.perf_counter()
    with Conversation(command, env=env, quiet=True) as server:
        server.ask("tools/list", {})
        print(f"  its tools are listed after {time.perf_counter() - began:.2f} s")
        before = -1.0
        while (
            now := server.figures().cpu
        ) - before > 0.1:  # its start and its index are not asked for
            before = now
            time.sleep(3)
        for name, given in calls.items():
            for tool, arguments in given[:_BEFORE]:
                server.use(tool, **arguments)
            began, failed = server.figures().cpu, 0
            for tool, arguments in given[_BEFORE:]:
                failed += bool(failure_in(server.use(tool, **arguments)))
            spent = 1000 * (server.figures().cpu - began) / (len(given) - _BEFORE)
            print(
                f"  {name}: {spent:.1f} ms" + (f", {failed} failed" if failed else ""), flush=True
            )
        print(f"  memory: {server.figures().resident:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--vault", type=Path)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--folders", type=int, default=20)
    parser.add_argument("--calls", type=int, default=110)
    parser.add_argument("--locomo", type=Path)
    parser.add_argument("--peer", default="")
    parser.add_argument("--doctor", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(
        prefix="simplemem-agents-", ignore_cleanup_errors=True
    ) as made:
        ours, theirs, long = (Path(made) / name for name in ("ours", "theirs", "long"))
        if given.vault:
            shutil.copytree(given.vault, ours, ignore=shutil.ignore_patterns(".simplemem"))
        else:
            make_vault(ours, given.notes, folders=given.folders)
        if given.peer:
            shutil.copytree(ours, theirs)
        print(f"simplemem, {len(list(ours.rglob('*.md')))} notes")
        index(ours)
        measure(serve(ours), {}, calls_of(ours, given.calls))
        if given.doctor:
            print(f"  doctor: {_child_cpu([*COMMAND, 'doctor', '--vault', str(ours)]):.1f} s")
        if given.locomo:
            long.mkdir()
            calls = joined(given.locomo, long, given.calls)
            index(long)
            measure(serve(long), {}, calls)
        if given.peer:
            print(given.peer)
            kept = {
                "SOURCE_DIR": theirs,
                "INDEX_PATH": Path(made) / "index.db",
                "READ_ONLY": "false",
            }
            env = {f"MARKDOWN_VAULT_MCP_{key}": str(value) for key, value in kept.items()}
            try:
                measure(shlex.split(given.peer), env, calls_of(theirs, given.calls, of_peer=True))
            except (Gone, OSError) as error:
                print(f"  it does not run here: {error!r}")


def index(vault: Path) -> None:
    began = time.process_time()
    with EnhancedStore(vault) as store:
        store.sync()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  indexed in {time.process_time() - began:.1f} s, with {most:.0f} MB at most")


if __name__ == "__main__":
    main()
