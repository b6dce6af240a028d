"""Tools called as a server calls them, without a wire between."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from simplemem.config import Settings
from simplemem.faces.contract import ContractTool
from simplemem.faces.server_memory import in_dialect
from simplemem.faces.toolsets import PROFILES, choose
from simplemem.server.calls import perform
from simplemem.server.door import Door
from simplemem.server.graph_calls import perform_contract
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

    def __init__(self, vault: Path, profile: str = "default", *toolsets: str, **settings: Any) -> None:
        self.vault = vault
        self._tools = {tool.name: tool for tool in choose(PROFILES[profile], toolsets)}
        self._door = Door(vault, lambda: EnhancedStore(vault, Settings.model_validate(settings)))

    def __call__(self, tool: str, /, **arguments: Any) -> Answer:
        asked = self._tools[tool]
        result = perform(asked, self._door, arguments, "test 1")
        if asked.output:
            jsonschema.validate(result.structured_content, asked.listing()["outputSchema"])
        text = "\n".join(part.text for part in result.content)
        return Answer(text, result.structured_content, bool(result.is_error))

    def tools(self) -> list[str]:
        return list(self._tools)

    def in_step(self) -> None:
        """What was changed by hand is known, words and vectors."""
        self._door.store().sync()

    def close(self) -> None:
        self._door.close(writing=1, closing=5)


@pytest.fixture
def ask(vault: Path) -> Iterator[Asking]:
    """The twelve tools."""
    asking = Asking(vault)
    yield asking
    asking.close()


@pytest.fixture
def ask_original(vault: Path) -> Iterator[Asking]:
    """The eight tools of the original."""
    asking = Asking(vault, "simplemem")
    yield asking
    asking.close()


@pytest.fixture
def asking_with(vault: Path) -> Iterator[Callable[..., Asking]]:
    """Tools under settings of their own."""
    begun: list[Asking] = []

    def begin(profile: str = "default", *toolsets: str, **settings: Any) -> Asking:
        begun.append(Asking(vault, profile, *toolsets, **settings))
        return begun[-1]

    yield begin
    for asking in begun:
        asking.close()


class AskingContract:
    """Calls the tools of a graph profile on one vault, as the server that it stands for is called."""

    def __init__(self, vault: Path, profile: str, dialect: str = "published", **settings: Any) -> None:
        tools = in_dialect(choose(PROFILES[profile]), dialect)
        self._tools = {tool.name: tool for tool in tools if isinstance(tool, ContractTool)}
        asked = {"graph": {"dialect": dialect}, "embed": {"provider": "none"}, **settings}
        self.store = EnhancedStore(vault, Settings.model_validate(asked))
        self._door = Door(vault, lambda: self.store)

    def __call__(self, tool: str, /, **arguments: Any) -> Answer:
        asked = self._tools[tool]
        result = perform_contract(asked, self._door, arguments, "test 1")
        if asked.output and not result.is_error:
            jsonschema.validate(result.structured_content, asked.listing()["outputSchema"])
        [part] = result.content
        return Answer(part.text, result.structured_content, bool(result.is_error))

    def json(self, tool: str, /, **arguments: Any) -> Any:
        """The text of an answer, which is JSON, as what it says."""
        answer = self(tool, **arguments)
        assert not answer.failed, answer.text
        return json.loads(answer.text)

    def close(self) -> None:
        self._door.close(writing=1, closing=5)
        self.store.close()


@pytest.fixture
def contract(vault: Path) -> Iterator[Callable[..., AskingContract]]:
    """The tools of a graph profile."""
    begun: list[AskingContract] = []

    def begin(profile: str = "server-memory", dialect: str = "published", **settings: Any) -> AskingContract:
        begun.append(AskingContract(vault, profile, dialect, **settings))
        return begun[-1]

    yield begin
    for asking in begun:
        asking.close()
