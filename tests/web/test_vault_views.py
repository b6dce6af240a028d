"""Views of parts of vaults: how many there are, who shares one, and when they are closed."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from waiting import eventually

from simplemem.profiles.registry import built_in_profiles, choose_tools
from simplemem.server.executor import StoreExecutor
from simplemem.settings.loading import load_settings
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore, open_store
from simplemem.web import vault_registry, vault_view
from simplemem.web.tokens import Grant, Tokens
from simplemem.web.vault_registry import VaultRegistry
from simplemem.web.vault_view import MountedVault
from tests.web.conftest import Served


def token_of(server: Served, name: str, **bound: object) -> str:
    grant = Grant(name, ("read", "write"), **bound)  # type: ignore[arg-type]
    return Tokens(server.config / "simplemem").new(grant)


def open_indexes(server: Served) -> set[str]:
    """The index files that a server has open."""
    folder = Path(f"/proc/{server.process.pid}/fd")
    found = set()
    for descriptor in os.listdir(folder):
        try:
            path = os.readlink(folder / descriptor)
        except OSError:
            continue
        if path.endswith(".db"):
            found.add(Path(path).name)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="counts in /proc")
def test_many_users_hold_few_indexes_open_and_each_sees_their_own(
    serve: Callable[..., Served],
) -> None:
    server = serve(env={"SIMPLEMEM_EMBED_PROVIDER": "none"})
    users = {
        f"user{number}": token_of(server, f"t{number}", user=f"user{number}")
        for number in range(24)
    }
    for _ in range(2):
        for user, bearer in users.items():
            memory = {"content": f"My name is {user}.", "user_id": user}
            assert server.api("POST", "/memory", memory, token=bearer).status == 202
            assert server.api("GET", "/memories", token=bearer).data["total"] == 1
    assert eventually(lambda: len(open_indexes(server)) <= 17)  # 16, and that of the whole vault
    assert server.api("GET", "/memories", token=users["user0"]).data["total"] == 1


@pytest.mark.skipif(sys.platform != "linux", reason="counts in /proc")
def test_tokens_that_see_the_same_share_a_view(serve: Callable[..., Served]) -> None:
    server = serve(env={"SIMPLEMEM_EMBED_PROVIDER": "none"})
    for name in ("a/1", "a/c/2", "b/3", "d/4"):
        assert server.api("PUT", f"/memories/{name}", {"content": "x"}).status == 201
    for number, folders in enumerate((("a", "b"), ("b", "a"), ("b", "a/c", "a"), ("a", "a", "b"))):
        bearer = token_of(server, f"t{number}", folders=folders)
        assert eventually(
            lambda bearer=bearer: server.api("GET", "/memories", token=bearer).data["total"] == 3
        )
    assert len(open_indexes(server)) == 2


def test_a_view_that_nobody_uses_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vault_view, "_IDLE_SECONDS", 0.1)
    monkeypatch.setattr(vault_registry, "_SECONDS_BETWEEN_CHECKS", 0.05)
    settings = load_settings({"embed.provider": "none"}, vault=tmp_path)
    face = built_in_profiles()["default"]
    opened: list[EnhancedStore] = []
    closed: list[EnhancedStore] = []

    def opening(settings: Settings) -> EnhancedStore:
        store = open_store(tmp_path, settings=settings)
        opened.append(store)
        close = store.close
        monkeypatch.setattr(store, "close", lambda: (closed.append(store), close()))
        return store

    vault = MountedVault(
        "", tmp_path, face, choose_tools(face, ""), settings, opening, lambda: settings
    )

    async def body() -> None:
        registry = VaultRegistry({"": vault})
        async with registry.running():
            grant = Grant("ada", folders=("ada",))
            view = await registry.view("", grant)
            assert not view.executor.has_store
            view.begin_request()
            await view.executor.run(lambda: view.executor.store().tags())
            await asyncio.sleep(0.5)
            assert (
                view in registry.views() and view.executor.has_store
            )  # as long as a request is in progress
            view.end_request()
            while view in registry.views():
                await asyncio.sleep(0.05)
            assert [other.only for other in registry.views()] == [()]  # the whole vault stays
            again = await registry.view("", grant)
            assert again is not view
            await again.executor.run(lambda: again.executor.store().tags())
        registry.close()
        assert len(opened) == 3
        # Also the store of the view that was still ending.
        assert {id(store) for store in closed} == {id(store) for store in opened}

    asyncio.run(asyncio.wait_for(body(), 60))


def test_a_store_that_rested_opens_again_and_its_listeners_still_hear(vault: Path) -> None:
    opened: list[EnhancedStore] = []

    def opening() -> EnhancedStore:
        opened.append(EnhancedStore(vault))
        return opened[-1]

    async def body() -> None:
        door = StoreExecutor(opening)
        heard: list[frozenset[str]] = []
        await door.run(partial(door.on_change, heard.append))
        await door.run(lambda: door.store().create("one", "first"), writes=True)
        await door.rest()
        assert not door.has_store
        await asyncio.gather(
            *(door.run(lambda: door.store().read("one").content) for _ in range(5))
        )
        assert len(opened) == 2
        await door.run(lambda: door.store().create("two", "second"), writes=True)
        while not any("two" in names for names in heard):
            await asyncio.sleep(0.01)

        blocked = asyncio.Event()
        loop = asyncio.get_running_loop()

        def work() -> int:
            loop.call_soon_threadsafe(blocked.set)
            return len(door.store().list().items)

        working = asyncio.create_task(door.run(work))
        await blocked.wait()
        await door.rest()
        assert await working == 2  # nothing is closed under a call
        await asyncio.to_thread(door.close, writing=1, closing=5)

    asyncio.run(asyncio.wait_for(body(), 60))
