"""Processes whose connections, name look-ups and child processes Python records.

`watcher(folder)` returns their environment, and `watched_paths(folder)` what they tried. The hook
is installed by `sitecustomize`, before any module of simplemem or of a library is imported.
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
_watched = (
    "socket.connect", "socket.getaddrinfo", "socket.gethostby", "socket.sendto", "socket.sendmsg",
    "socket.bind", "subprocess.Popen", "os.exec", "os.posix_spawn", "os.fork", "os.system",
    "webbrowser.open", "urllib.Request",
)
def _watch(event, args):
    if not event.startswith(_watched):
        return
    detail = args[1] if event == "socket.connect" else args
    is_socket = event in ("socket.connect", "socket.bind")
    if is_socket and sys.platform == "win32" and detail[0] == "127.0.0.1":
        return  # how Windows creates a pair of sockets, with which an event loop wakes itself
    if event == "socket.bind" and str(args[1]).endswith("/.simplemem/server.new"):
        return  # the socket in the vault through which commands of this user reach a server
    os.write(_log, (event + " " + repr(detail)[:200] + "\\n").encode())
sys.addaudithook(_watch)
"""


def watcher(folder: Path) -> dict[str, str]:
    """Return the environment variables with which a Python process is recorded."""
    folder.mkdir(exist_ok=True)
    hook = _HOOK.format(log=str(folder / "events"))
    (folder / "sitecustomize.py").write_text(hook, encoding="utf-8")
    folders = [str(folder), os.environ.get("PYTHONPATH")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, folders))}


def watched_paths(folder: Path) -> list[str]:
    """Return what was tried, one line each. Raises FileNotFoundError without the hook."""
    return (folder / "events").read_text(encoding="utf-8").split("\n")[:-1]


# Runs many commands in one process, as the command line does. Their output goes to its streams.
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
    """Run commands one after another in one process, and return all that it printed."""
    result = subprocess.run(
        [*before, sys.executable, *options, "-c", _COMMANDS],
        input="\n".join(commands),
        env=env,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=True,
    )
    return result.stdout + result.stderr
