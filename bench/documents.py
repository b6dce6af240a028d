"""What a PDF of a hundred pages costs as a document, and how much of that is the reader's start.

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
from dataclasses import dataclass
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from simplemem.features.documents.convert import convert
from simplemem.features.documents.service import document_service
from simplemem.settings.loading import load_settings
from simplemem.store import EnhancedStore
from tests.features.web_of_files import pdf

SETTINGS: Final = load_settings({"embed.provider": "none"})
LINE: Final = "High water at the pier of berth {0} is at {1:02}:12, and the lock closes in fog."


@dataclass(frozen=True)
class Cost:
    """Wall time and CPU time in seconds, of this process and the one that reads the PDF."""

    wall: float
    cpu: float


def main() -> None:
    """Read a small PDF and a large one, store the large one, and print what each cost."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pages", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()

    small = pdf("One line.")
    large = make_pdf(options.pages)
    start = median_cost(lambda: convert(small, "pdf"), options.rounds)
    read = median_cost(lambda: convert(large, "pdf"), options.rounds)
    with tempfile.TemporaryDirectory() as folder, EnhancedStore(Path(folder), SETTINGS) as store:
        documents = document_service(store)

        def ingest() -> None:
            documents.ingest_file(large, "Tides.pdf", f"s{time.monotonic_ns()}")

        stored = median_cost(ingest, options.rounds)

    print(f"{'':28} seconds   CPU")
    print_row("the reader's start", start)
    print_row(f"{options.pages} pages read", read)
    print_row("and kept", stored)
    print_row("beyond the start", Cost(stored.wall - start.wall, stored.cpu - start.cpu))


def make_pdf(pages: int) -> bytes:
    """Return a PDF with two columns and 45 lines on each page."""
    texts = [_page_text(page) for page in range(pages)]
    return pdf(*texts, columns=2)


def _page_text(page: int) -> str:
    return "\n".join(LINE.format(page, line % 24) for line in range(45))


def median_cost(work: Callable[[], object], rounds: int) -> Cost:
    """Do some work so many times and return the medians."""
    costs = [measure(work) for _ in range(rounds)]
    return Cost(
        statistics.median(cost.wall for cost in costs),
        statistics.median(cost.cpu for cost in costs),
    )


def measure(work: Callable[[], object]) -> Cost:
    """Do some work once and return what it cost."""
    start = os.times()
    work()
    end = os.times()
    return Cost(end.elapsed - start.elapsed, sum(end[:4]) - sum(start[:4]))


def print_row(title: str, cost: Cost) -> None:
    """Print one cost as a row of the table."""
    print(f"{title:28} {cost.wall:7.2f} {cost.cpu:5.2f}")


if __name__ == "__main__":
    main()
