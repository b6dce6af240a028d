"""Show an agent at work: a real MCP client talks to a real server about the example vault.

    python docs/demo.py        or: make demo

The demo works in a temporary copy. Each step checks its result; the first unexpected result ends the demo with exit
code 1. A terminal gets colours, a pipe gets plain text.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
NOTES = REPOSITORY / "vault-example"
PATIENCE = 60
"""Seconds after which the demo gives up; it takes about two."""
# When the notes of the example were last touched: a checkout gives every file the date of today.
_TOUCHED = 1_772_366_400  # 2026-03-01T12:00:00Z

FULMAR = "flights/Flight 5 Fulmar"
PLAN = """\
# Flight 5, Fulmar

Planned for 18 April, on hydrogen, if the [[Wind limit for launches|wind]] allows it.

- [ ] Order a bigger parachute
"""


class Unmet(Exception):
    """A step of the demo had an unexpected result."""


def expect(is_met: bool, expectation: str) -> None:
    """Raise Unmet with an expectation if that is not met."""
    if not is_met:
        raise Unmet(f"expected that {expectation}")


class Page:
    """Writes the transcript: headings, prose, calls and answers, in colour if standard output is a terminal."""

    def __init__(self) -> None:
        self._coloured = (
            sys.stdout.isatty()
            and "NO_COLOR" not in os.environ
            and os.environ.get("TERM") != "dumb"
        )
        columns = shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else 100
        self._width = max(40, min(columns, 100))
        self._steps = 0
        self._blank = True

    def step(self, title: str, prose: str) -> None:
        self._steps += 1
        self._line()
        self._line(self._in(f"{self._steps}. {title}", "1"))
        self.say(prose)

    def say(self, prose: str) -> None:
        self._line()
        for line in textwrap.wrap(" ".join(prose.split()), self._width, break_on_hyphens=False):
            self._line(line)
        self._line()

    def typed(self, command: str) -> None:
        self._line(self._in(f"  $ {command}", "36"))

    def called(self, tool: str, arguments: dict[str, Any]) -> None:
        self._line(f"  {self._in(tool, '1;36')}")
        for name, value in arguments.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            for number, line in enumerate(text.rstrip("\n").split("\n")):
                label = f"{name}: " if number == 0 else " " * (len(name) + 2)
                self._wrapped(line, "    " + label, " " * (len(label) + 4), "36")

    def answered(self, text: str) -> None:
        """Write a complete answer beside a bar."""
        for line in text.rstrip("\n").split("\n"):
            self._wrapped(line, "  │ ", "  │ ", _colour_of(line))
        self._line()

    def settings(self, places: list[str], lines: str) -> None:
        """Write lines to copy. They are never wrapped."""
        for place in places:
            self._line(f"  {self._in(place, '1')}")
        for line in lines.split("\n"):
            self._line("    " + line)
        self._line()

    def _wrapped(self, line: str, first: str, rest: str, colour: str) -> None:
        inside = len(line) - len(line.lstrip())
        parts = textwrap.wrap(
            line.strip(),
            max(20, self._width - len(first) - inside),
            break_long_words=False,
            break_on_hyphens=False,
        )
        for number, part in enumerate(parts or [""]):
            bar = first if number == 0 else rest
            self._line((self._in(bar, "2") + self._in(" " * inside + part, colour)).rstrip())

    def _in(self, text: str, colour: str) -> str:
        return (
            f"\033[{colour}m{text}\033[0m" if self._coloured and colour and text.strip() else text
        )

    def _line(self, line: str = "") -> None:
        """Write a line, but never two blank lines in a row."""
        if line or not self._blank:
            print(line, flush=True)
        self._blank = not line


def _colour_of(line: str) -> str:
    """Return green or red for a line of a diff, and faint for the marks around the text of notes."""
    if line.startswith(("<note ", "</note ", "The text between the marks")):
        return "2"
    return {"+": "32", "-": "31"}.get(line[:1], "") if line[1:2] not in (" ", "-", "+") else ""


@contextmanager
def example_vault() -> Iterator[Path]:
    """Copy the example vault to a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="simplemem-demo-", ignore_cleanup_errors=True) as room:
        vault = Path(room).resolve() / "vault"
        shutil.copytree(NOTES, vault, ignore=shutil.ignore_patterns(".simplemem"))
        for path in vault.rglob("*"):
            os.utime(path, (_TOUCHED, _TOUCHED))
        yield vault


def hashes(vault: Path) -> dict[str, str]:
    """Return the hash of each file of the vault."""
    return {
        path.relative_to(vault).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in vault.rglob("*")
        if path.is_file() and ".simplemem" not in path.relative_to(vault).parts
    }


def clean_environment(vault: Path) -> dict[str, str]:
    """Return this environment without settings of simplemem, so that the demo shows the defaults."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("SIMPLEMEM_")}
    return env | {"XDG_CONFIG_HOME": str(vault.parent / "settings")}


def index(page: Page, vault: Path) -> None:
    """Build the index on the command line."""
    from simplemem.clients.client import server_command

    page.step(
        "A vault is a folder of Markdown notes",
        """This vault is the notebook of a balloon club: the folder vault-example of this repository. Building the index
        takes a second or two. The index goes into the folder .simplemem; no note is changed.""",
    )
    old_hashes = hashes(vault)
    program = server_command(vault)
    command = [*program[: program.index("serve")], "index", "--vault", str(vault)]
    page.typed("simplemem index")
    done = subprocess.run(
        command,
        env=clean_environment(vault),
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    page.answered(done.stdout + done.stderr)
    expect(
        done.returncode == 0, f"the index is built, with exit code 0 instead of {done.returncode}"
    )
    expect(old_hashes == hashes(vault), "indexing leaves every file of the vault as it was")


async def conversation(page: Page, vault: Path) -> None:
    """Let an agent work with the vault, through the client of the official SDK."""
    import mcp_types
    from mcp import Client, StdioServerParameters

    from simplemem.clients.client import server_command

    program, *arguments = server_command(vault)
    server = StdioServerParameters(command=program, args=arguments, env=clean_environment(vault))
    about = mcp_types.Implementation(name="demo-agent", version="1.0")
    async with Client(server, client_info=about) as client:
        await _meet(page, client)
        await _recall(page, client)
        old_hashes = hashes(vault)
        written = await _write(page, client, vault)
        written = await _conflict(page, client, vault, written)
        await _undo(page, client, vault, written)
        new_hashes = hashes(vault)
        notes = sum(path.endswith(".md") for path in old_hashes)
        page.say(f"""The vault had {len(old_hashes)} files, {notes} of them notes, and now has
            {len(new_hashes)}. The {len(old_hashes)} old files are unchanged, byte for byte.""")
        hashes_of_old_files = {path: new_hashes.get(path) for path in old_hashes}
        expect(hashes_of_old_files == old_hashes, "no other file was touched")


async def _call(page: Page, client: Any, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool. Show the call and the text that a model gets."""
    page.called(tool, arguments)
    result = await client.call_tool(tool, arguments)
    page.answered("\n".join(part.text for part in result.content if part.type == "text"))
    return dict(result.structured_content or {})


async def _meet(page: Page, client: Any) -> None:
    page.step(
        "An agent connects",
        """`simplemem serve` speaks MCP over standard input and output. Here the client of the official SDK connects;
        yours may be Claude, Cursor or your own program. The server offers these tools:""",
    )
    tools = (await client.list_tools()).tools
    page.answered("\n".join(f"{tool.name:<16} {tool.title}" for tool in tools))
    expect(len(tools) == 12, f"there are twelve tools, not {len(tools)}")


async def _recall(page: Page, client: Any) -> None:
    page.step("It searches before it answers", "A question finds the passage that answers it.")
    question = "what is the corrected height of the record flight"
    found = await _call(page, client, "search_memories", query=question, limit=1)
    expect(
        found["hits"][0]["name"] == "flights/Flight 2 Dipper",
        "the first hit is the flight in question",
    )
    expect("28.9 km" in found["hits"][0]["snippet"], "the passage has the corrected height")
    page.say("""The note contains two heights. The answer also names the notes that link to this note, so the agent finds
        the note that corrects the first height.""")
    read = await _call(page, client, "read_memory", name="Dipper")
    expect(
        "science/Pressure sensor calibration" in read["backlinks"],
        "the note that corrected it links here",
    )


async def _write(page: Page, client: Any, vault: Path) -> str:
    page.step(
        "It writes a note",
        """The agent creates a Markdown note with frontmatter. The note links to other notes.""",
    )
    tags = {"flight": True, "status": "planned"}
    created = await _call(
        page, client, "create_memory", name=FULMAR, content=PLAN, metadata={"tags": tags}
    )
    file = vault / f"{FULMAR}.md"
    page.say("The file that Obsidian shows:")
    page.answered(file.read_text(encoding="utf-8"))
    expect(PLAN.strip() in file.read_text(encoding="utf-8"), "the note is in the vault")
    links = await _call(page, client, "get_backlinks", name=FULMAR, kinds=["link"])
    expect(
        [item["name"] for item in links["items"]] == ["Sandhaven balloons"],
        "a link that was unresolved leads here",
    )
    return str(created["sha256"])


async def _conflict(page: Page, client: Any, vault: Path, read: str) -> str:
    page.step(
        "You edit the same note",
        """You open the note in an editor and postpone the flight by a week. The agent has not seen your edit. It passes
        the hash of the text it knows.""",
    )
    file = vault / f"{FULMAR}.md"
    by_hand = file.read_bytes().replace(b"18 April", b"25 April")
    file.write_bytes(by_hand)
    change = {"old": "18 April", "new": "19 April"}
    refused = await _call(
        page, client, "update_memory", name=FULMAR, edits=[change], if_sha256=read
    )
    expect(refused.get("error", {}).get("code") == "conflict", "the write is refused as a conflict")
    expect("+Planned for 25 April" in refused["error"]["diff"], "the difference shows your edit")
    expect(file.read_bytes() == by_hand, "your edit is still there")
    page.say(
        "The write is refused, and your edit is safe. The agent repeats its change on the current text:"
    )
    now = refused["error"]["current_sha256"]
    task = "- [ ] Tell the aviation authority two weeks before"
    written = await _call(page, client, "update_memory", name=FULMAR, append=task, if_sha256=now)
    expect(bool(written.get("changed")), "the change is written with the new hash")
    text = file.read_text(encoding="utf-8")
    expect("25 April" in text and task in text, "the note contains both changes")
    return str(written["sha256"])


async def _undo(page: Page, client: Any, vault: Path, written: str) -> None:
    page.step(
        "It makes a mistake, and undoes it", "Each change keeps the old text. So does a deletion."
    )
    file = vault / f"{FULMAR}.md"
    old_bytes = file.read_bytes()
    deleted = await _call(page, client, "delete_memory", name=FULMAR, if_sha256=written)
    expect(not file.exists(), "the note is gone")
    await _call(page, client, "undo_change", version=deleted["version"])
    expect(file.read_bytes() == old_bytes, "the note is restored byte for byte")
    story = await _call(page, client, "memory_history", name=FULMAR)
    expect(
        all(version["who"] == "demo-agent 1.0" for version in story["versions"]),
        "the history names the client",
    )


def connect(page: Page) -> None:
    """Show how to connect a client, with the paths of this installation."""
    from simplemem.clients.client import clients, server_command
    from simplemem.clients.splice import put

    vault = Path.home() / "notes"
    page.step(
        "Connect your own client",
        f"""`simplemem connect CLIENT --vault FOLDER` adds one entry to the configuration of a client. It shows the change
        and asks first. The folder may be your Obsidian vault. Most clients use the entry below, here for {vault}.
        docs/connect.md has the other forms. The clients:""",
    )
    client_of = clients()
    titles = [f"{client.title} ({name})" for name, client in client_of.items() if client.files]
    json_client = client_of["json"]
    entry = json_client.entry("simplemem", server_command(vault))
    page.settings(titles, put("json", "", json_client.key, "simplemem", entry).rstrip())
    page.say("Two commands to try next:")
    program = server_command(vault)
    simplemem = " ".join(program[: program.index("serve")])
    page.typed(f"{simplemem} connect claude-desktop --vault ~/notes")
    page.typed(f"{simplemem} search 'what do you want to know' --vault ~/notes")


def main() -> int:
    """Show all steps. Return the exit code: 1 if a step failed."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    import anyio

    page = Page()

    async def run_conversation(vault: Path) -> None:
        with anyio.fail_after(PATIENCE):
            await conversation(page, vault)

    try:
        with example_vault() as vault:
            index(page, vault)
            anyio.run(run_conversation, vault)
        connect(page)
    except Exception as error:  # noqa: BLE001
        # Whatever it is, the user and the shell must learn of it.
        reason: BaseException = error
        while isinstance(reason, BaseExceptionGroup):
            reason = reason.exceptions[0]
        print(f"\nThe demo failed: {type(reason).__name__}: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
