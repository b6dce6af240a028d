"""The errors that users and programs meet.

Each has a message for people, a hint that says what to do, and a code, which is a contract with
programs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar


class SimplememError(Exception):
    """The base of all errors of simplemem. Callers catch it; code raises one of its subclasses.

    `details` has further facts for programs, as JSON values.
    """

    code: ClassVar[str] = "unavailable"

    def __init__(self, message: str, *, hint: str = "", **details: object) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details: dict[str, Any] = details

    @property
    def hint(self) -> str:
        """What the caller can do; "" if there is nothing to say. Tracebacks show it too."""
        return self._hint

    @hint.setter
    def hint(self, text: str) -> None:
        self._hint = text
        self.__notes__ = [text] if text else []

    def as_dict(self) -> dict[str, Any]:
        """Return code, message, hint (if there is one) and details in one map."""
        result: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.hint:
            result["hint"] = self.hint
        return result | self.details

    def withhold_folders(self, folders: Iterable[str]) -> None:
        """Replace folders with `…` in message and hint, for a caller who must not see their paths.

        The details stay as they are.
        """
        longest_first = sorted(folders, key=len, reverse=True)
        for folder in longest_first:
            self.message = self.message.replace(folder, "…")
            self.hint = self.hint.replace(folder, "…")


def install_hint(extra: str) -> str:
    """Return a hint that says how to install the optional dependencies of an extra."""
    # No release is published, so they are installed from a checkout.
    return (
        f"In a checkout of simplemem, run `pip install '.[{extra}]'`,"
        f" or `uv tool install --reinstall '.[{extra}]'`."
    )


class Invalid(SimplememError):
    """The request is wrong: a name that no file can have, an edit whose text is not in the note."""

    code = "invalid"


class TooLong(SimplememError):
    """A name or a text is over its limit."""

    code = "too_long"


class NotFound(SimplememError):
    """There is no such note, version or section. `candidates` are the most similar names."""

    code = "not_found"

    def __init__(
        self, message: str, *, hint: str = "", candidates: Sequence[str] = (), **details: object
    ) -> None:
        if candidates:
            details["candidates"] = list(candidates)
        super().__init__(message, hint=hint, **details)


class AlreadyExists(SimplememError):
    """There is already a note of this name."""

    code = "already_exists"


class Ambiguous(SimplememError):
    """Several notes could be meant. The detail `candidates` lists them all."""

    code = "ambiguous"


class Conflict(SimplememError):
    """The note is no longer what the caller has read.

    `current_sha256` is its hash now (None if it does not exist), and `diff` what has changed.
    """

    code = "conflict"

    def __init__(
        self,
        message: str,
        *,
        current_sha256: str | None,
        diff: str = "",
        hint: str = "",
        **details: object,
    ) -> None:
        super().__init__(message, hint=hint, current_sha256=current_sha256, diff=diff, **details)


class ReadOnly(SimplememError):
    """The vault, the disk or the settings do not allow writing."""

    code = "read_only"


class Unreadable(SimplememError):
    """The frontmatter or the encoding of a note is broken, at `line` if that is known.

    Such a note is served and searched, but never rewritten.
    """

    code = "unreadable"

    def __init__(
        self, message: str, *, hint: str = "", line: int | None = None, **details: object
    ) -> None:
        if line is not None:
            details["line"] = line
        super().__init__(message, hint=hint, **details)


class Unavailable(SimplememError):
    """Something that is needed cannot be used now: a lock, the disk, a service, the index."""

    code = "unavailable"
