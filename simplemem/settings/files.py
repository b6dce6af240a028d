"""Read settings files: TOML of limited size, and only regular files."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simplemem.errors import Invalid
from simplemem.settings.location import user_config_file

_MAX_TOML_BYTES = 64_000
_FIX_TOML = "Fix the file in an editor."


def user_config_path(env: Mapping[str, str]) -> Path:
    """Return the file of the user's own settings, which need not exist.

    That is `$XDG_CONFIG_HOME/simplemem/config.toml`, by default below `~/.config`.
    """
    return Path(user_config_file(env))


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file as a dictionary.

    Raises Invalid if it is not TOML, too large or not a regular file, and OSError if it cannot be
    read.
    """
    data = read_bounded(path, _MAX_TOML_BYTES)
    import tomllib  # most vaults have no such file

    try:
        table = tomllib.loads(data.decode("utf-8-sig"))
        # Error messages show values with `repr`, which raises ValueError for a very long number.
        repr(table)
    except RecursionError:
        raise Invalid(
            f"{path} is not valid TOML: it is nested too deeply", hint=_FIX_TOML
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise Invalid(f"{path} is not valid TOML: {error}", hint=_FIX_TOML) from error
    except ValueError as error:  # Python's message does not say what to do
        reason = "it is not UTF-8, or contains a number that is too long"
        raise Invalid(f"{path} is not valid TOML: {reason}", hint=_FIX_TOML) from error
    return table


def read_bounded(path: Path, max_bytes: int) -> bytes:
    """Return the content of a regular file of at most `max_bytes`. Never waits for a pipe.

    Raises Invalid if it is not a regular file, or if it is longer and could fill the memory. Raises
    OSError if it cannot be read.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise Invalid(
                f"{path} is not a regular file",
                hint="Replace it with a regular file, or remove it.",
            )
        data = file.read(max_bytes + 1)

    if len(data) > max_bytes:
        raise Invalid(
            f"{path} is larger than {max_bytes:,} bytes",
            hint="Replace it with a smaller file, or remove it.",
        )
    return data
