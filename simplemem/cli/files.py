"""Replace a settings file that a command edits: its own, or that of a client."""

from __future__ import annotations

import os
from pathlib import Path

from simplemem.errors import Conflict, Unavailable


def replace_text(file: Path, before: str | None, after: str | None, backup_name: str = "") -> None:
    """Replace the text `before` of a file with `after`. None stands for no file.

    With `backup_name`, the old file is kept under that name beside it. Raises Unavailable if the file is
    write-protected, and Conflict if it is no longer what was read.
    """
    from simplemem.store import ConcurrentWrite, change_file

    real = Path(os.path.realpath(file))  # it may be a link
    if before is not None and not os.access(real, os.W_OK):
        raise Unavailable(f"{file} is write-protected", hint="Allow writing to it first.")

    old = None if before is None else before.encode()
    if after is None and real.is_file() and real.read_bytes() == old:
        real.unlink()
        return

    real.parent.mkdir(parents=True, exist_ok=True)
    try:
        change_file(real, old, (after or "").encode(), backup_name)
    except (ConcurrentWrite, FileExistsError) as error:
        raise Conflict(
            f"another program changed {file} just now", current_sha256=None, hint="Try again."
        ) from error
