"""Changes as server-sent events: to all who listen, from where they were, and of nothing that a token does not see."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from simplemem.errors import Unavailable
from simplemem.web.events import ChangeFeed, Listener
from tests.web.conftest import OWNER, Served, running

CHANGES = "/api/v1/changes"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with running(tmp_path_factory.mktemp("changes")) as served:
        yield served


@contextlib.contextmanager
def listening(
    server: Served, token: str = OWNER, last: str = "", path: str = CHANGES
) -> Iterator[Iterator[dict[str, str]]]:
    """The events of a stream, once it has begun."""
    wire = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    wire.request(
        "GET",
        path,
        headers={"Authorization": f"Bearer {token}"} | ({"Last-Event-ID": last} if last else {}),
    )
    answer = wire.getresponse()
    assert answer.status == 200 and answer.headers["content-type"].startswith("text/event-stream")
    try:
        yield _events(answer)
    finally:
        answer.close()
        wire.close()


def _events(answer: http.client.HTTPResponse) -> Iterator[dict[str, str]]:
    event: dict[str, str] = {}
    for line in answer:
        key, _, value = line.decode().rstrip("\r\n").partition(": ")
        if key:
            event[key] = value
        elif "event" in event:
            yield event
            event = {}


def until(events: Iterator[dict[str, str]], name: str) -> tuple[list[str], dict[str, str]]:
    """All names that are told up to the event that tells this one; and that event."""
    heard: list[str] = []
    for event in events:
        heard += json.loads(event["data"]).get("names", [])
        if name in heard:
            return heard, event
    raise AssertionError(heard)


def put(server: Served, name: str, content: str = "words") -> None:
    assert server.api("PUT", f"/memories/{name}", {"content": content}).status in (200, 201)


def test_each_change_is_told_whoever_makes_it(server: Served) -> None:
    with listening(server) as events:
        put(server, "a/one")
        assert until(events, "a/one")[1]["event"] == "changed"
        (server.config.parent / "vault" / "by hand.md").write_text("written by an editor\n")
        until(events, "by hand")
        server.api("POST", "/move/a%2Fone", {"new_name": "a/two"})
        until(events, "a/two")
        server.api("DELETE", "/memories/a%2Ftwo")
        until(events, "a/two")
        server.tool("create_memory", name="by tool", content="x")
        until(events, "by tool")


def test_all_who_listen_hear_of_it(server: Served) -> None:
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(20) as several:
        streams = [stack.enter_context(listening(server)) for _ in range(20)]
        put(server, "heard-by-all")
        heard = [*several.map(lambda events: until(events, "heard-by-all")[1]["id"], streams)]
    assert len({*heard}) == 1


def test_who_comes_back_hears_what_was_missed(server: Served) -> None:
    with listening(server) as events:
        put(server, "back/1")
        last = until(events, "back/1")[1]["id"]
    for number in (2, 3):
        put(server, f"back/{number}")
    with listening(server, last=last) as events:
        heard, _ = until(events, "back/3")
        assert heard.index("back/2") < heard.index("back/3") and "back/1" not in heard


@pytest.mark.parametrize("last", ["nonsense", "00000000-1", "1", "-1"])
def test_who_comes_back_from_elsewhere_is_told_to_look_again(server: Served, last: str) -> None:
    with listening(server, last=last) as events:
        first = next(events)
        assert first["event"] == "missed"
        put(server, f"after {first['id']} {last}".replace(" ", "%20"))
        assert next(events)["event"] == "changed"


def test_a_token_hears_of_its_own_folder_alone(server: Served) -> None:
    bound = server.new_token("bound", "--folder", "own")
    with listening(server, bound) as events, listening(server) as all_events:
        for name in ("other/secret", "own/note", "other/more", "own/last"):
            put(server, name)
        heard, event = until(events, "own/last")
        whole, _ = until(all_events, "own/last")
    assert {*heard} == {"own/note", "own/last"} and {"other/secret", "other/more"} <= {*whole}
    assert int(event["id"].rpartition("-")[2]) <= 2  # nor does a number tell how much else happens


def test_a_stream_does_not_keep_the_server(tmp_path: Path, serve: Callable[..., Served]) -> None:
    server = serve(vault=tmp_path / "v")
    with listening(server) as events:
        put(server, "x")
        until(events, "x")
        assert server.end() == 0


def test_head_ends_at_once(server: Served) -> None:
    answer = server.ask("HEAD", CHANGES)
    assert (answer.status, answer.headers["content-type"].partition(";")[0]) == (
        200,
        "text/event-stream",
    )
    assert server.ask("GET", CHANGES, token=None).status == 401


def test_who_is_too_slow_is_told_so_and_goes_on() -> None:
    async def slow() -> list[str]:
        tell: list[Callable[[frozenset[str]], None]] = []
        feed = ChangeFeed(tell.append)
        feed.use_running_loop()
        feed.subscribe()
        events, heard = feed.events(""), list[str]()
        for number in range(3):
            tell[0](frozenset({f"early {number}"}))
            heard.append((await anext(events))["event"])
        for number in range(1100):  # more than are kept
            tell[0](frozenset({f"late {number}"}))
        await asyncio.sleep(0)
        heard.append((await anext(events))["event"])
        tell[0](frozenset({"last"}))
        heard.append((await anext(events))["data"])
        return heard

    assert asyncio.run(slow()) == ["changed"] * 3 + ["missed", '{"names": ["last"], "more": 0}']


def test_a_feed_whose_store_could_not_be_opened_tries_again() -> None:
    listeners: list[Listener] = []
    attempts = 0

    def subscribe(listener: Listener) -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise Unavailable("the index is in use")
        listeners.append(listener)

    feed = ChangeFeed(subscribe)
    with pytest.raises(Unavailable):
        feed.subscribe()
    feed.subscribe()
    feed.subscribe()
    assert len(listeners) == 1
