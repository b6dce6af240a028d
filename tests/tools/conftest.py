"""Tools called as a server calls them, without a wire between."""

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
    text: str
    data: Any
    failed: bool

    @property
    def code(self) -> str:
        """The code of the failure; empty when there was none."""
        return self.data["error"]["code"] if self.failed else ""


class Asking:
    """Calls the tools of a profile on one vault; every structured answer is checked against its schema."""

    def __init__(
        self, vault: Path, profile: str = "default", *toolsets: str, **settings: Any
    ) -> None:
        self.vault = vault
        self._tools = {
            tool.name: tool
            for tool in choose_tools(built_in_profiles()[profile], ",".join(toolsets))
        }
        self._door = StoreExecutor(lambda: EnhancedStore(vault, Settings.model_validate(settings)))
        self._door.tools = self._tools.values()

    @property
    def store(self) -> EnhancedStore:
        return self._door.store()

    def __call__(self, tool: str, /, **arguments: Any) -> Answer:
        asked = self._tools[tool]
        result = answer_call(asked, self._door, ToolCall(arguments, "test 1"))
        if asked.output and result.structured_content is not None:
            # That the schema itself is one is checked in test_tool_list.py, and costs more than most calls.
            schema = asked.listing()["outputSchema"]
            jsonschema.Draft202012Validator(schema).validate(result.structured_content)
        [part] = result.content
        return Answer(part.text, result.structured_content, bool(result.is_error))

    def json(self, tool: str, /, **arguments: Any) -> Any:
        """The text of an answer, which is JSON, as what it says."""
        answer = self(tool, **arguments)
        assert not answer.failed, answer.text
        return json.loads(answer.text)

    def tools(self) -> list[str]:
        return list(self._tools)

    def in_step(self) -> None:
        """What was changed by hand is known, words and vectors."""
        self.store.sync()

    def close(self) -> None:
        self._door.close(writing=1, closing=5)


@pytest.fixture
def asking_with(vault: Path) -> Iterator[Callable[..., Asking]]:
    """Tools of any profile, under settings of their own."""
    begun: list[Asking] = []

    def begin(profile: str = "default", *toolsets: str, **settings: Any) -> Asking:
        begun.append(Asking(vault, profile, *toolsets, **settings))
        return begun[-1]

    yield begin
    for asking in begun:
        asking.close()


@pytest.fixture
def ask(asking_with: Callable[..., Asking]) -> Asking:
    """The twelve tools."""
    return asking_with()


@pytest.fixture
def ask_original(asking_with: Callable[..., Asking]) -> Asking:
    """The eight tools of the original."""
    return asking_with("simplemem")


@pytest.fixture
def contract(asking_with: Callable[..., Asking]) -> Callable[..., Asking]:
    """The tools of a graph profile."""
    return lambda profile="server-memory", **more: asking_with(
        profile, **{"embed": {"provider": "none"}, **more}
    )
