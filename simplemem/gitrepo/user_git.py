"""Run the user's own git, with their credentials, to reach a remote.

It runs in a git directory of ours, so that it never runs a program or hook that the settings of the
user's repository name.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from simplemem.errors import Unavailable

_MAX_SECONDS: Final = 300  # for one git command
_MAX_ERROR_LINES: Final = 6
_MAX_ERROR_CHARACTERS: Final = 500
# On Windows, C:/memory.git is a path; elsewhere, it is a path on the host C.
_NO_DRIVE: Final = "(?![A-Za-z]:)" if os.name == "nt" else ""
# A URL, or `user@host:path` as for ssh. git takes what begins with a hyphen for an option.
ADDRESS: Final = re.compile(
    rf"(?:ssh|https|file)://[^\s-]\S*+|(?!-){_NO_DRIVE}[\w.-]++(?:@[\w.-]++)?+:(?!:)[^\s\\]++"
)
"""Matches the address of a remote that git may be given. The path of a folder is no address."""

# The variables of git that say how the user reaches the remote. Others could redirect git.
_USER_VARIABLES: Final = (
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_ASKPASS",
    "GIT_TRACE",
    "GIT_TERMINAL_PROMPT",
)
# No program is started, nothing is tidied in the background, and fetched packs stay whole files,
# which `Exchange` copies.
_SAFE_SETTINGS: Final = (
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "fetch.recurseSubmodules=false",
    "push.recurseSubmodules=no",
    "submodule.recurse=false",
    "push.gpgSign=false",
    "fetch.unpackLimit=1",
    "transfer.fsckObjects=true",
    "fetch.writeCommitGraph=false",
    "protocol.ext.allow=never",
)


class PushRejected(Exception):
    """Another writer pushed or committed to the branch first."""


def run_git(git_dir: Path, top: Path, remote: str, *arguments: str) -> str:
    """Run the user's git in a git directory of ours; return what it prints.

    `arguments` begin with the command. No program in the folder `top` is run, nor any hook, and no
    question is asked. Raises Unavailable if git is not installed, fails, or takes over five
    minutes; its message names the remote.
    """
    program = find_git(top)
    environment = _environment(git_dir)
    settings = (f"core.hooksPath={git_dir / 'none'}", *_SAFE_SETTINGS)
    options = [word for setting in settings for word in ("-c", setting)]
    try:
        process = subprocess.run(
            [program, *options, *arguments],
            cwd=git_dir,
            env=environment,
            capture_output=True,
            timeout=_MAX_SECONDS,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(
            f"git did not answer within {_MAX_SECONDS} s", hint="Check the network."
        ) from None

    if process.returncode:
        reason = _summarize_error(process.stderr.decode("utf-8", "replace"))
        raise Unavailable(
            f"{remote} cannot be reached: {reason}", hint="Check whether `git fetch` works."
        )
    return process.stdout.decode("utf-8", "replace")


def _environment(git_dir: Path) -> dict[str, str]:
    """Return the environment that git runs in, without variables that could redirect git.

    Messages are in English, because `Exchange.push` reads them.
    """
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in _USER_VARIABLES
    }
    environment["GIT_DIR"] = str(git_dir)
    environment["GIT_ALLOW_PROTOCOL"] = "file:ssh:https"
    environment["LC_ALL"] = "C"
    return environment


def _summarize_error(output: str) -> str:
    """Return the last lines that git printed as one line, without its hints."""
    last_lines = output.splitlines()[-_MAX_ERROR_LINES:]
    messages = [line.strip() for line in last_lines if not line.startswith("hint:")]
    return " ".join(messages)[:_MAX_ERROR_CHARACTERS]


def find_git(top: Path) -> str:
    """Return the path of the user's git. One in the folder `top` is never used.

    Raises Unavailable if there is none.
    """
    real_top = os.path.realpath(top)
    folders = []
    for folder in os.get_exec_path():
        if not folder or not Path(folder).is_absolute():
            continue
        if not Path(os.path.realpath(folder)).is_relative_to(real_top):
            folders.append(folder)

    program = shutil.which("git", path=os.pathsep.join(folders))
    if program is None:
        raise Unavailable(
            "git is not installed", hint="Install git: `simplemem sync` uses it to fetch and push."
        )
    return program
