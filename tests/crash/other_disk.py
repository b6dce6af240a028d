"""A disk that treats names as a Mac does, or lacks calls, as a FUSE file system in memory: real kernel, real calls.

`on_disk` runs an action in a child process with such a disk mounted for it alone. It needs Linux, root and /dev/fuse;
where one of them is missing the tests that want it are skipped.
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

_SPARE, _SWAP = 1, 2  # flags of renameat2
_ROOT = 1


@dataclass(frozen=True)
class Manners:
    """What a disk is like."""

    folds_case: bool = False  # and the Unicode form: `é` is one name however it is written
    lists_decomposed: bool = False  # as HFS+ does
    knows_flags: bool = True  # of a rename: exchange, and never onto something


@dataclass
class _Node:
    mode: int
    data: bytearray = field(default_factory=bytearray)
    children: dict[str, tuple[str, int]] = field(default_factory=dict)
    links: int = 1
    changed: int = field(default_factory=time.time_ns)


def can_mount() -> bool:
    return (
        sys.platform == "linux" and os.geteuid() == 0 and os.access("/dev/fuse", os.R_OK | os.W_OK)
    )


def on_disk(mount_point: Path, manners: Manners, action: Callable[[], Any]) -> Any:
    """What `action` returns, run where `mount_point` is an empty disk of such manners."""
    servers: list[int] = []

    def prepare() -> None:
        device = os.open("/dev/fuse", os.O_RDWR)
        owner = "rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions"
        mounts.mount("test", mount_point, "fuse", options=f"fd={device},{owner}")
        servers.append(os.fork())
        if not servers[0]:
            try:
                _Disk(device, manners).serve()
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
    """The file system: nodes by number, answers to the kernel's questions (linux/fuse.h, version 7.31)."""

    def __init__(self, device: int, manners: Manners) -> None:
        self.device = device
        self.manners = manners
        self.nodes = {_ROOT: _Node(stat.S_IFDIR | 0o755)}
        self.next = _ROOT + 1
        self.answers: dict[int, Callable[[int, bytes], bytes]] = {
            1: self.lookup, 3: self.attributes, 4: self.set_attributes, 9: self.mkdir, 10: self.unlink, 11: self.rmdir,
            12: lambda node, body: self.rename(node, body[8:], body[:8], 0),
            45: lambda node, body: self.rename(node, body[16:], body[:8], struct.unpack_from("<I", body, 8)[0]),
            13: self.link, 14: lambda node, body: bytes(16), 15: self.read, 16: self.write, 17: self.space,
            18: lambda node, body: b"", 20: lambda node, body: b"", 25: lambda node, body: b"",
            26: lambda node, body: struct.pack("<IIIIHHIIHH32x", 7, 31, 1 << 17, 0, 12, 10, 1 << 17, 1, 0, 0),
            27: lambda node, body: bytes(16), 28: self.list, 29: lambda node, body: b"", 30: lambda node, body: b"",
            35: self.create, 38: lambda node, body: b"",
        }  # fmt: skip

    def serve(self) -> None:
        while True:
            try:
                request = os.read(self.device, 1 << 20)
            except OSError as error:
                if error.errno == errno.ENODEV:
                    return
                continue
            _, opcode, unique, node = struct.unpack_from("<IIQQ", request)
            if opcode in (2, 36, 42):  # forget, interrupt: nobody waits for an answer
                continue
            code, body = 0, b""
            try:
                answer = self.answers.get(opcode)
                if answer is None:
                    raise OSError(errno.ENOSYS, "")
                body = answer(node, request[40:])
            except OSError as error:
                code = error.errno or errno.EIO
            os.write(self.device, struct.pack("<IiQ", 16 + len(body), -code, unique) + body)

    def key(self, name: str) -> str:
        return unicodedata.normalize("NFC", name).casefold() if self.manners.folds_case else name

    def child(self, folder: int, name: str) -> int:
        found = self.nodes[folder].children.get(self.key(name))
        if found is None:
            raise OSError(errno.ENOENT, "")
        return found[1]

    def attributes_of(self, number: int) -> bytes:
        node = self.nodes[number]
        seconds, rest = divmod(node.changed, 1_000_000_000)
        times = (seconds, seconds, seconds, rest, rest, rest)
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
        if self.key(name) in self.nodes[folder].children:
            raise OSError(errno.EEXIST, "")
        number, self.next = self.next, self.next + 1
        self.nodes[number] = _Node(mode)
        self.put(folder, name, number)
        return number

    def put(self, folder: int, name: str, number: int) -> None:
        self.nodes[folder].children[self.key(name)] = (name, number)
        self.nodes[folder].changed = self.nodes[number].changed = time.time_ns()

    def mkdir(self, folder: int, body: bytes) -> bytes:
        return self.entry(
            self.add(folder, _name(body[8:]), stat.S_IFDIR | struct.unpack_from("<I", body)[0])
        )

    def create(self, folder: int, body: bytes) -> bytes:
        return self.entry(
            self.add(folder, _name(body[16:]), struct.unpack_from("<I", body, 4)[0])
        ) + bytes(16)

    def unlink(self, folder: int, body: bytes) -> bytes:
        number = self.child(folder, _name(body))
        self.nodes[number].links -= 1  # the node stays: somebody may have it open
        del self.nodes[folder].children[self.key(_name(body))]
        return b""

    def rmdir(self, folder: int, body: bytes) -> bytes:
        if self.nodes[self.child(folder, _name(body))].children:
            raise OSError(errno.ENOTEMPTY, "")
        return self.unlink(folder, body)

    def rename(self, folder: int, names: bytes, target: bytes, flags: int) -> bytes:
        if flags and not self.manners.knows_flags:
            raise OSError(errno.EINVAL, "")
        (other,) = struct.unpack("<Q", target)
        old, new = (name.decode() for name in names.split(b"\0")[:2])
        number = self.child(folder, old)
        there = self.nodes[other].children.get(self.key(new))
        if flags & _SPARE and there is not None:
            raise OSError(errno.EEXIST, "")
        if flags & _SWAP:
            swapped = self.child(other, new)
            self.put(folder, self.nodes[folder].children[self.key(old)][0], swapped)
        else:
            if there is not None:
                self.nodes[there[1]].links -= 1
            del self.nodes[folder].children[self.key(old)]
        self.put(other, new, number)
        return b""

    def link(self, folder: int, body: bytes) -> bytes:
        if not self.manners.knows_flags:
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
        listed = b""
        for at, (name, number) in list(enumerate(self.nodes[folder].children.values(), 1))[offset:]:
            shown = unicodedata.normalize("NFD", name) if self.manners.lists_decomposed else name
            spelled = shown.encode()
            entry = (
                struct.pack("<QQII", number, at, len(spelled), self.nodes[number].mode >> 12)
                + spelled
            )
            entry += bytes(-len(entry) % 8)
            if len(listed) + len(entry) > size:
                break
            listed += entry
        return listed


def _name(body: bytes) -> str:
    return body.split(b"\0")[0].decode()
