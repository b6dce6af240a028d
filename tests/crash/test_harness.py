"""The harness itself: no call that changes the disk goes around it, and a careless writer does not get past it."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import crash_harness as harness
import pytest
from crash_cases import CASES, make
from lacking import lack

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


@pytest.mark.parametrize("disk", ["exchange", "links", "neither"])
@pytest.mark.parametrize("name", CASES)
def test_every_call_that_python_knows_of_is_counted(
    room: Path, name: str, disk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lack(monkeypatch, disk)
    make(room / "vault", CASES[name])
    told: Counter[str] = Counter()

    def listen(event: str, args: Any) -> None:
        if event == "open" and isinstance(args[2], int) and args[2] & os.O_CREAT:
            told["open"] += 1
        elif event in TOLD:
            told[event] += 1

    def act() -> Counter[str]:
        sys.addaudithook(listen)
        CASES[name].act(Vault(room / "vault"))
        return told

    outcome = harness.run(act)
    assert outcome.error is None
    heard = outcome.value
    assert heard["open"] == outcome.calls.count("open") > 0
    for event, names in TOLD.items():
        assert heard[event] == sum(call in names for call in outcome.calls), event
