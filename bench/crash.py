"""A writer is killed at random moments, many times. Acknowledged changes must be there afterwards.

    python bench/crash.py [--kills 300] [--notes 25] [--seed 1]

A child changes a small vault through the store (create, append, replace, tag, move with rewritten
links, delete, undo) and rebuilds the index now and then. It reports each change before it begins
and after it was acknowledged. It is killed a few milliseconds later. The next start must find the
notes as after the last acknowledged change, or as after the change that was in progress. Every link
must lead to the note that it led to before, and the index must equal a rebuilt one.

Prints counts. The exit code is 1 if something was lost, torn or left behind. `--careless` writes
notes in place instead of exchanging files, to show that the check would notice.
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
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from simplemem.note.note import read_note
from simplemem.settings.loading import load_settings
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore
from simplemem.vault.folder import disk

SETTINGS: Final = load_settings({"embed.provider": "none"})
_LONGEST_LIFE: Final = 0.12  # seconds of a child after its first change
_FIRST_NOTES: Final = 2  # all others link to them, so moving one of them writes many notes


@dataclass(frozen=True)
class Note:
    """What a note must contain. `target` is the number of the note that it links to, if any."""

    name: str
    target: int
    lines: tuple[str, ...]
    tag: str = ""


State = dict[int, Note]
"""All notes by their numbers, which are in their property `id`."""


@dataclass(frozen=True)
class Change:
    """What to do with which note. `word` is the new line, tag or name."""

    kind: str
    note: int
    word: str = ""
    target: int = 0


@dataclass
class Attempt:
    """A change that a child began, and whether it was acknowledged."""

    change: Change
    acknowledged: bool = False


def main() -> int:
    """Kill a writer so many times. Return the exit code: 1 if a kill did harm."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--notes", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--careless", action="store_true", help="write in place, to show that harm is noticed"
    )
    options = parser.parse_args()
    if not hasattr(os, "fork"):
        parser.error("this needs a system that forks")

    if options.careless:
        disk.exchange = exchange_in_place
    disk.exchange = with_pauses(disk.exchange)
    disk.rename_new = with_pauses(disk.rename_new)
    with tempfile.TemporaryDirectory() as folder:
        counts = endings(Path(folder), options.kills, options.seed, kill_soon, most=options.notes)

    print(
        f"{counts['rounds']} kills with seed {options.seed}, "
        f"{counts['answered']} answered changes: {dict(counts)}"
    )
    print("a kill did harm" if counts["wrong"] else "nothing was lost, torn or left behind")
    return 1 if counts["wrong"] else 0


# What the notes must be


def apply(state: State, change: Change, previous: State) -> State:
    """Return the notes after a change. `previous` is what an undo brings back."""
    if change.kind == "undo":
        return previous
    if change.kind == "index":
        return state
    if change.kind == "delete":
        return {number: note for number, note in state.items() if number != change.note}
    if change.kind == "create":
        return state | {change.note: Note(change.word, change.target, ())}

    note = state[change.note]
    if change.kind == "append":
        note = replace(note, lines=(*note.lines, change.word))
    elif change.kind == "replace":
        note = replace(note, lines=(change.word,))
    elif change.kind == "tag":
        note = replace(note, tag=change.word)
    elif change.kind == "move":
        note = replace(note, name=change.word)
    return state | {change.note: note}


def choose_change(
    state: State, rng: random.Random, number: int, last: Change | None, most: int
) -> Change:
    """Return a random change. `number` is unused so far; `most` limits the count of notes."""
    if last is not None and last.kind != "undo" and rng.random() < 0.1:
        return Change("undo", last.note)
    if rng.random() < 0.04:
        return Change("index", 0)

    name = f"{rng.choice(['', 'a/', 'b/c/'])}n{number}"
    first_notes = sorted(state)[:_FIRST_NOTES]
    if len(state) < 3 or (len(state) < most and rng.random() < 0.3):
        note = max(state, default=0) + 1 + number
        return Change("create", note, name, rng.choice([*first_notes, 0]))

    kinds = ["append", "replace", "tag", "move", "delete"]
    kind = rng.choices(kinds, [3, 1, 1, 4, 1])[0]
    if kind == "move" and rng.random() < 0.7:
        note = rng.choice(first_notes)
    else:
        note = rng.choice([*state])
    return Change(kind, note, name if kind == "move" else f"w{number}")


def states_after(state: State, attempts: list[Attempt]) -> tuple[State, list[State]]:
    """Return the notes after the last acknowledged change, and after each one in progress."""
    previous = state
    for attempt in attempts:
        if attempt.acknowledged and attempt.change.kind != "index":
            next_state = apply(state, attempt.change, previous)
            previous = state
            state = next_state
    in_progress = [
        apply(state, attempt.change, previous) for attempt in attempts if not attempt.acknowledged
    ]
    return state, in_progress


# The child


def write_until_killed(
    root: Path, settings: Settings, state: State, seed: int, number: int, most: int, report: int
) -> None:
    """Make change after change, and write to the descriptor `report` before and after each."""
    rng = random.Random(seed)
    previous = state
    last = None
    with EnhancedStore(root, settings) as store:
        while True:
            number += 1
            change = choose_change(state, rng, number, last, most)
            os.write(report, (json.dumps(["try", asdict(change)]) + "\n").encode())
            carry_out(store, state, change)
            os.write(report, b'["ack"]\n')
            if change.kind != "index":
                next_state = apply(state, change, previous)
                previous = state
                state = next_state
                last = change


def carry_out(store: EnhancedStore, state: State, change: Change) -> None:
    """Make a change through the store."""
    name = state[change.note].name if change.note in state else change.word
    link = f"[[{state[change.target].name}]]" if change.target in state else "nowhere"

    def replace_lines() -> None:
        first_line = store.read(name).content.split("\n")[0]
        store.update(name, content=f"{first_line}\n{change.word}\n")

    properties = {"id": change.note, "to": change.target}
    operations: dict[str, Callable[[], object]] = {
        "create": lambda: store.create(name, f"to {link}\n", properties),
        "append": lambda: store.update(name, append=change.word),
        "replace": replace_lines,
        "tag": lambda: store.change_tags(name, {"mark": change.word}),
        "move": lambda: store.move(name, change.word),
        "delete": lambda: store.delete(name),
        "index": lambda: store.sync(embed=False, rebuild=True),
        "undo": lambda: store.undo(store.history(limit=1)[0].version),
    }
    operations[change.kind]()


def with_pauses(rename: Callable[..., None]) -> Callable[..., None]:
    """Return a rename with pauses around it, so that a kill can hit between two renames."""

    def call(*names: int | str | None) -> None:
        time.sleep(0.002)
        rename(*names)
        time.sleep(0.002)

    return call


def exchange_in_place(
    first_folder: int | None, first: str, second_folder: int | None, second: str
) -> None:
    """Exchange the texts of two files as a careless program does: by overwriting them."""
    first_fd = os.open(first, os.O_RDWR, dir_fd=first_folder)
    second_fd = os.open(second, os.O_RDWR, dir_fd=second_folder)
    first_text = os.pread(first_fd, 1 << 20, 0)
    second_text = os.pread(second_fd, 1 << 20, 0)
    for fd, text in ((first_fd, second_text), (second_fd, first_text)):
        os.ftruncate(fd, 0)
        time.sleep(0.02)
        os.pwrite(fd, text, 0)
        os.close(fd)


# The parent


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
    """Let a child write and end it, so many times, and check the vault each time.

    Returns the counts. `end` is called with the process and a random share of the longest life.
    `between` is called when the child has ended. The first harm ends the run, because then nobody
    knows what the notes should be.
    """
    rng = random.Random(seed)
    counts = Counter[str]()
    state: State = {}
    used_numbers = 0
    with EnhancedStore(root, SETTINGS) as store:
        store.sync(embed=False)
    os.sync()

    for round_number in range(count):
        write = partial(
            write_until_killed,
            root,
            settings,
            state,
            seed * 100_000 + round_number,
            used_numbers,
            most,
        )
        attempts = run_until(partial(_end_after, end, rng.random()), write)
        between()
        used_numbers += len(attempts) + 1
        count_attempts(counts, attempts)

        state, in_progress = states_after(state, attempts)
        problems = find_problems(root, [state, *in_progress])
        if problems:
            counts["wrong"] += 1
            unfinished = [attempt.change for attempt in attempts if not attempt.acknowledged]
            print(f"round {round_number}, seed {seed}, during {unfinished}:", flush=True)
            print(*(f"  {problem}" for problem in problems), sep="\n", flush=True)
            break

        found = state_on_disk(root)
        if in_progress and found == in_progress[-1] and found != state:
            counts["under way, and stood"] += 1
        state = found
    return counts


def _end_after(end: Callable[[int, float], None], share: float, pid: int) -> None:
    end(pid, share)


def count_attempts(counts: Counter[str], attempts: list[Attempt]) -> None:
    """Count a round, its acknowledged changes by kind, and whether a rebuild was interrupted."""
    counts["rounds"] += 1
    for attempt in attempts:
        kind = attempt.change.kind
        if not attempt.acknowledged:
            counts["ended while the index was made anew"] += kind == "index"
            continue
        counts[kind] += 1
        if kind != "index":
            counts["answered"] += 1


def kill_soon(pid: int, share: float) -> None:
    """Wait for a share of the longest life, and kill the child."""
    time.sleep(share * _LONGEST_LIFE)
    os.kill(pid, signal.SIGKILL)


def run_until(end: Callable[[int], None], write: Callable[[int], None]) -> list[Attempt]:
    """Fork a child that calls `write`, and call `end` when its first change begins.

    Returns what the child reported.

    Raises:
        SystemExit: The child ended by itself.
    """
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        try:
            write(write_end)
        finally:  # reached only after an error
            traceback.print_exc()
            os._exit(3)

    os.close(write_end)
    with os.fdopen(read_end, "rb", buffering=0) as pipe:
        report = pipe.read(1)  # the store is open and the first change begins
        end(pid)
        report += pipe.readall() or b""
    _, status = os.waitpid(pid, 0)
    if not os.WIFSIGNALED(status):
        raise SystemExit("the writer ended by itself")
    return read_report(report.decode())


def read_report(report: str) -> list[Attempt]:
    """Return the attempts of a report. Its last line may be incomplete."""
    attempts: list[Attempt] = []
    for line in report.split("\n")[:-1]:
        word, *arguments = json.loads(line)
        if word == "try":
            attempts.append(Attempt(Change(**arguments[0])))
        else:
            attempts[-1].acknowledged = True
    return attempts


def find_problems(root: Path, allowed: list[State]) -> list[str]:
    """Open the vault as the next start does, and return what is wrong."""
    with EnhancedStore(root, SETTINGS) as store:
        store.sync(embed=False)
        found = state_on_disk(root)
        if found not in allowed:
            return [f"the notes are {found}, not one of {allowed}"]

        problems = [
            f"{finding.check}: {finding.message}"
            for finding in store.doctor()
            if finding.level == "error"
        ]
        problems += [f"left behind: {path}" for path in root.rglob(".simplemem-*.tmp")]
        problems += find_wrong_links(store, found)
    return problems


def find_wrong_links(store: EnhancedStore, found: State) -> list[str]:
    """Return a line for each note whose link does not lead to its target."""
    problems = []
    numbers = {note.name: number for number, note in found.items()}
    for path, facts in store.inspect().items():
        note = found[numbers[path.removesuffix(".md")]]
        targets = [numbers[target.removesuffix(".md")] for target in facts["links"]]
        if note.target in found and targets != [note.target]:
            problems.append(f"the link of {path} means {targets}, not {note.target}")
    return problems


def state_on_disk(root: Path) -> State:
    """Return the notes as their files have them, without the store."""
    found: State = {}
    for path in root.rglob("*.md"):
        if ".simplemem" in path.parts:
            continue
        note = read_note(path.read_bytes())
        tags = [tag.name for tag in note.tags if tag.name.startswith("mark/")]
        found[note.header.get("id")] = Note(
            name=path.relative_to(root).as_posix().removesuffix(".md"),
            target=note.header.get("to"),
            lines=tuple(line for line in note.content.split("\n") if re.fullmatch(r"w\d+", line)),
            tag=tags[0].removeprefix("mark/") if tags else "",
        )
    return found


if __name__ == "__main__":
    sys.exit(main())
