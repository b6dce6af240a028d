"""The server's end of the Unix socket in `.simplemem/`, to which commands on this machine connect.

This module does not interpret requests: the command line passes a function that answers them
(`BeginAnswer`).
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any, Protocol

from simplemem.errors import SimplememError, Unavailable
from simplemem.server import local_protocol
from simplemem.server.local_protocol import (
    MAX_ANSWER_BYTES,
    MAX_REQUEST_BYTES,
    PROTOCOL,
    ProtocolError,
)

log = logging.getLogger("simplemem.server")

Answer = dict[str, Any]
BeginAnswer = Callable[[dict[str, Any]], Future[Answer | None] | None]
"""Begins to answer a request, and returns the future of its answer.

A future with the result None, or None in place of a future, declines the request: the command then
opens the vault itself.
"""

DECLINED: Answer = {"declined": True}
ANSWER_SECONDS = 14.0  # that an answer may take; after 15, the command gives up
_MESSAGE_SECONDS = 2.0  # that a command has to send its request, and again to receive its answer
_RETRY_SECONDS = 2.0  # between two attempts to take over from another server
_CHECK_SECONDS = 10.0  # between two checks whether the socket is still in its place
_READY_SECONDS = 0.1  # between two checks whether the store is ready
_MAX_COMMANDS = 4  # at once; others are declined


class ServerLock(Protocol):
    """A lock between processes, so that one of several servers of a vault listens."""

    def try_acquire(self) -> bool:
        """Return whether this process holds the lock, after acquiring it if it is free."""

    def release(self) -> None:
        """Release the lock. Does nothing if this process does not hold it."""


class LocalServer:
    """Listens at one vault's socket, in its own threads, while this process holds the lock.

    Guards the listening socket and the lock, which belong together: no process holds the lock
    without listening. `root` is the folder of the vault, and `is_ready` says whether the store can
    answer; it raises Unavailable when the store is closed.
    """

    def __init__(
        self, root: str, lock: ServerLock, begin_answer: BeginAnswer, is_ready: Callable[[], bool]
    ) -> None:
        self._root = root
        self._lock = lock
        self._begin_answer = begin_answer
        self._is_ready = is_ready
        self._is_closed = threading.Event()
        self._guard = threading.Lock()
        self._listening: socket.socket | None = None
        self._socket_id: tuple[int, int] | None = None  # device and inode of the socket's file
        self._free = threading.Semaphore(_MAX_COMMANDS)
        self._code_version = ""

    def start(self) -> None:
        """Start a thread that listens as soon as the store is ready and no other server does.

        Does nothing if the system or the vault's path does not allow it. If the thread cannot be
        started, logs a warning. Raises nothing.
        """
        if not local_protocol.is_supported() or local_protocol.socket_path(self._root) is None:
            return

        try:
            self._code_version = local_protocol.code_version()
        except OSError as error:  # such as a checkout that git is changing at this moment
            log.warning("commands open the vault themselves: %s", error.strerror)
            return

        try:
            threading.Thread(target=self._run, name="local", daemon=True).start()
        except RuntimeError:  # the system gives no more threads
            log.warning("no thread could be started: commands open the vault themselves")

    def close(self) -> None:
        """Stop listening, and remove the socket. Requests in progress are not waited for."""
        self._is_closed.set()
        self._stop_listening()

    def _run(self) -> None:
        """Listen from when the store is ready until `close` is called. Runs in its own thread.

        Tries again every two seconds while another server listens, or the socket cannot be created.
        """
        try:
            while not self._is_closed.is_set() and not self._is_ready():
                self._is_closed.wait(_READY_SECONDS)
        except Unavailable:  # the server ended, and closed the store between two checks
            return

        while not self._is_closed.is_set():
            listening = self._start_listening()
            if listening is not None:
                self._accept_all(listening)
                self._stop_listening()
            self._is_closed.wait(_RETRY_SECONDS)

    def _start_listening(self) -> socket.socket | None:
        """Return a new listening socket and take the lock.

        Returns None if another server has the lock, or the socket cannot be created.
        """
        with self._guard:
            if self._is_closed.is_set() or not self._lock.try_acquire():
                return None

            try:
                self._listening = self._create_socket()
            except OSError as error:  # such as a disk that has no sockets
                log.debug("commands cannot ask this server: %s", error.strerror)

            if self._listening is None:
                self._lock.release()  # another server may be able to create it
            return self._listening

    def _create_socket(self) -> socket.socket | None:
        """Return a listening socket that only this user can open.

        Returns None if its folder is not safe, or another file is in its place. Raises OSError if
        the system refuses it.
        """
        path = local_protocol.socket_path(self._root)
        if path is None or not local_protocol.is_safe_folder(os.path.dirname(path)):
            return None
        if os.path.lexists(path) and not local_protocol.is_private_socket(path):
            return None

        # Created under another name: under its own, it never has a mode that lets others in.
        unfinished = path.removesuffix(".sock") + ".new"
        with suppress(FileNotFoundError):
            os.unlink(unfinished)

        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listening.bind(unfinished)
            os.chmod(unfinished, 0o600)
            status = os.lstat(unfinished)
            os.replace(unfinished, path)
            listening.listen(_MAX_COMMANDS)
            listening.settimeout(_CHECK_SECONDS)
        except OSError:
            listening.close()
            raise

        self._socket_id = (status.st_dev, status.st_ino)
        return listening

    def _stop_listening(self) -> None:
        """Close the socket if there is one, remove its file, and release the lock.

        Wakes the thread that accepts connections. Raises nothing if there is no socket.
        """
        with self._guard:
            listening = self._listening
            self._listening = None
            if listening is not None:
                with suppress(OSError):  # wakes the thread that waits in `accept`
                    listening.shutdown(socket.SHUT_RDWR)
                listening.close()
                self._remove_file()

            self._lock.release()

    def _remove_file(self) -> None:
        """Remove the socket's file, unless it is the file of another process."""
        path = local_protocol.socket_path(self._root)
        if path is not None and self._is_in_place():
            with suppress(OSError):
                os.unlink(path)

    def _is_in_place(self) -> bool:
        """Return whether the file at the socket's path is the socket of this process."""
        path = local_protocol.socket_path(self._root)
        if path is None:
            return False

        try:
            status = os.lstat(path)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self._socket_id

    def _accept_all(self, listening: socket.socket) -> None:
        """Accept connections until `close` is called, accepting fails, or the file is gone.

        Raises nothing: the caller creates a new socket.
        """
        while not self._is_closed.is_set():
            try:
                connection, _ = listening.accept()
            except TimeoutError:
                if self._is_in_place():
                    continue
                return  # `.simplemem` was deleted: the socket has to be created again
            except OSError:
                return

            self._start_conversation(connection)

    def _start_conversation(self, connection: socket.socket) -> None:
        """Serve a connection in a thread.

        Closes it if four connections are being served, or the system gives no more threads.
        """
        if not self._free.acquire(blocking=False):
            connection.close()
            return

        try:
            threading.Thread(
                target=self._converse, args=(connection,), name="local-answer", daemon=True
            ).start()
        except RuntimeError:  # the system gives no more threads
            self._free.release()
            connection.close()

    def _converse(self, connection: socket.socket) -> None:
        """Receive one request, answer or decline it, and close the connection.

        Another user's process gets no reply. Raises nothing for a client that disconnects or sends
        nothing valid. Frees the place that `_start_conversation` took once the work has ended.
        """
        work: Future[Answer | None] | None = None
        try:
            with connection:
                request = self._receive_request(connection)
                if request is not None:
                    work = self._begin(request)
                    self._send_answer(connection, self._wait_for(work))
        except (OSError, ProtocolError) as error:
            log.debug("a command disconnected: %s", type(error).__name__)
        finally:
            self._release_when_done(work)

    def _receive_request(self, connection: socket.socket) -> dict[str, Any] | None:
        """Greet a process of this user, and return its request; None for another user's process.

        Raises OSError if the request does not arrive within two seconds, ProtocolError if it is not
        valid.
        """
        if not local_protocol.is_same_user(connection):
            return None

        deadline = time.monotonic() + _MESSAGE_SECONDS
        hello = {"protocol": PROTOCOL, "version": self._code_version, "pid": os.getpid()}
        local_protocol.send(connection, hello, MAX_REQUEST_BYTES, deadline)
        return local_protocol.receive(connection, MAX_REQUEST_BYTES, deadline)

    def _begin(self, request: dict[str, Any]) -> Future[Answer | None] | None:
        """Begin to answer a request, and return the future of its answer; None to decline it.

        An error declines the request. Logs it, and raises nothing.
        """
        try:
            return self._begin_answer(request)
        except (SimplememError, OSError) as error:
            log.debug("a command was declined: %s", type(error).__name__)
        except Exception:  # the command opens the vault itself, and reports the error
            log.exception("a command was declined")
        return None

    def _wait_for(self, work: Future[Answer | None] | None) -> Answer | None:
        """Return the answer when it is done, or None to decline the request.

        A request that takes more than 14 seconds, fails, or was not begun (`work` is None) is
        declined. Logs an error, and raises nothing.
        """
        if work is None:
            return None

        try:
            return work.result(timeout=ANSWER_SECONDS)
        except (SimplememError, OSError, CancelledError) as error:
            # A TimeoutError is an OSError. A server that ends cancels the work.
            log.debug("a command was declined: %s", type(error).__name__)
        except Exception:  # the command opens the vault itself, and reports the error
            log.exception("a command was declined")
        return None

    def _send_answer(self, connection: socket.socket, answer: Answer | None) -> None:
        """Send an answer, or decline the request if there is none or it is too long.

        Raises OSError if the command has gone, or does not read in time.
        """
        deadline = time.monotonic() + _MESSAGE_SECONDS
        if answer is not None:
            try:
                local_protocol.send(connection, answer, MAX_ANSWER_BYTES, deadline)
                return
            except ProtocolError as error:  # too long: the command reads the note itself
                log.debug("a command was declined: %s", error)

        local_protocol.send(connection, DECLINED, MAX_ANSWER_BYTES, deadline)

    def _release_when_done(self, work: Future[Answer | None] | None) -> None:
        """Let another command in once the work has ended, so that slow commands do not pile up.

        Cancels work that no thread has begun. None stands for work that was never begun.
        """
        if work is None:
            self._free.release()
            return

        work.cancel()  # effective only if no thread has begun it
        work.add_done_callback(lambda _: self._free.release())
