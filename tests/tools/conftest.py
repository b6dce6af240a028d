"""Tools called as a server calls them, without a wire between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from simplemem.config import Settings
from simplemem.server.calls import perform
from simplemem.server.door import Door
from simplemem.store import EnhancedStore
from simplemem.tools.toolsets import PROFILES, choose


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

    def __init__(self, vault: Path, profile: str = "default", **settings: Any) -> None:
        self.vault = vault
        self._tools = {tool.name: tool for tool in choose(PROFILES[profile])}
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

    def begin(profile: str = "default", **settings: Any) -> Asking:
        begun.append(Asking(vault, profile, **settings))
        return begun[-1]

    yield begin
    for asking in begun:
        asking.close()
