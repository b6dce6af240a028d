"""Thousands of sudden ends: a writer is killed at random moments, and what it had been told stays must be there.

    python bench/crash.py [--kills 300] [--notes 25] [--seed 1]

A child changes a small vault through the store (create, append, replace, tag, move with rewritten links, delete, undo),
makes the index anew now and then, and says each act before it begins and after it was answered. It is killed a few
milliseconds in. The next start must find the notes as after the last answer, or as after the change that was under way;
every link means the note it meant; and the index equals a rebuilt one. Prints what was counted; the exit code is 1 when
something was lost, torn or left behind. `--careless` writes notes in place instead of exchanging them, to show that
this would be seen.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from simplemem.note.note import read_note
from simplemem.settings.loading import load_settings
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore
from simplemem.vault.folder import disk

SETTINGS = load_settings({"embed.provider": "none"})


@dataclass(frozen=True)
class Note:
    """What a note is meant to be. `to` is the number of the note that its link means, for as long as that exists."""

    name: str
    to: int
    lines: tuple[str, ...]
    tag: str = ""


State = dict[int, Note]


@dataclass(frozen=True)
class Act:
    """A change: what to do with which note. `word` is the new line, tag or name."""

    kind: str
    note: int
    word: str = ""
    to: int = 0


def after(state: State, act: Act, before: State) -> State:
    """The notes after a change; `before` are those that an undo brings back."""
    if act.kind == "undo":
        return before
    if act.kind == "index":
        return state
    if act.kind == "delete":
        return {number: note for number, note in state.items() if number != act.note}
    if act.kind == "create":
        return state | {act.note: Note(act.word, act.to, ())}
    note = state[act.note]
    changed = {
        "append": replace(note, lines=(*note.lines, act.word)),
        "replace": replace(note, lines=(act.word,)),
        "tag": replace(note, tag=act.word),
        "move": replace(note, name=act.word),
    }
    return state | {act.note: changed[act.kind]}


def choose(state: State, chance: random.Random, made: int, last: Act | None, most: int) -> Act:
    """The next change."""
    if last is not None and last.kind != "undo" and chance.random() < 0.1:
        return Act("undo", last.note)
    if chance.random() < 0.04:
        return Act("index", 0)
    name = f"{chance.choice(['', 'a/', 'b/c/'])}n{made}"
    if len(state) < 3 or (len(state) < most and chance.random() < 0.3):
        return Act(
            "create", max(state, default=0) + 1 + made, name, chance.choice([*sorted(state)[:2], 0])
        )
    kind = chance.choices(["append", "replace", "tag", "move", "delete"], [3, 1, 1, 4, 1])[0]
    # The first notes are linked to by all others: moving one of them writes many.
    note = chance.choice(
        sorted(state)[:2] if kind == "move" and chance.random() < 0.7 else [*state]
    )
    return Act(kind, note, name if kind == "move" else f"w{made}")


def carry_out(store: EnhancedStore, state: State, act: Act) -> None:
    """Ask the store for a change."""
    name = state[act.note].name if act.note in state else act.word
    link = f"[[{state[act.to].name}]]" if act.to in state else "nowhere"
    asked: dict[str, Callable[[], object]] = {
        "create": lambda: store.create(name, f"to {link}\n", {"id": act.note, "to": act.to}),
        "append": lambda: store.update(name, append=act.word),
        "replace": lambda: store.update(
            name, content=store.read(name).content.split("\n")[0] + f"\n{act.word}\n"
        ),
        "tag": lambda: store.change_tags(name, {"mark": act.word}),
        "move": lambda: store.move(name, act.word),
        "delete": lambda: store.delete(name),
        "index": lambda: store.sync(embed=False, rebuild=True),
        "undo": lambda: store.undo(store.history(limit=1)[0].version),
    }
    asked[act.kind]()


def stretched(rename: Callable[..., None]) -> Callable[..., None]:
    """A rename with a pause before and behind it: what happens between two of them is over too soon to be hit."""

    def call(*names: int | str | None) -> None:
        time.sleep(0.002)
        rename(*names)
        time.sleep(0.002)

    return call


def written_in_place(
    one_folder: int | None, one: str, other_folder: int | None, other: str
) -> None:
    """What a careless program does instead of an exchange."""
    names = ((one, one_folder), (other, other_folder))
    files = [os.open(name, os.O_RDWR, dir_fd=folder) for name, folder in names]
    texts = [os.pread(fd, 1 << 20, 0) for fd in files]
    for fd, text in zip(files, reversed(texts), strict=True):
        os.ftruncate(fd, 0)
        time.sleep(0.02)
        os.pwrite(fd, text, 0)
        os.close(fd)


def write_until_ended(
    root: Path, settings: Settings, state: State, seed: int, made: int, most: int, telling: int
) -> None:
    """The child: change after change, each told before and after."""
    chance = random.Random(seed)
    before, last = state, None
    with EnhancedStore(root, settings) as store:
        while True:
            made += 1
            act = choose(state, chance, made, last, most)
            os.write(telling, (json.dumps(["try", act.__dict__]) + "\n").encode())
            carry_out(store, state, act)
            os.write(telling, b'["ack"]\n')
            if act.kind != "index":
                before, state, last = state, after(state, act, before), act


def run_until(end: Callable[[int], None], write: Callable[[int], None]) -> list[tuple[Act, bool]]:
    """The changes that a child tried by `write`, with whether each was answered, until `end` has killed it."""
    hearing, telling = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(hearing)
        try:
            write(telling)
        finally:  # only an error leads here
            traceback.print_exc()
            os._exit(3)
    os.close(telling)
    with os.fdopen(hearing, "rb", buffering=0) as pipe:
        told = pipe.read(1)  # opening the store is part of it, but the first change should begin
        end(pid)
        while chunk := pipe.read(1 << 16):
            told += chunk
    if not os.WIFSIGNALED(os.waitpid(pid, 0)[1]):
        raise SystemExit("the writer ended by itself")
    tried: list[tuple[Act, bool]] = []
    for line in told.decode().split("\n")[:-1]:
        word, *rest = json.loads(line)
        tried = (
            [*tried, (Act(**rest[0]), False)]
            if word == "try"
            else [*tried[:-1], (tried[-1][0], True)]
        )
    return tried


def after_all(state: State, tried: list[tuple[Act, bool]]) -> tuple[State, list[State]]:
    """The notes after the last answer, and after each change that was under way."""
    before = state
    for act, answered in tried:
        if answered and act.kind != "index":
            before, state = state, after(state, act, before)
    return state, [after(state, act, before) for act, answered in tried if not answered]


def state_on_disk(root: Path) -> State:
    """What the notes say by themselves."""
    found: State = {}
    for path in root.rglob("*.md"):
        if ".simplemem" not in path.parts:
            note = read_note(path.read_bytes())
            mark = next(
                (
                    tag.name.removeprefix("mark/")
                    for tag in note.tags
                    if tag.name.startswith("mark/")
                ),
                "",
            )
            lines = tuple(line for line in note.content.split("\n") if re.fullmatch(r"w\d+", line))
            name = path.relative_to(root).as_posix().removesuffix(".md")
            found[note.header.get("id")] = Note(name, note.header.get("to"), lines, mark)
    return found


def what_is_wrong(root: Path, allowed: list[State]) -> list[str]:
    """Start again as anybody would, and look."""
    wrong = []
    with EnhancedStore(root, SETTINGS) as store:
        store.sync(embed=False)
        found = state_on_disk(root)
        if found not in allowed:
            return [f"the notes are {found}, not one of {allowed}"]
        wrong += [
            f"{finding.check}: {finding.message}"
            for finding in store.doctor()
            if finding.level == "error"
        ]
        wrong += [f"left behind: {path}" for path in root.rglob(".simplemem-*.tmp")]
        numbers = {note.name: number for number, note in found.items()}
        for name, facts in store.inspect().items():
            note = found[numbers[name.removesuffix(".md")]]
            meant = [numbers[target.removesuffix(".md")] for target in facts["links"]]
            if note.to in found and meant != [note.to]:
                wrong.append(f"the link of {name} means {meant}, not {note.to}")
    return wrong


def endings(
    root: Path,
    count: int,
    seed: int,
    end: Callable[[int, float], None],
    *,
    settings: Settings = SETTINGS,
    most: int = 25,
    between: Callable[[], None] = lambda: None,
) -> Counter[str]:
    """Let a writer work and end it, so many times, and look what is there after each: what was counted. It stops where
    something is wrong, since what the notes should be is no longer known."""
    chance, counted, made = random.Random(seed), Counter[str](), 0
    state: State = {}
    with EnhancedStore(root, SETTINGS) as store:
        store.sync(embed=False)
    os.sync()
    for number in range(count):
        work = partial(
            write_until_ended, root, settings, state, seed * 100_000 + number, made, most
        )
        share = chance.random()
        tried = run_until(lambda pid, share=share: end(pid, share), work)  # type: ignore[misc]
        between()
        made += len(tried) + 1
        flying = [act for act, answered in tried if not answered]
        counted += Counter(
            ["rounds", *("answered" for act, answered in tried if answered and act.kind != "index")]
        )
        counted += Counter(act.kind for act, answered in tried if answered)
        counted["ended while the index was made anew"] += any(act.kind == "index" for act in flying)
        state, unanswered = after_all(state, tried)
        if wrong := what_is_wrong(root, [state, *unanswered]):
            counted["wrong"] += 1
            print(f"round {number}, seed {seed}, during {flying}:", *wrong, sep="\n  ", flush=True)
            break
        found = state_on_disk(root)
        counted["under way, and stood"] += bool(unanswered) and found == unanswered[-1] != state
        state = found
    return counted


def kill_soon(pid: int, share: float) -> None:
    time.sleep(share * 0.12)
    os.kill(pid, signal.SIGKILL)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--notes", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--careless", action="store_true", help="write in place, to see that it would be seen"
    )
    args = parser.parse_args()
    if not hasattr(os, "fork"):
        parser.error("this needs a system that forks")
    if args.careless:
        disk.exchange = written_in_place
    disk.exchange, disk.rename_new = stretched(disk.exchange), stretched(disk.rename_new)
    with tempfile.TemporaryDirectory() as folder:
        counted = endings(Path(folder), args.kills, args.seed, kill_soon, most=args.notes)
    print(
        f"{counted['rounds']} kills with seed {args.seed}, {counted['answered']} answered changes: {dict(counted)}"
    )
    print("a kill did harm" if counted["wrong"] else "nothing was lost, torn or left behind")
    return 1 if counted["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
