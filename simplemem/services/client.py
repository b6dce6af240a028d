"""A JSON service over HTTP: where it lives, one POST, its answer, and a plain sentence for each way it can fail."""

from __future__ import annotations

import ipaddress
import json
import logging
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from simplemem.errors import Invalid, Unavailable
from simplemem.services.failures import Passing, failure_of, hint, shown
from simplemem.services.keys import Key
from simplemem.services.patience import Patience

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
_MOST_BYTES = 64 * 1024 * 1024  # of an answer: a thousand long vectors, written out
_MOST_BYTES_OF_A_REFUSAL = 20_000
_EXAMPLE = "For example http://localhost:1234/v1 or https://api.openai.com/v1."


@dataclass(frozen=True, slots=True)
class Address:
    """A service's base URL without a slash at its end, and its host and port for people."""

    url: str
    host: str
    local: bool  # nothing sent there leaves this machine
    encrypted: bool


def address_of(url: str, setting: str = "embed.url") -> Address:
    """The address a setting names. A key inside it is refused: addresses are shown and logged, keys are not."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError as error:
        raise Invalid(f"the setting {setting} is not a URL", hint=_EXAMPLE) from error
    if parts.username is not None or parts.password is not None:
        raise Invalid(
            f"the setting {setting} holds a name or a password", hint="Put the key into the setting for the key."
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Invalid(f"the setting {setting} is not the URL of a service", hint=_EXAMPLE)
    if parts.query or parts.fragment:
        raise Invalid(f"the setting {setting} must end with a path, without ? and #", hint=_EXAMPLE)
    host = parts.hostname if ":" not in parts.hostname else f"[{parts.hostname}]"
    place = host if port is None else f"{host}:{port}"
    clean = f"{parts.scheme}://{place}{parts.path.rstrip('/')}"
    return Address(clean, place, _is_this_machine(parts.hostname), parts.scheme == "https")


def _is_this_machine(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return address.is_loopback or (mapped is not None and mapped.is_loopback)


class ServiceClient:
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
        self._http: httpx2.Client | None = None
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
            sentence = shown(data, payload, key)
            raise failure_of(self.name, self._section, self.address.url, answer.status_code, answer.headers, sentence)
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

    def _hint(self, about: str) -> str:
        return hint(about, self._section, self.address.url)
