"""`--rest-api-serve`: MCP over standard streams and HTTP from one process, as Remembrances serves both."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from bare_client import Bare
from processes import Program
from waiting import eventually

from tests.web.conftest import OWNER, Served

ENV = {"SIMPLEMEM_EMBED_PROVIDER": "none", "SIMPLEMEM_TOKEN": OWNER, "MCP_SERVER_PORT": "0"}


@contextmanager
def started(vault: Path, *options: str, env: Mapping[str, str] = {}) -> Iterator[Bare]:
    config = {"XDG_CONFIG_HOME": str(vault.parent / "config")}
    with Bare(vault, "--profile", "remembrances", *options, env={**ENV, **config, **env}) as bare:
        yield bare


def port_of(bare: Bare) -> int:
    def found() -> re.Match[str] | None:
        return re.search(r" at http://127\.0\.0\.1:(\d+)", bare.log.decode())

    assert eventually(lambda: found() is not None)
    match = found()
    assert match is not None
    return int(match[1])


def search(port: int, query: str) -> Any:
    wire = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"Authorization": f"Bearer {OWNER}", "Content-Type": "application/json"}
    wire.request(
        "POST", "/api/v1/memory/search", json.dumps({"query": query, "user_id": "ann"}), headers
    )
    answer = wire.getresponse()
    assert answer.status == 200
    found = json.loads(answer.read())
    wire.close()
    return found


@pytest.mark.parametrize("by", ["option", "environment"])
def test_rest_and_standard_streams_are_served_at_once(vault: Path, by: str) -> None:
    options = ["--rest-api-serve"] if by == "option" else []
    env = {} if options else {"GOMEM_REST_API_SERVE": "true"}
    with started(vault, *options, env=env) as bare:
        assert bare.initialize()["serverInfo"]["name"] == "simplemem"
        assert bare.call("add_memory", content="I moved to Lisbon.", user_id="ann")[
            "structuredContent"
        ]["events"]
        assert "Lisbon" in search(port_of(bare), "where do I live")["results"]
        assert "Lisbon" in str(bare.call("search_memory", query="where do I live", user_id="ann"))
        assert not bare.not_json
        bare.end_input()  # the client goes, and its server with it
        assert bare.process.wait(20) == 0


def test_a_signal_ends_both(vault: Path) -> None:
    with started(vault, "--rest-api-serve") as bare:
        bare.initialize()
        port_of(bare)
        bare.process.terminate()
        assert bare.process.wait(20) == 0


def test_without_a_client_at_the_streams_http_goes_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "simplemem", "serve", "--yes", "--rest-api-serve"]
    command += ["--profile", "remembrances", "--vault", str(tmp_path / "vault")]
    env = {**os.environ, **ENV, "XDG_CONFIG_HOME": str(tmp_path / "config")}
    with Program(
        command, env=env, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stderr is not None
        process.stdin.close()
        found = next(
            match for line in process.stderr if (match := re.search(r"127\.0\.0\.1:(\d+)", line))
        )
        for _ in range(2):
            assert search(int(found[1]), "anything")["memories"] == []
        process.terminate()
        process.stderr.read()
        assert process.wait(20) == 0


def test_a_second_client_is_served_where_the_port_is_taken(vault: Path) -> None:
    with socket.socket() as occupied:
        occupied.bind(("127.0.0.1", 0))
        occupied.listen()
        port = str(occupied.getsockname()[1])
        with started(vault, "--rest-api-serve", env={"MCP_SERVER_PORT": port}) as bare:
            assert bare.initialize()["serverInfo"]["name"] == "simplemem"
            assert eventually(lambda: b"standard streams only" in bare.log)
            assert bare.call("add_memory", content="I moved to Lisbon.", user_id="ann")[
                "structuredContent"
            ]["events"]


def test_http_that_is_asked_for_by_name_is_served_alone(tmp_path: Path) -> None:
    options = ["--rest-api-serve", "--profile", "remembrances", "--vault", str(tmp_path / "vault")]
    server = Served(options, tmp_path / "config", ENV)
    try:
        assert server.api("GET", "/health").status == 200
    finally:
        server.clear()
