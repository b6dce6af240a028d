"""The tools of profiles, called in this process as a server calls them, at a time that is set.

Nothing is replaced: arguments pass through the same checks as a client's, and the store is real.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from simplemem.note import dates
from simplemem.profiles.registry import built_in_profiles, choose_tools
from simplemem.server.calls import ToolCall, answer_call
from simplemem.server.executor import StoreExecutor
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

_CLOCK: str = "SIMPLEMEM_NOW"


class CallFailed(Exception):
    """A tool answered with an error."""


class ToolCaller:
    """The tools of some profiles on one vault. Guards the store, which the first call opens.

    If profiles have a tool of the same name, that of the first one is called.
    """

    def __init__(
        self, vault: Path, profiles: Sequence[str], settings: Mapping[str, Any] | None = None
    ) -> None:
        """Make a caller for a vault, which may be empty."""
        registered = built_in_profiles()
        self._tools = {}
        for profile in reversed(profiles):
            for tool in choose_tools(registered[profile], ""):
                self._tools[tool.name] = tool
        checked_settings = Settings.model_validate(settings or {})
        self._executor = StoreExecutor(lambda: EnhancedStore(vault, checked_settings))
        self._executor.tools = self._tools.values()

    def __call__(self, tool_name: str, /, **arguments: Any) -> Any:
        """Call a tool, and return its structured answer. Raises CallFailed if it is an error."""
        result = answer_call(self._tools[tool_name], self._executor, ToolCall(arguments, "bench 1"))
        if result.is_error:
            error = (result.structured_content or {}).get("error")
            raise CallFailed(f"{tool_name}: {error}")
        return result.structured_content

    def arguments_of(self, tool_name: str) -> frozenset[str]:
        """Return the names of the arguments that a tool takes."""
        schema = self._tools[tool_name].listing()["inputSchema"]
        return frozenset(schema["properties"])

    def index(self) -> None:
        """Index all notes, with vectors, as a server does while it waits."""
        self._executor.store().sync()

    def close(self) -> None:
        """Close the store."""
        self._executor.close(writing=1, closing=5)


@contextmanager
def open_tools(
    vault: Path, *profiles: str, settings: Mapping[str, Any] | None = None
) -> Iterator[ToolCaller]:
    """Yield the tools of some profiles on a vault, and close the store at the end."""
    caller = ToolCaller(vault, profiles, settings)
    try:
        yield caller
    finally:
        caller.close()


def set_clock(moment: datetime) -> None:
    """Set the time of this process, as `SIMPLEMEM_NOW` does. A time without a zone is UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    os.environ[_CLOCK] = moment.isoformat()
    dates._fixed.cache_clear()


@contextmanager
def own_clock() -> Iterator[None]:
    """Let the process have its old clock again at the end."""
    before = os.environ.get(_CLOCK)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_CLOCK, None)
        else:
            os.environ[_CLOCK] = before
        dates._fixed.cache_clear()
