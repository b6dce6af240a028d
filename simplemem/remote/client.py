"""A JSON service over HTTP: one POST, its answer, and a plain sentence for each way it can fail."""

from __future__ import annotations

import email.utils
import json
import logging
import re
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from simplemem.errors import Unavailable
from simplemem.remote.address import Address
from simplemem.remote.failures import Passing, Refused
from simplemem.remote.keys import Key
from simplemem.remote.patience import Patience
from simplemem.remote.said import said

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
_MOST_BYTES = 64 * 1024 * 1024  # of an answer: a thousand long vectors, written out
_MOST_BYTES_OF_A_REFUSAL = 20_000
_MAY_PASS = frozenset({408, 425, 429})
_ABOUT_THE_REQUEST = frozenset({400, 413, 422})
# What local servers say with a 500 when they are well, and the model cannot read this text (llama.cpp, Ollama).
_ABOUT_A_TEXT = re.compile(r"too large to process|context (length|size)|unsupported value: NaN", re.IGNORECASE)


class Remote:
    """One service. `name` is what messages call it; `section` is the table of settings their hints point to."""

    def __init__(
        self,
        name: str,
        address: Address,
        key: Key,
        *,
        timeout: float = 30.0,
        attempts: int = 4,
        section: str = "embed",
        most_bytes: int = _MOST_BYTES,
        patience: Patience | None = None,
    ) -> None:
        self.name = name
        self.address = address
        self._key = key
        self._section = section
        self._most_bytes = most_bytes
        self._patience = patience or Patience(name, timeout=timeout, attempts=attempts)
        self._lock = threading.Lock()
        self._client: httpx2.Client | None = None
        self._warned = False

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
            client, self._client = self._client, None
        self._patience.close()
        if client is not None:
            client.close()

    def _opened(self) -> httpx2.Client:
        import httpx2

        with self._lock:
            if self._client is None:
                # A proxy named in the environment is for others: what is for this machine does not take the way round.
                self._client = httpx2.Client(
                    trust_env=not self.address.local, follow_redirects=False, headers={"User-Agent": "simplemem"}
                )
                weakref.finalize(self, self._client.close)  # for whoever lets go of it without closing
            return self._client

    def _attempt(self, path: str, body: bytes, payload: Mapping[str, Any], seconds: float) -> Any:
        import httpx2

        key = self._key.value()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
            self._warn_of_open_keys()
        ends = time.monotonic() + seconds
        url = self.address.url + path
        try:
            with self._opened().stream("POST", url, content=body, headers=headers, timeout=seconds) as answer:
                good = answer.is_success
                data = self._read(answer, ends, self._most_bytes if good else _MOST_BYTES_OF_A_REFUSAL, good)
        except httpx2.TimeoutException as error:
            raise Passing(f"no answer within {seconds:.3g} s", hint=self._hint("timeout")) from error
        except httpx2.ConnectError as error:
            raise Passing(f"{self.address.url} cannot be reached ({error})", hint=self._hint("reach")) from error
        except (httpx2.RequestError, httpx2.InvalidURL) as error:
            raise Passing(f"the answer of {self.address.host} broke off") from error
        if not good:
            self._fail(answer.status_code, answer.headers, said(data, payload, key))
        return self._json(data)

    def _warn_of_open_keys(self) -> None:
        if not (self.address.encrypted or self.address.local or self._warned):
            self._warned = True
            _LOG.warning("the key for %s travels unencrypted, as its url is not https", self.name)

    def _read(self, answer: httpx2.Response, ends: float, most: int, good: bool) -> bytes:
        chunks: list[bytes] = []
        size = 0
        for chunk in answer.iter_bytes():
            chunks.append(chunk)
            size += len(chunk)
            if size > most:
                if not good:
                    break
                raise Unavailable(f"{self.name} gave an answer of more than {most // 1024 // 1024} MB; it was not read")
            if time.monotonic() > ends:
                raise Passing("the answer came too slowly", hint=self._hint("timeout"))
        return b"".join(chunks)

    def _json(self, data: bytes) -> Any:
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            if data.lstrip()[:1] == b"<":
                raise Unavailable(
                    f"{self.name} answered with a web page where JSON was expected", hint=self._hint("url")
                ) from error
            raise Passing("its answer is not JSON, or only the beginning of it", hint=self._hint("url")) from error

    def _fail(self, status: int, headers: Mapping[str, str], sentence: str) -> None:
        """Raise what a status other than success means."""
        spoken = f"{status}, {sentence}" if sentence else str(status)
        if status in _ABOUT_THE_REQUEST or (status == 500 and _ABOUT_A_TEXT.search(sentence)):
            raise Refused(f"{self.name} refused the request: {spoken}", hint=self._hint("model"), status=status)
        if status in _MAY_PASS or status >= 500:
            hint = self._hint("limit") if status == 429 else ""
            raise Passing(spoken, hint=hint, retry_after=retry_after(headers), status=status)
        if status in (401, 403):
            raise Unavailable(f"{self.name} does not accept the key: {spoken}", hint=self._hint("key"), status=status)
        if 300 <= status < 400:
            raise Unavailable(f"{self.name} lives at another address: {spoken}", hint=self._hint("url"), status=status)
        raise Unavailable(f"{self.name} does not know what was asked: {spoken}", hint=self._hint("url"), status=status)

    def _hint(self, about: str) -> str:
        section, url = self._section, self.address.url
        patience = "seconds" if section == "rerank" else "timeout_seconds"
        return {
            "timeout": f"{section}.{patience} says how long it may take.",
            "reach": f"Is the service running? {section}.url says where it is.",
            "url": f"{section}.url is {url}: is that the address of the service, with its /v1 if it has one?",
            "model": f"Are {section}.model and its other settings what the service knows?",
            "key": f"Set {section}.api_key, as a text, {{ env = NAME }} or {{ path = FILE }}.",
            "limit": "The service limits how much is asked; it is asked again later.",
        }[about]


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, or a date; None when the header is missing or makes no sense."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    return max(0.0, seconds) if seconds < 1e9 else None
