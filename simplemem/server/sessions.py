"""The session that a request belongs to, and the token and the client that it comes from.

They are found over any transport and in both generations of the protocol.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary

from simplemem.server.sdk_compat import connection_of
from simplemem.tools.render import line
from simplemem.tools.session import Session

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    Context = ServerRequestContext[Any, Any]

_MAX_CLIENT_SESSIONS = 1000  # of clients without a lasting channel
_MAX_CLIENT_NAME = 100  # characters


class Granted(Protocol):
    """What the token of a request over HTTP allows. `simplemem.web.tokens.Grant` is one."""

    @property
    def name(self) -> str:
        """The name of the token's bearer in the history."""

    def may(self, scope: str) -> bool:
        """Return whether the token has a scope such as `write`."""

    def restrict_arguments(
        self, arguments: Mapping[str, Any] | None, user_arguments: Collection[str]
    ) -> Mapping[str, Any] | None:
        """Return the arguments of a tool, limited to the user of the token if it has one.

        `user_arguments` are those arguments of the tool that name a user. Raises Invalid if one of
        them names another user than that of the token.
        """


@dataclass(frozen=True)
class _ClientKey:
    """What identifies the client of a request that has no channel of its own."""

    token_name: str  # "" without a token
    client_name: str


def client_name(ctx: Context) -> str:
    """Return "NAME VERSION" of the client on one line; "" before it has introduced itself.

    It is cut to 100 characters.
    """
    params = ctx.session.client_params
    if params is None:
        return ""
    info = params.client_info
    return line(f"{info.name} {info.version}", _MAX_CLIENT_NAME)


def grant_of(ctx: Context) -> Granted | None:
    """Return what the token of a request over HTTP allows; None over standard streams."""
    grant: Granted | None = getattr(ctx.request, "scope", {}).get("grant")
    return grant


class Sessions:
    """The sessions of one server. Used in the event loop only.

    A client of the handshake protocol, or on standard input and output, has a channel that lasts.
    Its session belongs to that channel, and ends with it.

    A request of the 2026 protocol over HTTP has no such channel. Its session belongs to all
    requests that have the same token and the same client name. It ends when 1000 others
    (`_MAX_CLIENT_SESSIONS`) were used after it.
    """

    def __init__(self) -> None:
        self._by_channel: WeakKeyDictionary[object, Session] = WeakKeyDictionary()
        # The least recently used first.
        self._by_client: OrderedDict[_ClientKey, Session] = OrderedDict()

    def session_of(self, ctx: Context) -> Session:
        """Return the session of a request, a new one for the first request of a client."""
        connection = connection_of(ctx)
        if connection.has_standalone_channel:
            return self._by_channel.setdefault(connection.outbound, Session())

        token_name = ""
        grant = grant_of(ctx)
        if grant is not None:
            token_name = grant.name
        return self._client_session(_ClientKey(token_name, client_name(ctx)))

    def _client_session(self, client: _ClientKey) -> Session:
        """Return the session of a client without a lasting channel, a new one if it has none.

        Drops the session that was not used for longest if there are more than 1000.
        """
        session = self._by_client.setdefault(client, Session())
        self._by_client.move_to_end(client)
        while len(self._by_client) > _MAX_CLIENT_SESSIONS:
            self._by_client.popitem(last=False)
        return session
