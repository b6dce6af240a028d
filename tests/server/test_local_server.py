"""The socket through which commands ask a server: its lock, its limits, and who may ask."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from waiting import eventually

from simplemem.server import local, local_protocol
from simplemem.server.local import LocalServer
from simplemem.store.store import EnhancedStore
from simplemem.vault.folder.lock import FileLock

pytestmark = pytest.mark.skipif(
    not local_protocol.is_supported(), reason="this system has no sockets for commands"
)

Answered = Future[dict[str, Any] | None]


class Lock:
    """The lock of a vault."""

    def __init__(self, root: Path) -> None:
        self._lock = FileLock(str(root), ".simplemem/server.lock")

    def try_acquire(self) -> bool:
        return self._lock.acquire_or_keep()

    def release(self) -> None:
        self._lock.release()


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder with a short path, as a socket needs one."""
    with tempfile.TemporaryDirectory(prefix="sm-") as folder:
        (Path(folder) / ".simplemem").mkdir()
        yield Path(folder)


def done(answer: dict[str, Any] | None) -> Answered:
    future: Answered = Future()
    future.set_result(answer)
    return future


@contextmanager
def listening(
    root: Path, begin_answer: Callable[[dict[str, Any]], Answered | None]
) -> Iterator[LocalServer]:
    server = LocalServer(str(root), Lock(root), begin_answer, lambda: True)
    server.start()
    try:
        yield server
    finally:
        server.close()


def ask(root: Path) -> dict[str, Any] | None:
    """The answer to a request, or None if the server closes the connection at once."""
    deadline = time.monotonic() + 30
    path = local_protocol.socket_path(str(root))
    assert path is not None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(30)
        connection.connect(path)
        try:
            local_protocol.receive(connection, 1000, deadline)
        except (local_protocol.ProtocolError, ConnectionError):
            return None
        local_protocol.send(connection, {}, 1000, deadline)
        return local_protocol.receive(connection, 1000, deadline)


def is_there(root: Path) -> bool:
    return (root / ".simplemem" / "server.sock").exists()


def test_a_command_that_takes_too_long_is_declined_and_keeps_its_place_until_it_ends(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "ANSWER_SECONDS", 0.05)
    running: list[Answered] = []

    def begin(_: dict[str, Any]) -> Answered:
        future: Answered = Future()
        future.set_running_or_notify_cancel()  # a thread has begun it, so it can no longer be cancelled
        running.append(future)
        return future

    with listening(root, begin):
        assert eventually(lambda: is_there(root))
        assert [ask(root) for _ in range(4)] == [{"declined": True}] * 4
        assert [ask(root) for _ in range(3)] == [None] * 3
        assert len(running) == 4
        for future in running:
            future.set_result(None)
        assert ask(root) == {"declined": True}


def test_a_command_that_waits_too_long_is_cancelled(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "ANSWER_SECONDS", 0.05)
    waiting: list[Answered] = []

    def begin(_: dict[str, Any]) -> Answered:
        waiting.append(Future())
        return waiting[-1]

    with listening(root, begin):
        assert eventually(lambda: is_there(root))
        for _ in range(9):
            assert eventually(lambda: ask(root) == {"declined": True})
        assert eventually(lambda: all(future.cancelled() for future in waiting))


def test_a_server_goes_on_when_the_system_gives_no_more_threads(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = threading.Thread.start
    refused = 0

    def refuse_some(thread: threading.Thread) -> None:
        nonlocal refused
        if thread.name == "local-answer" and refused < 9:
            refused += 1
            raise RuntimeError("can't start new thread")
        start(thread)

    with listening(root, lambda _: done({"answer": 1})):
        assert eventually(lambda: is_there(root))
        monkeypatch.setattr(threading.Thread, "start", refuse_some)
        assert [ask(root) for _ in range(9)] == [None] * 9
        assert ask(root) == {"answer": 1}


def test_a_store_that_closes_before_it_was_ready_ends_the_thread_in_silence(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", failures.append)
    closed_store = EnhancedStore(root, person=True)
    closed_store.close()

    LocalServer(
        str(root), Lock(root), lambda _: None, lambda: closed_store.state().is_ready
    ).start()

    assert eventually(lambda: "local" not in [thread.name for thread in threading.enumerate()])
    assert not failures


def test_a_server_that_cannot_make_its_socket_leaves_the_lock_to_another(root: Path) -> None:
    (root / ".simplemem" / "server.sock").write_text("mine")
    with listening(root, lambda _: None):
        assert eventually((root / ".simplemem" / "server.lock").exists)
        other = FileLock(str(root), ".simplemem/server.lock")
        assert eventually(other.try_acquire)
        other.release()


def test_a_server_whose_socket_has_vanished_makes_it_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "_CHECK_SECONDS", 0.05)
    with listening(root, lambda _: done({"answer": 1})):
        assert eventually(lambda: is_there(root))
        (root / ".simplemem" / "server.sock").unlink()
        assert eventually(lambda: is_there(root))
        assert ask(root) == {"answer": 1}
    assert not is_there(root)
    assert FileLock(str(root), ".simplemem/server.lock").try_acquire()


def test_where_the_kernel_does_not_tell_the_user_at_the_other_end_nobody_is_trusted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server_end, client_end = socket.socketpair(socket.AF_UNIX)
    with server_end, client_end:
        assert local_protocol.is_same_user(server_end)
        monkeypatch.setattr(local_protocol, "_HAS_UCRED", False)
        monkeypatch.setattr(local_protocol, "_HAS_XUCRED", False)
        assert not local_protocol.is_same_user(server_end)
        assert not local_protocol.is_supported()


@pytest.mark.skipif(
    sys.platform != "linux", reason="the options of other kernels have other numbers"
)
def test_credentials_in_an_unknown_form_are_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    class Short(socket.socket):
        def getsockopt(self, *_: Any) -> Any:
            return b"\0\0"

    with Short(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        assert not local_protocol.is_same_user(connection)


def test_a_message_that_comes_byte_by_byte_does_not_outlast_its_deadline() -> None:
    server_end, client_end = socket.socketpair(socket.AF_UNIX)
    is_over = threading.Event()

    def trickle() -> None:
        for byte in (500).to_bytes(4, "big") + b'{"a": "' + b"x" * 491 + b'"}':
            if is_over.wait(0.02):
                return
            client_end.send(bytes([byte]))

    with server_end, client_end:
        sending = threading.Thread(target=trickle)
        sending.start()
        try:
            with pytest.raises(TimeoutError):
                local_protocol.receive(server_end, 1000, time.monotonic() + 0.3)
        finally:
            is_over.set()
            sending.join()


def test_a_folder_of_another_user_is_not_safe(root: Path) -> None:
    folder = root / ".simplemem"
    assert local_protocol.is_safe_folder(str(folder))
    folder.chmod(0o775)  # as a umask of 002 makes it
    assert local_protocol.is_safe_folder(str(folder))
    for mode in (0o757, 0o777):
        folder.chmod(mode)
        assert not local_protocol.is_safe_folder(str(folder))
    folder.chmod(0o755)
    (root / "link").symlink_to(folder)
    assert not local_protocol.is_safe_folder(str(root / "link"))
    if os.geteuid() == 0:
        os.chown(folder, 65534, -1)
        assert not local_protocol.is_safe_folder(str(folder))
