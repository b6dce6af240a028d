"""What a branch costs beside a folder, for so many notes of a vault made by bench/corpus.py.

    python bench/branch.py 10000

Each vault is opened, searched by words, read and written through the Python API. Printed is the CPU
time of this process and of the programs that it runs. The branch is in a bare repository on this
disk; the third vault addresses the same repository by a URL, as one on another machine is
addressed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import pygit2

from bench.corpus import Corpus
from bench.measure import cpu_of_ended_children
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

_GIT: Final = ["git", "-c", "user.name=bench", "-c", "user.email=bench@example.org"]


def main() -> None:
    """Make the notes and the repository, and measure the three vaults."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("notes", type=int)
    parser.add_argument("--times", type=int, default=40)
    options = parser.parse_args()

    corpus = Corpus(options.notes, 1)
    questions = [text for text, _ in corpus.questions(options.times)]
    with tempfile.TemporaryDirectory(prefix="simplemem-branch-") as temporary:
        root = Path(temporary)
        folder = root / "notes"
        repository = root / "truth.git"
        make_repository(corpus, folder, repository)

        measure("a folder", folder, "", questions)
        measure("a branch", root / "server1", str(repository), questions)
        measure("a branch elsewhere", root / "server2", f"file://{repository}", questions)


def make_repository(corpus: Corpus, folder: Path, repository: Path) -> None:
    """Write the notes to a folder, commit them, and clone it as a bare repository."""
    folder.mkdir()
    for _ in corpus.write(folder):
        pass
    for arguments in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "notes"]):
        subprocess.run([*_GIT, *arguments], cwd=folder, check=True)
    pygit2.clone_repository(str(folder), str(repository), bare=True)


def measure(title: str, root: Path, repository: str, questions: Sequence[str]) -> None:
    """Open a vault, and print what its index and the median call of each kind cost.

    `repository` is empty if the vault is the folder `root` itself.
    """
    settings = {"branch": {"repository": repository}, "embed": {"provider": "none"}}
    with EnhancedStore(root, Settings.model_validate(settings)) as store:
        seconds = _cpu_seconds(store.sync)
        print(f"{title}: {store.stats()['notes']} notes, index {seconds:.1f} s")
        for name, calls in _calls(store, questions).items():
            milliseconds = 1000 * median(_cpu_seconds(call) for call in calls)
            print(f"  {name:<16} {milliseconds:6.1f} ms")


def _calls(
    store: EnhancedStore, questions: Sequence[str]
) -> dict[str, Sequence[Callable[[], object]]]:
    """Return the calls of each row, in the order in which they are made."""
    count = len(questions)
    names = [item.name for item in store.list(limit=count).items]
    new_folder = f"made/{Path(store.root).name}"
    return {
        "nothing changed": [store.sync] * 5,
        "search": [partial(store.search, text, limit=10) for text in questions],
        "read": [partial(store.read, name) for name in names],
        "append": [partial(store.update, name, append="A line.") for name in names],
        "create": [
            partial(store.create, f"{new_folder}-{number}", "A line.") for number in range(count)
        ],
    }


def _cpu_seconds(work: Callable[[], object]) -> float:
    """Do some work, and return the CPU seconds of this process and of those that it ran."""
    start = time.process_time() + cpu_of_ended_children()
    work()
    return time.process_time() + cpu_of_ended_children() - start


if __name__ == "__main__":
    main()
