"""Report the paths of a vault that may have changed.

The operating system reports changes; where it cannot, `EVERYTHING` is reported now and then. All
reports are hints: the kind and the order of events say little, as each editor saves in its own way.
This module never reads a note.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from simplemem.vault.folder.file_systems import SHARED, file_system
from simplemem.vault.folder.listeners import FolderListener, InotifyListener, WatchfilesListener
from simplemem.vault.source import EVERYTHING

_ROOT_CHECK_SECONDS = 1.0  # between two checks whether the root is still the same folder
_MAX_PATHS = 1_000  # for more paths, to look through the whole vault is as cheap
_LIMIT_REACHED = (
    "this system's limit of watched folders is reached (raise fs.inotify.max_user_watches)"
)


class FolderWatcher:
    """Reports which paths of a folder may have changed.

    One thread asks; any thread may wake it. Guards the listener, which is opened again if the
    folder is replaced or if events were lost. If the system cannot report changes, `warn` is called
    once, and from then on `EVERYTHING` is reported every `poll_seconds`. A folder that does not
    exist is waited for.
    """

    def __init__(
        self,
        root: Path,
        *,
        poll: bool = False,
        poll_seconds: float = 2,
        warn: Callable[[str], None],
    ) -> None:
        """Begin to watch a folder, which need not exist.

        With `poll`, changes are not listened to, and `warn` is not called for that.
        """
        self.polling = poll
        self.poll_seconds = poll_seconds
        self._root = root
        self._warn = warn
        self._woken = threading.Event()
        # inotify is waited for with `poll`, which only a file descriptor can end.
        self._wake_receiver, self._wake_sender = socket.socketpair()
        self._wake_receiver.setblocking(False)
        self._listener: FolderListener | None = None
        self._open()

    def wake(self) -> None:
        """End the wait of `paths`, or the next one. Any thread may call it, also after `close`."""
        if not self._woken.is_set():
            self._woken.set()
            with suppress(OSError):  # the watcher was closed
                self._wake_sender.send(b".")

    def close(self) -> None:
        """Stop watching. `paths` may not be called after this."""
        if self._listener is not None:
            self._listener.close()
        self._listener = None
        self._wake_receiver.close()
        self._wake_sender.close()

    def paths(self, seconds: float) -> set[str]:
        """Return the paths that may have changed since the last call, or only `EVERYTHING`.

        If there are none, waits up to `seconds` for a change, but at most one second. After a
        change, waits a tenth of a second at most for further ones. Returns an empty set if nothing
        happened or `wake` was called. Never raises: if events were lost, it returns `EVERYTHING`.
        """
        wait_seconds = 0.0 if self._woken.is_set() else min(seconds, _ROOT_CHECK_SECONDS)
        if self._listener is None:
            paths = self._wait_for_poll(wait_seconds)
        else:
            paths = self._listen(self._listener, wait_seconds)
        self._reset_wake()

        is_same_root = _identity(self._root) == self._identity
        if EVERYTHING in paths or len(paths) > _MAX_PATHS or not is_same_root:
            self._open()
            return {EVERYTHING}
        return paths

    def _listen(self, listener: FolderListener, seconds: float) -> set[str]:
        """Return the paths that the listener reports within some seconds.

        Returns `EVERYTHING` if the system cannot watch all folders any more.
        """
        try:
            return listener.changed(seconds)
        except (OSError, RuntimeError):
            # There are more folders than the system can watch. `paths` now opens the listener
            # again, which calls `warn`.
            return {EVERYTHING}

    def _wait_for_poll(self, seconds: float) -> set[str]:
        """Return `EVERYTHING` if the next poll is due within some seconds, else an empty set.

        Waits until it is due, until the time is over, or until `wake` is called. No poll is due
        while there is no folder.
        """
        until_poll = float("inf")
        if self._identity is not None:
            until_poll = self._polled_at + self.poll_seconds - time.monotonic()

        is_woken = self._woken.wait(max(min(seconds, until_poll), 0.0))
        if not is_woken and until_poll <= seconds:
            return {EVERYTHING}
        return set()

    def _reset_wake(self) -> None:
        """Forget that `wake` was called."""
        self._woken.clear()
        with suppress(OSError):
            self._wake_receiver.recv(1 << 12)

    def _open(self) -> None:
        """Listen to the folder that is at the root now, or remember that there is none.

        Closes the old listener first. If listening is not possible, calls `warn` and polls from now
        on.
        """
        if self._listener is not None:
            self._listener.close()
        self._listener = None
        self._polled_at = time.monotonic()
        self._identity = _identity(self._root)
        if self._identity is None or self.polling:
            return

        reason = self._open_listener(os.path.realpath(self._root))
        if reason:
            self.polling = True
            self._warn(f"{self._root} cannot be watched: {reason}; simplemem polls it instead")

    def _open_listener(self, real_root: str) -> str:
        """Open the listener of this system; return why it is not possible, "" if it is.

        Returns "" too if the folder was deleted just now: it is then waited for.
        """
        disk_type = file_system(real_root)
        if disk_type in SHARED or disk_type == "fuse" or disk_type.startswith("fuse."):
            return f"a disk of type {disk_type} does not report changes by other computers"

        try:
            if sys.platform == "linux":
                self._listener = InotifyListener(real_root, self._wake_receiver)
            else:
                self._listener = WatchfilesListener(real_root, self._woken)
        except FileNotFoundError:
            self._identity = None  # the folder was deleted just now
        except (ImportError, OSError, RuntimeError) as error:
            if getattr(error, "errno", None) == errno.ENOSPC:
                return _LIMIT_REACHED
            return str(error) or type(error).__name__
        return ""


def _identity(root: Path) -> tuple[int, int] | None:
    """Return which folder is at the root: its device and inode, None if there is none.

    Another folder is there after it was replaced, or after a disk was connected or removed.
    """
    with suppress(OSError):
        root_stat = os.stat(root)
        return root_stat.st_dev, root_stat.st_ino
    return None
