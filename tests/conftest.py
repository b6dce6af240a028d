"""What all tests share: a vault on a real disk, and a store on it."""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest

from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

# What is made until the first test begins stays: a run spends a third of its collection on looking for garbage in it.
gc.disable()

# A vault waits, at each change, until the disk has it: half of the time of most tests. Those of tests/vault stay on a disk.
# A program that a test puts into a vault, to show that nobody starts it, must be one that could be started.
_MEMORY = Path("/dev/shm")
if (
    _MEMORY.is_dir()
    and shutil.disk_usage(_MEMORY).free > 4 << 30
    and not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC
):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))

# Without compiled files, each run rewrites every assertion, and each process that a test starts compiles all it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# How long an example takes says how busy the machine is: no test asserts a duration.
hypothesis.settings.register_profile("unhurried", deadline=None)
hypothesis.settings.load_profile("unhurried")
# `make test` tries fewer examples; `make slow` and `make soak` try all.
hypothesis.settings.register_profile("quick", max_examples=20)


def pytest_collection_finish() -> None:
    """From here on garbage is collected, but not looked for among modules and tests."""
    gc.enable()
    gc.collect()
    gc.freeze()


def pytest_xdist_auto_num_workers() -> int:
    """Three workers for two cores: a test that waits for a disk or a server leaves its core to another."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (cores or 1) * 3 // 2


@pytest.fixture(scope="session", autouse=True)
def _signals_are_heard() -> None:
    """A shell that runs the tests in the background has them, and all they start, ignore Ctrl-C and its own end."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders that are not there yet. (`mktemp` would read the names of all earlier ones for each.)"""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def a_home_of_its_own(_homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the settings or the vault of the person who runs it."""
    home = next(_homes)
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / ".cache"))
    for name in ("SIMPLEMEM_VAULT", "SIMPLEMEM_DB"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """An empty vault."""
    folder = tmp_path / "vault"
    folder.mkdir()
    return folder


@pytest.fixture
def write(vault: Path) -> Callable[[str, str | bytes], Path]:
    """Write a note as an editor would, without asking anybody."""

    def write_note(path: str, text: str | bytes) -> Path:
        file = vault / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    return write_note


@pytest.fixture
def store(vault: Path) -> Iterator[EnhancedStore]:
    """A store on the vault, with the vectors that come in the package."""
    with EnhancedStore(vault, Settings()) as opened:
        yield opened


@pytest.fixture
def plain_store(vault: Path) -> Iterator[EnhancedStore]:
    """A store without vectors, for what does not concern them."""
    with EnhancedStore(vault, Settings.model_validate({"embed": {"provider": "none"}})) as opened:
        yield opened


class InGit:
    """A folder as a git repository, and git as its owner types it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self("init", "--quiet", "--initial-branch=main")
        self("config", "user.name", "Ida Marsh")
        self("config", "user.email", "ida@example.org")

    def __call__(self, *args: str, at: str = "", check: bool = True) -> str:
        env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        env |= {"GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
        if at:
            env |= {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at}
        done = subprocess.run(
            ["git", *args], cwd=self.folder, env=env, capture_output=True, check=False, timeout=60
        )
        assert done.returncode == 0 or not check, done.stderr.decode()
        return done.stdout.decode()

    def commit(self, subject: str, at: str = "") -> str:
        """Commit all there is; the commit's id."""
        self("add", "--all")
        self("commit", "--quiet", "--allow-empty", "-m", subject, at=at)
        return self("rev-parse", "HEAD").strip()

    def script(self, path: Path, body: str) -> Path:
        """A program of one's own."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return path

    def set_traps(self, elsewhere: Path) -> Path:
        """Name a command wherever a repository can: each makes the file that is returned."""
        canary = elsewhere / "canary"
        trap = self.script(elsewhere / "trap", f"touch '{canary}'\ncat")
        for key in (
            "core.fsmonitor core.pager core.editor core.sshCommand core.askPass core.gitProxy core.alternateRefsCommand "
            "diff.external diff.x.command diff.x.textconv filter.x.clean filter.x.smudge filter.x.process "
            "merge.x.driver gpg.program gpg.ssh.program gpg.x509.program credential.helper sequence.editor pager.log "
            "pager.blame pager.show remote.x.uploadpack remote.x.vcs trailer.Simplemem-Actor.command "
            "trailer.x.command interactive.diffFilter"
        ).split():
            self("config", key, str(trap))
        for key, value in {
            "log.showSignature": "true",
            "commit.gpgSign": "true",
            "filter.x.required": "true",
            "blame.ignoreRevsFile": "/no/such/file",
            "alias.log": f"!{trap}",
        }.items():
            self("config", key, value)
        (self.folder / ".git" / "info").mkdir(exist_ok=True)
        (self.folder / ".git" / "info" / "attributes").write_text("* diff=x merge=x text\n")
        for name in "pre-commit commit-msg post-commit reference-transaction post-index-change post-checkout".split():
            self.script(self.folder / ".git" / "hooks" / name, f"touch '{canary}'")
        canary.unlink(missing_ok=True)
        return canary


@pytest.fixture
def git(vault: Path) -> InGit:
    """The vault as a git repository without a commit."""
    if shutil.which("git") is None:
        pytest.skip("git is not on this machine")
    return InGit(vault)
