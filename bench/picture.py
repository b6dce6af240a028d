"""Is the picture of a large graph fluent? Its page is made, opened in a headless Chromium, dragged, moved and zoomed.

    python bench/picture.py [--nodes 5000] [--edges 8000] [--seconds 4] [--browser PROGRAM] [--keep FILE]

Prints what making the page takes, and the frames a second that the browser paints meanwhile. Headless, it paints without a
graphics card: a person's browser is at least as quick.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "graph"))

from browser import Page, chromium, opened_browser

from simplemem.kinds.picture.drawing import LINK, NOTE, Drawing, Edge, Node
from simplemem.kinds.picture.page import html

WORDS = "wind gas valve sensor flight burst parachute radio frame log beet harbour checklist shed".split()
KINDS = "person decision flight meeting report component place idea source task".split()


def drawing_of_size(nodes: int, edges: int, seed: int = 1) -> Drawing:
    """Notes in clusters of some dozens, most links within them, and a few hubs: as vaults are."""
    chance = random.Random(seed)
    made = tuple(
        Node(f"n{k}", f"{chance.choice(WORDS)} {chance.choice(WORDS)} {k}", chance.choice(KINDS), NOTE, f"notes/n{k}.md",
             text=" ".join(chance.choices(WORDS, k=60)))
        for k in range(nodes)
    )  # fmt: skip
    found = set()
    while len(found) < edges:
        source = chance.randrange(nodes)
        where = chance.random()
        if where < 0.75:
            target = min(nodes - 1, source // 40 * 40 + int(chance.random() ** 2 * 40))
        else:
            target = chance.randrange(nodes) if where < 0.8 else int(chance.random() ** 4 * nodes)
        found.add((source, target))
    return Drawing(f"{nodes:,} notes", made, tuple(Edge(a, b, LINK, is_link=True) for a, b in sorted(found)))


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--nodes", type=int, default=5000)
    asked.add_argument("--edges", type=int, default=8000)
    asked.add_argument("--seconds", type=float, default=4.0)
    asked.add_argument("--browser", default=None)
    asked.add_argument("--keep", type=Path, default=None)
    options = asked.parse_args()
    drawing = drawing_of_size(options.nodes, options.edges)
    begun = time.process_time()
    page = html(drawing)
    took = time.process_time() - begun
    print(f"{options.nodes:,} nodes, {options.edges:,} edges: made in {took:.1f} s CPU, {len(page) / 1e6:.1f} MB")
    if options.keep is not None:
        options.keep.write_text(page, encoding="utf-8")
    if options.browser is None and chromium() is None:
        print("no Chromium is installed: no frames were counted")
        return 1
    with tempfile.TemporaryDirectory() as room, opened_browser(Path(room), options.browser) as browser:
        file = Path(room) / "graph.html"
        file.write_text(page, encoding="utf-8")
        browser.size(1400, 900)
        begun = time.monotonic()
        browser.open(file)
        print(f"opened and painted after {time.monotonic() - begun:.2f} s (wall)")
        measure(browser, options.seconds)
        if browser.complaints:
            print("the console says:", *browser.complaints, sep="\n  ")
            return 1
    return 0


def measure(browser: Page, seconds: float) -> None:
    """What a person does with it, while frames are counted."""
    x, y = 830.0, 450.0
    near = "all of it on the screen"
    for _ in range(2):
        spot = node_on_screen(browser)
        print(f"{near}:")
        tell("drag a node", browser, seconds, spot)
        tell_of("point at nodes", browser.while_moving(seconds, lambda part: point(browser, part)))
        tell("move the scene", browser, seconds, empty_on_screen(browser))
        browser.value("document.activeElement.blur()")
        tell_of("zoom", browser.while_moving(seconds, lambda part: browser.wheel(x, y, -60 if part < 0.5 else 60)))
        for _ in range(14):
            browser.wheel(x, y, -100)
        near = "near"


def point(browser: Page, part: float) -> None:
    """Move the mouse over the scene without holding anything."""
    browser.mouse("mouseMoved", 830 + 350 * math.sin(part * 40), 450 + 300 * math.cos(part * 27))


def tell(what: str, browser: Page, seconds: float, spot: tuple[float, float]) -> None:
    """Hold the mouse down at a spot and move it in circles."""
    x, y = spot

    def move(part: float) -> None:
        browser.mouse("mouseMoved", x + 120 * math.sin(part * 25), y + 120 * (1 - math.cos(part * 25)), held=True)

    browser.mouse("mouseMoved", x, y)
    browser.mouse("mousePressed", x, y, held=True)
    frames = browser.while_moving(seconds, move)
    browser.mouse("mouseReleased", x, y)
    tell_of(what, frames)


def tell_of(what: str, frames: list[float]) -> None:
    worst = sorted(frames)[int(len(frames) * 0.95)]
    print(f"  {what:<16} {1000 / statistics.fmean(frames):5.1f} frames a second, 95 of 100 within {worst:.0f} ms")


def node_on_screen(browser: Page) -> tuple[float, float]:
    """A spot where the mouse would hold a node: the cursor says so."""
    return _spot(browser, lambda: bool(browser.value("document.querySelector('canvas').classList.contains('over')")))


def empty_on_screen(browser: Page) -> tuple[float, float]:
    return _spot(browser, lambda: not browser.value("document.querySelector('canvas').classList.contains('over')"))


def _spot(browser: Page, is_right: Callable[[], bool]) -> tuple[float, float]:
    for k in range(2000):
        x, y = 830 + (k % 40 - 20) * 7.0, 450 + (k // 40 - 25) * 7.0
        browser.mouse("mouseMoved", x, y)
        if is_right():
            return x, y
    raise RuntimeError("no such spot on the screen")


if __name__ == "__main__":
    sys.exit(main())
