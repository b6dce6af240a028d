"""What `simplemem sync` costs beside git's fetch and push: two clones, changed on both sides."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.measure import child_cpu_seconds

SIMPLEMEM = [sys.executable, "-m", "simplemem"]
GIT_SETTINGS = "[user]\nname = Ida\nemail = i@example.org\n[init]\ndefaultBranch = main\n"


def main() -> None:
    """Make two clones that differ, synchronise them, and print what each step cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--changed", type=int, default=100)
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        os.environ |= {"HOME": folder, "XDG_CONFIG_HOME": folder}
        (root / ".gitconfig").write_text(GIT_SETTINGS)
        make_clones(root, options.notes)
        for name in ("one", "two"):
            _simplemem("index", root / name)
        # Half of the notes that the second clone changes are changed by the first one too.
        change_notes(root / "one", range(options.changed))
        change_notes(root / "two", range(options.changed // 2, options.changed * 3 // 2))
        measure(root)


def make_clones(root: Path, notes: int) -> None:
    """Make the clones `one` and `two` of a bare repository with so many notes."""
    _git(root, "init", "-q", "--bare", "remote.git")
    _git(root, "clone", "-q", "remote.git", "one")
    for number in range(notes):
        note = _note_path(root / "one", number)
        note.parent.mkdir(exist_ok=True)
        header = f"---\ntags: [t{number % 9}]\n---\n\n"
        note.write_text(f"{header}Note {number}.\n" + "A line of words. \n" * 20)
    _git(root / "one", "add", "-A")
    _git(root / "one", "commit", "-qm", "notes")
    _git(root / "one", "push", "-q", "origin", "main")
    _git(root, "clone", "-q", "remote.git", "two")


def change_notes(clone: Path, numbers: range) -> None:
    """Add a line to the end of each note."""
    for number in numbers:
        note = _note_path(clone, number)
        note.write_text(note.read_text() + f"added by {clone.name}\n")


def _note_path(clone: Path, number: int) -> Path:
    return clone / f"f{number % 50}" / f"note {number}.md"


def measure(root: Path) -> None:
    """Synchronise the clones step by step, and print the CPU seconds of each step."""
    sync_one = partial(_simplemem, "sync", root / "one")
    sync_two = partial(_simplemem, "sync", root / "two")

    _print_row(
        "a search, which updates the index too:", _simplemem("search", root / "one", "note 7")
    )
    _print_row("sync of the first, which pushes:", sync_one())
    _print_row("sync of the second, which merges:", sync_two())
    _print_row("sync of the first again, which takes:", sync_one())
    _print_row("sync with nothing new:", sync_one())
    fetch = _git(root / "two", "fetch", "-q")
    push = _git(root / "two", "push", "-q", "origin", "main")
    _print_row("git fetch and git push, nothing new:", fetch + push)


def _print_row(title: str, seconds: float) -> None:
    print(f"{title:38} {seconds:.2f} s CPU")


def _simplemem(command: str, vault: Path, *arguments: str) -> float:
    """Run a command of simplemem and return its CPU seconds."""
    return child_cpu_seconds([*SIMPLEMEM, command, *arguments, "--vault", str(vault)])


def _git(folder: Path, *arguments: str) -> float:
    """Run git in a folder and return the CPU seconds of it and its helpers."""
    return child_cpu_seconds(["git", "-C", str(folder), *arguments])


if __name__ == "__main__":
    main()
