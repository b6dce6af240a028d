"""Which clients use a server: their names, tokens, and when each was heard from last."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, NamedTuple

from simplemem.note.dates import now

_MAX_CLIENTS: Final = 1000


class ClientKey(NamedTuple):
    """What tells clients apart: the name of the token, and the name that the client states."""

    token_name: str  # "" over standard streams
    client_name: str  # with its version; "" before the client has introduced itself


@dataclass(frozen=True)
class ClientActivity:
    """What one client has done since the server was started."""

    key: ClientKey
    first_seen: datetime
    last_seen: datetime
    tool_calls: int = 0


class ClientLog:
    """The clients of one server since its start. Use it in the event loop.

    Guards the 1000 clients that were heard from last, the latest at the end.
    """

    def __init__(self) -> None:
        self._clients: OrderedDict[ClientKey, ClientActivity] = OrderedDict()

    def record(self, key: ClientKey, *, is_tool_call: bool) -> None:
        """Record that a client has sent a request."""
        time = now()
        activity = self._clients.pop(key, None) or ClientActivity(key, time, time)
        tool_calls = activity.tool_calls + (1 if is_tool_call else 0)
        self._clients[key] = replace(activity, last_seen=time, tool_calls=tool_calls)
        if len(self._clients) > _MAX_CLIENTS:
            self._clients.popitem(last=False)

    def latest_first(self) -> list[ClientActivity]:
        """Return the clients, the one that was heard from last first."""
        return list(reversed(self._clients.values()))
