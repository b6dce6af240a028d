"""A server on a socket, from its first word to its end: what must be true before it listens, and that it ends in time."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import os
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn

from simplemem.errors import Invalid, SimplememError, Unavailable
from simplemem.server.sdk_compat import SocketServer
from simplemem.server.serve import log_to_stderr
from simplemem.settings.model import HttpSettings
from simplemem.web import page
from simplemem.web.app import application
from simplemem.web.browser_sessions import BrowserSessions
from simplemem.web.connections import (
    MAX_CONNECTIONS,
    Connections,
    Listener,
    PendingConnection,
    client_address,
)
from simplemem.web.guard import Guard, Guesses
from simplemem.web.metrics import Metrics
from simplemem.web.rendering import Renderer
from simplemem.web.site import Served, Site
from simplemem.web.tokens import Grant, Tokens, owners_token, token_folder
from simplemem.web.wire import Wire, bounds

if TYPE_CHECKING:
    from simplemem.web.beside import Streams
    from simplemem.web.oauth import Issuer

log = logging.getLogger("simplemem.web")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens, and what it may be called."""

    host: str = "127.0.0.1"
    port: int = 8080
    allowed: tuple[str, ...] = ()
    certificate: Path | None = None
    key: Path | None = None
    behind_proxy: bool = False
    trusted_proxies: tuple[
        str, ...
    ] = ()  # addresses or networks; behind a proxy without any: this machine's

    @property
    def is_here(self) -> bool:
        """Whether only this machine can reach it."""
        with suppress(ValueError):
            return ipaddress.ip_address(self.host).is_loopback
        return self.host == "localhost"

    def names(self) -> frozenset[str]:
        """What may stand in `Host`, letter for letter."""
        own = ("127.0.0.1", "localhost", "[::1]") if self.is_here else ()
        here = {f"{host}:{self.port}" for host in own} | (
            {*own} if self.port in (80, 443) else set()
        )
        is_https = bool(self.certificate) or self.behind_proxy
        usual_port = (
            443 if is_https else 80
        )  # clients may spell it out, also where a proxy or NAT stands between
        bare = [name for name in self.allowed if ":" not in name]
        spelt = {f"{name}:{port}" for name in bare for port in (self.port, usual_port)}
        return frozenset(here | set(self.allowed) | spelt)

    def proxies(self) -> list[str]:
        """Return the addresses and networks whose `X-Forwarded-For` is believed."""
        if self.trusted_proxies:
            return [*self.trusted_proxies]
        return ["127.0.0.1", "::1"] if self.behind_proxy else []

    def is_proxy(self, address: str) -> bool:
        """Whether a connection comes from a proxy that speaks for many clients."""
        try:
            parsed = ipaddress.ip_address(client_address(address))
        except ValueError:  # the system reported no address
            return False

        return any(parsed in ipaddress.ip_network(each) for each in self.proxies())

    def check(self) -> None:
        """Invalid when others could reach it and something is missing that keeps strangers out."""
        if bool(self.certificate) != bool(self.key):
            raise Invalid("--tls-cert and --tls-key must be passed together")
        _check_is_readable(self.certificate, "--tls-cert")
        _check_is_readable(self.key, "--tls-key")
        for proxy in self.trusted_proxies:
            _check_network(proxy)
        if self.is_here:
            return
        missing = []
        if not self.certificate and not self.behind_proxy:
            missing.append("a certificate (--tls-cert and --tls-key, or --behind-proxy)")
        if not self.allowed:
            missing.append("the host name that clients use (--allow-host NAME)")
        if missing:
            raise Invalid(
                f"missing {' and '.join(missing)}: other machines can reach {self.host}",
                hint="Pass what is missing, or listen on 127.0.0.1.",
            )


def _check_network(text: str) -> None:
    """Invalid unless a text is an address or a network."""
    try:
        ipaddress.ip_network(text)
        return
    except ValueError:
        hint = "Pass an address, such as 172.30.0.2, or a network, such as 172.30.0.0/24."

    with suppress(ValueError):  # an address in a network, such as 10.0.0.1/8
        hint = f"Did you mean {ipaddress.ip_network(text, strict=False)}?"
    raise Invalid(f"--trusted-proxy {text[:60]!r} is not an address or a network", hint=hint)


def _check_is_readable(file: Path | None, option: str) -> None:
    """Invalid if a file is named and cannot be read."""
    if file is None:
        return
    try:
        with file.open("rb"):
            return
    except OSError as error:
        raise Invalid(f"cannot read {file} ({option}): {_reason(error)}") from None


def _reason(error: OSError) -> str:
    """Say in the words of the system why it refused something."""
    return error.strerror or str(error)


def _load_certificate(address: Address, load: Callable[[], object]) -> None:
    """Call `load`, which reads the certificate and its key. Raises Invalid, with the names of the files."""
    _check_is_readable(address.certificate, "--tls-cert")
    _check_is_readable(address.key, "--tls-key")
    try:
        load()
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            message = f"the key in {address.key} (--tls-key) does not belong to {address.certificate} (--tls-cert)"
            raise Invalid(message) from None
        message = f"{address.certificate} (--tls-cert) and {address.key} (--tls-key) are not a certificate and its key"
        raise Invalid(
            message, hint="Both files must be in PEM format. The key must have no password."
        ) from None
    except OSError as error:
        message = f"cannot read {address.certificate} (--tls-cert) or {address.key} (--tls-key): {_reason(error)}"
        raise Invalid(message) from None


def _reload_certificate(context: ssl.SSLContext, address: Address) -> None:
    """Read the certificate again. If that fails, log why and keep the old one."""
    certificate = address.certificate
    key = address.key
    assert certificate is not None

    def load() -> None:
        # OpenSSL drops the old key when it reads a certificate that does not match, so try elsewhere first.
        trial = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trial.load_cert_chain(
            certificate, key, password=lambda: ""
        )  # without a password it would ask the terminal
        context.load_cert_chain(certificate, key)

    try:
        _load_certificate(address, load)
    except Invalid as error:
        log.error("the certificate could not be reloaded: %s", error.message)
        return
    log.info("the certificate was reloaded")


def address_of(said: str, default_port: int) -> tuple[str, int]:
    """HOST:PORT, HOST, :PORT or PORT."""
    text = said.strip()
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        port = port.removeprefix(":")
    else:
        host, _, port = (
            text.rpartition(":")
            if ":" in text
            else ("", "", text)
            if text.isdigit()
            else (text, "", "")
        )
    if port and not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise Invalid(
            f"{said[:60]!r} is not an address to listen on",
            hint="Pass HOST:PORT, such as 127.0.0.1:8080.",
        )
    return host or "127.0.0.1", int(port) if port else default_port


def serve_http(
    vaults: Sequence[Served],
    address: Address,
    *,
    sse: bool,
    stateless: bool,
    log_level: str,
    streams: Streams | None = None,
) -> int:
    """Serve until a signal says so. The exit code.

    With `streams` MCP is served over standard input and output too, and the server ends when that
    client goes.
    """
    address.check()
    listening = _listen(address)
    address = replace(address, port=listening.getsockname()[1])
    token, where = owners_token(os.environ)
    tokens = Tokens(token_folder(os.environ), token)
    with suppress(
        SimplememError
    ):  # a file that cannot be read is reported now; the owner is let in all the same
        tokens.all()
    site = Site({served.name: served for served in vaults}, stateless=stateless)

    sessions = BrowserSessions(
        tokens, address.port, is_secure=bool(address.certificate) or address.behind_proxy
    )
    guesses = Guesses()
    renderer = Renderer()
    issuer = _issuer(vaults[0].settings.http)

    async def authenticate(sent: str) -> Grant | None:
        return tokens.grant(sent) or (await issuer.grant(sent) if issuer else None)

    def guard(app: Any, metrics: Metrics) -> Guard:
        challenge, secure = issuer.challenge if issuer else "Bearer", bool(address.certificate)
        return Guard(
            app,
            authenticate,
            tokens.holds,
            sessions.grant,
            address.names,
            metrics,
            guesses,
            cookie_name=sessions.cookie_name,
            challenge=challenge,
            secure=secure,
        )

    last_words = log_to_stderr(log_level)
    _quiet_strangers()
    more = [*(issuer.routes if issuer else ())]
    for served in vaults:
        more += page.routes(site, served, sessions, guesses, renderer)
    app = application(site, guard, sse=sse, more=more)
    config = uvicorn.Config(
        app,
        http=Wire,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(address.proxies()),
        forwarded_allow_ips=address.proxies(),
        ssl_certfile=address.certificate,
        ssl_keyfile=address.key,
        **bounds(),
    )
    if address.certificate is not None:
        _load_certificate(address, config.load)
    connections = Connections(_max_connections(), address.is_proxy)

    def create_listener(server: SocketServer, listening: socket.socket) -> Listener:
        def create_protocol(pending: PendingConnection, address: str) -> Wire:
            state = server.server_state
            return Wire(config, state, server.lifespan.state, connections, pending, address)

        return Listener(listening, connections, create_protocol, config.ssl)

    def announce() -> None:
        scheme = "https" if address.certificate else "http"
        host, port = listening.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        folders = ", ".join(str(served.root) for served in vaults)
        print(
            f"simplemem serves {folders} at {scheme}://{shown}:{port}", file=sys.stderr, flush=True
        )
        if where is not None:
            print(
                f"The owner's token is in {where}. Everybody else gets a token of their own with"
                " `simplemem token new NAME`. Press Ctrl-C to stop.",
                file=sys.stderr,
                flush=True,
            )

    code = 0
    try:
        server = SocketServer(config, create_listener, announce)
        asyncio.run(_run(server, listening, site, address, streams))
    except KeyboardInterrupt:
        pass
    except BaseException:
        log.exception("the server failed")
        code = 1
    site.close()
    if code == 0:
        log.info("the server has stopped")
    last_words()
    os._exit(
        code
    )  # threads that read, watch or embed are not waited for: they hold nothing that could be lost


async def _run(
    server: SocketServer,
    listening: socket.socket,
    site: Site,
    address: Address,
    streams: Streams | None,
) -> None:
    """Serve until the end. SIGHUP has the settings and the certificate read again; tokens are, whenever they change.

    Beside standard streams SIGHUP ends the server, as it does for a server of standard streams alone.
    """
    again: set[asyncio.Task[None]] = set()

    def read_again() -> None:
        if server.config.ssl is not None:
            _reload_certificate(server.config.ssl, address)
        again.add(task := asyncio.ensure_future(site.read_settings_again()))
        task.add_done_callback(again.discard)

    def end() -> None:
        server.should_exit = True

    if hasattr(signal, "SIGHUP"):
        asyncio.get_running_loop().add_signal_handler(
            signal.SIGHUP, read_again if streams is None else end
        )
    if streams is None:
        await server.serve([listening])
        return

    async def serve_streams(streams: Streams) -> None:
        try:
            if await streams.serve(site):
                end()
        except Exception:
            log.exception("serving standard streams failed")
            end()

    talking = asyncio.ensure_future(serve_streams(streams))
    await server.serve([listening])
    talking.cancel()


def _issuer(settings: HttpSettings) -> Issuer | None:
    if not any(settings.model_dump().values()):
        return None
    from simplemem.web.oauth import Issuer

    return Issuer(settings)


def _max_connections() -> int:
    """Return how many connections there may be, so that files can still be opened beside them."""
    if sys.platform == "win32":
        return MAX_CONNECTIONS

    import resource

    max_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        MAX_CONNECTIONS
        if max_files == resource.RLIM_INFINITY
        else min(MAX_CONNECTIONS, max_files // 2)
    )


def _quiet_strangers() -> None:
    """Leave no line for each request that uvicorn or the SDK refuses: whoever reaches the server could fill the log."""
    for name in ("uvicorn.error", "mcp.server"):
        logging.getLogger(name).setLevel(logging.ERROR)


def _listen(address: Address) -> socket.socket:
    if sys.platform != "win32":  # a connection is a file, and so is much of a vault
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = (
            4 * MAX_CONNECTIONS
            if hard == resource.RLIM_INFINITY
            else min(hard, 4 * MAX_CONNECTIONS)
        )
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
    try:
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        listening = socket.socket(
            family, socket.SOCK_STREAM, socket.IPPROTO_TCP
        )  # else asyncio lets answers wait
        if os.name == "posix":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address.host, address.port))
        listening.listen(2048)
        return listening
    except OSError as error:
        shown = f"[{address.host}]" if ":" in address.host else address.host
        why = f"cannot listen on {shown}:{address.port}: {_reason(error)}"
        if error.errno == errno.EADDRINUSE:
            why = f"the address {shown}:{address.port} is in use"
        raise Unavailable(why, hint="Choose another address with --http HOST:PORT.") from None
