"""The server's end of the Unix socket in `.simplemem/`, through which commands on this machine ask it.

What a request means is not decided here: the command line passes a function that answers one (`Answering`).
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from simplemem import __version__
from simplemem.errors import SimplememError
from simplemem.server import local_wire
from simplemem.server.local_wire import MAX_ANSWER_BYTES, MAX_REQUEST_BYTES, PROTOCOL, WireError

log = logging.getLogger("simplemem.server")

Answering = Callable[[dict[str, Any]], dict[str, Any] | None]
"""Answers a request, or declines it with None: the command then does its work itself."""

DECLINED = {"declined": True}
_PATIENCE = 2.0  # seconds that a command has to send its request, and to take its answer
_RETRY_SECONDS = 2.0  # between two looks whether the server that had the socket is gone
_LOOK_SECONDS = 10.0  # between two looks whether the socket is still in its place
_MAX_AT_ONCE = 4  # commands; whoever comes beside them does its work itself


class Turn(Protocol):
    """A lock between processes that one of several servers holds until it ends."""

    def held(self) -> bool:
        """Whether this process has it, taking it now if nobody has."""

    def give_back(self) -> None:
        """Free it."""


class LocalServer:
    """Listens at one vault's socket, in threads of its own, while this process has the turn among its servers."""

    def __init__(self, root: str, turn: Turn, answer: Answering, is_ready: Callable[[], bool]) -> None:
        self._root = root
        self._turn = turn
        self._answer = answer
        self._is_ready = is_ready
        self._ended = threading.Event()
        self._guard = threading.Lock()
        self._listening: socket.socket | None = None
        self._file: tuple[int, int] | None = None  # which socket is ours: its device and inode
        self._free = threading.Semaphore(_MAX_AT_ONCE)

    def start(self) -> None:
        """Listen as soon as the store is ready and no other server does. Returns at once."""
        if local_wire.is_supported() and local_wire.socket_path(self._root) is not None:
            threading.Thread(target=self._run, name="local", daemon=True).start()

    def close(self) -> None:
        """Stop listening, and remove the socket."""
        self._ended.set()
        with self._guard:
            self._stop_listening()
            self._turn.give_back()

    def _run(self) -> None:
        while not self._ended.is_set() and not self._is_ready():
            self._ended.wait(0.1)
        while not self._ended.is_set():
            if self._begin():
                self._accept()
            self._ended.wait(_RETRY_SECONDS)

    def _begin(self) -> bool:
        """Make the socket, if it is this server's turn."""
        with self._guard:
            if self._ended.is_set() or not self._turn.held():
                return False
            try:
                self._listening = self._made()
            except OSError as error:  # a disk that has no sockets, or a file of somebody else in its place
                log.debug("no command can ask this server: %s", error.strerror)
            return self._listening is not None

    def _made(self) -> socket.socket | None:
        """A socket that only this user can open from the moment it has its name."""
        path = local_wire.socket_path(self._root)
        if path is None or os.path.islink(os.path.dirname(path)):
            return None
        if os.path.lexists(path) and not local_wire.is_ours(path):
            return None
        # Nobody can connect before `listen`, and nobody finds it before it is renamed: by then its mode is set.
        unfinished = path.removesuffix(".sock") + ".new"
        with suppress(FileNotFoundError):
            os.unlink(unfinished)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listening.bind(unfinished)
            os.chmod(unfinished, 0o600)
            found = os.lstat(unfinished)
            os.replace(unfinished, path)
            listening.listen(_MAX_AT_ONCE)
            listening.settimeout(_LOOK_SECONDS)
        except OSError:
            listening.close()
            raise
        self._file = (found.st_dev, found.st_ino)
        return listening

    def _stop_listening(self) -> None:
        listening, self._listening = self._listening, None
        if listening is None:
            return
        with suppress(OSError):  # wakes the thread that waits in `accept`
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        if self._is_in_place():
            with suppress(OSError):
                os.unlink(local_wire.socket_path(self._root) or "")

    def _is_in_place(self) -> bool:
        """Whether the file at the socket's place is the socket of this process."""
        try:
            found = os.lstat(local_wire.socket_path(self._root) or "")
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._file

    def _accept(self) -> None:
        """Take connections until the socket is closed, or is no longer in its place."""
        listening = self._listening
        while listening is not None and not self._ended.is_set():
            try:
                connection, _ = listening.accept()
            except TimeoutError:
                if self._is_in_place():
                    continue
                break  # `.simplemem` was deleted: make the socket again
            except OSError:
                break
            if not self._free.acquire(blocking=False):
                connection.close()
                continue
            threading.Thread(target=self._serve, args=(connection,), name="local-answer", daemon=True).start()
        with self._guard:
            self._stop_listening()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection:
                connection.settimeout(_PATIENCE)
                if local_wire.is_same_user(connection):
                    self._converse(connection)
        except (OSError, WireError) as error:
            log.debug("a command went away: %s", type(error).__name__)
        finally:
            self._free.release()

    def _converse(self, connection: socket.socket) -> None:
        """Say who speaks, take one request, and answer it or decline."""
        hello = {"protocol": PROTOCOL, "version": __version__, "pid": os.getpid()}
        local_wire.send(connection, hello, MAX_REQUEST_BYTES)
        request = local_wire.receive(connection, MAX_REQUEST_BYTES)
        answer: dict[str, Any] | None = None
        try:
            answer = self._answer(request)
        except (SimplememError, OSError) as error:
            log.debug("a command was not answered: %s", type(error).__name__)
        except Exception:  # the command does its work itself, and says what is wrong
            log.exception("a command was not answered")
        try:
            local_wire.send(connection, answer or DECLINED, MAX_ANSWER_BYTES)
        except WireError:  # a very long note: the command reads it itself
            local_wire.send(connection, DECLINED, MAX_ANSWER_BYTES)
