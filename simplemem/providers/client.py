"""Send requests to a JSON service over HTTP, and turn each kind of failure into an error."""

from __future__ import annotations

import json
import re
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from simplemem.errors import Unavailable
from simplemem.providers.addresses import Address
from simplemem.providers.api import RequestRefused
from simplemem.providers.keys import Key
from simplemem.providers.quoting import quote_error
from simplemem.providers.retry import RetryPolicy, TransientError

if TYPE_CHECKING:
    import httpx2

_MAX_ANSWER_MB = 64  # enough for a thousand long vectors as JSON
_MAX_ERROR_BYTES = 20_000
_REFUSED = frozenset((400, 413, 422))  # statuses for which the request is at fault
_TRANSIENT = frozenset((408, 425, 429))  # statuses that may pass, besides those from 500 on
_SECONDS = re.compile(r"\d{1,8}(\.\d+)?")
# Local servers (llama.cpp, Ollama) answer this with status 500 if the model cannot read one text.
_ABOUT_A_TEXT = re.compile(
    r"too large to process|context (length|size)|unsupported value: NaN", re.IGNORECASE
)


class ServiceClient:
    """One service: its address, key, HTTP connections and retries. For any thread."""

    def __init__(
        self,
        name: str,
        address: Address,
        key: Key,
        *,
        timeout: float = 30.0,
        section: str = "embed",
        key_header: str = "Authorization",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Create a client, without connecting.

        `name` is for messages; `section` is the table of settings that their hints name. `timeout`
        limits each attempt, in seconds. `key_header` names the header with the key; `headers` are
        those that each request has beside it.
        """
        self.name = name
        self.address = address
        self.key = key
        self._key_header = key_header
        self._headers = dict(headers or {})
        self.retry_policy = RetryPolicy(name, timeout=timeout)
        self.hint = f"Check {section}.url ({address.url}), {section}.model and {section}.api_key."

    @cached_property
    def _http(self) -> httpx2.Client:
        """The HTTP client, opened at the first use.

        No proxy is used for a service on this machine, and no redirect is followed.
        """
        import httpx2  # takes 30 ms, and most vaults use no service

        headers = {
            "User-Agent": "simplemem",
            "Content-Type": "application/json",
            "Accept": "application/json",
        }
        client = httpx2.Client(
            trust_env=not self.address.is_local, follow_redirects=False, headers=headers
        )
        weakref.finalize(self, client.close)  # if nobody calls `close`
        return client

    def close(self) -> None:
        """Close the connections. A later request opens new ones."""
        client = self.__dict__.pop("_http", None)
        if client is not None:
            client.close()

    def attempt(self, path: str, payload: Mapping[str, Any], seconds: float) -> Any:
        """POST a request once to `path` below the address, and return the JSON of the answer.

        Gives up after `seconds`. Callers pass this method to `retry_policy`. Raises TransientError
        for a failure that may pass, RequestRefused if the request is at fault, and Unavailable for
        any other failure, such as a wrong key.
        """
        key = self.key.value()
        deadline = time.monotonic() + seconds
        headers = self._headers | self._key_headers(key)
        body = json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace")
        with self._translating_errors(seconds):
            stream = self._http.stream(
                "POST", self.address.url + path, content=body, headers=headers, timeout=seconds
            )
            with stream as response:
                data = self._read(response, deadline)

        if not response.is_success:
            raise self.error_for(response.status_code, response.headers, data, payload, key)
        return self._parse(data)

    def _key_headers(self, key: str | None) -> dict[str, str]:
        """Return the header with the key, {} if there is no key.

        In the standard header, the key follows the scheme of bearer tokens (RFC 6750). A header of
        a service's own has the bare key.
        """
        if key is None:
            return {}
        is_bearer_token = self._key_header == "Authorization"
        return {self._key_header: f"Bearer {key}" if is_bearer_token else key}

    @contextmanager
    def _translating_errors(self, seconds: float) -> Iterator[None]:
        """Raise TransientError in place of errors of httpx2 in a `with` block."""
        import httpx2

        try:
            yield
        except httpx2.TimeoutException as error:
            raise TransientError(f"no answer within {seconds:.3g} s") from error
        except httpx2.ConnectError as error:
            raise TransientError(
                f"{self.address.url} cannot be reached ({error})",
                hint="Check that the service is running.",
            ) from error
        except (httpx2.RequestError, httpx2.InvalidURL) as error:
            raise TransientError(
                f"the connection to {self.address.host} was interrupted"
            ) from error

    def _read(self, response: httpx2.Response, deadline: float) -> bytes:
        """Return the body of an answer; only some 20,000 bytes of it if the status is an error.

        Raises Unavailable if the body is over 64 MB, and TransientError if it is not complete by
        the deadline.
        """
        data = bytearray()
        for chunk in response.iter_bytes():
            data += chunk
            if not response.is_success and len(data) > _MAX_ERROR_BYTES:
                break
            if len(data) > _MAX_ANSWER_MB << 20:
                raise Unavailable(
                    f"{self.name} returned an answer of more than {_MAX_ANSWER_MB} MB, "
                    "which was not read"
                )
            if time.monotonic() > deadline:
                raise TransientError("the answer came too slowly")
        return bytes(data)

    def _parse(self, data: bytes) -> Any:
        """Return the JSON of an answer.

        Raises Unavailable if the answer is a web page, and TransientError if it is anything else
        that is not JSON.
        """
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            if is_web_page(data):
                raise self.unexpected_page(self.hint) from error
            raise TransientError(
                "its answer is not JSON or is incomplete", hint=self.hint
            ) from error

    def unexpected_page(self, hint: str = "") -> Unavailable:
        """Return (not raise) the error for an answer that is a web page."""
        return Unavailable(
            f"{self.name} answered with a web page where JSON was expected", hint=hint
        )

    def error_for(
        self,
        status: int,
        headers: Mapping[str, str],
        body: bytes,
        payload: Mapping[str, Any],
        key: str | None,
    ) -> Unavailable:
        """Return (not raise) the error for an HTTP status that is no success.

        It is a TransientError for a status that may pass, with the seconds of `Retry-After` as its
        detail "retry_after"; a RequestRefused if the request is at fault; otherwise an Unavailable.
        Its message quotes the one in `body`, but neither the key nor a text of the request.
        """
        sentence = quote_error(body, payload, key)
        reason = f"{status}, {sentence}" if sentence else str(status)

        is_about_a_text = status == 500 and _ABOUT_A_TEXT.search(sentence)
        if status in _REFUSED or is_about_a_text:
            return RequestRefused(
                f"{self.name} refused the request: {reason}", hint=self.hint, status=status
            )
        if status in _TRANSIENT or status >= 500:
            error = TransientError(reason, status=status)
            retry_after = _retry_after(headers)
            if retry_after is not None:
                error.details["retry_after"] = retry_after
            return error

        problem = "does not know the model or the path"
        if status in (401, 403):
            problem = "does not accept the key"
        elif 300 <= status < 400:
            problem = "has moved to another address"
        return Unavailable(f"{self.name} {problem}: {reason}", hint=self.hint, status=status)


def is_web_page(data: bytes) -> bool:
    """Return whether an answer begins with `<` after white space: it is HTML or XML, not JSON."""
    return data.lstrip().startswith(b"<")


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds in the header `Retry-After`; None without the header, or for a date."""
    by_name = {name.lower(): value for name, value in headers.items()}
    value = by_name.get("retry-after", "")
    if _SECONDS.fullmatch(value) is None:
        return None
    return float(value)
