"""Keys of services: given as text, by the name of an environment variable, or by the path of a file.

A key is read when it is used, so that a new one needs no restart, and is shown nowhere.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from simplemem.errors import Unavailable

if TYPE_CHECKING:
    from pydantic import SecretStr

KeySource: TypeAlias = "SecretStr | Mapping[str, str] | None"  # as the settings have checked it
_MOST_BYTES = 4_096
_PATH_STARTS = ("/", "./", "~/", ".\\", "~\\")  # capabilities.md SM-17: a text that begins so is a path


class Key:
    """A key by where it comes from. `otherwise` is the environment variable that is read when the setting says
    nothing."""

    def __init__(self, source: KeySource, *, setting: str = "embed.api_key", otherwise: str = "") -> None:
        self.setting = setting
        self._text = self._env = self._path = ""
        if isinstance(source, Mapping):  # {env = NAME} or {path = FILE}
            self._env, self._path = source.get("env", ""), source.get("path", "")
        elif source is not None:
            text = source.get_secret_value().strip()
            self._path, self._text = (text, "") if text.startswith(_PATH_STARTS) else ("", text)
        elif os.environ.get(otherwise, "").strip():
            self._env = otherwise

    def value(self) -> str | None:
        """The key now; None when none was named. One that was named and is not there is an error."""
        where, found = f"the setting {self.setting}", self._text
        if self._env:
            where, found = f"the environment variable {self._env}", os.environ.get(self._env, "").strip()
        elif self._path:
            where, found = f"the file {self._path}", self._from_file()
        elif not found:
            return None
        hint = f"The setting {self.setting} names it; the key must stand there alone."
        if not found:
            raise Unavailable(f"there is no key in {where}", hint=hint)
        if not (found.isascii() and found.isprintable()) or " " in found or len(found) >= _MOST_BYTES:
            wrong = "it has spaces, line breaks or letters no key has"
            raise Unavailable(f"what lies in {where} is not a key: {wrong}", hint=hint)
        return found

    def _from_file(self) -> str:
        path = Path(self._path).expanduser()
        try:
            with path.open("rb") as file:
                return file.read(_MOST_BYTES).decode("utf-8-sig", "replace").strip()
        except OSError as error:
            hint = f"The setting {self.setting} names the file."
            raise Unavailable(f"the key cannot be read from {path}: {error.strerror}", hint=hint) from error
