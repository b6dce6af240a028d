"""What the doctor costs beside a first indexing: `python bench/doctor.py 10000`, for a vault of so many passages.

The vault is made with a fixed seed (bench/corpus.py) and has a hundred links that lead nowhere. Times are CPU seconds of
this process; memory is the most it held until then.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from bench.corpus import PASSAGES_A_NOTE, Corpus
from simplemem.store import EnhancedStore

_T = TypeVar("_T")
_BROKEN = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("passages", type=int)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    corpus = Corpus(max(1, given.passages // PASSAGES_A_NOTE), given.seed)
    with tempfile.TemporaryDirectory(prefix="simplemem-doctor-") as made:
        vault = Path(made) / "vault"
        for _ in corpus.write(vault):
            pass
        for number in range(_BROKEN):
            (vault / f"broken {number}.md").write_text(f"[[not-{number:04}]] and [[area/note-{number:07}]]\n")
        with EnhancedStore(vault) as store:
            cold = _timed("a first indexing, words and vectors", store.sync)
            whole = _timed("the doctor, all checks", store.doctor)
            print(f"{'beside a first indexing':38} {whole / cold:.2f} times")
            for check in ("index", "links", "secrets", "attachments", "names"):
                _timed(f"only {check}", lambda check=check: store.doctor(only=[check]))  # type: ignore[misc]
            _timed("a plan to mend the links", lambda: store.plan_mending(only=["links"]))


def _timed(name: str, work: Callable[[], _T]) -> float:
    began = time.process_time()
    work()
    took = time.process_time() - began
    print(f"{name:38} {took:6.2f} s cpu, {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB", flush=True)
    return took


if __name__ == "__main__":
    main()
