"""Every failure a user can meet: a code, which is a contract with programs, a sentence for people and
models, and in `hint` a way out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar


class SimplememError(Exception):
    """A failure with a name. `details` are further facts for programs; they must be JSON values."""

    code: ClassVar[str] = "unavailable"

    def __init__(self, message: str, *, hint: str = "", **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details

    @property
    def hint(self) -> str:
        """What the caller can do. A traceback shows it below the message."""
        return self._hint

    @hint.setter
    def hint(self, text: str) -> None:
        self._hint = text
        self.__notes__ = [text] if text else []

    def as_dict(self) -> dict[str, Any]:
        """The shape every interface shows: code, message, hint when there is one, and the details."""
        shown: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.hint:
            shown["hint"] = self.hint
        return shown | self.details

    def withhold_folders(self, folders: Iterable[str]) -> None:
        """Replace folders of this machine with `…` in message and hint, for a caller elsewhere."""
        for folder in sorted(folders, key=len, reverse=True):
            self.message = self.message.replace(folder, "…")
            self.hint = self.hint.replace(folder, "…")


class Invalid(SimplememError):
    """The request itself is wrong: a name that cannot be a file, an edit that matches nothing."""

    code = "invalid"


class TooLong(SimplememError):
    """A name or a text over its limit."""

    code = "too_long"


class NotFound(SimplememError):
    """No such memory, version or section. `candidates` are the nearest names there are."""

    code = "not_found"

    def __init__(
        self, message: str, *, hint: str = "", candidates: Sequence[str] = (), **details: Any
    ) -> None:
        if candidates:
            details["candidates"] = list(candidates)
        super().__init__(message, hint=hint, **details)


class AlreadyExists(SimplememError):
    """A memory of that name is there."""

    code = "already_exists"


class Ambiguous(SimplememError):
    """A name that could mean several memories. `candidates` lists them all."""

    code = "ambiguous"


class Conflict(SimplememError):
    """The note is not what the caller had read. Carries the hash of what is there now, and the difference."""

    code = "conflict"

    def __init__(
        self,
        message: str,
        *,
        current_sha256: str | None,
        diff: str = "",
        hint: str = "",
        **details: Any,
    ) -> None:
        super().__init__(message, hint=hint, current_sha256=current_sha256, diff=diff, **details)


class ReadOnly(SimplememError):
    """The vault, the disk or the settings do not allow writing."""

    code = "read_only"


class Unreadable(SimplememError):
    """A note whose header or encoding cannot be understood. It is served and searched, and never rewritten."""

    code = "unreadable"

    def __init__(
        self, message: str, *, hint: str = "", line: int | None = None, **details: Any
    ) -> None:
        if line is not None:
            details["line"] = line
        super().__init__(message, hint=hint, **details)


class Unavailable(SimplememError):
    """Something needed is not there just now: the lock, the disk, an embedder, the index."""

    code = "unavailable"
