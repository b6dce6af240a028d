"""Keys of services: given as text, by the name of an environment variable, or by the path of a file.

A key is read when it is used, so that a new one needs no restart, and is shown nowhere.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from simplemem.errors import Invalid, Unavailable

if TYPE_CHECKING:
    from pydantic import SecretStr

KeySource: TypeAlias = "SecretStr | Mapping[str, str] | None"  # as a setting has it
_MOST_BYTES = 4_096
_PATH_STARTS = ("/", "./", "~/", ".\\", "~\\")  # capabilities.md SM-17: a text that begins so is a path


class Key:
    """A key by where it comes from. Its text form never shows it."""

    def __init__(self, source: KeySource, *, setting: str = "embed.api_key", otherwise: str = "") -> None:
        """`otherwise` names the environment variable that is read when the setting says nothing."""
        self._setting = setting
        self._text = self._env = self._path = ""
        if isinstance(source, Mapping):  # {env = NAME} or {path = FILE}, as the settings have checked
            self._env, self._path = source.get("env", ""), source.get("path", "")
            if len(source) != 1 or not (self._env or self._path):
                raise Invalid(f"the setting {setting} must be a text, {{ env = NAME }} or {{ path = FILE }}")
        elif source is not None:
            text = source.get_secret_value().strip()
            self._path, self._text = (text, "") if text.startswith(_PATH_STARTS) else ("", text)
        elif otherwise and os.environ.get(otherwise, "").strip():
            self._env = otherwise

    def __repr__(self) -> str:
        return f"Key({self._where()})" if self.is_set else "Key(none)"

    @property
    def is_set(self) -> bool:
        """Whether a key was named at all. Nothing is read."""
        return bool(self._text or self._env or self._path)

    def value(self) -> str | None:
        """The key now; None when none was named. One that was named and is not there is an error."""
        if not self.is_set:
            return None
        found = self._text or (os.environ.get(self._env, "") if self._env else self._from_file())
        found = found.strip()
        if not found:
            raise Unavailable(f"there is no key in {self._where()}", hint=f"The setting {self._setting} names it.")
        if not (found.isascii() and found.isprintable()) or " " in found or len(found) >= _MOST_BYTES:
            raise Unavailable(
                f"what lies in {self._where()} is not a key: it has spaces, line breaks or letters no key has",
                hint=f"The setting {self._setting} names it; the key must stand there alone.",
            )
        return found

    def _where(self) -> str:
        if self._env:
            return f"the environment variable {self._env}"
        return f"the file {self._path}" if self._path else f"the setting {self._setting}"

    def _from_file(self) -> str:
        path = Path(self._path).expanduser()
        try:
            with path.open("rb") as file:
                return file.read(_MOST_BYTES).decode("utf-8-sig", "replace")
        except OSError as error:
            raise Unavailable(
                f"the key cannot be read from {path}: {error.strerror}",
                hint=f"The setting {self._setting} names the file.",
            ) from error
