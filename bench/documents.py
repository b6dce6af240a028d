"""A PDF of a hundred pages of two columns as a document: seconds and CPU, beyond those of a PDF of one line.

python bench/documents.py [--pages 100] [--rounds 5]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from simplemem.features.documents.convert import convert
from simplemem.features.documents.service import document_service
from simplemem.settings.loading import load_settings
from simplemem.store import EnhancedStore
from tests.features.web_of_files import pdf

SETTINGS = load_settings({"embed.provider": "none"})
LINE = "High water at the pier of berth {0} is at {1:02}:12, and the lock closes in fog."


def cost(work: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Seconds and seconds of CPU, here and in the process that reads, of the middle one of so many rounds."""
    every = [measured(work) for _ in range(rounds)]
    return statistics.median(each[0] for each in every), statistics.median(
        each[1] for each in every
    )


def measured(work: Callable[[], object]) -> tuple[float, float]:
    began = os.times()
    work()
    ended = os.times()
    return ended.elapsed - began.elapsed, sum(ended[:4]) - sum(began[:4])


def main() -> None:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, number in (("--pages", 100), ("--rounds", 5)):
        arguments.add_argument(name, type=int, default=number)
    asked = arguments.parse_args()
    texts = (
        "\n".join(LINE.format(page, at % 24) for at in range(45)) for page in range(asked.pages)
    )
    small, large = pdf("One line."), pdf(*texts, columns=2)
    start, read = (
        cost(lambda data=data: convert(data, "pdf"), asked.rounds) for data in (small, large)
    )  # type: ignore[misc]
    with tempfile.TemporaryDirectory() as folder, EnhancedStore(Path(folder), SETTINGS) as store:
        kept = cost(
            lambda: document_service(store).ingest_file(
                large, "Tides.pdf", f"s{time.monotonic_ns()}"
            ),
            asked.rounds,
        )
    print(f"{'':28} seconds   CPU")
    for what, (seconds, used) in (
        ("the reader's start", start),
        (f"{asked.pages} pages read", read),
        ("and kept", kept),
    ):
        print(f"{what:28} {seconds:7.2f} {used:5.2f}")
    print(f"{'beyond the start':28} {kept[0] - start[0]:7.2f} {kept[1] - start[1]:5.2f}")


if __name__ == "__main__":
    main()
