"""Time to first byte of the pages of a vault with 6,600 notes and 1,000 changes by agents.

    python -m bench.page_speed

makes the vault in a temporary folder, serves it in a process of its own, waits until the server is
ready and idle, and prints a table: the first request of each page, which loads modules, the median
and the worst of 15 further ones, and the budget. Needs Linux.
"""

from __future__ import annotations

import http.client
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlencode

NOTES = 6_600
CHANGES = 1_000
LONG_NOTE_PARAGRAPHS = 145_000  # 11 MB
REQUESTS = 15
TOKEN = "a-token-of-the-benchmark"
PAGES = {  # the path of each page, and its budget in milliseconds
    "home and review": ("/", 30),
    "review, all changes": ("/?show=all&at=500-500", 30),
    "note": ("/note/folder%2040/Note%20100", 25),
    "first part of 11 MB": ("/note/Long", 1000),
    "next part of 11 MB": ("/note/Long?part=3&only=text", 100),
    "search": ("/?q=harbour+topic+12", 100),
    "search with a filter": ("/?q=harbour+topic+12&folder=folder+1", 100),
    "search in the palette": ("/palette/search?q=harbour+topic+12", 100),
    "graph": ("/graph", 1000),
    "graph around a note": ("/graph?note=Note+100&depth=3", 1000),
    "data of the whole graph": ("/graph/data?show=all", 1000),
}


def write_notes(vault: Path) -> None:
    """Write the notes of the vault, as an editor would."""
    for number in range(NOTES):
        folder = vault / f"folder {number % 60}"
        folder.mkdir(parents=True, exist_ok=True)
        others = ((number * 7 + 1) % NOTES, (number * 13 + 5) % NOTES)
        links = " and ".join(f"[[Note {other}]]" for other in others)
        text = (
            f"# Note {number}\n\nAbout topic {number % 97} at the harbour. See {links}.\n\n- one\n"
        )
        (folder / f"Note {number}.md").write_text(text)

    paragraph = "A paragraph of plain words that goes on for a while, about nothing at all.\n\n"
    (vault / "Long.md").write_text(paragraph * LONG_NOTE_PARAGRAPHS)


def make_changes(vault: Path) -> None:
    """Make the changes: new notes and edits by five agents in sessions of 20 changes."""
    import simplemem

    with simplemem.open_store(vault) as store:
        store.search("harbour")  # builds the index
        for number in range(CHANGES):
            author = {
                "who": f"agent-{number // 20 % 5}",
                "tool": "update_memory",
                "kind": "agent",
                "session": f"session-{number // 20}",
                "reason": f"the user said so in turn {number}",
            }
            if number % 2:
                name = f"folder {number % 60}/Note {number}"
                store.update(name, append=f"- added in change {number}", **author)
            else:
                store.create(f"memories/Memory {number}", f"Learned in turn {number}.", **author)


class Browser:
    """A signed-in browser that measures the time to the first byte of pages."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._headers = {"Accept": "text/html"}
        form = urlencode({"token": TOKEN, "to": "/"})
        type_header = {"Content-Type": "application/x-www-form-urlencoded"}
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        origin = {"Origin": f"http://127.0.0.1:{port}"}
        connection.request("POST", "/login", form, {**type_header, **origin})
        cookie = connection.getresponse().headers["Set-Cookie"]
        self._headers["Cookie"] = cookie.partition(";")[0]

    def time_of(self, path: str) -> float:
        """Return the milliseconds from the request to the first byte of the answer's body."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=600)
        connection.connect()
        start = time.perf_counter()
        connection.request("GET", path, headers=self._headers)
        answer = connection.getresponse()
        answer.read(1)
        milliseconds = (time.perf_counter() - start) * 1000
        assert answer.status == 200, (path, answer.status)
        answer.read()
        connection.close()
        return milliseconds


def wait_until_idle(process: subprocess.Popen[str], port: int) -> None:
    """Wait until the server has brought its index up to date, and uses no processor any more.

    After the index, it makes the vectors of what is new, while it answers already.
    """
    while status_of(port, "/ready") != 200:
        time.sleep(0.2)
    is_busy = True
    while is_busy:
        before = cpu_seconds_of(process)
        time.sleep(2)
        is_busy = cpu_seconds_of(process) - before > 0.1


def status_of(port: int, path: str) -> int:
    """Return the status of the answer to a request without a token."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("GET", path)
    status = connection.getresponse().status
    connection.close()
    return status


def cpu_seconds_of(process: subprocess.Popen[str]) -> float:
    """Return the CPU seconds that a process has used so far."""
    line = Path(f"/proc/{process.pid}/stat").read_text()
    fields = line.rpartition(")")[2].split()  # the name of the program may contain blanks
    user, system = int(fields[11]), int(fields[12])
    return (user + system) / os.sysconf("SC_CLK_TCK")


def serve(vault: Path, folder: Path) -> tuple[subprocess.Popen[str], int]:
    """Start a server for the vault; return its process and port."""
    env = {**os.environ, "SIMPLEMEM_TOKEN": TOKEN, "XDG_CONFIG_HOME": str(folder / "config")}
    command = [sys.executable, "-m", "simplemem", "serve", "--yes", "--http", "127.0.0.1:0"]
    process = subprocess.Popen(
        [*command, "--vault", str(vault)], env=env, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    for line in process.stderr:
        address = re.search(r" at https?://127\.0\.0\.1:(\d+)", line)
        if address is not None:
            # What it prints later is read, so that the pipe never fills up.
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return process, int(address[1])
    raise SystemExit("the server did not start")


def main() -> None:
    """Make the vault, serve it, and print the times."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        vault = folder / "vault"
        write_notes(vault)
        make_changes(vault)
        process, port = serve(vault, folder)
        try:
            wait_until_idle(process, port)
            browser = Browser(port)
            print(f"{'page':<25}{'first':>9}{'median':>9}{'worst':>9}{'budget':>9}  ms")
            for page, (path, budget) in PAGES.items():
                first = browser.time_of(path)
                times = [browser.time_of(path) for _ in range(REQUESTS)]
                median = statistics.median(times)
                print(f"{page:<25}{first:>9.1f}{median:>9.1f}{max(times):>9.1f}{budget:>9}")
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
