"""A database that is away, goes away, and comes back: what is asked says so, what is written is done or not begun."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from bare_client import Bare
from postgres import Relay, Server, differences_from_rebuilt, needs_postgres, relayed, served
from waiting import PATIENCE, eventually

from simplemem.errors import Unavailable
from simplemem.features.graph.service import graph_of
from simplemem.features.graph.values import Entity, Relation
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

pytestmark = needs_postgres
CUTS = int(os.environ.get("CUTS", "10"))  # of the connection in each change


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    with served() as server:
        yield server


@pytest.fixture
def server(running: Server) -> Iterator[Server]:
    """It runs before each test, whatever the last one did."""
    if running.process is None:
        running.start()
    yield running


def opened(root: Path, url: str) -> EnhancedStore:
    settings = {
        "index": {"engine": url},
        "embed": {"provider": "none"},
        "write": {"durability": "fast"},
    }
    return EnhancedStore(root, Settings.model_validate(settings))


def found(store: EnhancedStore, question: str) -> list[str]:
    return sorted(hit.name for hit in store.search(question).hits)


def texts(root: Path) -> dict[str, bytes]:
    """The notes there are, without what lies in the trash."""
    return {
        str(file): file.read_bytes()
        for file in root.glob("**/*.md")
        if ".simplemem" not in file.parts
    }


def test_a_store_opens_without_it_and_answers_once_it_is_there(vault: Path, server: Server) -> None:
    (vault / "pear.md").write_text("A pear, and a [[plum]].\n")
    server.stop()
    with opened(vault, server.url) as store:
        for ask in (
            lambda: store.search("pear"),
            lambda: store.create("new", "plum"),
            lambda: store.delete("pear"),
        ):
            with pytest.raises(Unavailable, match="does not answer") as refused:
                ask()
            assert "The notes are safe" in refused.value.hint
        assert texts(vault) == {str(vault / "pear.md"): b"A pear, and a [[plum]].\n"}
        (vault / "by hand.md").write_text("A pear by hand.\n")
        server.start()
        store.sync()
        assert found(store, "pear") == ["by hand", "pear"]


def test_what_is_kept_up_to_date_follows_by_itself_when_it_comes_back(
    vault: Path, server: Server
) -> None:
    server.stop()
    with opened(vault, server.url) as store:
        store.start()
        assert store.wait_until_settled(PATIENCE)
        (vault / "meanwhile.md").write_text("A pear.\n")
        server.start()
        assert eventually(
            lambda: store.state().state == "ready" and found(store, "pear") == ["meanwhile"]
        )
        store.create("made", "A pear.")
        server.kill()
        (vault / "again.md").write_text("A pear.\n")
        with pytest.raises(Unavailable):
            store.search("pear")
        server.start()
        assert eventually(lambda: found(store, "pear") == ["again", "made", "meanwhile"])


@pytest.mark.parametrize("end", [Server.stop, Server.kill])
def test_a_restart_between_two_questions_is_not_noticed(
    vault: Path, server: Server, end: Callable[[Server], None]
) -> None:
    with opened(vault, server.url) as store:
        store.create("n", "A pear.")
        end(server)
        server.start()
        assert found(store, "pear") == ["n"]
        store.update("n", append="And a plum.")
        assert found(store, "plum") == ["n"]


def test_a_server_lists_its_tools_says_that_it_is_away_and_goes_on_when_it_is_back(
    vault: Path, server: Server
) -> None:
    (vault / "pear.md").write_text("A pear.\n")
    server.stop()
    with Bare(vault, env={"SIMPLEMEM_INDEX_ENGINE": server.url}) as client:
        client.initialize()
        assert "search_memories" in {
            tool["name"] for tool in client.request("tools/list")["result"]["tools"]
        }

        def ask(tool: str, **arguments: str) -> dict[str, object]:
            return dict(
                client.request("tools/call", {"name": tool, "arguments": arguments})["result"]
            )

        refused = ask("search_memories", query="pear")
        assert (
            refused["isError"]
            and "unavailable" in str(refused)
            and "The notes are safe" in str(refused)
        )
        assert ask("create_memory", name="new", content="x")["isError"] and len(texts(vault)) == 1
        server.start()
        assert eventually(
            lambda: "'pear'" in str(ask("search_memories", query="pear").get("structuredContent"))
        )


CHANGES: dict[str, Callable[[EnhancedStore, str], object]] = {
    "create": lambda store, at: store.create(f"{at}new", f"A plum, and [[{at}a]]."),
    "replace": lambda store, at: store.create(f"{at}a", "A plum.", overwrite=True),
    "append": lambda store, at: store.update(f"{at}a", append="And a plum."),
    "tag": lambda store, at: store.change_tags(f"{at}a", {"plum": True}),
    "move": lambda store, at: store.move(f"{at}a", f"c/{at}d"),
    "delete": lambda store, at: store.delete(f"{at}a"),
    "undo": lambda store, at: store.undo(f"{at}b"),
    "redo": lambda store, at: store.undo(store.next_to_undo(f"{at}b", undone=True)),
    "restore": lambda store, at: store.restore(f"{at}gone"),
    "relation": lambda store, at: graph_of(store).create_relations(
        [Relation(f"{at}a", "knows", f"{at}b")]
    ),
}


_ALWAYS = {"create", "move", "undo"}


@pytest.mark.parametrize(
    "change",
    [pytest.param(name, marks=[] if name in _ALWAYS else pytest.mark.slow) for name in CHANGES],
)
def test_wherever_the_connection_breaks_a_change_is_made_or_was_not_begun(
    change: str, vault: Path, server: Server
) -> None:
    with relayed(server) as relay, opened(vault, relay.url) as store:
        count = carried_out(change, "whole", store, relay, 1_000_000)
        assert count > 10
        for messages in range(0, count, max(1, count // CUTS)):
            carried_out(change, f"at{messages}", store, relay, messages)
        if change == "relation":
            there = {relation.source for relation in graph_of(store).read().relations}
            assert there == {
                Path(path).stem.partition("~")[0]
                for path, text in texts(vault).items()
                if b"knows" in text
            }
        assert differences_from_rebuilt(store) == []


def carried_out(change: str, at: str, store: EnhancedStore, relay: Relay, messages: int) -> int:
    """Make a change of new notes, and cut the connection on the way. How much was said."""
    store.create(f"{at}a", "A pear.")
    store.create(f"{at}b", f"To [[{at}a]].")
    if change in ("undo", "redo"):
        store.update(f"{at}b", append="More.")
    if change == "redo":
        store.undo(f"{at}b")
    if change == "restore":
        store.create(f"{at}gone", "A quince.")
        store.delete(f"{at}gone")
    if change == "relation":
        graph_of(store).create_entities([Entity(f"{at}{name}", "person", ()) for name in "ab"])
    before, made = texts(store.root), False
    relay.cut_after(messages)
    with suppress(Unavailable):
        CHANGES[change](store, at)
        made = True
    said = messages - relay.messages_left
    relay.restore()
    is_changed = texts(store.root) != before
    assert is_changed == made, f"cut after {messages} messages"
    store.list()  # what was written is looked at again, where the index missed it
    return said
