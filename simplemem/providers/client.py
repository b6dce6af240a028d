"""A JSON service over HTTP: its address, its key, its attempts, when it is left alone, and a sentence for each way to
fail. A key is read when it is used and shown nowhere; a sentence of a service that repeats what it was sent neither."""

from __future__ import annotations

import ipaddress
import json
import logging
import os
import random
import re
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from concurrent import futures
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from urllib.parse import urlsplit

from simplemem.errors import Invalid, SimplememError, Unavailable

if TYPE_CHECKING:
    import httpx2
    from pydantic import SecretStr

T = TypeVar("T")
Stopped = Callable[[], bool]
_LOG = logging.getLogger(__name__)
_LOOK_SECONDS = 0.1  # how soon a wish to stop is heard
_LONGEST_WAIT = (
    60.0  # between two attempts; a service that wants more is asked again by a later call
)
_FAILURES = 3  # in a row; then the service is left alone
_REST, _LONGEST_REST = 30.0, 600.0
_MOST_MB = 64  # of an answer: a thousand long vectors, written out
_MOST_BYTES_OF_A_REFUSAL = 20_000
_MOST_BYTES_OF_A_KEY = 4_096
_PATH_STARTS = (
    "/",
    "./",
    "~/",
    ".\\",
    "~\\",
)  # a key that begins so is a path, as in files of the original simplemem
KeySource: TypeAlias = "SecretStr | Mapping[str, str] | None"  # as the settings have checked it
VOYAGE = "https://api.voyageai.com/v1"
_EXAMPLE = "Give a URL such as http://localhost:1234/v1 or https://api.openai.com/v1."
# What local servers say with a 500 when they are well, and the model cannot read this text (llama.cpp, Ollama).
_ABOUT_A_TEXT = re.compile(
    r"too large to process|context (length|size)|unsupported value: NaN", re.IGNORECASE
)
_MOST_CHARACTERS, _MOST_READ = 200, 500
_SAID_IN = ("error", "message", "msg", "detail", "errors", "title")
_WINDOW = 12  # a run of so many characters that also stands in the request was taken from it
_KEY_SHAPED = re.compile(
    r"\b(?:sk|pa|pk|rk|hf|key|Bearer)[-_ ][\w*.-]{6,}|\b[A-Za-z0-9_-]{40,}", re.ASCII
)


class Refused(Unavailable):
    """The service is well, and will not take this one request: a text that is too long, a value it does not know."""


class Passing(Unavailable):
    """An attempt failed in a way that may pass. `retry_after`: seconds for which the service asked to be left alone."""


class _NotWanted(Unavailable):
    """Who asked does not want the answer any more, which says nothing about the service."""


@dataclass
class Breaker:
    """A service that failed several times in a row is left alone for a while, each time twice as long."""

    failures: int = 0
    rests_until: float = 0.0

    def failed(self, asked_for: float | None) -> None:
        """`asked_for` is how long the service wants to be left alone: then it is, at once."""
        self.failures = max(self.failures + 1, _FAILURES if asked_for else 0)
        if self.failures >= _FAILURES:
            doubled = _REST * 2 ** min(self.failures - _FAILURES, 10)
            self.rests_until = time.monotonic() + min(_LONGEST_REST, asked_for or doubled)


class Patience:
    """Attempts with exponential backoff and full jitter, from any thread. Calls with a deadline have a breaker of their
    own: a service too slow for them may be quick enough for the background."""

    def __init__(
        self, name: str, *, timeout: float = 30.0, attempts: int = 4, first_wait: float = 0.5
    ) -> None:
        self.name = name
        self._timeout, self._attempts, self._first_wait = timeout, attempts, first_wait
        self._calm, self._hurried = Breaker(), Breaker()
        self._last = ""

    def call(
        self,
        attempt: Callable[[float], T],
        deadline: float | None = None,
        stopped: Stopped = lambda: False,
    ) -> T:
        """What `attempt` gives, which is told its seconds; again after `Passing`. `deadline` is a `time.monotonic()`."""
        breaker = self._calm if deadline is None else self._hurried
        rests = max(breaker.rests_until, self._calm.rests_until) - time.monotonic()
        if rests > 0:
            said, hint = (
                f"{self._last} (next attempt in {max(1, round(rests))} s)",
                "simplemem tries again by itself.",
            )
            raise Unavailable(said, hint=hint, retry_after=round(rests, 1))
        attempts, ends = (
            (self._attempts, float("inf"))
            if deadline is None
            else (min(2, self._attempts), deadline)
        )
        failures, wait = 0, 0.0
        while True:
            try:
                self._wait(futures.Future(), wait, stopped)
                answer = self._attempted(
                    attempt, min(self._timeout, ends - time.monotonic()), stopped
                )
                breaker.failures = 0
                return answer
            except (Refused, _NotWanted):
                raise
            except SimplememError as failure:
                # Full jitter: many who failed together do not return together.
                jittered = random.uniform(0, min(_LONGEST_WAIT, self._first_wait * 2**failures))  # noqa: S311
                failures, wait = (
                    failures + 1,
                    max(jittered, failure.details.get("retry_after") or 0.0),
                )
                may_pass = isinstance(failure, Passing)
                if (
                    may_pass
                    and failures < attempts
                    and wait <= _LONGEST_WAIT
                    and time.monotonic() + wait < ends
                ):
                    _LOG.info("%s: %s; trying again in %.1f s", self.name, failure.message, wait)
                    continue
                self._last = (
                    f"{self.name} does not answer: {failure.message}"
                    if may_pass
                    else failure.message
                )
                breaker.failed(failure.details.get("retry_after"))
                raise Unavailable(self._last, hint=failure.hint, **failure.details) from failure

    def _attempted(self, attempt: Callable[[float], T], seconds: float, stopped: Stopped) -> T:
        """One attempt in a thread that can be left behind, waited for until its time is over."""
        answer = futures.Future[T]()

        def run() -> None:
            try:
                answer.set_result(attempt(seconds))
            except BaseException as error:  # noqa: BLE001 - raised again in the thread that asked
                answer.set_exception(error)

        if seconds > 0:
            threading.Thread(target=run, name="simplemem-service", daemon=True).start()
        if not self._wait(answer, seconds, stopped):
            raise Passing(f"no answer within {max(0.0, seconds):.3g} s")
        return answer.result()

    def _wait(self, answer: futures.Future[Any], seconds: float, stopped: Stopped) -> bool:
        """Whether it is there before so many seconds are over. Who asked may stop waiting."""
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0 and not futures.wait(
            [answer], min(_LOOK_SECONDS, left)
        ).done:
            if stopped():
                raise _NotWanted(f"the request to {self.name} was cancelled")
        return answer.done()


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
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError as error:
        raise Invalid(f"the setting {setting} is not a URL", hint=_EXAMPLE) from error
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise Invalid(
            f"the setting {setting} must be an http or https URL without a query or fragment",
            hint=_EXAMPLE,
        )
    if parts.username is not None or parts.password is not None:
        raise Invalid(
            f"the setting {setting} contains a user name or a password",
            hint="Put the key into its own setting.",
        )
    host = parts.hostname if ":" not in parts.hostname else f"[{parts.hostname}]"
    try:
        local = ipaddress.ip_address(parts.hostname).is_loopback
    except ValueError:  # a name
        local = host == "localhost"
    return Address(f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}", f"{host}{port}", local)


class Key:
    """A key as text, or by the environment variable or file it lies in; `otherwise` is read when nothing is set."""

    def __init__(
        self, source: KeySource, *, setting: str = "embed.api_key", otherwise: str = ""
    ) -> None:
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
        hint = f"Put only the key there, or change the setting {self.setting}, which says where the key is."
        if self._env:
            where, found = (
                f"the environment variable {self._env}",
                os.environ.get(self._env, "").strip(),
            )
        elif self._path:
            where, path = f"the file {self._path}", Path(self._path).expanduser()
            try:
                with path.open("rb") as file:
                    found = file.read(_MOST_BYTES_OF_A_KEY).decode("utf-8-sig", "replace").strip()
            except OSError as error:
                raise Unavailable(
                    f"the key cannot be read from {path}: {error.strerror}", hint=hint
                ) from error
        elif not found:
            return None
        if not found:
            raise Unavailable(f"no key in {where}", hint=hint)
        if (
            not (found.isascii() and found.isprintable())
            or " " in found
            or len(found) >= _MOST_BYTES_OF_A_KEY
        ):
            wrong = (
                "it is too long, or contains spaces, line breaks or characters that no key contains"
            )
            raise Unavailable(f"the content of {where} is not a key: {wrong}", hint=hint)
        return found


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
    ) -> None:
        self.patience = Patience(name, timeout=timeout)
        self.name, self.address, self.key = name, address, key
        self.hint = f"Check {section}.url ({address.url}), {section}.model and {section}.api_key."

    @cached_property
    def _http(self) -> httpx2.Client:
        """Its connections, past any proxy for what is on this machine."""
        import httpx2

        headers = {
            "User-Agent": "simplemem",
            "Content-Type": "application/json",
            "Accept": "application/json",
        }
        client = httpx2.Client(
            trust_env=not self.address.local, follow_redirects=False, headers=headers
        )
        weakref.finalize(self, client.close)  # for whoever lets go of it without closing
        return client

    def close(self) -> None:
        """Let go of the connections; what is asked after it opens them anew."""
        if (client := self.__dict__.pop("_http", None)) is not None:
            client.close()

    def attempt(self, path: str, payload: Mapping[str, Any], seconds: float) -> Any:
        """The JSON of one answer, within so many seconds: what `patience` is called with."""
        import httpx2

        key, where, ends = self.key.value(), self.address.url, time.monotonic() + seconds
        headers = {"Authorization": f"Bearer {key}"} if key is not None else {}
        body, data = json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace"), bytearray()
        try:
            with self._http.stream(
                "POST", where + path, content=body, headers=headers, timeout=seconds
            ) as answer:
                for chunk in answer.iter_bytes():
                    data += chunk
                    if not answer.is_success and len(data) > _MOST_BYTES_OF_A_REFUSAL:
                        break
                    if len(data) > _MOST_MB << 20:
                        raise Unavailable(
                            f"{self.name} returned an answer of more than {_MOST_MB} MB, which was not read"
                        )
                    if time.monotonic() > ends:
                        raise Passing("the answer came too slowly")
        except httpx2.TimeoutException as error:
            raise Passing(f"no answer within {seconds:.3g} s") from error
        except httpx2.ConnectError as error:
            raise Passing(
                f"{where} cannot be reached ({error})", hint="Check that the service is running."
            ) from error
        except (httpx2.RequestError, httpx2.InvalidURL) as error:
            raise Passing(f"the connection to {self.address.host} was interrupted") from error
        if not answer.is_success:
            raise self.failure_of(answer.status_code, answer.headers, bytes(data), payload, key)
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            if data.lstrip()[:1] == b"<":
                message = f"{self.name} answered with a web page where JSON was expected"
                raise Unavailable(message, hint=self.hint) from error
            raise Passing("its answer is not JSON or is incomplete", hint=self.hint) from error

    def failure_of(
        self,
        status: int,
        headers: Mapping[str, str],
        body: bytes,
        sent: Mapping[str, Any],
        key: str | None,
    ) -> Unavailable:
        """What a status other than success means, the same for every protocol and package."""
        sentence = quoted(body, sent, key)
        spoken = f"{status}, {sentence}" if sentence else str(status)
        if status in (400, 413, 422) or (status == 500 and _ABOUT_A_TEXT.search(sentence)):
            return Refused(
                f"{self.name} refused the request: {spoken}", hint=self.hint, status=status
            )
        if status in (408, 425, 429) or status >= 500:
            told = {name.lower(): value for name, value in headers.items()}.get("retry-after", "")
            passing = Passing(spoken, status=status)
            if re.fullmatch(r"\d{1,8}(\.\d+)?", told):  # seconds; a date is not read
                passing.details["retry_after"] = float(told)
            return passing
        what = (
            "has moved to another address"
            if 300 <= status < 400
            else "does not know the model or the path"
        )
        what = "does not accept the key" if status in (401, 403) else what
        return Unavailable(f"{self.name} {what}: {spoken}", hint=self.hint, status=status)


def client_of(provider: str, name: str, address: Address, key: Key, **more: Any) -> ServiceClient:
    """The client of a service: Voyage's has its own package."""
    if provider == "voyage":
        from simplemem.providers.voyage import VoyageClient

        return VoyageClient(name, address, key, **more)
    return ServiceClient(name, address, key, **more)


def quoted(body: bytes, sent: Mapping[str, Any], key: str | None) -> str:
    """The sentence in an answer that was no success: one short line, without the key and texts of the request."""
    text = body[:_MOST_BYTES_OF_A_REFUSAL].decode("utf-8", "replace")
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        message = "" if text.lstrip()[:1] == "<" else text  # not a page for a browser
    # {"error": {"message"}}, {"error": "…"}, {"message"}, {"detail": "…" or [{"msg"}]}
    for _ in range(4):
        if isinstance(message, dict):
            message = next((message[name] for name in _SAID_IN if message.get(name)), "")
        elif isinstance(message, list):
            message = message[0] if message else ""
    message = message if isinstance(message, str) else ""
    if key:  # before anything is cut off: half a key is no longer seen to be one
        message = message.replace(key, "…")
    sentence = " ".join(
        "".join(c if c.isprintable() else " " for c in message[:_MOST_READ]).split()
    )
    for value in (sent.get(name) or () for name in ("input", "query", "texts", "documents")):
        for each in [value] if isinstance(value, str) else value:
            told = " ".join(str(each).split())
            size = min(_WINDOW, len(told))
            if size > 2 and any(
                sentence[at : at + size] in told for at in range(len(sentence) - size + 1)
            ):
                return ""
    shown = _KEY_SHAPED.sub("…", sentence)
    return shown if len(shown) <= _MOST_CHARACTERS else shown[: _MOST_CHARACTERS - 1].rstrip() + "…"
