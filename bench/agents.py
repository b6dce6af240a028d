"""What a call costs as an agent meets it.

    python bench/agents.py [--vault DIR] [--peer COMMAND] [--locomo FILE.json.gz]

Prints the CPU milliseconds of the server for `tools/call` over standard streams, after ten calls
that are not counted. It serves a copy of the vault, or 10,000 synthetic notes. The calls are, in
this order: search for six words of a note; the same as a question; read; append to twenty notes;
the first searches again; create.

`--peer "…/markdown-vault-mcp serve"` lets another server do the same on the same notes. `--locomo`
joins the sessions of such a file to 120 notes of 13 kB and asks its questions. `--doctor` prints
what `doctor` costs. `--notes 100000 --folders 1` puts very many notes into one folder.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.conversation import Conversation, Gone, failure_in, serve
from bench.measure import child_cpu_seconds, cpu_seconds, peak_memory
from bench.run import COMMAND
from bench.vaults import draw_phrases, make_vault, notes_of
from simplemem.store import EnhancedStore

Calls = Mapping[str, Sequence[tuple[str, dict[str, Any]]]]
"""For each row of the output the tools to call, with their arguments."""

_UNCOUNTED_CALLS: Final = 10  # they pay for what is loaded once
_JOINED_NOTES: Final = 120
_JOINED_SIZE: Final = 13_000  # characters


def main() -> None:
    """Measure simplemem and, if one is given, the other server."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--vault", type=Path)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--folders", type=int, default=20)
    parser.add_argument("--calls", type=int, default=110)
    parser.add_argument("--locomo", type=Path)
    parser.add_argument("--peer", default="")
    parser.add_argument("--doctor", action="store_true")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory(
        prefix="simplemem-agents-", ignore_cleanup_errors=True
    ) as temporary:
        root = Path(temporary)
        vault = root / "ours"
        if options.vault:
            shutil.copytree(options.vault, vault, ignore=shutil.ignore_patterns(".simplemem"))
        else:
            make_vault(vault, options.notes, folders=options.folders)
        if options.peer:
            shutil.copytree(vault, root / "theirs")

        print(f"simplemem, {len(list(vault.rglob('*.md')))} notes")
        index(vault)
        measure(serve(vault), {}, our_calls(sample(vault, options.calls)))
        if options.doctor:
            seconds = child_cpu_seconds([*COMMAND, "doctor", "--vault", str(vault)])
            print(f"  doctor: {seconds:.1f} s")
        if options.locomo:
            measure_long_notes(options.locomo, root / "long", options.calls)
        if options.peer:
            measure_peer(options.peer, root / "theirs", root / "index.db", options.calls)


def index(vault: Path) -> None:
    """Index a vault and print what it cost."""
    with EnhancedStore(vault) as store:
        seconds = cpu_seconds(store.sync)
    print(f"  indexed in {seconds:.1f} s, with {peak_memory():.0f} MB at most")


def measure_long_notes(file: Path, vault: Path, count: int) -> None:
    """Join sessions to long notes, index them, and print the cost of the questions about them."""
    vault.mkdir()
    data = json.loads(gzip.decompress(file.read_bytes()))
    write_long_notes(data["docs"], vault)
    index(vault)
    measure(serve(vault), {}, calls_about(data["queries"], count))


def measure_peer(command: str, vault: Path, index_file: Path, count: int) -> None:
    """Print the same figures of another server, or why it cannot run."""
    print(command)
    settings = {"SOURCE_DIR": vault, "INDEX_PATH": index_file, "READ_ONLY": "false"}
    env = {f"MARKDOWN_VAULT_MCP_{key}": str(value) for key, value in settings.items()}
    try:
        measure(shlex.split(command), env, peer_calls(sample(vault, count)))
    except (Gone, OSError) as error:
        print(f"  it does not run here: {error!r}")


@dataclass(frozen=True)
class Sample:
    """What is asked of a vault: the same of both servers."""

    phrases: list[str]  # six words of a note
    paths: list[str]  # of existing notes
    new_names: list[str]  # of notes to create

    @property
    def names(self) -> list[str]:
        """The names of the existing notes."""
        return [path.removesuffix(".md") for path in self.paths]


def sample(vault: Path, count: int) -> Sample:
    """Draw phrases and notes from a vault. The same vault gives the same ones."""
    rng = random.Random(5)
    files = notes_of(vault)
    phrases = draw_phrases(files, count, rng)
    paths = [file.relative_to(vault).as_posix() for file in rng.choices(files, k=count)]
    new_names = []
    for number, path in enumerate(paths):
        new_names.append(Path(path).with_name(f"written {number}").as_posix())
    return Sample(phrases, paths, new_names)


def our_calls(sampled: Sample) -> Calls:
    """Return the calls of simplemem's default tools."""
    searches = [("search_memories", {"query": phrase}) for phrase in sampled.phrases]
    questions = [("search_memories", {"query": f"{phrase}?"}) for phrase in sampled.phrases]
    edits = [("update_memory", {"name": name, "append": "More."}) for name in sampled.names[:20]]
    writes = [
        ("create_memory", {"name": name, "content": phrase})
        for name, phrase in zip(sampled.new_names, sampled.phrases, strict=True)
    ]
    return {
        "search, six words": searches,
        "search, a question": questions,
        "read": [("read_memory", {"name": name}) for name in sampled.names],
        "edit": edits,
        "search, six words, after these edits": searches,
        "write": writes,
    }


def peer_calls(sampled: Sample) -> Calls:
    """Return the calls of markdown-vault-mcp's tools, which has no append."""
    phrases = sampled.phrases
    writes = [
        ("write", {"path": f"{name}.md", "content": phrase})
        for name, phrase in zip(sampled.new_names, phrases, strict=True)
    ]
    return {
        "search, six words": [("search", {"query": phrase, "limit": 5}) for phrase in phrases],
        "search, a question": [
            ("search", {"query": f"{phrase}?", "limit": 5}) for phrase in phrases
        ],
        "read": [("read", {"path": path}) for path in sampled.paths],
        "write": writes,
    }


def write_long_notes(sessions: list[dict[str, Any]], vault: Path) -> None:
    """Join the sessions, again and again, to notes of the same size."""
    texts = [_as_list(session["turns"]) for session in sessions]
    pending = ""
    session_number = 0
    for number in range(_JOINED_NOTES):
        while len(pending) < _JOINED_SIZE:
            text = texts[session_number % len(texts)]
            pending += f"## Session {session_number}\n\n{text}\n\n"
            session_number += 1
        note = f"# Talk {number}\n\n{pending[:_JOINED_SIZE]}\n"
        (vault / f"talk {number}.md").write_text(note, encoding="utf-8")
        pending = pending[_JOINED_SIZE:]


def _as_list(turns: list[tuple[str, str]]) -> str:
    return "\n".join(f"- **{who}:** {text}" for who, text in turns)


def calls_about(queries: list[dict[str, Any]], count: int) -> Calls:
    """Return searches for drawn questions: as questions, as statements, and by words only."""
    drawn = random.Random(5).choices(queries, k=count)
    texts = [query["query"].strip("?") for query in drawn]
    questions = [{"query": f"{text}?"} for text in texts]
    statements = [{"query": f"About {text}"} for text in texts]
    by_words = [{**question, "mode": "text"} for question in questions]
    return {
        "long notes, a question": [("search_memories", arguments) for arguments in questions],
        "long notes, a statement": [("search_memories", arguments) for arguments in statements],
        "long notes, by words": [("search_memories", arguments) for arguments in by_words],
    }


def measure(command: Sequence[str], env: Mapping[str, str], calls: Calls) -> None:
    """Start a server, make the calls, and print what each kind of call cost, and the memory."""
    start = time.perf_counter()
    with Conversation(command, env=env, quiet=True) as server:
        server.ask("tools/list", {})
        print(f"  its tools are listed after {time.perf_counter() - start:.2f} s")

        _wait_until_idle(server)
        for title, row in calls.items():
            print(f"  {title}: {_measure_row(server, row)}", flush=True)
        print(f"  memory: {server.figures().resident:.0f} MB")


def _wait_until_idle(server: Conversation) -> None:
    """Wait until the server no longer uses CPU, so that its start is not counted."""
    last_cpu = -1.0
    while server.figures().cpu - last_cpu > 0.1:
        last_cpu = server.figures().cpu
        time.sleep(3)


def _measure_row(server: Conversation, calls: Sequence[tuple[str, dict[str, Any]]]) -> str:
    """Make calls of one kind, and describe their mean cost and how many failed."""
    for tool, arguments in calls[:_UNCOUNTED_CALLS]:
        server.use(tool, **arguments)

    counted = calls[_UNCOUNTED_CALLS:]
    cpu_at_start = server.figures().cpu
    failed = 0
    for tool, arguments in counted:
        if failure_in(server.use(tool, **arguments)):
            failed += 1
    spent = server.figures().cpu - cpu_at_start

    text = f"{1000 * spent / len(counted):.1f} ms"
    if failed:
        text += f", {failed} failed"
    return text


if __name__ == "__main__":
    main()
