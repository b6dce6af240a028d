"""A FUSE file system in memory that treats names as a Mac does, or does not support some calls.

`on_disk` runs an action in a child process that has such a disk mounted. It needs Linux, root and
/dev/fuse; without them its tests are skipped.
"""

from __future__ import annotations

import errno
import os
import signal
import stat
import struct
import sys
import time
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mounts

# Flags of renameat2
_NO_REPLACE = 1
_EXCHANGE = 2
# The number of the root folder
_ROOT = 1


@dataclass(frozen=True)
class DiskTraits:
    """How a disk treats names and calls."""

    folds_case: bool = False  # names that differ in case or Unicode form are one name
    lists_decomposed: bool = False  # as HFS+ does
    supports_flags: bool = True  # exchange and no-replace of renameat2, and hard links


@dataclass
class _Node:
    """A file or folder. `children` has the name and the number of each child, by its key."""

    mode: int
    data: bytearray = field(default_factory=bytearray)
    children: dict[str, tuple[str, int]] = field(default_factory=dict)
    links: int = 1
    changed: int = field(default_factory=time.time_ns)


def can_mount() -> bool:
    """Return whether this process can mount such a disk."""
    return (
        sys.platform == "linux" and os.geteuid() == 0 and os.access("/dev/fuse", os.R_OK | os.W_OK)
    )


def on_disk(mount_point: Path, traits: DiskTraits, action: Callable[[], Any]) -> Any:
    """Run an action while an empty disk is mounted at a folder, and return its value."""
    servers: list[int] = []

    def prepare() -> None:
        device = os.open("/dev/fuse", os.O_RDWR)
        owner = "rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions"
        mounts.mount("test", mount_point, "fuse", options=f"fd={device},{owner}")
        servers.append(os.fork())
        if not servers[0]:
            try:
                _Disk(device, traits).serve()
            finally:
                os._exit(0)
        os.close(device)

    def run() -> Any:
        try:
            return action()
        finally:
            os.kill(servers[0], signal.SIGKILL)

    return mounts.in_own_mounts(prepare, run)


class _Disk:
    """The file system: its nodes by number.

    `answers` has the method for each opcode of linux/fuse.h, version 7.31. A method gets the number
    of a node and the body of a request. It returns the body of the answer, or raises OSError.
    """

    def __init__(self, device: int, traits: DiskTraits) -> None:
        self.device = device
        self.traits = traits
        self.nodes = {_ROOT: _Node(stat.S_IFDIR | 0o755)}
        self.next_number = _ROOT + 1
        self.answers: dict[int, Callable[[int, bytes], bytes]] = {
            1: self.lookup,
            3: self.attributes,
            4: self.set_attributes,
            9: self.mkdir,
            10: self.unlink,
            11: self.rmdir,
            12: lambda node, body: self.rename(node, body[8:], body[:8], 0),
            13: self.link,
            14: lambda node, body: bytes(16),  # open
            15: self.read,
            16: self.write,
            17: self.space,
            18: lambda node, body: b"",  # release
            20: lambda node, body: b"",  # fsync
            25: lambda node, body: b"",  # flush
            26: self.init,
            27: lambda node, body: bytes(16),  # opendir
            28: self.list,
            29: lambda node, body: b"",  # releasedir
            30: lambda node, body: b"",  # fsyncdir
            35: self.create,
            38: lambda node, body: b"",  # destroy
            45: self.rename_with_flags,
        }

    def serve(self) -> None:
        """Answer the requests of the kernel until the disk is unmounted."""
        while True:
            try:
                request = os.read(self.device, 1 << 20)
            except OSError as error:
                if error.errno == errno.ENODEV:
                    return
                continue

            _, opcode, unique, node = struct.unpack_from("<IIQQ", request)
            if opcode in (2, 36, 42):  # forget and interrupt have no answer
                continue

            code = 0
            body = b""
            try:
                answer = self.answers.get(opcode)
                if answer is None:
                    raise OSError(errno.ENOSYS, "")
                body = answer(node, request[40:])
            except OSError as error:
                code = error.errno or errno.EIO
            os.write(self.device, struct.pack("<IiQ", 16 + len(body), -code, unique) + body)

    def key(self, name: str) -> str:
        """Return what is equal for all forms of a name that are one name on this disk."""
        if not self.traits.folds_case:
            return name
        return unicodedata.normalize("NFC", name).casefold()

    def child(self, folder: int, name: str) -> int:
        """Return the number of the node with a name in a folder."""
        entry = self.nodes[folder].children.get(self.key(name))
        if entry is None:
            raise OSError(errno.ENOENT, "")
        return entry[1]

    def init(self, _: int, __: bytes) -> bytes:
        """Return the version of the protocol and the limits of this file system."""
        return struct.pack("<IIIIHHIIHH32x", 7, 31, 1 << 17, 0, 12, 10, 1 << 17, 1, 0, 0)

    def attributes_of(self, number: int) -> bytes:
        """Return the attributes of a node (struct fuse_attr)."""
        node = self.nodes[number]
        seconds, nanoseconds = divmod(node.changed, 1_000_000_000)
        times = (seconds, seconds, seconds, nanoseconds, nanoseconds, nanoseconds)
        size = len(node.data)
        return struct.pack(
            "<QQQQQQIIIIIIIIII",
            number,
            size,
            -(-size // 512),
            *times,
            node.mode,
            node.links,
            0,
            0,
            0,
            4096,
            0,
        )

    def entry(self, number: int) -> bytes:
        """Return a node as the answer to a look-up (struct fuse_entry_out)."""
        return struct.pack("<QQQQII", number, 0, 0, 0, 0, 0) + self.attributes_of(number)

    def lookup(self, folder: int, body: bytes) -> bytes:
        return self.entry(self.child(folder, _name(body)))

    def attributes(self, number: int, _: bytes) -> bytes:
        if number not in self.nodes:
            raise OSError(errno.ENOENT, "")
        return struct.pack("<QII", 0, 0, 0) + self.attributes_of(number)

    def set_attributes(self, number: int, body: bytes) -> bytes:
        valid, _, _, size = struct.unpack_from("<IIQQ", body)
        node = self.nodes[number]
        if valid & 1:
            node.mode = struct.unpack_from("<I", body, 68)[0]
        if valid & 8:
            del node.data[size:]
            node.data.extend(bytes(size - len(node.data)))
        node.changed = time.time_ns()
        return self.attributes(number, b"")

    def add(self, folder: int, name: str, mode: int) -> int:
        """Create a node in a folder, and return its number."""
        if self.key(name) in self.nodes[folder].children:
            raise OSError(errno.EEXIST, "")
        number = self.next_number
        self.next_number += 1
        self.nodes[number] = _Node(mode)
        self.put(folder, name, number)
        return number

    def put(self, folder: int, name: str, number: int) -> None:
        """Give a node a name in a folder."""
        changed = time.time_ns()
        self.nodes[folder].children[self.key(name)] = (name, number)
        self.nodes[folder].changed = changed
        self.nodes[number].changed = changed

    def mkdir(self, folder: int, body: bytes) -> bytes:
        (mode,) = struct.unpack_from("<I", body)
        number = self.add(folder, _name(body[8:]), stat.S_IFDIR | mode)
        return self.entry(number)

    def create(self, folder: int, body: bytes) -> bytes:
        (mode,) = struct.unpack_from("<I", body, 4)
        number = self.add(folder, _name(body[16:]), mode)
        return self.entry(number) + bytes(16)

    def unlink(self, folder: int, body: bytes) -> bytes:
        number = self.child(folder, _name(body))
        self.nodes[number].links -= 1  # the node stays, because a process may have it open
        del self.nodes[folder].children[self.key(_name(body))]
        return b""

    def rmdir(self, folder: int, body: bytes) -> bytes:
        if self.nodes[self.child(folder, _name(body))].children:
            raise OSError(errno.ENOTEMPTY, "")
        return self.unlink(folder, body)

    def rename_with_flags(self, folder: int, body: bytes) -> bytes:
        (flags,) = struct.unpack_from("<I", body, 8)
        return self.rename(folder, body[16:], body[:8], flags)

    def rename(self, folder: int, names: bytes, target: bytes, flags: int) -> bytes:
        """Move a node to a name in the folder `target`, or exchange the nodes of two names."""
        if flags and not self.traits.supports_flags:
            raise OSError(errno.EINVAL, "")

        (new_folder,) = struct.unpack("<Q", target)
        old, new = (name.decode() for name in names.split(b"\0")[:2])
        number = self.child(folder, old)
        replaced = self.nodes[new_folder].children.get(self.key(new))
        if flags & _NO_REPLACE and replaced is not None:
            raise OSError(errno.EEXIST, "")

        if flags & _EXCHANGE:
            exchanged = self.child(new_folder, new)
            self.put(folder, self.nodes[folder].children[self.key(old)][0], exchanged)
        else:
            if replaced is not None:
                self.nodes[replaced[1]].links -= 1
            del self.nodes[folder].children[self.key(old)]
        self.put(new_folder, new, number)
        return b""

    def link(self, folder: int, body: bytes) -> bytes:
        if not self.traits.supports_flags:
            raise OSError(errno.EPERM, "")
        (number,) = struct.unpack_from("<Q", body)
        if self.key(_name(body[8:])) in self.nodes[folder].children:
            raise OSError(errno.EEXIST, "")
        self.nodes[number].links += 1
        self.put(folder, _name(body[8:]), number)
        return self.entry(number)

    def read(self, number: int, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        return bytes(self.nodes[number].data[offset : offset + size])

    def write(self, number: int, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        node = self.nodes[number]
        node.data.extend(bytes(max(0, offset - len(node.data))))
        node.data[offset : offset + size] = body[40 : 40 + size]
        node.changed = time.time_ns()
        return struct.pack("<II", size, 0)

    def space(self, _: int, __: bytes) -> bytes:
        return struct.pack(
            "<QQQQQIIII24x", 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 4096, 255, 4096, 0
        )

    def list(self, folder: int, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        children = list(enumerate(self.nodes[folder].children.values(), 1))
        entries = b""
        for position, (name, number) in children[offset:]:
            if self.traits.lists_decomposed:
                name = unicodedata.normalize("NFD", name)
            encoded = name.encode()
            kind = self.nodes[number].mode >> 12
            entry = struct.pack("<QQII", number, position, len(encoded), kind) + encoded
            entry += bytes(-len(entry) % 8)
            if len(entries) + len(entry) > size:
                break
            entries += entry
        return entries


def _name(body: bytes) -> str:
    """Return the name at the beginning of a body, which ends with a zero byte."""
    return body.split(b"\0")[0].decode()
