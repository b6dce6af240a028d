"""What subscribers are told when they cannot keep up. That they are told at all is tested over the protocol."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from mcp_types import SubscribeRequestParams

from simplemem.server.door import Door
from simplemem.server.resources import CHANGES, Resources, name_in, uri_of
from simplemem.store import EnhancedStore


class Deaf:
    """Stands for a client that reads nothing until it is told to."""

    def __init__(self) -> None:
        self.session = self
        self.heard: list[str] = []
        self.reads = anyio.Event()

    async def send_resource_updated(self, uri: str) -> None:
        await self.reads.wait()
        self.heard.append(uri)


def test_a_client_that_does_not_read_is_told_each_thing_once_when_it_does(vault: Path) -> None:
    async def body() -> None:
        door = Door(lambda: EnhancedStore(vault))
        resources, client = Resources(door), Deaf()
        for uri in ("memory://a", "memory://b", CHANGES):
            await resources.subscribe(cast("Any", client), SubscribeRequestParams(uri=uri))
        for k in range(500):
            resources.note(frozenset({"a"} if k % 2 else {"b", "elsewhere"}))
            await anyio.sleep(0)
        client.reads.set()
        with anyio.fail_after(10):
            while resources._untold or len(client.heard) < 3:
                await anyio.sleep(0.01)
        assert set(client.heard) == {"memory://a", "memory://b", CHANGES}
        assert len(client.heard) <= 4  # one was on its way when the rest was noted
        for thread in threading.enumerate():
            if thread.name == "tend":
                thread.join()
        door.close(writing=1, closing=5)

    anyio.run(body)


@pytest.mark.parametrize("name", ["a", "people/Ada Lovelace", "changes", "x.md", "100 %", "a#b?c", "Ä/ö", "a.MD"])
def test_a_name_and_its_uri_are_the_same_thing(name: str) -> None:
    assert name_in(uri_of(name)) == name
    assert uri_of(name) != CHANGES
