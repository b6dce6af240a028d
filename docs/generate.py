"""Write docs/command-line.md from the program itself: its help, and what it prints in the example vault.

    python docs/generate.py            write the page
    python docs/generate.py --check    end with 1 when the page is not what would be written

The prose of that page stands below; whatever stands in it between fences was printed by the program. Sessions
run in a copy of `vault-example/`, which is left alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
PAGE = REPOSITORY / "docs" / "command-line.md"
WIDTH = 100
# When the notes of the example were last touched, where they do not say so themselves.
_TOUCHED = 1_772_366_400  # 2026-03-01T12:00:00Z


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
note, the heading and the line, so that it can be opened there and cited.
""",
        (
            "simplemem search how high did Dipper really go --limit 2",
            "simplemem search gas --tag status=active --limit 1",
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
        "Look after the vault",
        """
`doctor` compares the index with one made anew and looks for what a person may want to mend: broken
links, names that collide, headers that cannot be read, stray files. It changes nothing, and fails only
when something is wrong with the index or a file, not for a link that leads nowhere yet. The index itself
can always be thrown away: `simplemem index --rebuild`, or delete `.simplemem/index.db`.
""",
        ("simplemem doctor", "simplemem config --example | head -6"),
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
    *("new", "edit", "tag", "move", "rm", "history", "undo"),
    *("init", "index", "stats", "doctor", "inspect", "config", "serve"),
)


def page() -> str:
    """The whole page, as it should stand in docs/command-line.md."""
    lines = [INTRODUCTION.strip(), ""]
    with Sandbox() as sandbox:
        for part in PARTS:
            lines += [f"## {part.heading}", "", part.prose.strip(), ""]
            if part.session:
                lines += [*fenced("console", sandbox.session(part.session)), ""]
        lines += ["## Every command", "", *fenced("console", sandbox.session(["simplemem --help"])), ""]
        for name in COMMANDS:
            lines += [
                f"### simplemem {name}",
                "",
                *fenced("text", sandbox.printed(f"simplemem {name} --help")),
                "",
            ]
    return "\n".join(lines)


def fenced(kind: str, lines: Iterable[str]) -> list[str]:
    """Lines between fences longer than any that stands in them."""
    inside = list(lines)
    fence = "```"
    while any(line.lstrip().startswith(fence) for line in inside):
        fence += "`"
    return [f"{fence}{kind}", *inside, fence]


class Sandbox:
    """A home with a copy of the example vault in it, and a shell that knows nothing of this machine."""

    def __init__(self) -> None:
        self._room = Path(tempfile.mkdtemp())
        self._vault = self._room / "vault-example"

    def __enter__(self) -> Sandbox:
        shutil.copytree(REPOSITORY / "vault-example", self._vault, ignore=shutil.ignore_patterns(".simplemem"))
        for path in self._vault.rglob("*"):
            os.utime(path, (_TOUCHED, _TOUCHED))
        (self._vault / ".simplemem").mkdir()
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._room)

    def session(self, commands: tuple[str, ...] | list[str]) -> Iterator[str]:
        """Commands, each after a prompt, and what they print."""
        for number, command in enumerate(commands):
            if number:
                yield ""
            yield f"$ {command}"
            yield from self.printed(command)

    def printed(self, command: str) -> list[str]:
        """What a command prints, on stdout and stderr, without blank lines around it."""
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self._room),
            "TZ": "UTC",
            "COLUMNS": str(WIDTH),
            "TERMINAL_WIDTH": str(WIDTH),
            "PYTHONUNBUFFERED": "1",  # so that what goes to stderr stands where it would in a terminal
            "PYTHON": sys.executable,
            "EDITOR": "true",
        }
        done = subprocess.run(
            ["sh", "-c", f'simplemem() {{ "$PYTHON" -m simplemem "$@"; }}\n{command}'],
            cwd=self._vault,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        text = done.stdout.decode().replace(str(self._room), "~")
        if "Traceback (most recent call last)" in text:
            raise RuntimeError(f"{command} broke:\n{text}")
        lines = [line.rstrip() for line in text.split("\n")]
        while lines and not lines[0]:
            lines.pop(0)
        while lines and not lines[-1]:
            lines.pop()
        return lines


def main() -> int:
    written = page()
    if "--check" in sys.argv[1:]:
        current = PAGE.exists() and PAGE.read_text(encoding="utf-8") == written
        if not current:
            print(f"{PAGE} is not what the program prints now; run: python docs/generate.py", file=sys.stderr)
        return 0 if current else 1
    PAGE.write_text(written, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
