"""What all tests share: a vault on a real disk, and a store on it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from simplemem.config import Settings
from simplemem.store import EnhancedStore


@pytest.fixture(scope="session", autouse=True)
def _signals_are_heard() -> None:
    """A shell that runs the tests in the background has them, and all they start, ignore Ctrl-C and its own end."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def a_home_of_its_own(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the settings or the vault of the person who runs it."""
    home = tmp_path_factory.mktemp("home")
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
