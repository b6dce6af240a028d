"""Make the pictures of the README and the documentation from the real program.

    python docs/pictures.py            or: make pictures
    python docs/pictures.py --check    end with 1 if the picture of the terminal differs from what the program prints

`images/terminal.svg` shows a real session: commands and tool calls on a copy of the example vault. The pictures of the web
page, `images/web-*.png`, are taken by `page_pictures.py`. They need Chromium and are left as they are if there is none.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types
from mcp import Client, StdioServerParameters

from simplemem.clients.client import server_command

sys.path.insert(0, str(Path(__file__).resolve().parent))
from demo import clean_environment, example_vault
from terminal_svg import Recording

IMAGES = Path(__file__).resolve().parent / "images"
_NOTE = "flights/Flight 5 Fulmar"
_TEXT = """\
# Flight 5, Fulmar

Planned for 18 April, on hydrogen.
See [[Wind limit for launches]].
"""


# ------------------------------------------------------------------ the terminal


async def record(vault: Path) -> Recording:
    """Return the recording of an agent that recalls and writes, a person who edits, and an undo."""
    recording = Recording("An agent and a person work on the same notes, and a change is undone")
    program, *arguments = server_command(vault)
    server = StdioServerParameters(command=program, args=arguments, env=clean_environment(vault))
    about = mcp_types.Implementation(name="claude-ai", version="1.0")
    async with Client(server, client_info=about) as client:
        await _show_recall(recording, client)
        sha256 = await _show_write(recording, client, vault)
        current_sha256 = await _show_conflict(recording, client, vault, sha256)
        await _show_second_try(recording, client, current_sha256)
    _show_undo(recording, vault)
    return recording


async def _show_recall(recording: Recording, client: Any) -> None:
    recording.start_scene("An agent answers from your notes")
    question = "what is the corrected height of the record flight"
    answer = await _call(recording, client, "search_memories", query=question, limit=1)
    hit = answer["hits"][0]
    recording.write(f"  {hit['name']}, line {hit['line']}", "strong", delay=0.6)
    recording.write(f"  {hit['heading']}", "dim")
    for line in _wrapped(hit["snippet"]):
        recording.write(f"    {line}")


async def _show_write(recording: Recording, client: Any, vault: Path) -> str:
    recording.start_scene("It writes a note, an ordinary Markdown file")
    answer = await _call(recording, client, "create_memory", name=_NOTE, content=_TEXT)
    recording.write("")
    recording.write(f"$ cat '{_NOTE}.md'", "prompt", delay=0.8)
    recording.write((vault / f"{_NOTE}.md").read_text(encoding="utf-8"))
    return str(answer["sha256"])


async def _show_conflict(recording: Recording, client: Any, vault: Path, sha256: str) -> str:
    recording.start_scene(
        "You edit the note. The agent has not seen your edit, and its change is refused"
    )
    file = vault / f"{_NOTE}.md"
    edit = f"sed -i 's/18 April/25 April/' '{_NOTE}.md'"
    recording.write(f"$ {edit}", "prompt", delay=0.8)
    subprocess.run(["sh", "-c", edit], cwd=vault, check=True)
    if "25 April" not in file.read_text(encoding="utf-8"):
        raise RuntimeError("the edit was not made")

    recording.write("")
    change = {"old": "18 April", "new": "19 April"}
    answer = await _call(
        recording, client, "update_memory", name=_NOTE, edits=[change], if_sha256=sha256
    )
    error = answer["error"]
    recording.write(f"  {error['code']}: {error['message']}", "strong", delay=0.6)
    for line in error["diff"].splitlines():
        color = {"+": "added", "-": "removed"}.get(line[:1], "dim")
        recording.write(f"    {line}", color)
    return str(error["current_sha256"])


async def _show_second_try(recording: Recording, client: Any, sha256: str) -> None:
    recording.start_scene("The agent changes the new text instead. You do not like the change")
    change = {"old": "on hydrogen", "new": "on helium"}
    answer = await _call(
        recording, client, "update_memory", name=_NOTE, edits=[change], if_sha256=sha256
    )
    recording.write(f"  changed: {answer['changed']}", "strong", delay=0.6)


def _show_undo(recording: Recording, vault: Path) -> None:
    recording.start_scene("Every change has an author, and can be undone")
    for command in (["history", "--limit", "2"], ["undo", _NOTE], ["show", _NOTE]):
        _run(recording, vault, command)


async def _call(recording: Recording, client: Any, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool and show the call. Return the structured answer."""
    recording.write(f"> {tool}", "prompt", delay=0.5)
    for name, value in arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        recording.write(f"    {name}: {_shortened(text)}", "dim")
    result = await client.call_tool(tool, arguments)
    return dict(result.structured_content or {})


def _shortened(text: str) -> str:
    """Return the first line of a text, with an ellipsis if there is more."""
    first = text.splitlines()[0][:64]
    return first if first == text else f"{first}…"


def _run(recording: Recording, vault: Path, arguments: list[str]) -> None:
    """Run a command in the vault and show what it prints."""
    typed = " ".join(f"'{word}'" if " " in word else word for word in arguments)
    recording.write(f"$ simplemem {typed}", "prompt", delay=0.8)
    environment = clean_environment(vault) | {"COLUMNS": "92", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "simplemem", *arguments]
    done = subprocess.run(
        command, cwd=vault, env=environment, capture_output=True, encoding="utf-8", check=True
    )
    recording.write(done.stdout)
    recording.write("")


def _wrapped(text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, 84)[:4]


# ------------------------------------------------------------------ the web page


def take_graph_picture(vault: Path, chromium: str) -> str:
    """Write the picture of the graph that the command line exports, and return its file name."""
    from playwright.sync_api import sync_playwright

    graph = vault.parent / "graph.html"
    export = [sys.executable, "-m", "simplemem", "export", "graph", "--format", "html"]
    export += ["--notes", "all", "--output", str(graph)]
    subprocess.run(export, cwd=vault, env=clean_environment(vault), check=True, capture_output=True)
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        page = browser.new_page(viewport={"width": 840, "height": 560})
        page.goto(graph.as_uri())
        page.wait_for_timeout(4000)  # until the layout has come to rest
        page.screenshot(path=IMAGES / "graph.png")
        browser.close()
    return "graph.png"


# ------------------------------------------------------------------ the command


def comparable(svg: str) -> list[str]:
    """Return the lines of a picture without what differs from run to run: times and hashes."""
    lines = re.findall(r"<text [^>]*>(.*?)</text>", svg)
    return [
        re.sub(r"\d{4}-\d\d-\d\dT[\d:]+|\b[0-9a-f]{64}\b|just now|\d+ seconds? ago", "…", line)
        for line in lines
    ]


def main() -> int:
    os.umask(0o022)
    with example_vault() as vault:
        recording = anyio.run(record, vault)
    if "--check" in sys.argv[1:]:
        drawn = (IMAGES / "terminal.svg").read_text(encoding="utf-8")
        is_current = comparable(drawn) == comparable(recording.svg())
        if not is_current:
            print("docs/images/terminal.svg is out of date; run: make pictures", file=sys.stderr)
        return 0 if is_current else 1

    (IMAGES / "terminal.svg").write_text(recording.svg(), encoding="utf-8", newline="\n")
    print("docs/images/terminal.svg")

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print(
            "Chromium was not found, so the pictures of the web page are unchanged", file=sys.stderr
        )
        return 0
    from page_pictures import take_page_pictures

    with example_vault() as vault:
        empty_vault = vault.parent / "empty" / "vault"
        empty_vault.mkdir(parents=True)
        names = take_page_pictures(vault, empty_vault, chromium)
    with example_vault() as vault:
        names.append(take_graph_picture(vault, chromium))
    for name in names:
        print(f"docs/images/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
