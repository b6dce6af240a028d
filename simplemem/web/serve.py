"""Serves vaults over HTTP, from the checks before the server listens to the end of the process."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import uvicorn
from starlette.routing import Route
from starlette.types import ASGIApp

from simplemem.errors import SimplememError
from simplemem.server.logs import log_to_stderr
from simplemem.server.sdk_compat import SocketServer
from simplemem.settings.model import HttpSettings
from simplemem.web import pages
from simplemem.web.address import Address, max_connections, open_socket, with_brackets
from simplemem.web.app import application
from simplemem.web.browser_sessions import BrowserSessions
from simplemem.web.certificates import load_certificate, reload_certificate
from simplemem.web.connections import Connections, Listener, PendingConnection
from simplemem.web.guard import Access, AuthMiddleware
from simplemem.web.http_connection import HTTPConnection, uvicorn_limits
from simplemem.web.limits import GuessLimiter
from simplemem.web.metrics import Metrics
from simplemem.web.rendering import Renderer
from simplemem.web.token_use import TokenUse
from simplemem.web.tokens import Grant, Tokens, owners_token, token_folder
from simplemem.web.vault_registry import VaultRegistry
from simplemem.web.vault_view import MountedVault

if TYPE_CHECKING:
    from simplemem.web.oauth import Issuer
    from simplemem.web.standard_streams import StandardStreams

log = logging.getLogger("simplemem.web")


def serve_http(
    vaults: Sequence[MountedVault],
    address: Address,
    *,
    sse: bool,
    stateless: bool,
    log_level: str,
    streams: StandardStreams | None = None,
) -> NoReturn:
    """Serve until a signal ends the server, and then end the process.

    With `sse`, MCP is also served in its transport of 2024. With `stateless`, MCP has no sessions.
    With `streams`, MCP is served over standard input and output, too, and the server ends when that
    client goes. All logs go to standard error from then on. Raises Invalid or Unavailable, before
    anything is served, if the options are wrong, the address is taken or the owner's token cannot
    be read. Never returns: the exit code is 0, or 1 if the server failed, which is logged.
    """
    address.check()
    listening = open_socket(address)
    address = replace(address, port=listening.getsockname()[1])

    owner_token, token_file = owners_token(os.environ)
    tokens = Tokens(token_folder(os.environ), owner_token)
    with suppress(SimplememError):  # it is logged, and the owner's token is valid all the same
        tokens.all()
    issuer = _create_issuer(vaults[0].settings.http)

    flush_logs = log_to_stderr(log_level)
    _silence_refusals()

    registry = VaultRegistry(
        {vault.name: vault for vault in vaults}, stateless=stateless, warm_up=pages.warm_up
    )
    token_use = TokenUse(tokens.path.parent)
    app = _create_app(registry, address, tokens, token_use, issuer, sse=sse)
    config = _create_config(app, address)

    def announce() -> None:
        _announce(registry, address, listening, token_file)

    server = _create_server(config, address, announce)
    exit_code = _run_to_end(server, listening, registry, address, streams)
    registry.close()
    token_use.write()
    if exit_code == 0:
        log.info("the server has stopped")
    flush_logs()
    # Threads that read, watch or embed are not waited for: they have nothing that could be lost.
    os._exit(exit_code)


# --- the parts of a server


def _create_issuer(settings: HttpSettings) -> Issuer | None:
    """Return the authorization server that the settings name, or None if they name none.

    Raises Invalid if only some of its settings are set.
    """
    if not any(settings.model_dump().values()):
        return None

    from simplemem.web.oauth import Issuer

    return Issuer(settings)


def _create_app(
    registry: VaultRegistry,
    address: Address,
    tokens: Tokens,
    token_use: TokenUse,
    issuer: Issuer | None,
    *,
    sse: bool,
) -> ASGIApp:
    """Return the application: the routes of all vaults, behind the checks of every request.

    Tokens are those of the server and, if there is an issuer, those of the authorization server.
    `token_use` records when they are used.
    """
    sessions = BrowserSessions(tokens, address.port, is_secure=address.is_https)
    guesses = GuessLimiter()

    async def authenticate(token: str) -> Grant | None:
        grant = tokens.grant(token)
        if grant is None and issuer is not None:
            grant = await issuer.grant(token)
        return grant

    challenge = "Bearer"
    more_routes: list[Route] = []
    if issuer is not None:
        challenge = issuer.challenge
        more_routes.extend(issuer.routes)

    services = pages.PageServices(
        sessions=sessions,
        guesses=guesses,
        renderer=Renderer(),
        tokens=tokens,
        token_use=token_use,
    )
    more_routes.extend(pages.server_routes(registry, services))
    for vault in registry.vaults.values():
        more_routes.extend(pages.routes(registry, vault, services))

    access = Access(
        authenticate=authenticate,
        is_valid=tokens.is_valid,
        find_session=sessions.grant,
        cookie_name=sessions.cookie_name,
        host_names=address.host_names,
        guesses=guesses,
        challenge=challenge,
        has_tls=bool(address.certificate),
        on_use=token_use.record,
    )

    def protect(app: ASGIApp, metrics: Metrics) -> AuthMiddleware:
        return AuthMiddleware(app, access, metrics)

    return application(
        registry,
        protect,
        sse=sse,
        more=more_routes,
        show_unknown_path=pages.show_unknown_path,
    )


def _create_config(app: ASGIApp, address: Address) -> uvicorn.Config:
    """Return uvicorn's configuration. Raises Invalid if the certificate cannot be loaded."""
    config = uvicorn.Config(
        app,
        http=HTTPConnection,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(address.proxies()),
        forwarded_allow_ips=address.proxies(),
        ssl_certfile=address.certificate,
        ssl_keyfile=address.key,
        **uvicorn_limits(),
    )
    if address.certificate is not None:
        load_certificate(address.certificate, address.key, config.load)
    return config


def _create_server(
    config: uvicorn.Config, address: Address, on_started: Callable[[], None]
) -> SocketServer:
    """Return the server, whose listeners limit connections.

    It calls `on_started` once, when it accepts connections.
    """
    connections = Connections(max_connections(), address.is_proxy)

    def create_listener(server: SocketServer, listening: socket.socket) -> Listener:
        def create_protocol(pending: PendingConnection, client: str) -> HTTPConnection:
            state = server.server_state
            return HTTPConnection(
                config, state, server.lifespan.state, connections, pending, client
            )

        return Listener(listening, connections, create_protocol, config.ssl)

    return SocketServer(config, create_listener, on_started)


def _announce(
    registry: VaultRegistry, address: Address, listening: socket.socket, token_file: Path | None
) -> None:
    """Print to stderr where the server listens, and the file of the owner's token if it has one."""
    scheme = "http"
    if address.certificate:
        scheme = "https"
    host, port = listening.getsockname()[:2]
    folders = ", ".join(str(vault.root) for vault in registry.vaults.values())
    url = f"{scheme}://{with_brackets(host)}:{port}"
    print(f"simplemem serves {folders} at {url}", file=sys.stderr, flush=True)

    if token_file is not None:
        print(
            f"The owner's token is in {token_file}. Everybody else gets a token of their own with"
            " `simplemem token new NAME`. Press Ctrl-C to stop.",
            file=sys.stderr,
            flush=True,
        )


def _silence_refusals() -> None:
    """Log nothing about requests that uvicorn or the SDK refuses: any client could fill the log."""
    for name in ("uvicorn.error", "mcp.server"):
        logging.getLogger(name).setLevel(logging.ERROR)


# --- while it runs


def _run_to_end(
    server: SocketServer,
    listening: socket.socket,
    registry: VaultRegistry,
    address: Address,
    streams: StandardStreams | None,
) -> int:
    """Run a server to its end, and return the exit code of the process.

    It is 0, or 1 after an error, which is logged. Raises nothing.
    """
    try:
        asyncio.run(_run(server, listening, registry, address, streams))
    except KeyboardInterrupt:
        return 0
    except BaseException:
        log.exception("the server failed")
        return 1
    return 0


async def _run(
    server: SocketServer,
    listening: socket.socket,
    registry: VaultRegistry,
    address: Address,
    streams: StandardStreams | None,
) -> None:
    """Serve until a signal ends the server, or the client of the standard streams has gone.

    SIGHUP reloads the settings and the certificate. With standard streams it ends the server, as it
    ends a server of standard streams alone. Tokens need no signal: the server notices each change
    of their file.
    """
    reloads: set[asyncio.Task[None]] = set()

    def reload() -> None:
        if server.config.ssl is not None and address.certificate is not None:
            reload_certificate(server.config.ssl, address.certificate, address.key)
        task = asyncio.ensure_future(registry.reload_settings())
        reloads.add(task)
        task.add_done_callback(reloads.discard)

    def end() -> None:
        server.should_exit = True

    on_hangup = reload
    if streams is not None:
        on_hangup = end
    if hasattr(signal, "SIGHUP"):
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, on_hangup)

    if streams is None:
        await server.serve([listening])
        return

    serving_streams = asyncio.ensure_future(_serve_streams(streams, registry, end))
    await server.serve([listening])
    serving_streams.cancel()


async def _serve_streams(
    streams: StandardStreams, registry: VaultRegistry, end: Callable[[], None]
) -> None:
    """Serve MCP over standard streams. Call `end` when the client has gone, or after an error.

    Logs the error. Does not call `end` if there was no client.
    """
    try:
        had_client = await streams.serve(registry)
    except Exception:
        log.exception("serving standard streams failed")
        end()
        return

    if had_client:
        end()
