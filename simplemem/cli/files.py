"""Replace a settings file that a command edits: its own, or that of a client."""

from __future__ import annotations

import os
from pathlib import Path

from simplemem.errors import Conflict, Unavailable


def replace_text(
    file: Path, old_text: str | None, new_text: str | None, backup_name: str = ""
) -> None:
    """Replace the text of a file, which was `old_text` when it was read.

    `old_text` is None if there was no file. If `new_text` is None, the file is deleted. If `file`
    is a link, the file behind it is replaced. Missing folders are created. With `backup_name`, the
    old file is kept under that name beside it, unless it is deleted.

    Raises Unavailable if the file is write-protected, and Conflict if it is no longer what was
    read; nothing is changed then.
    """
    from simplemem.store import ConcurrentWrite, change_file

    real_file = Path(os.path.realpath(file))
    if old_text is not None and not os.access(real_file, os.W_OK):
        raise Unavailable(f"{file} is write-protected", hint="Allow writing to it first.")

    old_data = None if old_text is None else old_text.encode()
    if new_text is None and real_file.is_file() and real_file.read_bytes() == old_data:
        real_file.unlink()
        return

    new_data = b"" if new_text is None else new_text.encode()
    real_file.parent.mkdir(parents=True, exist_ok=True)
    try:
        change_file(real_file, old_data, new_data, backup_name)
    except (ConcurrentWrite, FileExistsError) as error:
        message = f"another program changed {file} just now"
        raise Conflict(message, current_sha256=None, hint="Try again.") from error
