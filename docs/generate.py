"""Write what the documentation shows of the program from the program itself.

    python docs/generate.py            write the pages
    python docs/generate.py --check    end with 1 when a page is not what would be written

In the pages below every `console` block is a session: the commands after `$` are run, and what they print stands below
them. A `json` block below a comment `<!-- agent: NAME VERSION -->` is a call that this client sends to the server of the
session's vault. A session begins in a copy of `vault-example/`, or as a comment `<!-- session: NAME -->` says (`STARTS`).
The table of settings is made of their fields.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

DOCS = Path(__file__).resolve().parent
EXAMPLE = DOCS.parent / "vault-example"
PAGES = (
    "command-line.md",
    "configuration.md",
    "conversations.md",
    "doctor.md",
    "search.md",
    "tutorial-obsidian.md",
    "tutorial-project.md",
)
WIDTH = 100
_HOME = "/home/ida"  # what the pages show for the home folder of a session
# When the notes of the example were last touched: a checkout gives every file the date of today.
_TOUCHED = 1_772_366_400  # 2026-03-01T12:00:00Z
_BLOCK = re.compile(
    r"""
    (?<=^```console\n) (?P<session>.*?) (?=^```$)
    | ^<!--\ agent:\ (?P<agent>\S+\ \S+)\ -->\n+ ```json\n (?P<call>.*?) ^```$
    """,
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)
_START = re.compile(r"^<!-- session: (\w+) -->$", re.MULTILINE)
_SETTINGS = re.compile(r"(?<=<!-- generated: settings -->\n).*?(?=<!-- end -->)", re.DOTALL)


def pages() -> dict[Path, str]:
    """Every page that shows what the program prints, as it should stand."""
    written = {}
    for name in PAGES:
        page = (DOCS / name).read_text(encoding="utf-8")
        start = _START.search(page)
        with tempfile.TemporaryDirectory() as home:
            text = Shell(Path(home).resolve(), start[1] if start else "example").filled(page)
        written[DOCS / name] = _SETTINGS.sub(
            lambda _: "\n" + "\n".join(settings_table()) + "\n\n", text
        )
    return written


# -- sessions


class Shell:
    """A home folder, and a shell that knows nothing of this machine."""

    def __init__(self, home: Path, start: str) -> None:
        self.home = home
        self.folder = STARTS[start](home)

    def filled(self, page: str) -> str:
        """Return a page with its sessions run again."""
        return _BLOCK.sub(self._run, page)

    def _run(self, block: re.Match[str]) -> str:
        if block["session"] is not None:
            return "\n".join(self.session(block["session"])) + "\n"
        self._call(block["agent"], json.loads(block["call"]))
        return block[0]

    def _call(self, agent: str, call: Mapping[str, Any]) -> None:
        """Send a call to the server of the current vault, as a client of this name. Raises RuntimeError if it fails."""
        name, version = agent.split(" ")
        script = [sys.executable, str(DOCS / "call_tool.py"), name, version, json.dumps(call)]
        done = subprocess.run(
            script, cwd=self.folder, env=self._environment(), capture_output=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{call['tool']} failed: {done.stderr.decode()}")

    def session(self, block: str) -> Iterator[str]:
        """The commands of a block, each with what it prints."""
        commands = [line for line in block.split("\n") if line.startswith("$ ")]
        for number, command in enumerate(commands):
            if number:
                yield ""
            yield command
            yield from self._printed(command.removeprefix("$ "))

    def _printed(self, command: str) -> list[str]:
        """What a command prints, on stdout and stderr, without blank lines around it."""
        shell = f'simplemem() {{ "$PYTHON" -m simplemem "$@"; }}\n{command}\nstatus=$?\npwd > "$HOME/.folder"\nexit $status'
        done = subprocess.run(
            ["sh", "-c", shell],
            cwd=self.folder,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        self.folder = Path((self.home / ".folder").read_text(encoding="utf-8").strip())
        text = done.stdout.decode().replace(str(self.home), _HOME)
        text = text.replace(str(Path(sys.executable).parent), "/usr/local/bin")
        if "Traceback (most recent call last)" in text:
            raise RuntimeError(f"{command} broke:\n{text}")
        return [line.rstrip() for line in text.strip("\n").split("\n")]

    def _environment(self) -> dict[str, str]:
        unbuffered = {
            "PYTHONUNBUFFERED": "1"
        }  # so that what goes to stderr stands where it would in a terminal
        columns = {"COLUMNS": str(WIDTH), "TERMINAL_WIDTH": str(WIDTH)}
        home = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "TZ": "UTC",
            "PYTHON": sys.executable,
        }
        return home | columns | unbuffered | _GIT_USER


_GIT_USER = {
    f"GIT_{role}_{key}": value
    for role in ("AUTHOR", "COMMITTER")
    for key, value in {"NAME": "Ida Marsh", "EMAIL": "ida@example.org"}.items()
}


def _start_in_example(home: Path) -> Path:
    folder = home / "vault-example"
    copy_example(folder)
    return folder


def _start_with_obsidian(home: Path) -> Path:
    """Make `~/notes`, a vault that Obsidian uses and simplemem has not seen; return the home folder."""
    copy_example(home / "notes")
    (home / "notes" / ".simplemem").rmdir()
    (home / "notes" / ".obsidian").mkdir(exist_ok=True)
    return home


def _start_in_project(home: Path) -> Path:
    """Make `~/sailplan`, a git repository with some code; return the home folder."""
    project = home / "sailplan"
    project.mkdir()
    (project / "README.md").write_text("# Sailplan\n\nRoutes from wind data.\n", encoding="utf-8")
    (project / "wind.py").write_text("def load_wind(year): ...\n", encoding="utf-8")
    git = ["git", "-C", str(project)]
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "Start"]):
        subprocess.run(
            [*git, *command], env=os.environ | _GIT_USER | {"HOME": str(home)}, check=True
        )
    return home


STARTS = {
    "example": _start_in_example,
    "obsidian": _start_with_obsidian,
    "project": _start_in_project,
}


def copy_example(folder: Path) -> None:
    """A vault like the example, with the same dates on every machine."""
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns(".simplemem"))
    for path in folder.rglob("*"):
        os.utime(path, (_TOUCHED, _TOUCHED))
    (folder / ".simplemem").mkdir()


# -- settings


def settings_table() -> list[str]:
    """A table of all settings: default, allowed values, what the file of a vault may set, and meaning."""
    from simplemem.settings.model import fields

    heads = ("Setting", "Default", "Allowed", "In a vault", "Meaning")
    rows = [heads, ("---",) * len(heads)]
    for key, field in fields():
        default = "" if field.default is None else f"`{json.dumps(field.default)}`"
        extra: Any = field.json_schema_extra
        policy = (
            " or ".join(extra["vault"]) if isinstance(extra["vault"], tuple) else extra["vault"]
        )
        meaning = str(field.description)
        rows.append(
            (f"`{key}`", default, _allowed(field.annotation, field.metadata), policy, meaning)
        )
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]


def _allowed(kind: Any, bounds: Iterable[Any]) -> str:
    """Describe the values that a setting can have."""
    from simplemem.settings.section import ProviderName

    if get_origin(kind) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(kind))
    for annotation in bounds:
        if isinstance(annotation, ProviderName):
            names = ", ".join(f"`{name}`" for name in annotation.built_in)
            return f"{names}, or a [plug-in](plugins.md)"
    if kind is bool:
        return "`true`, `false`"
    words = {"ge": "at least", "gt": "more than", "le": "at most"}
    limits = [
        f"{words[name]} {getattr(bound, name):,}"
        for bound in bounds
        for name in words
        if hasattr(bound, name)
    ]
    if limits:
        return ", ".join(limits)
    if get_origin(kind) is tuple:
        return "list"
    kinds = get_args(kind) or (kind,)
    description = _describe_type(kinds)
    if any(get_origin(member) is dict for member in kinds):
        description += ", table"
    return description


def _describe_type(kinds: tuple[Any, ...]) -> str:
    """Return a word for the values that have one of these types."""
    if Path in kinds:
        return "path"
    return "number" if int in kinds else "text"


def main() -> int:
    """Write or check the pages. Return the exit code: 1 if a checked page is out of date."""
    stale = {
        page: text for page, text in pages().items() if page.read_text(encoding="utf-8") != text
    }
    for page, text in stale.items():
        if "--check" in sys.argv[1:]:
            print(f"{page} is out of date; run: python docs/generate.py", file=sys.stderr)
        else:
            page.write_text(text, encoding="utf-8")
    return 1 if stale and "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
