"""Find the key of a service: in the settings, an environment variable or a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from simplemem.errors import Unavailable

if TYPE_CHECKING:
    from pydantic import SecretStr

KeySource: TypeAlias = "SecretStr | Mapping[str, str] | None"
"""A key, or `{env: NAME}` or `{path: FILE}`, as the settings have it."""

_MAX_KEY_BYTES = 4_096
# As in the original simplemem, a text that begins so is the path of a file with the key.
_PATH_STARTS = ("/", "./", "~/", ".\\", "~\\")


class Key:
    """Where the key of a service is. It is read at each use, and never shown or logged."""

    def __init__(
        self,
        source: KeySource,
        *,
        setting: str = "embed.api_key",
        default_variable: str = "",
    ) -> None:
        """Remember where the key is. Reads no file.

        `setting` is the name of the setting that `source` is from. If `source` is None and the
        environment variable `default_variable` is set now, that variable has the key. If the text
        of `source` begins as a path does, it is the path of a file with the key.
        """
        self.setting = setting
        self._text = ""
        self._variable = ""
        self._path = ""
        if isinstance(source, Mapping):
            self._variable = source.get("env", "")
            self._path = source.get("path", "")
        elif source is not None:
            text = source.get_secret_value().strip()
            if text.startswith(_PATH_STARTS):
                self._path = text
            else:
                self._text = text
        elif os.environ.get(default_variable, "").strip():
            self._variable = default_variable

    def value(self) -> str | None:
        """Return the key, read now; None if the setting is empty, or missing without a variable.

        Raises Unavailable if the variable or file does not exist, or if what is there, or in the
        setting, is no key.
        """
        key = self._text
        place = f"the setting {self.setting}"
        if self._variable:
            key = os.environ.get(self._variable, "").strip()
            place = f"the environment variable {self._variable}"
        elif self._path:
            key = self._read_file()
            place = f"the file {self._path}"
        elif not key:
            return None

        if not key:
            raise Unavailable(f"no key in {place}", hint=self._hint())
        if not _looks_like_key(key):
            raise Unavailable(
                f"the content of {place} is not a key: it is too long, or contains spaces, "
                "line breaks or characters that no key contains",
                hint=self._hint(),
            )
        return key

    def _read_file(self) -> str:
        """Return the text of the file with the key, without spaces around it.

        Raises Unavailable if it cannot be read. Of a long file, only the first 4,096 bytes are
        read.
        """
        path = Path(self._path).expanduser()
        try:
            with path.open("rb") as file:
                data = file.read(_MAX_KEY_BYTES)
        except OSError as error:
            raise Unavailable(
                f"the key cannot be read from {path}: {error.strerror}", hint=self._hint()
            ) from error
        return data.decode("utf-8-sig", "replace").strip()

    def _hint(self) -> str:
        """Return the hint of the errors: where to put the key. It does not contain the key."""
        return (
            f"Put only the key there, or change the setting {self.setting}, "
            "which says where the key is."
        )


def _looks_like_key(text: str) -> bool:
    """Return whether a text that is not empty may be a key: short ASCII without spaces."""
    is_plain = text.isascii() and text.isprintable() and " " not in text
    return is_plain and len(text) < _MAX_KEY_BYTES
