"""How large and how fast the graph of a whole vault is on the web page.

    python bench/graph_page.py [--notes 6600] [--seconds 5] [--vault DIR]

Makes and indexes a vault, serves it on this machine, and prints the compressed size of each part of
the page. Then it opens the page in Chromium, and prints when the drawing appeared, and the frames
per second while the notes are laid out, and while the drawing is moved and zoomed. Chromium runs
without a GPU, so the processor draws every frame. Needs Chromium and the packages of `.[dev]`. With
`--vault`, the notes of a folder are served instead. `bench/page_speed.py` measures how soon the
server answers.
"""

from __future__ import annotations

import argparse
import http.client
import os
import re
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.vaults import make_vault

PARTS_OF_GRAPH = (
    "/static/page.css",
    "/static/graph.css",
    "/static/page.js",
    "/static/graph.js",
    "/static/graph-view.js",
    "/static/graph-layout.js",
    "/static/vendor/forces.js",
    "/graph?show=all",
    "/graph/data?show=all",
)
COUNT_FRAMES = """seconds => new Promise(resolve => {
    const start = performance.now();
    const times = [];
    const next = now => {
        times.push(now);
        if (now - start < seconds * 1000) requestAnimationFrame(next);
        else resolve(times);
    };
    requestAnimationFrame(next);
})"""


class Server(NamedTuple):
    """A server of the vault: its port, and the token of its owner."""

    port: int
    token: str

    def size_of(self, path: str) -> int:
        """Return how many bytes the answer to a browser that is signed in has, compressed."""
        headers = {"Authorization": f"Bearer {self.token}", "Accept-Encoding": "gzip"}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        body = response.read()
        connection.close()
        if response.status != 200:
            raise SystemExit(f"{path} was answered with {response.status}")
        return len(body)


def main() -> None:
    """Make a vault, serve it, and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--notes", type=int, default=6_600)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--vault", type=Path)
    options = parser.parse_args()

    with tempfile.TemporaryDirectory(prefix="simplemem-page-") as root:
        vault = options.vault or Path(root) / "vault"
        if options.vault is None:
            make_vault(vault, options.notes)
        index = [sys.executable, "-m", "simplemem", "index", "--vault", str(vault)]
        subprocess.run(index, check=True, stdout=subprocess.DEVNULL)

        with serving(vault, Path(root)) as server:
            measure_size(server)
            measure_drawing(server, options.seconds)


@contextmanager
def serving(vault: Path, root: Path) -> Iterator[Server]:
    """Serve a vault on a free port, and yield the server once it is ready."""
    token = secrets.token_urlsafe(24)
    env = {**os.environ, "XDG_CONFIG_HOME": str(root / "config"), "SIMPLEMEM_TOKEN": token}
    command = [sys.executable, "-m", "simplemem", "serve", "--yes", "--http", "127.0.0.1:0"]
    command += ["--vault", str(vault)]
    process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)
    try:
        yield Server(_port_of(process), token)
    finally:
        process.terminate()
        process.wait(30)


def _port_of(process: subprocess.Popen[str]) -> int:
    """Return the port in the log of a server that starts."""
    for line in process.stderr or ():
        address = re.search(r" at https?://127\.0\.0\.1:(\d+)", line)
        if address is not None:
            return int(address[1])
    raise SystemExit(f"the server ended with {process.wait()}")


def measure_size(server: Server) -> None:
    """Print the compressed size of all that the drawing of the whole vault needs."""
    total = 0
    for path in PARTS_OF_GRAPH:
        size = server.size_of(path)
        total += size
        print(f"  {path:28} {size / 1000:6.1f} kB")
    print(f"graph of the whole vault: {total / 1000:.0f} kB compressed")


def measure_drawing(server: Server, seconds: float) -> None:
    """Print when the drawing of the whole vault appears in Chromium, and its frames per second."""
    arguments = ["--no-sandbox", "--disable-gpu"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=arguments
        )
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"http://127.0.0.1:{server.port}/")
        page.fill("input[name=token]", server.token)
        page.press("input[name=token]", "Enter")
        page.wait_for_selector("nav")

        first_drawings = [_open_drawing(page, server) for _ in range(5)]
        print(
            f"first drawing after {statistics.median(first_drawings):.0f} ms (median of 5 visits)"
        )
        _print_frames("laid out", page.evaluate(COUNT_FRAMES, seconds))
        page.wait_for_selector(".drawing[data-settled]", timeout=120_000)
        _print_frames("moved", _frames_while_moved(page, seconds))
        _print_frames("zoomed", _frames_while_zoomed(page, seconds))
        browser.close()


def _open_drawing(page: Page, server: Server) -> float:
    """Open the drawing of the whole vault, and return after how many milliseconds it appeared."""
    page.goto(f"http://127.0.0.1:{server.port}/graph?show=all")
    while not page.evaluate("window.graphView?.firstDrawing ?? 0"):
        time.sleep(0.02)
    milliseconds: float = page.evaluate("graphView.firstDrawing")
    return milliseconds


def _frames_while_moved(page: Page, seconds: float) -> Sequence[float]:
    """Drag the drawing in a circle for some seconds, and return the times of its frames."""
    return _frames_while(
        page, seconds, "view.pan(12 * Math.sin(step / 9), 12 * Math.cos(step / 9))"
    )


def _frames_while_zoomed(page: Page, seconds: float) -> Sequence[float]:
    """Zoom in and out for some seconds, and return the times of the frames."""
    return _frames_while(page, seconds, "view.zoom(step % 60 < 30 ? 1.05 : 1 / 1.05)")


def _frames_while(page: Page, seconds: float, change: str) -> Sequence[float]:
    """Change the drawing at every frame for some seconds, and return the times of the frames."""
    script = f"""seconds => new Promise(resolve => {{
        const view = window.graphView;
        const times = [];
        const next = now => {{
            times.push(now);
            const step = times.length;
            {change};
            if (now - times[0] < seconds * 1000) requestAnimationFrame(next);
            else resolve(times);
        }};
        requestAnimationFrame(next);
    }})"""
    times: Sequence[float] = page.evaluate(script, seconds)
    return times


def _print_frames(title: str, times: Sequence[float]) -> None:
    """Print the frames per second, and the longest of the slowest hundredth of the frames."""
    gaps = sorted(later - earlier for earlier, later in pairwise(times))
    rate = 1000 * len(gaps) / (times[-1] - times[0])
    slow = gaps[int(0.99 * (len(gaps) - 1))]
    print(f"while it is {title}: {rate:.0f} frames per second, 99 % within {slow:.0f} ms")


if __name__ == "__main__":
    main()
