"""Processes under watch: every connection, look-up of a name and child they try is written down by Python itself.

`watcher(folder)` gives the environment; `watched_paths(folder)` what was tried. The watch is set up by `sitecustomize`, before
anything of ours or of a library is imported.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_HOOK = """
import os, sys
_log = os.open({log!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
_watched = ("socket.connect", "socket.getaddrinfo", "socket.gethostby", "socket.sendto", "socket.sendmsg", "socket.bind",
            "subprocess.Popen", "os.exec", "os.posix_spawn", "os.fork", "os.system", "webbrowser.open", "urllib.Request")
def _watch(event, args):
    if event.startswith(_watched):
        shown = args[1] if event == "socket.connect" else args
        if event in ("socket.connect", "socket.bind") and sys.platform == "win32" and shown[0] == "127.0.0.1":
            return  # how Windows makes a pair of sockets, which an event loop wakes itself with
        if event == "socket.bind" and str(args[1]).endswith("/.simplemem/server.new"):
            return  # the file in the vault's folder through which this user's commands ask a server; no network
        os.write(_log, (event + " " + repr(shown)[:200] + "\\n").encode())
sys.addaudithook(_watch)
"""


def watcher(folder: Path) -> dict[str, str]:
    """The environment in which a Python process is watched."""
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(
        _HOOK.format(log=str(folder / "seen")), encoding="utf-8"
    )
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    }


def watched_paths(folder: Path) -> list[str]:
    """What was tried, a line each. There is no file when the watch never began, and that is an error."""
    return (folder / "seen").read_text(encoding="utf-8").split("\n")[:-1]


# Many commands in one process, as the command line runs them; what each prints goes where it always goes.
_COMMANDS = """
import sys
from typer.main import get_command
from simplemem.cli.app import app
program = get_command(app)
for line in sys.stdin.read().split("\\n"):
    if not line:
        continue
    try:
        program(line.split("|"), standalone_mode=False)
    except SystemExit:
        pass
    except BaseException as error:
        print("failed", line, type(error).__name__, error, file=sys.stderr)
"""


def run_commands(
    commands: Sequence[str], env: dict[str, str], *options: str, before: Sequence[str] = ()
) -> str:
    """Run the commands one after another in a real process; what it said in the end."""
    done = subprocess.run(
        [*before, sys.executable, *options, "-c", _COMMANDS],
        input="\n".join(commands),
        env=env,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=True,
    )
    return done.stdout + done.stderr
