"""What the vault asks of the operating system beyond `os`: two renames, a lock, a sync and a copy of attributes.

One function a request, each raising OSError like `os` does, from `kernel_posix.py` or `kernel_windows.py`. Files are named
by an open folder and a name in it; where folders cannot be held open (Windows) the folder is None and the name a full
path. Nothing here decides anything: what to do when the disk cannot do it is `disk.py`'s business.
"""

from __future__ import annotations

import errno
import sys

if sys.platform == "win32":
    from simplemem.vault import kernel_windows as _system
else:
    from simplemem.vault import kernel_posix as _system

copy_attributes = _system.copy_attributes
exchange = _system.exchange
is_alive = _system.is_alive
patiently = _system.patiently
rename_new = _system.rename_new
sync_file = _system.sync_file
try_lock = _system.try_lock
unlock = _system.unlock

# renameat2 on FUSE and many network disks answers EINVAL, an old kernel ENOSYS, macOS on FAT ENOTSUP.
CANNOT_RENAME_SO = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
# FAT answers EPERM, Android's shared storage EACCES; EMLINK is a file with too many names already.
CANNOT_LINK = frozenset({*CANNOT_RENAME_SO, errno.EPERM, errno.EACCES, errno.EMLINK, errno.EXDEV})
