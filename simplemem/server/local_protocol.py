"""The protocol between a command and a server on the same machine, over a Unix socket in the vault.

One connection carries one request. The server first sends its protocol and version, the command
sends the request, and the server sends an answer or declines. Each message is a length of four
bytes, followed by a JSON object.

Only the standard library and the version are imported here: a command that a server answers loads
little more than this module.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import struct
import sys
import time

from simplemem import __version__

TYPE_CHECKING = False  # as in `typing`, whose import would take a fifth of the time of a command
if TYPE_CHECKING:
    from typing import Any

PROTOCOL = 2
SOCKET_NAME = "server.sock"
MAX_REQUEST_BYTES = 64_000
MAX_ANSWER_BYTES = 32_000_000
MAX_PATH_BYTES = 100  # kernels accept 103 to 107

_LENGTH = struct.Struct("!I")
_HAS_UCRED = sys.platform in ("linux", "android")
_HAS_XUCRED = sys.platform == "darwin" or sys.platform.startswith("freebsd")
_SOL_LOCAL = 0
_LOCAL_PEERCRED = 1
_XUCRED_BYTES = 76


class ProtocolError(Exception):
    """The other side has disconnected, or it sent something that is not a message."""


def code_version() -> str:
    """Return the version of the program.

    In a checkout, it ends in the time of the newest `.py` or `.toml` file. A running server keeps
    the code that it was started with: after an edit the versions differ, so commands no longer use
    that server. Raises OSError if the files cannot be read.
    """
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if not os.path.isfile(os.path.join(os.path.dirname(package), "pyproject.toml")):
        return __version__

    newest = 0
    folders = [package]
    for folder in folders:  # grows as it is read
        for entry in os.scandir(folder):
            if entry.name == "__pycache__":
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            elif entry.name.endswith((".py", ".toml")):
                newest = max(newest, entry.stat().st_mtime_ns)
    return f"{__version__}+{newest}"


def is_supported() -> bool:
    """Return whether this system has Unix sockets, and can tell which user is at the other end."""
    return hasattr(socket, "AF_UNIX") and (_HAS_UCRED or _HAS_XUCRED)


def socket_path(root: str) -> str | None:
    """Return the path of a vault's socket, or None if it is too long for a socket."""
    path = os.path.join(root, ".simplemem", SOCKET_NAME)
    if len(os.fsencode(path)) > MAX_PATH_BYTES:
        return None
    return path


def is_private_socket(path: str) -> bool:
    """Return whether a file is a socket of this user that no other user can open or replace.

    False if there is no such file.
    """
    try:
        status = os.lstat(path)
    except OSError:
        return False

    is_own = stat.S_ISSOCK(status.st_mode) and status.st_uid == os.geteuid()
    is_closed_to_others = stat.S_IMODE(status.st_mode) & 0o077 == 0
    return is_own and is_closed_to_others and is_safe_folder(os.path.dirname(path))


def is_safe_folder(path: str) -> bool:
    """Return whether a path is a folder of this user, no link, to which not everybody can write.

    Its group may write: where the umask is 002, each user has a group of their own. `is_same_user`
    checks the peer all the same.
    """
    try:
        status = os.lstat(path)
    except OSError:
        return False

    is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return is_own and stat.S_IMODE(status.st_mode) & 0o002 == 0


def is_same_user(connection: socket.socket) -> bool:
    """Return whether the process at the other end runs as this user, according to the kernel.

    Returns False also if the kernel cannot tell.
    """
    try:
        return _find_peer(connection) == os.geteuid()
    except (OSError, struct.error):
        return False


def _find_peer(connection: socket.socket) -> int | None:
    """Return the id of the user at the other end; None if this system's structures are unknown.

    Raises OSError or struct.error if the system does not tell.
    """
    if _HAS_UCRED:  # struct ucred: process, user, group
        size = struct.calcsize("3i")
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        _process, user, _group = struct.unpack("3i", credentials)
        return int(user)

    if _HAS_XUCRED:  # struct xucred begins with version, user
        credentials = connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED_BYTES)
        _version, user = struct.unpack("Ii", credentials[:8])
        return int(user)

    return None


def send(
    connection: socket.socket, message: dict[str, Any], max_bytes: int, deadline: float
) -> None:
    """Send a message.

    Raises ProtocolError, and sends nothing, if it has more than `max_bytes`, which the other side
    would refuse. Raises TimeoutError after `deadline`, a time of `time.monotonic()`, and OSError if
    the other side has gone.
    """
    data = json.dumps(message).encode("ascii")
    if len(data) > max_bytes:
        raise ProtocolError(f"a message of {len(data)} bytes, more than {max_bytes}")

    _set_timeout(connection, deadline)
    connection.sendall(_LENGTH.pack(len(data)) + data)  # its timeout holds for all of the data


def receive(connection: socket.socket, max_bytes: int, deadline: float) -> dict[str, Any]:
    """Return the next message.

    Raises ProtocolError if the message is too long, incomplete or not a JSON object, TimeoutError
    after `deadline`, a time of `time.monotonic()`, and OSError if the connection fails.
    """
    (length,) = _LENGTH.unpack(_receive_exactly(connection, _LENGTH.size, deadline))
    if length > max_bytes:
        raise ProtocolError(f"a message of {length} bytes, more than {max_bytes}")

    data = _receive_exactly(connection, length, deadline)
    try:
        message = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ProtocolError("not JSON") from error

    if not isinstance(message, dict):
        raise ProtocolError("not a JSON object")
    return message


def _receive_exactly(connection: socket.socket, length: int, deadline: float) -> bytes:
    """Return the next `length` bytes.

    Raises ProtocolError if the other side disconnects before, TimeoutError after `deadline`, and
    OSError if the connection fails.
    """
    data = bytearray()
    while len(data) < length:
        # Set for each piece: else a sender could take as long as it likes, byte by byte.
        _set_timeout(connection, deadline)
        piece = connection.recv(min(length - len(data), 1 << 20))
        if not piece:
            raise ProtocolError("the other side has disconnected")
        data += piece
    return bytes(data)


def _set_timeout(connection: socket.socket, deadline: float) -> None:
    """Limit the next operation to the time until a deadline.

    Raises TimeoutError if the deadline has passed.
    """
    seconds_left = deadline - time.monotonic()
    if seconds_left <= 0:
        raise TimeoutError("the deadline has passed")
    connection.settimeout(seconds_left)
