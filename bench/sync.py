"""What `simplemem sync` costs beside git's own fetch and push: two clones of a vault, changed on both sides."""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path


def spent(*command: str, cwd: Path) -> float:
    """CPU seconds of a command and what it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        command, cwd=cwd, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--changed", type=int, default=100)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        room = Path(name)
        os.environ |= {"HOME": name, "XDG_CONFIG_HOME": name}
        (room / ".gitconfig").write_text(
            "[user]\nname = Ida\nemail = i@example.org\n[init]\ndefaultBranch = main\n"
        )
        spent("git", "init", "-q", "--bare", "remote.git", cwd=room)
        spent("git", "clone", "-q", "remote.git", "one", cwd=room)
        for number in range(asked.notes):
            note = room / "one" / f"f{number % 50}" / f"note {number}.md"
            note.parent.mkdir(exist_ok=True)
            note.write_text(
                f"---\ntags: [t{number % 9}]\n---\n\nNote {number}.\n" + "A line of words. \n" * 20
            )
        spent("git", "add", "-A", cwd=room / "one")
        spent("git", "commit", "-qm", "notes", cwd=room / "one")
        spent("git", "push", "-q", "origin", "main", cwd=room / "one")
        spent("git", "clone", "-q", "remote.git", "two", cwd=room)
        program = [sys.executable, "-m", "simplemem"]
        for each in ("one", "two"):
            spent(*program, "index", "--vault", each, cwd=room)
            for number in range(asked.changed):
                at = number if each == "one" else number + asked.changed // 2
                note = room / each / f"f{at % 50}" / f"note {at}.md"
                note.write_text(note.read_text() + f"added by {each}\n")
        nothing = spent(*program, "search", "note 7", "--vault", "one", cwd=room)
        print(f"a search, which updates the index too: {nothing:.2f} s CPU")
        print(
            f"sync of the first, which pushes:       {spent(*program, 'sync', '--vault', 'one', cwd=room):.2f} s CPU"
        )
        print(
            f"sync of the second, which merges:      {spent(*program, 'sync', '--vault', 'two', cwd=room):.2f} s CPU"
        )
        print(
            f"sync of the first again, which takes:  {spent(*program, 'sync', '--vault', 'one', cwd=room):.2f} s CPU"
        )
        again = spent(*program, "sync", "--vault", "one", cwd=room)
        print(f"sync with nothing new:                 {again:.2f} s CPU")
        git = spent("git", "fetch", "-q", cwd=room / "two") + spent(
            "git", "push", "-q", "origin", "main", cwd=room / "two"
        )
        print(f"git fetch and git push, nothing new:   {git:.2f} s CPU")


if __name__ == "__main__":
    main()
