"""What the errors of the package `voyageai` mean, in the words of this one."""

from __future__ import annotations

from typing import Any

from simplemem.errors import Unavailable
from simplemem.remote.client import retry_after
from simplemem.remote.failures import Passing, Refused
from simplemem.remote.said import said


def voyage_failure(error: Exception, name: str, sent: Any, key: str, section: str) -> Exception:
    """The failure to raise for an error of the package. Its own text is not shown: it repeats what was sent."""
    from voyageai import error as known

    status = getattr(error, "http_status", None)
    body = getattr(error, "http_body", None) or b""
    headers = getattr(error, "headers", None) or {}
    sentence = said(body.encode() if isinstance(body, str) else body, sent, key)
    spoken = ", ".join(str(part) for part in (status, sentence) if part) or "no more is known"
    details = {} if status is None else {"status": status}
    if isinstance(error, known.Timeout):
        return Passing("no answer in time", hint=f"{section}.timeout_seconds says how long it may take.")
    if isinstance(error, known.APIConnectionError):
        return Passing("it cannot be reached, or the answer broke off", hint="Is this machine online?")
    if isinstance(error, known.RateLimitError) or status == 429:
        hint = f"An account without a payment method may ask little; a smaller {section}.batch asks less at once."
        return Passing(spoken, hint=hint, retry_after=retry_after(headers), **details)
    if isinstance(error, (known.ServerError, known.ServiceUnavailableError, known.TryAgain)) or (status or 0) >= 500:
        return Passing(spoken, retry_after=retry_after(headers), **details)
    if isinstance(error, (known.InvalidRequestError, known.MalformedRequestError)):
        return Refused(
            f"{name} refused the request: {spoken}", hint=f"Is {section}.model one of its models?", **details
        )
    if isinstance(error, known.AuthenticationError) or status in (401, 403):
        return Unavailable(
            f"{name} does not accept the key: {spoken}",
            hint=f"Set {section}.api_key, as a text, {{ env = NAME }} or {{ path = FILE }}.",
            **details,
        )
    if isinstance(error, known.VoyageError) and status is not None and 400 <= status < 500:
        return Unavailable(f"{name} does not know what was asked: {spoken}", **details)
    if body.lstrip()[:1] in ("<", b"<"):
        return Unavailable(f"{name} answered with a web page where JSON was expected", hint=f"Is {section}.url right?")
    return Passing("its answer is not what the protocol says, or only the beginning of it")
