"""The wire between a command and a server on the same machine: a Unix socket in `.simplemem/` of the vault.

One connection carries one question. The server speaks first (its protocol and version), the command sends a request,
the server answers or declines. Each message is a length of four bytes and a JSON object of at most that many bytes.

Only the standard library is imported here: a command that a server answers loads little more than this module.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import struct
import sys

TYPE_CHECKING = False  # as in `typing`, which is not imported here: it would be a fifth of what a command costs
if TYPE_CHECKING:
    from typing import Any

PROTOCOL = 1
SOCKET_NAME = "server.sock"
MAX_REQUEST_BYTES = 64_000
MAX_ANSWER_BYTES = 32_000_000
MAX_PATH_BYTES = 100  # the kernels take 103 to 107

_LENGTH = struct.Struct("!I")


class WireError(Exception):
    """The other side is gone, or what it sent is no message."""


def is_supported() -> bool:
    """Whether this system has Unix sockets that Python can use. Windows has none."""
    return hasattr(socket, "AF_UNIX") and hasattr(os, "geteuid") and sys.platform != "win32"


def socket_path(root: str) -> str | None:
    """Where the socket of a vault lies; None where the path is too long for one."""
    path = os.path.join(root, ".simplemem", SOCKET_NAME)
    return path if len(os.fsencode(path)) <= MAX_PATH_BYTES else None


def is_ours(path: str) -> bool:
    """Whether a file is a socket that belongs to this user, and that nobody else may open."""
    try:
        found = os.lstat(path)
        folder = os.lstat(os.path.dirname(path))
    except OSError:
        return False
    is_private = stat.S_IMODE(found.st_mode) & 0o077 == 0
    is_socket = stat.S_ISSOCK(found.st_mode) and found.st_uid == os.geteuid()
    return is_socket and is_private and stat.S_ISDIR(folder.st_mode)


def is_same_user(connection: socket.socket) -> bool:
    """Whether the process at the other end runs as this user, asked of the kernel.

    Where the kernel cannot say (neither Linux nor a BSD), the owner and the mode of the file have to do.
    """
    user = _user_at_the_other_end(connection)
    return user is None or user == os.geteuid()


def _user_at_the_other_end(connection: socket.socket) -> int | None:
    if hasattr(socket, "SO_PEERCRED"):  # Linux: the struct ucred, three integers
        size = struct.calcsize("3i")
        _pid, user, _group = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
        return int(user)
    if sys.platform == "darwin" or "bsd" in sys.platform:  # LOCAL_PEERCRED: the struct xucred begins version, user
        credentials = connection.getsockopt(0, 1, 76)
        return int(struct.unpack("Ii", credentials[:8])[1])
    return None


def send(connection: socket.socket, message: dict[str, Any], max_bytes: int) -> None:
    """Send one message. Raises WireError for one that the other side would refuse as too long."""
    data = json.dumps(message).encode("ascii")
    if len(data) > max_bytes:
        raise WireError(f"a message of {len(data)} bytes, more than {max_bytes}")
    connection.sendall(_LENGTH.pack(len(data)) + data)


def receive(connection: socket.socket, max_bytes: int) -> dict[str, Any]:
    """Receive one message. Raises WireError for one that is too long, torn or no JSON object."""
    (length,) = _LENGTH.unpack(_receive_exactly(connection, _LENGTH.size))
    if length > max_bytes:
        raise WireError(f"a message of {length} bytes, more than {max_bytes}")
    try:
        message = json.loads(_receive_exactly(connection, length))
    except (ValueError, RecursionError) as error:
        raise WireError("no JSON") from error
    if not isinstance(message, dict):
        raise WireError("no JSON object")
    return message


def _receive_exactly(connection: socket.socket, length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        piece = connection.recv(min(length - len(data), 1 << 20))
        if not piece:
            raise WireError("the other side is gone")
        data += piece
    return bytes(data)
