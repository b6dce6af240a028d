"""Everything at once: writers through real servers, kills, index deletions, an editor and git on one vault.

    python bench/chaos.py [--minutes 1] [--writers 6] [--kill-seconds 0.3] [--index-seconds 5] [--seed 1]

Every writer has a `simplemem serve` of its own and a folder that only it changes; all append to notes that an editor
saves over, by renaming and in place. While more than half of the servers are up, one is killed every so often; the
index is deleted, and git switches a hundred notes between two branches. One more server is never killed, and is asked
and measured.

At the end every answered change stands, or what the one unanswered would have made of it; no note is torn; whatever of
the editor's a change of ours took the place of is in the history; git's notes are as git has them; the index equals a
rebuilt one; and the server that lived holds no more files or threads than early on, nor, in five minutes and more,
memory. Exits with 1 when anything is otherwise.
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
from simplemem.note.note import read_note
from simplemem.settings.loading import load_settings
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
    saves: list[tuple[str, str]] = field(
        default_factory=list
    )  # hash saved, hash found before the next save
    seen: list[Figures] = field(default_factory=list)

    def judge(self, tool: str, failure: str, *also: str) -> bool:
        """Count an answer; whether it was a success."""
        self.counted[f"{tool}: {failure}" if failure else tool] += 1
        if failure and failure not in {*EXPECTED, *also}:
            self.wrong.append(f"{tool} failed: {failure}")
        return not failure


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
            with (
                contextlib.suppress(Gone),
                Conversation(serve(self.run.vault), quiet=True, name=f"writer {self.me}") as talk,
            ):
                self.settle()
                self.run.servers[self.me] = talk
                while not self.run.stop.is_set():
                    self.act(talk)

    def body_on_disk(self, name: str) -> str | None:
        try:
            return read_note((self.run.vault / f"{name}.md").read_bytes()).content.strip()
        except FileNotFoundError:
            return None

    def settle(self) -> None:
        """What was not answered happened or did not: see which. The server has cleared up before it said hello."""
        there = {name: self.body_on_disk(name) for name in self.flying}
        if there not in ({name: self.known.get(name) for name in self.flying}, self.flying):
            self.run.wrong.append(
                f"torn: {there}, of {self.flying} on {[self.known.get(n) for n in self.flying]}"
            )
        self.run.counted["unanswered, and stood"] += bool(self.flying) and there == self.flying
        self.known |= there
        self.flying = {}

    def act(self, talk: Conversation) -> None:
        self.made += 1
        if self.chance.random() < 0.25:
            shared = f"shared{self.chance.randrange(SHARED)}"
            failure = failure_in(
                talk.use("update_memory", name=shared, append=f"line {self.me}.{self.made}")
            )
            # An editor that saves in place may be in the middle.
            self.run.judge("append between an editor's saves", failure, "not_found")
            return
        text = (
            f"body {self.me}.{self.made} {'lorem ipsum ' * self.chance.randrange(1, 200)}".strip()
        )
        name = f"w{self.me}/n{self.chance.randrange(OWN)}"
        old, kind = (
            self.known.get(name),
            self.chance.choice(["replace", "replace", "append", "move", "delete"]),
        )
        if old is None:
            self.change(talk, {name: text}, "create_memory", name=name, content=text)
        elif kind == "replace":
            self.change(talk, {name: text}, "update_memory", name=name, content=text)
        elif kind == "append":
            line = f"more {self.made}"
            # What is appended is a block of its own.
            self.change(talk, {name: f"{old}\n\n{line}"}, "update_memory", name=name, append=line)
        elif kind == "delete":
            self.change(talk, {name: None}, "delete_memory", name=name)
        else:
            new = f"w{self.me}/deep/m{self.made}"
            self.change(talk, {name: None, new: old}, "move_memory", name=name, new_name=new)
            if self.known.get(new) is not None:  # it was not refused
                self.change(talk, {new: None, name: old}, "move_memory", name=new, new_name=name)

    def change(self, talk: Conversation, after: Bodies, tool: str, /, **arguments: str) -> None:
        self.flying = after
        if self.run.judge(tool, failure_in(talk.use(tool, **arguments))):
            self.known |= after
            self.run.counted["answered"] += 1
        self.flying = {}


def edit(run: Run, chance: random.Random) -> None:
    """An editor that saves whole texts and never looks, by renaming and in place."""
    last: dict[str, str] = {}
    while not run.stop.wait(chance.uniform(0.01, 0.06)):
        run.counted["saves of the editor"] += 1
        path = run.vault / f"shared{chance.randrange(SHARED)}.md"
        if path.name in last:
            run.saves.append((last[path.name], sha(path.read_bytes())))
        text = (
            f"# By hand\n\nSave {run.counted['saves of the editor']}.\n".encode()
            * chance.randrange(1, 40)
        )
        if chance.random() < 0.5:
            beside = path.with_name(f".{path.name}.swp")
            beside.write_bytes(text)
            beside.replace(path)
        else:
            with path.open("r+b", buffering=0) as file:
                file.truncate()
                file.write(text)
        last[path.name] = sha(text)


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def git(vault: Path, *words: str) -> str:
    command = [
        "git",
        "-C",
        str(vault),
        "-c",
        "user.name=chaos",
        "-c",
        "user.email=chaos@localhost",
        *words,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def make_repository(vault: Path) -> None:
    """A hundred notes in two branches."""
    git(vault, "init", "-q", "-b", "one")
    (vault / "churn").mkdir()
    for branch in ("one", "two"):
        if branch == "two":
            git(vault, "checkout", "-q", "-b", "two")
        for k in range(CHURN):
            line = f"# {branch}\n\nplum {k} [[c{(k * 7 + len(branch)) % CHURN}]] {branch}\n"
            (vault / "churn" / f"c{k}.md").write_text(line * (1 + k % 5))
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
            run.servers.pop(chance.choice([*run.servers])).process.kill()
            run.counted["kills"] += 1


def delete_index(run: Run, seconds: float) -> None:
    while not run.stop.wait(seconds):
        for file in (run.vault / ".simplemem").glob("index.db*"):
            file.unlink(missing_ok=True)
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
            run.judge(tool, talk.call(tool, arguments), "not_found")
            talk.ask(
                chance.choice(["resources/subscribe", "resources/unsubscribe"]),
                {"uri": f"memory://churn/{name}"},
            )
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
            found = {
                path.relative_to(run.vault).as_posix()[:-3]
                for path in (run.vault / f"w{writer.me}").rglob("*.md")
            }
            for name in sorted(found | writer.known.keys()):
                if writer.known.get(name) != writer.body_on_disk(name):
                    run.wrong.append(f"lost: {name}")
            run.counted["notes compared"] += len(found)
        run.wrong += [
            f"the index: {each.message}" for each in store.doctor() if each.level == "error"
        ]
        run.wrong += [f"left behind: {path}" for path in run.vault.rglob(".simplemem-*.tmp")]
        ours = {entry.sha256 for entry in store.history(limit=10_000_000)}
        taken = [saved for saved, there in run.saves if there != saved and there in ours]
        run.counted["saves of the editor that ours took the place of"] = len(taken)
        content = store._parts.vault.history.content
        run.wrong += [f"a save vanished: {saved}" for saved in taken if content(saved) is None]
    if changed := git(run.vault, "status", "--porcelain", "--untracked-files=no"):
        run.wrong.append(f"git's notes are not as git has them: {changed.split()}")


def compare(run: Run, minutes: float) -> None:
    """Print the second quarter and the last side by side: whether memory grew, or files or threads were left behind."""
    quarter, grown, before = len(run.seen) // 4, {}, 0.0
    if not quarter:
        return print("too short to compare")
    for what in ("threads", "files", "private", "resident"):
        parts = run.seen[quarter : 2 * quarter], run.seen[-quarter:]
        before, after = (statistics.median(getattr(each, what) for each in part) for part in parts)
        grown[what] = after - before
        print(
            f"{what}: {before:.1f} in the second quarter, {after:.1f} in the last ({after - before:+.1f})"
        )
    # Some files and threads come and go, and a second thread that answers has the index open: three files.
    run.wrong += ["not flat: threads"] if grown["threads"] > 2 else []
    run.wrong += ["not flat: files"] if grown["files"] > 2 + 3 * max(grown["threads"], 0.0) else []
    # Before five minutes a server is still loading what it uses. More than a twentieth then is a leak.
    run.wrong += ["not flat: memory"] if minutes >= 5 and grown["resident"] > before / 20 else []
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    for name, usual in (
        ("minutes", 1.0),
        ("writers", 6),
        ("kill-seconds", 0.3),
        ("index-seconds", 5.0),
        ("seed", 1),
    ):
        parser.add_argument(f"--{name}", type=type(usual), default=usual)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(
        prefix="simplemem-chaos-", ignore_cleanup_errors=True
    ) as folder:
        run = Run(Path(folder))
        make_repository(run.vault)
        for k in range(SHARED):
            (run.vault / f"shared{k}.md").write_text("start\n")
        writers = [Writer(run, me, given.seed) for me in range(given.writers)]
        hands: list[Callable[[], None]] = [
            *(writer.work for writer in writers),
            lambda: edit(run, random.Random(f"{given.seed} editor")),
            lambda: switch(run, random.Random(f"{given.seed} git")),
            lambda: kill(
                run, random.Random(f"{given.seed} killer"), given.kill_seconds, given.writers
            ),
            lambda: delete_index(run, given.index_seconds),
            lambda: observe(run, random.Random(f"{given.seed} observer")),
        ]
        threads = [threading.Thread(target=guarded, args=(run, hand)) for hand in hands]
        for thread in threads:
            thread.start()
        run.stop.wait(given.minutes * 60)
        run.stop.set()
        for thread in threads:
            thread.join()
        look(run, writers)
        compare(run, given.minutes)
    print(f"{given.minutes:g} minutes, seed {given.seed}: {dict(run.counted)}")
    print(*dict.fromkeys(run.wrong[:20]), sep="\n", end="\n" if run.wrong else "")
    lost, torn = (sum(said.startswith(kind) for said in run.wrong) for kind in ("lost", "torn"))
    print(
        f"{run.counted['answered']} answered changes, {lost} lost, {torn} torn, {len(run.wrong)} things wrong in all"
    )
    return 1 if run.wrong else 0


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
