"""A JSON service over HTTP: where it lives, one POST, its answer, and a plain sentence for each way it can fail.

Services like to repeat what they were sent. A sentence of theirs that does is not passed on.
"""

from __future__ import annotations

import ipaddress
import json
import re
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from simplemem.errors import Invalid, Unavailable
from simplemem.services.keys import Key
from simplemem.services.patience import Passing, Patience, Refused

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")
_MOST_BYTES = 64 * 1024 * 1024  # of an answer: a thousand long vectors, written out
_MOST_BYTES_OF_A_REFUSAL = 20_000
_EXAMPLE = "For example http://localhost:1234/v1 or https://api.openai.com/v1."


@dataclass(frozen=True, slots=True)
class Address:
    """A service's base URL without a slash at its end, and its host and port for people."""

    url: str
    host: str
    local: bool  # nothing sent there leaves this machine


def address_of(url: str, setting: str = "embed.url") -> Address:
    """The address a setting names. A key inside it is refused: addresses are shown and logged, keys are not."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError as error:
        raise Invalid(f"the setting {setting} is not a URL", hint=_EXAMPLE) from error
    if parts.username is not None or parts.password is not None:
        hint = "Put the key into the setting for the key."
        raise Invalid(f"the setting {setting} holds a name or a password", hint=hint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Invalid(f"the setting {setting} is not the URL of a service", hint=_EXAMPLE)
    if parts.query or parts.fragment:
        raise Invalid(f"the setting {setting} must end with a path, without ? and #", hint=_EXAMPLE)
    host = parts.hostname if ":" not in parts.hostname else f"[{parts.hostname}]"
    place = host if port is None else f"{host}:{port}"
    local = host == "localhost" or host.endswith(".localhost")
    try:
        address = ipaddress.ip_address(parts.hostname)
        local = (getattr(address, "ipv4_mapped", None) or address).is_loopback
    except ValueError:
        pass  # a name
    return Address(f"{parts.scheme}://{place}{parts.path.rstrip('/')}", place, local)


class ServiceClient:
    """One service. `name` is what messages call it; `section` is the table of settings their hints point to."""

    def __init__(
        self,
        name: str,
        address: Address,
        key: Key,
        *,
        timeout: float = 30.0,
        section: str = "embed",
        most_bytes: int = _MOST_BYTES,
        patience: Patience | None = None,
    ) -> None:
        self.name = name
        self.address = address
        self._key = key
        self._section = section
        self._most_bytes = most_bytes
        self._patience = patience or Patience(name, timeout=timeout)
        self._lock = threading.Lock()
        self._http: httpx2.Client | None = None

    def post(
        self,
        path: str,
        payload: Mapping[str, Any],
        *,
        deadline: float | None = None,
        stopped: Callable[[], bool] = lambda: False,
        read: Callable[[Any], T] = lambda answer: answer,
    ) -> T:
        """What `read` makes of the answer's JSON. With a `deadline` (a `time.monotonic()`) nobody waits longer than that.

        What `read` raises counts as a failure of the service, as `Unavailable`, or of this request, as `Refused`.
        """
        body = json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace")
        return self._patience.call(
            lambda seconds: read(self._attempt(path, body, payload, seconds)), deadline=deadline, stopped=stopped
        )

    def close(self) -> None:
        with self._lock:
            http, self._http = self._http, None
        if http is not None:
            http.close()

    def _opened(self) -> httpx2.Client:
        import httpx2

        with self._lock:
            if self._http is None:
                # A proxy named in the environment is for others: what is for this machine does not take the way round.
                self._http = httpx2.Client(
                    trust_env=not self.address.local, follow_redirects=False, headers={"User-Agent": "simplemem"}
                )
                weakref.finalize(self, self._http.close)  # for whoever lets go of it without closing
            return self._http

    def _attempt(self, path: str, body: bytes, payload: Mapping[str, Any], seconds: float) -> Any:
        import httpx2

        key = self._key.value()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        ends = time.monotonic() + seconds
        try:
            url = self.address.url + path
            with self._opened().stream("POST", url, content=body, headers=headers, timeout=seconds) as answer:
                data = self._read(answer, ends)
        except httpx2.TimeoutException as error:
            raise Passing(f"no answer within {seconds:.3g} s", hint=hint("timeout", self._section)) from error
        except httpx2.ConnectError as error:
            raise Passing(
                f"{self.address.url} cannot be reached ({error})", hint=hint("reach", self._section)
            ) from error
        except (httpx2.RequestError, httpx2.InvalidURL) as error:
            raise Passing(f"the answer of {self.address.host} broke off") from error
        if not answer.is_success:
            said = quoted(data, payload, key)
            raise failure_of(self.name, self._section, self.address.url, answer.status_code, answer.headers, said)
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            if data.lstrip()[:1] == b"<":
                message = f"{self.name} answered with a web page where JSON was expected"
                raise Unavailable(message, hint=hint("url", self._section, self.address.url)) from error
            raise Passing(
                "its answer is not JSON, or only the beginning of it", hint=hint("url", self._section, self.address.url)
            ) from error

    def _read(self, answer: httpx2.Response, ends: float) -> bytes:
        data = bytearray()
        for chunk in answer.iter_bytes():
            data += chunk
            if not answer.is_success and len(data) > _MOST_BYTES_OF_A_REFUSAL:
                break
            if len(data) > self._most_bytes:
                most = self._most_bytes // 1024 // 1024
                raise Unavailable(f"{self.name} gave an answer of more than {most} MB; it was not read")
            if time.monotonic() > ends:
                raise Passing("the answer came too slowly", hint=hint("timeout", self._section))
        return bytes(data)


# -- how a call fails, the same for every protocol and package


def hint(about: str, section: str, url: str = "") -> str:
    """What to do about a failure. `section` is the table of settings that names the service."""
    seconds = "seconds" if section == "rerank" else "timeout_seconds"
    return {
        "timeout": f"{section}.{seconds} says how long it may take.",
        "reach": f"Is the service running? {section}.url says where it is.",
        "url": f"{section}.url is {url}: is that the address of the service, with its /v1 if it has one?",
        "model": f"Are {section}.model and its other settings what the service knows?",
        "key": f"Set {section}.api_key, as a text, {{ env = NAME }} or {{ path = FILE }}.",
        "limit": "The service limits how much is asked; it is asked again later.",
    }[about]


# What local servers say with a 500 when they are well, and the model cannot read this text (llama.cpp, Ollama).
_ABOUT_A_TEXT = re.compile(r"too large to process|context (length|size)|unsupported value: NaN", re.IGNORECASE)


def failure_of(
    name: str, section: str, url: str, status: int, headers: Mapping[str, str], sentence: str
) -> Passing | Unavailable:
    """What a status other than success means. `sentence` is what the service said, as `quoted` gives it."""
    spoken = f"{status}, {sentence}" if sentence else str(status)
    if status in (400, 413, 422) or (status == 500 and _ABOUT_A_TEXT.search(sentence)):
        return Refused(f"{name} refused the request: {spoken}", hint=hint("model", section), status=status)
    if status in (408, 425, 429) or status >= 500:
        advice = hint("limit", section) if status == 429 else ""
        return Passing(spoken, hint=advice, retry_after=_retry_after(headers), status=status)
    if status in (401, 403):
        return Unavailable(f"{name} does not accept the key: {spoken}", hint=hint("key", section), status=status)
    what = "lives at another address" if 300 <= status < 400 else "does not know what was asked"
    return Unavailable(f"{name} {what}: {spoken}", hint=hint("url", section, url), status=status)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds; None when the header is missing, is a date, or makes no sense."""
    try:
        seconds = float(next(value for key, value in headers.items() if key.lower() == "retry-after"))
    except (StopIteration, ValueError):
        return None
    return max(0.0, seconds) if seconds < 1e9 else None


_MOST_CHARACTERS, _MOST_READ = 200, 500
_WINDOW = 12  # a run of so many characters that also stands in the request was taken from it
_KEY_SHAPED = re.compile(r"\b(?:sk|pa|pk|rk|hf|key|Bearer)[-_ ][\w*.-]{6,}|\b[A-Za-z0-9_-]{40,}", re.ASCII)


def quoted(body: bytes, sent: Mapping[str, Any], key: str | None) -> str:
    """The sentence in an answer that was no success: one short line without the key, nothing where it repeats a text of
    the request."""
    text = body[:_MOST_BYTES_OF_A_REFUSAL].decode("utf-8", "replace")
    try:
        message = _message(json.loads(text))
    except (ValueError, RecursionError):
        message = "" if text.lstrip()[:1] == "<" else text  # not a page for a browser
    if key:  # before anything is cut off: half a key is no longer seen to be one
        message = message.replace(key, "…")
    sentence = " ".join("".join(c if c.isprintable() else " " for c in message[:_MOST_READ]).split())
    for value in (sent.get(name) or () for name in ("input", "query", "texts", "documents")):
        for each in [value] if isinstance(value, str) else value:
            told = " ".join(str(each).split())
            size = min(_WINDOW, len(told))
            if size > 2 and any(sentence[at : at + size] in told for at in range(len(sentence) - size + 1)):
                return ""
    shown = _KEY_SHAPED.sub("…", sentence)
    return shown if len(shown) <= _MOST_CHARACTERS else shown[: _MOST_CHARACTERS - 1].rstrip() + "…"


def _message(answer: Any, depth: int = 0) -> str:
    """The shapes in use: {"error": {"message"}}, {"error": "…"}, {"message"}, {"detail": "…" or [{"msg"}]}."""
    if isinstance(answer, dict) and depth < 4:
        names = ("error", "message", "msg", "detail", "errors", "title")
        return _message(next((answer[name] for name in names if answer.get(name)), ""), depth + 1)
    if isinstance(answer, list) and answer and depth < 4:
        return _message(answer[0], depth + 1)
    return answer if isinstance(answer, str) else ""
