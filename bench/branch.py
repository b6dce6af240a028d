"""What a branch costs beside a folder: `python bench/branch.py 10000`, for so many notes of a vault made by bench/corpus.py.

Each is opened, searched, read and written by words alone, through the Python API; CPU of this process and of the programs
it runs. The branch is a bare repository on this disk, and one that is asked by its address, as one elsewhere is.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import pygit2

from bench.corpus import Corpus
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

_NAME, _WHERE = "user.name=bench", "user.email=bench@example.org"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("notes", type=int)
    parser.add_argument("--times", type=int, default=40)
    given = parser.parse_args()
    corpus = Corpus(given.notes, 1)
    with tempfile.TemporaryDirectory(prefix="simplemem-branch-") as made:
        folder, truth = Path(made, "notes"), Path(made, "truth.git")
        folder.mkdir()
        for _ in corpus.write(folder):
            pass
        git = ["git", "-c", _NAME, "-c", _WHERE]
        for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "notes"]):
            subprocess.run([*git, *words], cwd=folder, check=True)
        pygit2.clone_repository(str(folder), str(truth), bare=True)
        questions = [text for text, _ in corpus.questions(given.times)]
        places = {"a folder": "", "a branch": str(truth), "a branch elsewhere": f"file://{truth}"}
        for number, (place, repository) in enumerate(places.items()):
            settings = {"branch": {"repository": repository}, "embed": {"provider": "none"}}
            root = Path(made, f"server{number}") if repository else folder
            with EnhancedStore(root, Settings.model_validate(settings)) as store:
                print(f"{place}: {given.notes} notes, index {_cpu(store.sync):.1f} s")
                _measure(store, questions, given.times)


def _measure(store: EnhancedStore, questions: list[str], times: int) -> None:
    names = [each.name for each in store.list(limit=times).items]
    said = f"made/{Path(store.root).name}"
    for what, acts in {
        "nothing changed": [store.sync] * 5,
        "search": [partial(store.search, text, limit=10) for text in questions],
        "read": [partial(store.read, name) for name in names],
        "append": [partial(store.update, name, append="A line.") for name in names],
        "create": [partial(store.create, f"{said}-{k}", "A line.") for k in range(times)],
    }.items():
        print(f"  {what:<16} {1000 * median(map(_cpu, acts)):6.1f} ms")


def _cpu(act: Callable[[], object]) -> float:
    began = _spent()
    act()
    return _spent() - began


def _spent() -> float:
    """CPU seconds of this process and of those it has run."""
    own = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in own)


if __name__ == "__main__":
    main()
