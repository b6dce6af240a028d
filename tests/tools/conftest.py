"""Tools called as a server calls them, without a transport."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from simplemem.profiles.registry import built_in_profiles, choose_tools
from simplemem.server.calls import ToolCall, answer_call
from simplemem.server.executor import StoreExecutor
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore


@dataclass(frozen=True)
class Answer:
    """The answer to a tool call: its text, and its structured content, or the error."""

    text: str
    data: Any
    failed: bool

    @property
    def code(self) -> str:
        """The code of the error, or "" if the call succeeded."""
        return self.data["error"]["code"] if self.failed else ""


class Asking:
    """The tools of a profile on a vault. A call checks a structured answer against its schema."""

    def __init__(
        self, vault: Path, profile: str = "default", *toolsets: str, **settings: Any
    ) -> None:
        self.vault = vault
        self._tools = {
            tool.name: tool
            for tool in choose_tools(built_in_profiles()[profile], ",".join(toolsets))
        }
        self._executor = StoreExecutor(
            lambda: EnhancedStore(vault, Settings.model_validate(settings))
        )
        self._executor.tools = self._tools.values()

    @property
    def store(self) -> EnhancedStore:
        """The store that the tools use."""
        return self._executor.store()

    def __call__(self, tool_name: str, /, **arguments: Any) -> Answer:
        """Call a tool. Fails the test if the answer does not match the schema of the tool."""
        tool = self._tools[tool_name]
        result = answer_call(tool, self._executor, ToolCall(arguments, "test 1"))
        if tool.output and result.structured_content is not None:
            # test_tool_list.py checks that the schema is valid, which takes longer than most calls.
            schema = tool.listing()["outputSchema"]
            jsonschema.Draft202012Validator(schema).validate(result.structured_content)
        [part] = result.content
        return Answer(part.text, result.structured_content, bool(result.is_error))

    def json(self, tool_name: str, /, **arguments: Any) -> Any:
        """Call a tool whose answer is JSON text, and return its value.

        Fails the test if the call failed.
        """
        answer = self(tool_name, **arguments)
        assert not answer.failed, answer.text
        return json.loads(answer.text)

    def tools(self) -> list[str]:
        """Return the names of the tools."""
        return list(self._tools)

    def in_step(self) -> None:
        """Index what was changed by hand, with vectors."""
        self.store.sync()

    def close(self) -> None:
        """Close the store."""
        self._executor.close(writing=1, closing=5)


@pytest.fixture
def asking_with(vault: Path) -> Iterator[Callable[..., Asking]]:
    """Return a function that opens the tools of a profile on the vault, with settings."""
    opened: list[Asking] = []

    def open_tools(profile: str = "default", *toolsets: str, **settings: Any) -> Asking:
        asking = Asking(vault, profile, *toolsets, **settings)
        opened.append(asking)
        return asking

    yield open_tools
    for asking in opened:
        asking.close()


@pytest.fixture
def ask(asking_with: Callable[..., Asking]) -> Asking:
    """Return the twelve tools of the default profile."""
    return asking_with()


@pytest.fixture
def ask_original(asking_with: Callable[..., Asking]) -> Asking:
    """Return the eight tools of the profile `simplemem`."""
    return asking_with("simplemem")


@pytest.fixture
def contract(asking_with: Callable[..., Asking]) -> Callable[..., Asking]:
    """Return a function that opens the tools of a graph profile without vectors."""

    def open_tools(profile: str = "server-memory", **settings: Any) -> Asking:
        return asking_with(profile, **{"embed": {"provider": "none"}, **settings})

    return open_tools
