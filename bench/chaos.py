"""Everything at once on one vault: writers, kills, deleted indexes, an editor and git.

    python bench/chaos.py [--minutes 1] [--writers 6] [--kill-seconds 0.3]
                          [--index-seconds 5] [--seed 1]

Every writer has a `simplemem serve` of its own and a folder that only it changes. All writers also
append to notes that an editor overwrites, by renaming and in place. While more than half of the
servers run, one is killed at intervals; the index is deleted at intervals, and git switches a
hundred notes between two branches. One more server, the observer, is never killed: it is queried
and measured.

At the end

- every acknowledged change is there, and a change without an answer is there completely or not at
  all
- each text of the editor that a change of ours replaced is in the history
- git's notes are as git has them
- the index equals a rebuilt one
- the observer uses no more files or threads than early on, nor, in runs of five minutes and more,
  memory

Exits with 1 if any of this is not so.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.conversation import Conversation, Figures, Gone, failure_in, serve
from simplemem.note.note import read_note
from simplemem.settings.loading import load_settings
from simplemem.store import EnhancedStore

SHARED_NOTES: Final = 4
GIT_NOTES: Final = 100
NOTES_A_WRITER: Final = 12
MINUTES_UNTIL_LOADED: Final = 5
"""Before this, a server is still loading what it uses."""

EXPECTED_FAILURES: Final = {"conflict", "unavailable"}
"""A write that another one preceded, and a vault that others kept busy for too long."""

Bodies = dict[str, str | None]
"""The texts of notes by name. None: there is no such note."""


@dataclass
class Run:
    """What all threads share: the vault, the counts, and what was found wrong."""

    vault: Path
    stop: threading.Event = field(default_factory=threading.Event)
    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    servers: dict[int, Conversation] = field(default_factory=dict)  # by the number of the writer
    saves: list[tuple[str, str]] = field(default_factory=list)
    """Hashes of what the editor saved, and of what it found before its next save."""
    figures: list[Figures] = field(default_factory=list)  # of the observer, one a second

    def record_answer(self, tool: str, failure: str, *expected: str) -> bool:
        """Count an answer, note an unexpected failure, and tell whether it was a success."""
        self.counts[f"{tool}: {failure}" if failure else tool] += 1
        if failure and failure not in {*EXPECTED_FAILURES, *expected}:
            self.problems.append(f"{tool} failed: {failure}")
        return not failure


def main() -> int:
    """Run all threads for so long, and check the vault. Return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--writers", type=int, default=6)
    parser.add_argument("--kill-seconds", type=float, default=0.3)
    parser.add_argument("--index-seconds", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    with tempfile.TemporaryDirectory(
        prefix="simplemem-chaos-", ignore_cleanup_errors=True
    ) as folder:
        run = Run(Path(folder))
        make_repository(run.vault)
        for number in range(SHARED_NOTES):
            (run.vault / f"shared{number}.md").write_text("start\n")
        writers = [Writer(run, number, options.seed) for number in range(options.writers)]
        run_threads(run, writers, options)
        check_vault(run, writers)
        compare_figures(run, options.minutes)

    print(f"{options.minutes:g} minutes, seed {options.seed}: {dict(run.counts)}")
    for problem in dict.fromkeys(run.problems[:20]):
        print(problem)
    lost = sum(problem.startswith("lost") for problem in run.problems)
    torn = sum(problem.startswith("torn") for problem in run.problems)
    print(
        f"{run.counts['answered']} answered changes, {lost} lost, {torn} torn, "
        f"{len(run.problems)} things wrong in all"
    )
    return 1 if run.problems else 0


def run_threads(run: Run, writers: list[Writer], options: argparse.Namespace) -> None:
    """Start a thread for each writer and each disturbance, and stop all after the given minutes."""

    def rng(name: str) -> random.Random:
        return random.Random(f"{options.seed} {name}")

    tasks: list[Callable[[], None]] = [writer.work for writer in writers]
    tasks += [
        partial(edit, run, rng("editor")),
        partial(switch_branches, run, rng("git")),
        partial(kill_servers, run, rng("killer"), options.kill_seconds, options.writers),
        partial(delete_index, run, options.index_seconds),
        partial(observe, run, rng("observer")),
    ]
    threads = [threading.Thread(target=_run_task, args=(run, task)) for task in tasks]
    for thread in threads:
        thread.start()
    run.stop.wait(options.minutes * 60)
    run.stop.set()
    for thread in threads:
        thread.join()


def _run_task(run: Run, task: Callable[[], None]) -> None:
    """Run a task. If it raises, that is a problem, and the run ends."""
    try:
        task()
    except BaseException as error:  # noqa: BLE001  (it is reported)
        run.problems.append(f"a hand of the harness failed: {error!r}")
        run.stop.set()


# The writers


class Writer:
    """A client whose server may die at any moment. Guards what was acknowledged to it."""

    def __init__(self, run: Run, number: int, seed: int) -> None:
        self.run = run
        self.number = number
        self._rng = random.Random(f"{seed} writer {number}")
        self.acknowledged: Bodies = {}
        self._in_progress: Bodies = {}
        self._changes = 0

    def work(self) -> None:
        """Write until the run stops, with a new server whenever the last one has died."""
        while not self.run.stop.is_set():
            command = serve(self.run.vault)
            name = f"writer {self.number}"
            with (
                contextlib.suppress(Gone),
                Conversation(command, quiet=True, name=name) as server,
            ):
                self.settle()
                self.run.servers[self.number] = server
                while not self.run.stop.is_set():
                    self._change_something(server)

    def settle(self) -> None:
        """Check if the change without an answer was made, completely or not at all.

        The server has recovered interrupted writes before it answers at all.
        """
        found = {name: self.body_on_disk(name) for name in self._in_progress}
        unchanged = {name: self.acknowledged.get(name) for name in self._in_progress}
        if found not in (unchanged, self._in_progress):
            self.run.problems.append(
                f"torn: {found}, of {self._in_progress} on {list(unchanged.values())}"
            )
        if self._in_progress and found == self._in_progress:
            self.run.counts["unanswered, and stood"] += 1
        self.acknowledged |= found
        self._in_progress = {}

    def body_on_disk(self, name: str) -> str | None:
        """Return the text of a note without its header, or None if there is no such note."""
        path = self.run.vault / f"{name}.md"
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        return read_note(data).content.strip()

    def _change_something(self, server: Conversation) -> None:
        """Make a random change: to a note that the editor overwrites too, or to one of our own."""
        self._changes += 1
        if self._rng.random() < 0.25:
            self._append_to_shared_note(server)
            return

        filler = "lorem ipsum " * self._rng.randrange(1, 200)
        text = f"body {self.number}.{self._changes} {filler}".strip()
        name = f"w{self.number}/n{self._rng.randrange(NOTES_A_WRITER)}"
        old = self.acknowledged.get(name)
        kind = self._rng.choice(["replace", "replace", "append", "move", "delete"])
        if old is None:
            self._change(server, {name: text}, "create_memory", name=name, content=text)
        elif kind == "replace":
            self._change(server, {name: text}, "update_memory", name=name, content=text)
        elif kind == "append":
            line = f"more {self._changes}"
            after = {name: f"{old}\n\n{line}"}  # what is appended is a block of its own
            self._change(server, after, "update_memory", name=name, append=line)
        elif kind == "delete":
            self._change(server, {name: None}, "delete_memory", name=name)
        else:
            self._move_there_and_back(server, name, old)

    def _append_to_shared_note(self, server: Conversation) -> None:
        name = f"shared{self._rng.randrange(SHARED_NOTES)}"
        line = f"line {self.number}.{self._changes}"
        failure = failure_in(server.use("update_memory", name=name, append=line))
        # An editor that saves in place may be in the middle of it.
        self.run.record_answer("append between an editor's saves", failure, "not_found")

    def _move_there_and_back(self, server: Conversation, name: str, body: str) -> None:
        new = f"w{self.number}/deep/m{self._changes}"
        self._change(server, {name: None, new: body}, "move_memory", name=name, new_name=new)
        was_moved = self.acknowledged.get(new) is not None
        if was_moved:
            self._change(server, {new: None, name: body}, "move_memory", name=new, new_name=name)

    def _change(self, server: Conversation, after: Bodies, tool: str, /, **arguments: str) -> None:
        """Call a tool that changes notes to `after`. Raises Gone if the server dies meanwhile."""
        self._in_progress = after
        failure = failure_in(server.use(tool, **arguments))
        if self.run.record_answer(tool, failure):
            self.acknowledged |= after
            self.run.counts["answered"] += 1
        self._in_progress = {}


# The disturbances


def edit(run: Run, rng: random.Random) -> None:
    """Save texts without reading the notes first, by renaming and in place, as an editor does."""
    last_saved: dict[str, str] = {}
    while not run.stop.wait(rng.uniform(0.01, 0.06)):
        run.counts["saves of the editor"] += 1
        path = run.vault / f"shared{rng.randrange(SHARED_NOTES)}.md"
        if path.name in last_saved:
            run.saves.append((last_saved[path.name], sha256(path.read_bytes())))

        paragraph = f"# By hand\n\nSave {run.counts['saves of the editor']}.\n"
        text = paragraph.encode() * rng.randrange(1, 40)
        if rng.random() < 0.5:
            _save_by_renaming(path, text)
        else:
            _save_in_place(path, text)
        last_saved[path.name] = sha256(text)


def _save_by_renaming(path: Path, text: bytes) -> None:
    temporary = path.with_name(f".{path.name}.swp")
    temporary.write_bytes(text)
    temporary.replace(path)


def _save_in_place(path: Path, text: bytes) -> None:
    with path.open("r+b", buffering=0) as file:
        file.truncate()
        file.write(text)


def sha256(data: bytes) -> str:
    """Return the hash of a text as the history names it."""
    return hashlib.sha256(data).hexdigest()


def make_repository(vault: Path) -> None:
    """Make a repository with a hundred notes, which differ between its branches `one` and `two`."""
    git(vault, "init", "-q", "-b", "one")
    (vault / "churn").mkdir()
    _commit_notes(vault, "one")
    git(vault, "checkout", "-q", "-b", "two")
    _commit_notes(vault, "two")


def _commit_notes(vault: Path, branch: str) -> None:
    for number in range(GIT_NOTES):
        target = (number * 7 + len(branch)) % GIT_NOTES
        text = f"# {branch}\n\nplum {number} [[c{target}]] {branch}\n"
        (vault / "churn" / f"c{number}.md").write_text(text * (1 + number % 5))
    git(vault, "add", "churn")
    git(vault, "commit", "-q", "-m", branch)


def git(vault: Path, *arguments: str) -> str:
    """Run git in the vault and return what it printed.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    author = ["-c", "user.name=chaos", "-c", "user.email=chaos@localhost"]
    command = ["git", "-C", str(vault), *author, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def switch_branches(run: Run, rng: random.Random) -> None:
    """Check out one of the branches every few seconds."""
    while not run.stop.wait(rng.uniform(1, 3)):
        git(run.vault, "checkout", "-q", rng.choice(["one", "two"]))
        run.counts["git checkouts"] += 1


def kill_servers(run: Run, rng: random.Random, seconds: float, writers: int) -> None:
    """Kill a server at intervals, as long as more than half run: the others are starting."""
    while not run.stop.wait(seconds):
        if len(run.servers) > writers // 2:
            number = rng.choice([*run.servers])
            run.servers.pop(number).process.kill()
            run.counts["kills"] += 1


def delete_index(run: Run, seconds: float) -> None:
    """Delete the files of the index at intervals."""
    while not run.stop.wait(seconds):
        for file in (run.vault / ".simplemem").glob("index.db*"):
            file.unlink(missing_ok=True)
        run.counts["index deletions"] += 1


def observe(run: Run, rng: random.Random) -> None:
    """Query a server that is never killed, and record what it uses once a second."""
    with Conversation(serve(run.vault), name="observer") as server:
        last_figures = time.monotonic()
        while not run.stop.wait(0.1):
            note = f"c{rng.randrange(GIT_NOTES)}"
            tool, arguments = _choose_query(note, rng)
            run.record_answer(tool, server.call(tool, arguments), "not_found")
            method = rng.choice(["resources/subscribe", "resources/unsubscribe"])
            server.ask(method, {"uri": f"memory://churn/{note}"})
            if time.monotonic() - last_figures > 1:
                last_figures = time.monotonic()
                run.figures.append(server.figures())
        if server.end() != 0:
            run.problems.append("the server that lived did not end well")


def _choose_query(note: str, rng: random.Random) -> tuple[str, dict[str, Any]]:
    """Return a tool that reads, with its arguments."""
    queries: list[tuple[str, dict[str, Any]]] = [
        ("search_memories", {"query": "plum", "limit": rng.choice([5, 20])}),
        ("list_memories", {}),
        ("read_memory", {"name": note}),
        ("get_backlinks", {"name": note}),
        ("memory_history", {"diff": True}),
        ("build_context", {"query": f"plum {note}"}),
    ]
    return rng.choice(queries)


# The checks


def check_vault(run: Run, writers: list[Writer]) -> None:
    """Open the vault as the next start does, and compare it with what was acknowledged."""
    with EnhancedStore(run.vault, load_settings({"embed.provider": "none"})) as store:
        store.sync(embed=False)
        for writer in writers:
            writer.settle()
            _check_notes_of(run, writer)
        errors = [finding for finding in store.doctor() if finding.level == "error"]
        run.problems += [f"the index: {error.message}" for error in errors]
        run.problems += [f"left behind: {path}" for path in run.vault.rglob(".simplemem-*.tmp")]
        _check_saves(run, store)

    changed = git(run.vault, "status", "--porcelain", "--untracked-files=no")
    if changed:
        run.problems.append(f"git's notes are not as git has them: {changed.split()}")


def _check_notes_of(run: Run, writer: Writer) -> None:
    """Compare the notes in a writer's folder with what was acknowledged to it."""
    folder = run.vault / f"w{writer.number}"
    found = {
        path.relative_to(run.vault).as_posix().removesuffix(".md") for path in folder.rglob("*.md")
    }
    for name in sorted(found | writer.acknowledged.keys()):
        if writer.acknowledged.get(name) != writer.body_on_disk(name):
            run.problems.append(f"lost: {name}")
    run.counts["notes compared"] += len(found)


def _check_saves(run: Run, store: EnhancedStore) -> None:
    """Check that the history has each save of the editor that a change of ours replaced."""
    our_hashes = {entry.sha256 for entry in store.history(limit=10_000_000)}
    replaced = [saved for saved, found in run.saves if found != saved and found in our_hashes]
    run.counts["saves of the editor that ours took the place of"] = len(replaced)
    history = store._parts.vault.history
    for saved in replaced:
        if history.content(saved) is None:
            run.problems.append(f"a save vanished: {saved}")


def compare_figures(run: Run, minutes: float) -> None:
    """Print the observer's figures in the second and last quarter, and note what has grown."""
    quarter = len(run.figures) // 4
    if not quarter:
        print("too short to compare")
        return

    early = run.figures[quarter : 2 * quarter]
    late = run.figures[-quarter:]
    medians = {}  # of the second quarter
    growth = {}
    for name in ("threads", "files", "private", "resident"):
        early_median = statistics.median(getattr(figures, name) for figures in early)
        late_median = statistics.median(getattr(figures, name) for figures in late)
        medians[name] = early_median
        growth[name] = late_median - early_median
        print(
            f"{name}: {early_median:.1f} in the second quarter, {late_median:.1f} in the last "
            f"({late_median - early_median:+.1f})"
        )

    # Some files and threads come and go. A second thread that answers opens the index: three files.
    if growth["threads"] > 2:
        run.problems.append("not flat: threads")
    if growth["files"] > 2 + 3 * max(growth["threads"], 0.0):
        run.problems.append("not flat: files")
    if minutes >= MINUTES_UNTIL_LOADED and growth["resident"] > medians["resident"] / 20:
        run.problems.append("not flat: memory")


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.exit(main())
