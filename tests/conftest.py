"""Fixtures of all tests: a vault on a real disk, a store on it, and the vault as a git repository."""

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

# Objects created before the first test stay. The garbage collector would spend a third of the time
# in which pytest collects tests on searching them.
gc.disable()

# A vault syncs each change to the disk, which takes half of the time of most tests. Those in
# tests/vault stay on a disk. Some tests put a program into a vault, to show that nothing starts it:
# so the file system must permit programs.
_MEMORY = Path("/dev/shm")
if (
    _MEMORY.is_dir()
    and shutil.disk_usage(_MEMORY).free > 4 << 30
    and not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC
):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))

# Without compiled files, each run rewrites every assertion, and each process that a test starts
# compiles all that it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The duration of an example depends on the load of the machine: no test asserts a duration.
hypothesis.settings.register_profile("unhurried", deadline=None)
hypothesis.settings.load_profile("unhurried")
# `make test` tries fewer examples; `make slow` and `make soak` try all.
hypothesis.settings.register_profile("quick", max_examples=12)


def pytest_collection_finish() -> None:
    """Turn on garbage collection, and exclude the modules and the tests from it."""
    gc.enable()
    gc.collect()
    gc.freeze()


def pytest_xdist_auto_num_workers() -> int:
    """Return three workers per two cores.

    A test that waits for a disk or a server leaves its core to another.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (cores or 1) * 3 // 2


@pytest.fixture(scope="session", autouse=True)
def _signals_are_delivered() -> None:
    """Restore the handlers of SIGINT and SIGHUP.

    A shell that runs the tests in the background has them, and their processes, ignore both.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield paths of folders that do not exist yet.

    `mktemp` would list all earlier folders for each new one.
    """
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def _own_home_folder(_homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test a home folder, so that it uses no settings and no vault of the user."""
    home = next(_homes)
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / ".cache"))
    for name in ("SIMPLEMEM_VAULT", "SIMPLEMEM_DB"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """Return an empty vault."""
    folder = tmp_path / "vault"
    folder.mkdir()
    return folder


@pytest.fixture
def write(vault: Path) -> Callable[[str, str | bytes], Path]:
    """Return a function that writes a note as an editor would, without simplemem."""

    def write_note(path: str, text: str | bytes) -> Path:
        file = vault / path
        file.parent.mkdir(parents=True, exist_ok=True)
        data = text.encode() if isinstance(text, str) else text
        file.write_bytes(data)
        return file

    return write_note


@pytest.fixture
def store(vault: Path) -> Iterator[EnhancedStore]:
    """Yield a store on the vault, with the embedder that the package contains."""
    with EnhancedStore(vault, Settings()) as store:
        yield store


@pytest.fixture
def plain_store(vault: Path) -> Iterator[EnhancedStore]:
    """Yield a store without vectors, for tests that do not need them."""
    settings = Settings.model_validate({"embed": {"provider": "none"}})
    with EnhancedStore(vault, settings) as store:
        yield store


class GitRepository:
    """A folder as a git repository. A call runs git in it, as its owner would type it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self("init", "--quiet", "--initial-branch=main")
        self("config", "user.name", "Ida Marsh")
        self("config", "user.email", "ida@example.org")

    def __call__(self, *args: str, at: str = "", check: bool = True) -> str:
        """Run git with these arguments and return its output. `at` is the date of a commit.

        Fails the test if git fails, unless `check` is False.
        """
        env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        env |= {"GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
        if at:
            env |= {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at}

        result = subprocess.run(
            ["git", *args], cwd=self.folder, env=env, capture_output=True, check=False, timeout=60
        )
        assert result.returncode == 0 or not check, result.stderr.decode()
        return result.stdout.decode()

    def commit(self, subject: str, at: str = "") -> str:
        """Commit all files, and return the id of the commit."""
        self("add", "--all")
        self("commit", "--quiet", "--allow-empty", "-m", subject, at=at)
        return self("rev-parse", "HEAD").strip()

    def script(self, path: Path, body: str) -> Path:
        """Create a shell script, and return its path."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return path

    def set_traps(self, elsewhere: Path) -> Path:
        """Configure a command wherever a repository can name one.

        Returns a file that does not exist. Each of the commands creates it.
        """
        canary = elsewhere / "canary"
        trap = self.script(elsewhere / "trap", f"touch '{canary}'\ncat")

        for key in (
            "core.fsmonitor core.pager core.editor core.sshCommand core.askPass core.gitProxy "
            "core.alternateRefsCommand diff.external diff.x.command diff.x.textconv "
            "filter.x.clean filter.x.smudge filter.x.process merge.x.driver gpg.program "
            "gpg.ssh.program gpg.x509.program credential.helper sequence.editor pager.log "
            "pager.blame pager.show remote.x.uploadpack remote.x.vcs "
            "trailer.Simplemem-Actor.command trailer.x.command interactive.diffFilter"
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

        hooks = (
            "pre-commit commit-msg post-commit reference-transaction post-index-change "
            "post-checkout"
        )
        for name in hooks.split():
            self.script(self.folder / ".git" / "hooks" / name, f"touch '{canary}'")

        canary.unlink(missing_ok=True)
        return canary


@pytest.fixture
def git(vault: Path) -> GitRepository:
    """Return the vault as a git repository without a commit. Skips the test if git is missing."""
    if shutil.which("git") is None:
        pytest.skip("git is not on this machine")
    return GitRepository(vault)
