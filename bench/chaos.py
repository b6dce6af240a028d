"""Everything at once: writers through real servers, kills, index deletions, an editor and git on one vault.

    python bench/chaos.py [--minutes 1] [--writers 6] [--kill-seconds 0.3] [--index-seconds 5] [--seed 1]

Every writer has a `simplemem serve` of its own and a folder that only it changes (create, replace, append, move, delete);
all append to notes that an editor saves over, by renaming and in place. While more than half of the servers are up, one is
killed every so often; the index is deleted, and git switches a hundred notes between two branches. One more server is never
killed, and is asked and measured.

At the end every answered change stands, or what the one unanswered would have made of it; no note is torn; whatever of the
editor's a change of ours took the place of is in the history; git's notes are as git has them; the index equals a rebuilt
one; and the server that lived holds no more files or threads than early on, nor, in five minutes and more, memory. Exits
with 1 when anything is otherwise.
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
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.conversation import Conversation, Figures, Gone, failure_in, serve
from simplemem.config import load_settings
from simplemem.note.note import read_note
from simplemem.store import EnhancedStore

SHARED, CHURN, OWN = 4, 100, 12
EXPECTED = {"conflict", "unavailable"}
"""Refusals that are as they should be: a lost race, and a vault that others kept busy for too long."""

Bodies = dict[str, str | None]  # None: there is no such note


@dataclass
class Run:
    """What is shared by all hands."""

    vault: Path
    stop: threading.Event = field(default_factory=threading.Event)
    counted: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    servers: dict[int, Conversation] = field(default_factory=dict)
    saves: list[tuple[str, str, str]] = field(default_factory=list)  # note, hash saved, hash found before the next save
    seen: list[Figures] = field(default_factory=list)


class Writer:
    """One client whose server may die at any moment. It knows what it was told."""

    def __init__(self, run: Run, me: int, seed: int) -> None:
        self.run, self.me = run, me
        self.chance = random.Random(f"{seed} writer {me}")
        self.known: Bodies = {}
        self.flying: Bodies = {}
        self.made = 0

    def work(self) -> None:
        while not self.run.stop.is_set():
            try:
                with Conversation(serve(self.run.vault), quiet=True, name=f"writer {self.me}") as talk:
                    self.settle()
                    self.run.servers[self.me] = talk
                    while not self.run.stop.is_set():
                        self.act(talk)
            except Gone:
                self.run.counted["lives"] += 1

    def body_on_disk(self, name: str) -> str | None:
        try:
            return read_note((self.run.vault / f"{name}.md").read_bytes()).content.strip()
        except FileNotFoundError:
            return None

    def settle(self) -> None:
        """What was not answered happened or did not: see which. The server has cleared up before it said hello."""
        there = {name: self.body_on_disk(name) for name in self.flying}
        if there not in ({name: self.known.get(name) for name in self.flying}, self.flying):
            self.run.wrong.append(f"torn: {there}, of {self.flying} on {[self.known.get(n) for n in self.flying]}")
        self.run.counted["unanswered, and stood"] += bool(self.flying) and there == self.flying
        self.known |= there
        self.flying = {}

    def act(self, talk: Conversation) -> None:
        self.made += 1
        if self.chance.random() < 0.25:
            return self.append_to_shared(talk)
        text = f"body {self.me}.{self.made} " + "lorem ipsum " * self.chance.randrange(1, 200)
        text = text.strip()
        name = f"w{self.me}/n{self.chance.randrange(OWN)}"
        old = self.known.get(name)
        if old is None:
            self.change(talk, {name: text}, "create_memory", name=name, content=text)
            return None
        kind = self.chance.choice(["replace", "replace", "append", "move", "delete"])
        if kind == "replace":
            self.change(talk, {name: text}, "update_memory", name=name, content=text)
        elif kind == "append":
            self.change(
                talk, {name: f"{old}\nmore {self.made}"}, "update_memory", name=name, append=f"more {self.made}"
            )
        elif kind == "delete":
            self.change(talk, {name: None}, "delete_memory", name=name)
        else:
            new = f"w{self.me}/deep/m{self.made}" if "deep" not in name else f"w{self.me}/n{self.made % OWN}"
            if self.known.get(new) is None:
                self.change(talk, {name: None, new: old}, "move_memory", name=name, new_name=new)
                if self.known.get(new) is not None:  # it was not refused
                    self.change(talk, {new: None, name: old}, "move_memory", name=new, new_name=name)
        return None

    def change(self, talk: Conversation, after: Bodies, tool: str, /, **arguments: str) -> None:
        self.flying = after
        failure = failure_in(talk.use(tool, **arguments))
        if not failure:
            self.known |= after
            self.run.counted["answered"] += 1
        elif failure not in EXPECTED:
            self.run.wrong.append(f"{tool} failed: {failure}")
        else:
            self.run.counted[f"refused: {failure}"] += 1
        self.flying = {}

    def append_to_shared(self, talk: Conversation) -> None:
        name = f"shared{self.chance.randrange(SHARED)}"
        failure = failure_in(talk.use("update_memory", name=name, append=f"line {self.me}.{self.made}"))
        if failure and failure not in EXPECTED | {"not_found"}:  # an editor that saves in place may be in the middle
            self.run.wrong.append(f"an append failed: {failure}")
        self.run.counted["appended between an editor's saves"] += not failure


def edit(run: Run, chance: random.Random) -> None:
    """An editor that saves whole texts and never looks, by renaming and in place."""
    last: dict[str, str] = {}
    k = 0
    while not run.stop.wait(chance.uniform(0.01, 0.06)):
        k += 1
        path = run.vault / f"shared{chance.randrange(SHARED)}.md"
        if path.name in last:
            run.saves.append((path.name, last[path.name], sha(path.read_bytes())))
        text = (f"# By hand\n\nSave {k} of {path.stem}.\n" * chance.randrange(1, 40)).encode()
        if chance.random() < 0.5:
            beside = path.with_name(f".{path.name}.swp")
            beside.write_bytes(text)
            beside.replace(path)
        else:
            with path.open("r+b", buffering=0) as file:
                file.truncate()
                file.write(text)
        last[path.name] = sha(text)
        run.counted["saves of the editor"] += 1


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def git(vault: Path, *words: str) -> str:
    command = ["git", "-C", str(vault), "-c", "user.name=chaos", "-c", "user.email=chaos@localhost", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def make_repository(vault: Path) -> None:
    """A hundred notes in two branches."""
    git(vault, "init", "-q", "-b", "one")
    for branch in ("one", "two"):
        if branch == "two":
            git(vault, "checkout", "-q", "-b", "two")
        for k in range(CHURN):
            path = vault / "churn" / f"c{k}.md"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"# {branch}\n\nplum {k} [[c{(k * 7 + len(branch)) % CHURN}]] {branch}\n" * (1 + k % 5))
        git(vault, "add", "churn")
        git(vault, "commit", "-q", "-m", branch)


def switch(run: Run, chance: random.Random) -> None:
    while not run.stop.wait(chance.uniform(1, 3)):
        git(run.vault, "checkout", "-q", chance.choice(["one", "two"]))
        run.counted["git checkouts"] += 1


def kill(run: Run, chance: random.Random, seconds: float, writers: int) -> None:
    """One after the other, but never so many that all are only ever starting."""
    while not run.stop.wait(seconds):
        if len(run.servers) > writers // 2:
            talk = run.servers.pop(chance.choice([*run.servers]))
            talk.process.kill()
            run.counted["kills"] += 1


def delete_index(run: Run, seconds: float) -> None:
    while not run.stop.wait(seconds):
        for file in (run.vault / ".simplemem").glob("index.db*"):
            with contextlib.suppress(FileNotFoundError):
                file.unlink()
        run.counted["index deletions"] += 1


def observe(run: Run, chance: random.Random) -> None:
    """The server that is never killed: it must answer, and hold no more and more."""
    with Conversation(serve(run.vault), name="observer") as talk:
        sampled = time.monotonic()
        while not run.stop.wait(0.1):
            name = f"c{chance.randrange(CHURN)}"
            tool, arguments = chance.choice([
                ("search_memories", {"query": "plum", "limit": chance.choice([5, 20])}), ("list_memories", {}),
                ("read_memory", {"name": name}), ("get_backlinks", {"name": name}), ("memory_history", {"diff": True}),
                ("build_context", {"query": f"plum {name}"}),
            ])  # fmt: skip
            failure = talk.call(tool, arguments)
            talk.ask(chance.choice(["resources/subscribe", "resources/unsubscribe"]), {"uri": f"memory://churn/{name}"})
            run.counted[f"{tool}: {failure}" if failure else "questions answered"] += 1
            if failure and failure not in EXPECTED | {"not_found"}:
                run.wrong.append(f"{tool} failed: {failure}")
            if time.monotonic() - sampled > 1:
                sampled = time.monotonic()
                run.seen.append(talk.figures())
        if talk.end() != 0:
            run.wrong.append("the server that lived did not end well")


def look(run: Run, writers: list[Writer]) -> None:
    """Start again as anybody would, and compare with what was told."""
    with EnhancedStore(run.vault, load_settings({"embed.provider": "none"})) as store:
        store.sync(embed=False)
        for writer in writers:
            writer.settle()
            found = {f"w{writer.me}/{p.relative_to(run.vault / f'w{writer.me}').as_posix()[:-3]}": p
                     for p in (run.vault / f"w{writer.me}").rglob("*.md")}  # fmt: skip
            meant = {name: body for name, body in writer.known.items() if body is not None}
            for name in sorted({*found, *meant}):
                if meant.get(name) != writer.body_on_disk(name):
                    run.wrong.append(f"lost: {name}")
            run.counted["notes compared"] += len(meant)
        run.wrong += [f"the index: {each.message}" for each in store.doctor() if each.level == "error"]
        run.wrong += [f"left behind: {path}" for path in run.vault.rglob(".simplemem-*.tmp")]
        ours = {entry.sha256 for entry in store.history(limit=10_000_000)}
        taken = [saved for _, saved, there in run.saves if there != saved and there in ours]
        run.counted["saves of the editor that ours took the place of"] = len(taken)
        run.wrong += [
            f"a save vanished: {saved}" for saved in taken if store._core.vault.history.content(saved) is None
        ]
    changed = git(run.vault, "status", "--porcelain", "--untracked-files=no")
    if changed:
        run.wrong.append(f"git's notes are not as git has them: {changed.split()}")


def compare(seen: list[Figures], minutes: float) -> bool:
    """Print the second quarter and the last side by side. Whether memory grew, or files or threads were left behind."""
    quarter = len(seen) // 4
    if not quarter:
        print("too short to compare")
        return False
    early, late = seen[quarter : 2 * quarter], seen[-quarter:]
    grown, before = {}, 0.0
    for what in ("threads", "files", "private", "resident"):
        before, after = (statistics.median(getattr(each, what) for each in part) for part in (early, late))
        grown[what] = after - before
        print(f"{what}: {before:.1f} in the second quarter, {after:.1f} in the last ({after - before:+.1f})")
    # Some files and threads come and go, and a second thread that answers has the index open: three files.
    faults = ["threads"] if grown["threads"] > 2 else []
    faults += ["files"] if grown["files"] > 2 + 3 * max(grown["threads"], 0.0) else []
    # Before five minutes a server is still loading what it uses. More than a twentieth then is a leak.
    faults += ["memory"] if minutes >= 5 and grown["resident"] > before / 20 else []
    print(f"not flat: {', '.join(faults)}" if faults else "flat")
    return bool(faults)


def size_of(vault: Path) -> str:
    """What a server might hold more of, the longer this goes on. The notes are bounded, the log is not."""
    notes = [path.stat().st_size for path in vault.rglob("*.md") if ".simplemem" not in path.parts]
    log = (vault / ".simplemem" / "history" / "log.jsonl").read_bytes()
    told = f"{log.count(10)} changes in the log, {len(log) / 1000:.0f} kB"
    return f"in the end {len(notes)} notes, {sum(notes) / 1000:.0f} kB; {told}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--writers", type=int, default=6)
    parser.add_argument("--kill-seconds", type=float, default=0.3)
    parser.add_argument("--index-seconds", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="simplemem-chaos-", ignore_cleanup_errors=True) as folder:
        run = Run(Path(folder))
        make_repository(run.vault)
        for k in range(SHARED):
            (run.vault / f"shared{k}.md").write_text("start\n")
        writers = [Writer(run, me, given.seed) for me in range(given.writers)]
        hands: list[Callable[[], None]] = [
            *(writer.work for writer in writers),
            lambda: edit(run, random.Random(f"{given.seed} editor")),
            lambda: switch(run, random.Random(f"{given.seed} git")),
            lambda: kill(run, random.Random(f"{given.seed} killer"), given.kill_seconds, given.writers),
            lambda: delete_index(run, given.index_seconds),
            lambda: observe(run, random.Random(f"{given.seed} observer")),
        ]
        threads = [threading.Thread(target=guarded, args=(run, hand)) for hand in hands]
        began = shown = time.monotonic()
        for thread in threads:
            thread.start()
        while time.monotonic() - began < given.minutes * 60 and not run.stop.wait(0.5):
            if time.monotonic() - shown >= 60:
                shown = time.monotonic()
                print(f"{(shown - began) / 60:.0f} min: {dict(run.counted)}", flush=True)
        run.stop.set()
        for thread in threads:
            thread.join()
        look(run, writers)
        grown = compare(run.seen, given.minutes)
        print(size_of(run.vault))
    print(f"{given.minutes:g} minutes, seed {given.seed}: {dict(run.counted)}")
    print(*dict.fromkeys(run.wrong[:20]), sep="\n", end="\n" if run.wrong else "")
    lost, torn = (sum(said.startswith(kind) for said in run.wrong) for kind in ("lost", "torn"))
    print(f"{run.counted['answered']} answered changes, {lost} lost, {torn} torn, {len(run.wrong)} things wrong in all")
    return 1 if run.wrong or grown else 0


def guarded(run: Run, hand: Callable[[], None]) -> None:
    """A hand that fails ends the run, and is a fault."""
    try:
        hand()
    except BaseException as error:  # noqa: BLE001  (to be told of)
        run.wrong.append(f"a hand of the harness failed: {error!r}")
        run.stop.set()


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.exit(main())
