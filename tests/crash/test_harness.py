"""The harness itself: no call that changes the disk goes around it, and a careless writer does not get past it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import crash_harness as harness
import pytest
from crash_cases import BACKINGS, CASES, make, notes

from simplemem.vault.vault import Vault

if sys.platform == "win32":
    pytest.skip("the harness forks", allow_module_level=True)

# Python tells of each of these before it asks the kernel, whoever calls and under which name.
TOLD = {
    "os.rename": {"rename", "replace"},
    "os.remove": {"unlink", "remove"},
    "os.truncate": {"truncate", "ftruncate"},
    "os.chmod": {"chmod", "fchmod"},
    "os.chown": {"chown", "fchown"},
    **{f"os.{name}": {name} for name in ("link", "symlink", "mkdir", "rmdir", "setxattr", "utime")},
}


@pytest.mark.parametrize("disk", BACKINGS)
@pytest.mark.parametrize("name", CASES)
def test_every_call_that_python_knows_of_is_counted(room: Path, name: str, disk: str) -> None:
    make(room / "vault", CASES[name], BACKINGS[disk])
    told: Counter[str] = Counter()

    def listen(event: str, args: Any) -> None:
        if event == "open" and isinstance(args[2], int) and args[2] & os.O_CREAT:
            told["open"] += 1
        elif event in TOLD:
            told[event] += 1

    def act() -> Counter[str]:
        sys.addaudithook(listen)
        CASES[name].act(Vault(room / "vault", backing=BACKINGS[disk]))
        return told

    outcome = harness.run(act)
    assert outcome.error is None
    heard = outcome.value
    assert heard["open"] == outcome.calls.count("open") > 0
    for event, names in TOLD.items():
        assert heard[event] == sum(call in names for call in outcome.calls), event


TRACED = (
    "creat,openat,open,write,pwrite64,writev,ftruncate,truncate,fsync,fdatasync,rename,renameat,renameat2,link,linkat"
)
TRACED += ",symlink,symlinkat,unlink,unlinkat,mkdir,mkdirat,rmdir,chmod,fchmod,fchmodat,chown,fchown,fchownat,fsetxattr"
TRACED += ",setxattr,utimensat,copy_file_range,sendfile,newfstatat,stat"
KERNEL_NAMES = {
    "openat": ("open",),
    "write": ("write",),
    "fsync": ("fsync",),
    "renameat2": ("exchange", "rename_new"),
    "rename": ("replace", "rename"),
    "linkat": ("link",),
    "unlinkat": ("unlink", "rmdir"),
    "mkdirat": ("mkdir",),
    "fchmod": ("fchmod",),
    "fchown": ("fchown",),
    "fsetxattr": ("setxattr",),
}


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize(
    ("name", "disk"), [("replace", "exchange"), ("move with rewrites", "links"), ("trash", "exchange")]
)
def test_every_call_that_the_kernel_sees_is_counted(room: Path, name: str, disk: str) -> None:
    make(room / "first", CASES[name], BACKINGS[disk])
    for work in ("counted", "traced"):
        shutil.copytree(room / "first", room / work)
    counted = harness.run(lambda: CASES[name].act(Vault(room / "counted", backing=BACKINGS[disk])))
    program = f"""
import os, sys, pathlib
sys.path.insert(0, {str(Path(__file__).parent)!r})
from crash_cases import BACKINGS, CASES
from simplemem.vault.vault import Vault
os.path.exists("/-begin-")
CASES[{name!r}].act(Vault(pathlib.Path({str(room / "traced")!r}), backing=BACKINGS[{disk!r}]))
os.path.exists("/-end-")
"""
    log = room / "strace"
    command = ["strace", "-f", "-qq", "-o", str(log), "-e", f"trace={TRACED}", sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    if done.returncode and "ptrace" in done.stderr:
        pytest.skip("tracing is not allowed here")
    assert done.returncode == 0, done.stderr
    assert notes(room / "traced") == CASES[name].new
    seen: Counter[str] = Counter()
    for line in log.read_text().split("/-begin-")[1].split("/-end-")[0].split("\n"):
        found = re.match(r"\d+ +(\w+)\(", line)
        if found and found[1] not in ("newfstatat", "stat") and (found[1] != "openat" or "O_CREAT" in line):
            seen["rename" if found[1] == "renameat" else found[1]] += 1
    assert seen and seen.keys() <= KERNEL_NAMES.keys()
    for call, names in KERNEL_NAMES.items():
        assert seen[call] == sum(one in names for one in counted.calls), call


def test_a_writer_that_writes_in_place_is_caught_in_the_act(room: Path) -> None:
    note = room / "n.md"
    note.write_bytes(b"old text")

    def careless() -> None:
        fd = os.open(note, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.write(fd, b"new text")

    assert harness.run(careless).calls == ["open", "write"]
    note.write_bytes(b"old text")
    assert harness.run(careless, at=2, how="half").died
    assert note.read_bytes() == b"new "


def test_a_call_that_fails_fails_and_the_next_does_not(room: Path) -> None:
    def act() -> list[str]:
        done = []
        for name in ("a", "b", "c"):
            try:
                os.mkdir(room / name)
                done.append(name)
            except OSError:
                done.append("failed")
        return done

    assert harness.run(act, at=2, how="fail", errno=28).value == ["a", "failed", "c"]
