"""How a call to a service fails: for good, for now, or because of what it was asked."""

from __future__ import annotations

from typing import Any

from simplemem.errors import Unavailable


class Refused(Unavailable):
    """The service is well, and will not take this one request: a text that is too long, a value it does not know.

    Asking the same again gives the same answer; asking something else may not.
    """


class Passing(Exception):
    """An attempt failed in a way that may pass. `Patience` tries again, and says so at last as `Unavailable`."""

    def __init__(self, said: str, *, hint: str = "", retry_after: float | None = None, **details: Any) -> None:
        super().__init__(said)
        self.said = said
        self.hint = hint
        self.retry_after = retry_after  # seconds the service asked to be left alone
        self.details = details
