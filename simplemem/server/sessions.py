"""Which session a request belongs to, over any transport and in both generations of the protocol."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary

from simplemem.faces.render import line
from simplemem.faces.session import Session

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    Context = ServerRequestContext[Any, Any]

_MAX_CLIENTS = 1000  # without a connection of their own
_MAX_NAME = 100


class Granted(Protocol):
    """What a token allows, and the name that the history knows its bearer by."""

    @property
    def name(self) -> str: ...
    def may(self, scope: str) -> bool: ...
    def bound(self, arguments: Mapping[str, Any] | None, takes: Mapping[str, Any]) -> Mapping[str, Any] | None: ...


def client_name(ctx: Context) -> str:
    """Return what the client calls itself, with its version, on one line; "" when it does not say."""
    params = ctx.session.client_params
    if params is None:
        return ""
    return line(f"{params.client_info.name} {params.client_info.version}", _MAX_NAME)


def grant_of(ctx: Context) -> Granted | None:
    """Return what the token of a request over the network allows; None over standard input and output."""
    grant: Granted | None = getattr(ctx.request, "scope", {}).get("grant")
    return grant


class Sessions:
    """The sessions of one server. Used in the event loop only.

    A session of the handshake protocol, and a client on standard input and output, has a channel that
    lasts: its session ends with that channel. Requests of the 2026 protocol over HTTP stand alone, so
    there a token and the name of its client stand for a session.
    """

    def __init__(self) -> None:
        self._by_channel: WeakKeyDictionary[object, Session] = WeakKeyDictionary()
        self._by_client: OrderedDict[tuple[str, str], Session] = OrderedDict()

    def of(self, ctx: Context) -> Session:
        """Return the session that a request belongs to; a new one at its first request."""
        connection = ctx.session._connection  # noqa: SLF001  (a session of the SDK is made for each request)
        if connection.has_standalone_channel:
            return self._by_channel.setdefault(connection.outbound, Session())

        grant = grant_of(ctx)
        client = (grant.name if grant is not None else "", client_name(ctx))
        session = self._by_client.setdefault(client, Session())
        self._by_client.move_to_end(client)
        while len(self._by_client) > _MAX_CLIENTS:
            self._by_client.popitem(last=False)
        return session
