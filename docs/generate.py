"""Write what the documentation shows of the program from the program itself.

    python docs/generate.py            write the pages
    python docs/generate.py --check    end with 1 when a page is not what would be written

docs/command-line.md is written whole; its prose stands below. In docs/configuration.md and docs/python-api.md only
what stands between `<!-- generated: NAME -->` and `<!-- end -->` is. Sessions run in a copy of `vault-example/`, which
is left alone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

DOCS = Path(__file__).resolve().parent
EXAMPLE = DOCS.parent / "vault-example"
WIDTH = 100
# When the notes of the example were last touched, where they do not say so themselves.
_TOUCHED = 1_772_366_400  # 2026-03-01T12:00:00Z


def pages() -> dict[Path, str]:
    """Every page that is generated, wholly or in part, as it should stand."""
    with Sandbox() as sandbox:
        written = {DOCS / "command-line.md": command_line(sandbox)}
        parts = {
            "settings": settings_table,
            "example": example_settings,
            "config": lambda: fenced("console", in_columns(sandbox.session(["simplemem config"]))),
            "methods": method_tables,
            "values": value_list,
            "errors": error_table,
        }
        for page in (DOCS / "configuration.md", DOCS / "python-api.md"):
            written[page] = filled(page.read_text(encoding="utf-8"), parts)
    return written


# ------------------------------------------------------------------ docs/command-line.md


@dataclass(frozen=True)
class Part:
    """A heading, a paragraph or two, and the commands that show it."""

    heading: str
    prose: str
    session: tuple[str, ...] = ()


INTRODUCTION = """
# The command line

<!-- Written by docs/generate.py. Change the prose there; the rest is what the program prints. -->

`simplemem` works on a folder of Markdown notes, the vault. It is `--vault FOLDER`, else
`$SIMPLEMEM_VAULT`, else the setting, else the nearest folder upward that has a `.simplemem/`, else
`./.memories`, else `~/simplemem`. A note is called by its name (its path without `.md`), and wherever
that is unique also by its file name, title or alias.

Everything below was run in a copy of [vault-example](../vault-example), the notebook of a balloon club.
"""

PARTS = (
    Part(
        "Find and read",
        """
There is nothing to keep up to date: each command first brings the index in step with the files, which
takes milliseconds when little has changed. Edit notes in Obsidian, in an editor or with `git pull` as
you like.

A search is by words and by meaning at once. In a terminal the words are in bold. Each hit names the
note, the heading and the line, so that it can be opened there and cited. `--explain` shows the numbers behind
each rank, `--why NAME` where a note is, or what keeps it out ([search.md](search.md)).
""",
        (
            "simplemem search how high did Dipper really go --limit 2",
            "simplemem search gas --tag status=active --limit 1 --explain",
            "simplemem search gas --tag status=active --limit 1 --why 'Helium for lift'",
            "simplemem list --prefix decisions/",
            "simplemem show Dipper --section 'How high'",
            "simplemem show 'Hydrogen for lift' --links",
            "simplemem backlinks 'Ida Marsh' --kind link --limit 3",
            "simplemem context 'why did we give up helium' --budget 250",
        ),
    ),
    Part(
        "Write, and take it back",
        """
Every change keeps what was there before. `rm` does not ask, because `undo` brings the note back, and an
undo can itself be undone. Links follow a move, each in the form it was written in.
""",
        (
            "simplemem new 'flights/Flight 5 Fulmar' --tag status=planned --content 'In April.'",
            "simplemem tag 'Flight 5 Fulmar' status=done",
            "simplemem move 'Hugh Pettifer' 'people/Hugh Pettifer (chase)'",
            "simplemem undo",
            "simplemem rm 'Old packing list'",
            "simplemem undo 'archive/Old packing list'",
            "simplemem history 'Flight 5 Fulmar'",
        ),
    ),
    Part(
        "In your editor",
        """
`simplemem edit NAME` opens the whole file, header and all, in `$VISUAL` or `$EDITOR`, and saves it to
the byte. If somebody else (an agent, a sync, Obsidian) changed the note meanwhile, nothing is
overwritten: your text is kept in `.simplemem/drafts/`, the difference is shown, and the command ends
with 1. `simplemem new NAME --edit` opens an empty text; leave it empty and no note is made.
""",
    ),
    Part(
        "For programs and pipes",
        """
Every command takes `--json`. Exit codes are 0 (done), 1 (failed) and 2 (wrong usage); 130 after Ctrl-C.
A failure is one line and a hint on stderr, or with `--json` one object on stdout, with a `code` that
does not change: `invalid`, `not_found`, `already_exists`, `ambiguous`, `conflict`, `too_long`,
`read_only`, `unreadable`, `unavailable`.

What goes into a pipe is UTF-8, has no colours and is never cut to a width; `show` gives the file to the
byte. `NO_COLOR` is heeded. Remarks beside an answer go to stderr.
""",
        (
            "simplemem search hydrogen rules --limit 1 --json",
            'echo "Rain until noon." | simplemem new daily/2026-01-25 - --type daily',
            "simplemem show 'Flight 2 Diper' --json; echo \"exit code $?\"",
            "simplemem show 'Flight 2 Diper'; echo \"exit code $?\"",
        ),
    ),
    Part(
        "The knowledge graph",
        """
Entities of a [knowledge graph](graph.md) are notes. `import graph` brings the file of a graph memory server into the
vault, `export graph` gives it back.
""",
    ),
    Part(
        "Look after the vault",
        """
`doctor` compares the index with one made anew and looks for what a person may want to mend: broken
links and what they may mean, headers that cannot be read, names that collide, files that lie about, a vault
in a synced folder. It changes nothing; `--fix` mends what is sure, as one change that `undo` takes back
([doctor.md](doctor.md)). The index itself can always be thrown away: `simplemem index --rebuild`, or delete
`.simplemem/index.db`.
""",
        ("simplemem doctor",),
    ),
    Part(
        "Set it up",
        """
What can be set, and where, is told in [configuration.md](configuration.md). `simplemem config` shows
what is in force; `simplemem config --example` prints a settings file to begin with.
""",
    ),
    Part(
        "Completion in the shell",
        """
`simplemem --install-completion` teaches your shell (bash, zsh, fish or PowerShell) to complete commands,
options, names of notes and tags. `simplemem --show-completion` prints what it would add, for those who
keep their own dotfiles.
""",
    ),
    Part(
        "Serve agents",
        """
`simplemem serve` is how an AI agent reaches the vault; see [connect.md](connect.md) and
[tools.md](tools.md).
""",
    ),
)

COMMANDS = (
    *("search", "show", "list", "backlinks", "context"),
    *("new", "edit", "tag", "move", "rm", "history", "diff", "restore", "undo"),
    *("import", "export"),
    *("init", "index", "stats", "doctor", "conflicts", "knowledge", "inspect", "eval", "config", "serve"),
)
BELOW = {
    "eval": ("init", "run", "gate"),
    "import": ("graph",),
    "export": ("graph",),
    "knowledge": ("init", "stats", "list", "search", "show", "export", "analyze", "validate", "reset"),
}
"""Commands that are groups of others."""


def command_line(sandbox: Sandbox) -> str:
    """The whole page of the command line."""
    lines = [INTRODUCTION.strip(), ""]
    for part in PARTS:
        lines += [f"## {part.heading}", "", part.prose.strip(), ""]
        if part.session:
            lines += [*fenced("console", sandbox.session(part.session)), ""]
    lines += ["## Every command", "", *fenced("console", sandbox.session(["simplemem --help"])), ""]
    for name in COMMANDS:
        for called in (name, *(f"{name} {below}" for below in BELOW.get(name, ()))):
            lines += [f"### simplemem {called}", "", *fenced("text", sandbox.printed(f"simplemem {called} --help")), ""]
    return "\n".join(lines)


def fenced(kind: str, lines: Iterable[str]) -> list[str]:
    """Lines between fences longer than any that stands in them."""
    inside = list(lines)
    fence = "```"
    while any(line.lstrip().startswith(fence) for line in inside):
        fence += "`"
    return [f"{fence}{kind}", *inside, fence]


# ------------------------------------------------------------------ docs/configuration.md


_GENERATED = re.compile(r"<!-- generated: (\w+) -->\n.*?<!-- end -->\n", re.DOTALL)


def filled(text: str, parts: dict[str, Callable[[], list[str]]]) -> str:
    """A page with its generated parts written anew."""

    def part(found: re.Match[str]) -> str:
        lines = "\n".join(parts[found[1]]())
        return f"<!-- generated: {found[1]} -->\n\n{lines}\n\n<!-- end -->\n"

    return _GENERATED.sub(part, text)


def in_columns(session: Iterable[str]) -> list[str]:
    """A session whose columns are as wide as what is shown: the room's own path may have been longer."""
    prompt, *lines = session
    rows = [re.split(r" {2,}", line) for line in lines]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        prompt,
        *("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows),
    ]


def settings_table() -> list[str]:
    """Every setting, as its field says: its default, what it may be, and what it is for."""
    from simplemem.config import fields

    rows = []
    for key, field in fields():
        default = "" if field.default is None else f"`{json.dumps(field.default)}`"
        variable = "SIMPLEMEM_" + key.replace(".", "_").upper()
        meaning = str(field.description)
        rows.append((f"`{key}`", default, _allowed(field.annotation, field.metadata), f"`{variable}`", meaning))
    return table(("Setting", "Default", "May be", "In the environment", "What it is"), rows)


def _allowed(kind: Any, bounds: Iterable[Any]) -> str:
    """What a setting may be, in words."""
    if get_origin(kind) is Literal:
        return ", ".join(f"`{each}`" for each in get_args(kind))
    if kind is bool:
        return "`true`, `false`"
    words = {"ge": "at least", "gt": "over", "le": "at most"}
    limits = [f"{words[name]} {getattr(bound, name):g}" for bound in bounds for name in words if hasattr(bound, name)]
    if limits:
        return ", ".join(limits)
    if get_origin(kind) is tuple:
        return "a list of texts; in the environment with commas between them"
    kinds = get_args(kind) or (kind,)
    shown = "a path" if Path in kinds else "a number" if int in kinds else "a text"
    return shown + (", a table" if any(get_origin(each) is dict for each in kinds) else "")


def example_settings() -> list[str]:
    """The settings file that `simplemem config --example` prints."""
    from simplemem.config import example_config

    return fenced("toml", example_config().rstrip("\n").split("\n"))


def table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """A Markdown table."""
    return [
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
        for row in (heads, ("---",) * len(heads), *rows)
    ]


# ------------------------------------------------------------------ docs/python-api.md


SUBJECTS = {
    "In step with the files": ("sync", "estimate", "start", "wait_until_settled", "on_change", "state", "close"),
    "Reading and finding": ("read", "search", "list", "context", "backlinks", "related"),
    "Writing": ("create", "update", "change_tags", "move", "delete", "write_text"),
    "Earlier versions": ("history", "diff", "restore", "undo", "undo_all"),
    "Conflicts": ("conflict_copies", "conflict_merges", "merge_conflict"),
    "Names and tags": ("resolve", "names", "tags"),
    "Looking after it": ("stats", "doctor", "plan_mending", "mend", "surroundings", "inspect"),
}
"""The methods of a store, each under what it is about."""

_ASKERS = ("who", "tool", "reason")


def method_tables() -> list[str]:
    """Every method: how it is called, what it gives, and its own words."""
    from simplemem import EnhancedStore

    lines = []
    for subject, names in SUBJECTS.items():
        rows = []
        for name in names:
            method = getattr(EnhancedStore, name)
            rows.append((f"`{_call(name, method)}`", f"`{inspect.signature(method).return_annotation}`", _said(method)))
        lines += ["", f"### {subject}", "", *table(("Call", "Gives", "What it does"), rows)]
    return lines[1:]


def _call(name: str, method: Callable[..., Any]) -> str:
    """`read(name, *, section=None)`: without types, and without who asks, which all writes take."""
    shown = inspect.signature(method)
    parameters = [
        each.replace(annotation=inspect.Parameter.empty)
        for each in shown.parameters.values()
        if each.name not in ("self", *_ASKERS)
    ]
    return name + str(shown.replace(parameters=parameters, return_annotation=inspect.Signature.empty))


def value_list() -> list[str]:
    """Every value, its words and its fields."""
    from simplemem import memory

    kinds = [each for each in vars(memory).values() if isinstance(each, type) and issubclass(each, memory.Value)]
    rows = []
    for kind in kinds:
        if kind is not memory.Value:
            fields = ", ".join(f"`{field.name}`" for field in dataclasses.fields(kind))  # type: ignore[arg-type]
            rows.append((f"`{kind.__name__}`", _said(kind), fields))
    return table(("Value", "What it is", "Fields"), rows)


def error_table() -> list[str]:
    """Every error with its code."""
    from simplemem import errors

    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, Exception)]
    kinds.remove(errors.SimplememError)
    return table(("Error", "`code`", "When"), [(f"`{kind.__name__}`", f"`{kind.code}`", _said(kind)) for kind in kinds])


def _said(documented: Any) -> str:
    return " ".join((inspect.getdoc(documented) or "").split())


# ------------------------------------------------------------------ the program at work


class Sandbox:
    """A home with a copy of the example vault in it, and a program that knows nothing of this machine."""

    def __init__(self) -> None:
        self.room = Path(tempfile.mkdtemp()).resolve()
        self.vault = self.room / "vault-example"
        self._program: subprocess.Popen[str] | None = None

    def __enter__(self) -> Sandbox:
        copy_example(self.vault)
        return self

    def __exit__(self, *_: object) -> None:
        if self._program is not None:
            self._program.communicate()
        shutil.rmtree(self.room)

    def session(self, commands: Iterable[str]) -> Iterator[str]:
        """Commands, each after a prompt, and what they print."""
        for number, command in enumerate(commands):
            if number:
                yield ""
            yield f"$ {command}"
            yield from self.printed(command)

    def printed(self, command: str) -> list[str]:
        """What a command prints, on stdout and stderr, without blank lines around it."""
        shown = self._in_shell(command) if _SHELL.search(_QUOTED.sub("", command)) else self._in_program(command)
        text = shown.replace(str(self.room), "~")
        if "Traceback (most recent call last)" in text:
            raise RuntimeError(f"{command} broke:\n{text}")
        lines = [line.rstrip() for line in text.split("\n")]
        while lines and not lines[0]:
            lines.pop(0)
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def _in_shell(self, command: str) -> str:
        done = subprocess.run(
            ["sh", "-c", f'simplemem() {{ "$PYTHON" -m simplemem "$@"; }}\n{command}'],
            cwd=self.vault,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        return done.stdout.decode()

    def _in_program(self, command: str) -> str:
        """One process answers all plain commands: a start for each would cost ten times what they do."""
        if self._program is None:
            self._program = subprocess.Popen(
                [sys.executable, __file__, "--answer"],
                cwd=self.vault,
                env=self._environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                encoding="utf-8",
            )
        assert self._program.stdin is not None and self._program.stdout is not None
        self._program.stdin.write(json.dumps(shlex.split(command)[1:]) + "\n")
        self._program.stdin.flush()
        answer = self._program.stdout.readline()
        if not answer:
            raise RuntimeError(f"{command} ended the program")
        return str(json.loads(answer))

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.room),
            "TZ": "UTC",
            "COLUMNS": str(WIDTH),
            "TERMINAL_WIDTH": str(WIDTH),
            "PYTHONUNBUFFERED": "1",  # so that what goes to stderr stands where it would in a terminal
            "PYTHON": sys.executable,
            "EDITOR": "true",
        }


_QUOTED = re.compile(r"'[^']*'|\"[^\"$`]*\"")
_SHELL = re.compile(r"[|;&<>$`*?~()]")


def copy_example(folder: Path) -> None:
    """A vault like the example, with the same dates on every machine."""
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns(".simplemem"))
    for path in folder.rglob("*"):
        os.utime(path, (_TOUCHED, _TOUCHED))
    (folder / ".simplemem").mkdir()


def answer() -> None:
    """Run each command that comes in as a line, and answer with what it printed."""
    import typer.main

    from simplemem.__main__ import main as simplemem

    typer.main.get_command = functools.cache(typer.main.get_command)  # else it is built anew for every line
    answers = sys.stdout
    for line in sys.stdin:
        sys.argv = ["simplemem", *json.loads(line)]
        printed = io.BytesIO()
        screen = io.TextIOWrapper(printed, encoding="utf-8", write_through=True)
        # `serve --help` is not Typer's, and ends as argparse does.
        with contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen), contextlib.suppress(SystemExit):
            simplemem()
        answers.write(json.dumps(printed.getvalue().decode()) + "\n")
        answers.flush()


def main() -> int:
    if sys.argv[1:] == ["--answer"]:
        answer()
        return 0
    stale = {
        page: text for page, text in pages().items() if not page.exists() or page.read_text(encoding="utf-8") != text
    }
    for page, text in stale.items():
        if "--check" in sys.argv[1:]:
            print(f"{page} is not what the program shows now; run: python docs/generate.py", file=sys.stderr)
        else:
            page.write_text(text, encoding="utf-8")
    return 1 if stale and "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
