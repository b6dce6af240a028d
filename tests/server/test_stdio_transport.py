"""Whatever stands on the wire, the next request is answered, and nothing but protocol comes back."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import mcp_types as types
import pytest
from bare_client import Bare, Inside
from hypothesis import given
from hypothesis import strategies as st

from simplemem.server.stdio_transport import encode_message, split_lines

HOSTILE = [
    b"this is not json", b"{}", b"[]", b"null", b'"text"', b"1e999", b"\0\0\0\0", b"\r", b"   ", b"\xff\xfe\x00",
    b"\xef\xbb\xbf{}", b"[" * 100_000, b'{"a":' * 100_000, b'[{"jsonrpc":"2.0","id":9001,"method":"ping"}]',
    b'{"jsonrpc":"1.0","id":9001,"method":"ping"}',
    *(
        b'{"jsonrpc":"2.0",' + rest + b"}"
        for rest in (
            b'"id":9001', b'"id":null,"method":"ping"', b'"id":{},"method":"ping"', b'"id":1.5,"method":"ping"',
            b'"id":true,"method":"ping"', b'"id":"x","method":5', b'"id":"y","method":"ping","params":[]',
            b'"id":"\xff","method":"ping"', b'"id":"s","method":"ping","params":{"a":"\\ud800"}',
            b'"id":"\\ud800","method":"no/such"', b'"id":' + b"9" * 5000 + b',"method":"ping"',
            b'"id":-1,"method":"tools/call","params":{"name":5}',
            b'"id":9002,"method":"tools/call","params":{"name":"search_memories","arguments":[1]}',
            b'"id":9003,"method":"tools/call","params":{"name":"no_such_tool","arguments":{}}',
            b'"id":9004,"method":"no/such/method"', b'"id":9005,"method":"initialize","params":{}',
            b'"method":"notifications/cancelled","params":{"requestId":{}}',
            b'"method":"notifications/cancelled","params":{"requestId":12345}',
            b'"id":77,"result":{}', b'"id":77,"error":{"code":1,"message":"m"}',
        )
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bare]:
    with Inside(tmp_path_factory.mktemp("wire")) as bare:
        bare.initialize()
        yield bare


@pytest.mark.parametrize("line", HOSTILE, ids=lambda line: line[:60].decode("latin-1"))
def test_after_a_broken_line_the_next_request_is_answered(server: Bare, line: bytes) -> None:
    server.send(line + b"\n")
    assert "result" in server.request("ping") and not server.not_json


def test_a_broken_line_is_told_so(tmp_path: Path) -> None:
    with Inside(tmp_path) as server:
        server.send(b"this is not json\n")
        assert server.answer(None)["error"]["code"] == -32700
        server.send(b'{"jsonrpc":"2.0","id":"mine","method":5}\n')
        assert server.answer("mine")["error"]["code"] == -32600


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_line_of_a_hundred_megabytes_is_refused_and_not_held(tmp_path: Path) -> None:
    with Bare(tmp_path) as bare:
        bare.initialize()
        memory_before = bare.resident_kb()
        bare.send(b'{"jsonrpc":"2.0","id":"big","method":"ping","params":{"a":"')
        peak = 0
        for _ in range(100):
            bare.send(b"x" * 1024 * 1024)
            peak = max(peak, bare.resident_kb())
        bare.send(b'"}}\n')
        assert "8 MB" in bare.answer(None)["error"]["message"] and peak - memory_before < 64 * 1024
        assert "result" in bare.request("ping")


def test_a_message_just_below_the_bound_is_read(server: Bare) -> None:
    filler = "x" * (8 * 1024 * 1024 - 200)
    answer = server.request(
        "tools/call", {"name": "list_memories", "arguments": {"prefix": filler}}
    )
    assert answer["result"]["isError"] is False


@given(st.lists(st.binary(max_size=40), max_size=12), st.integers(1, 30))
def test_lines_are_the_same_however_the_bytes_arrive(chunks: list[bytes], most: int) -> None:
    whole = b"".join(chunks)
    expected = [line if len(line) <= most else None for line in whole.split(b"\n")[:-1]]
    assert list(split_lines(iter(chunks), most)) == expected


def test_half_a_surrogate_pair_is_read_and_written_as_a_sign(server: Bare) -> None:
    server.send(b'{"jsonrpc":"2.0","id":"half \\ud800","method":"ping"}\n')
    assert server.answer("half \ufffd")["result"] == {}
    answer = types.JSONRPCResponse(jsonrpc="2.0", id=1, result={"text": "half \ud800, whole 🧠"})
    assert json.loads(encode_message(answer))["result"] == {"text": "half \ufffd, whole 🧠"}


def test_what_libraries_print_never_reaches_the_wire(tmp_path: Path) -> None:
    """A module that prints for as long as the server runs, through Python and below it, stands in for a chatty
    library."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(
        "import os, threading, time\n"
        "def chatter():\n"
        "    for _ in range(100):\n"
        "        print('chatter', flush=True); os.write(1, b'deep chatter\\n'); time.sleep(0.01)\n"
        "import simplemem.server.serve as serve\n"
        "taken = serve.take_standard_streams\n"
        "def take():\n"
        "    ends = taken(); threading.Thread(target=chatter, daemon=True).start(); return ends\n"
        "serve.take_standard_streams = take\n"
    )
    (tmp_path / "vault").mkdir()
    with Bare(tmp_path / "vault", env={"PYTHONPATH": str(tmp_path / "site")}) as bare:
        bare.initialize()
        for _ in range(30):
            bare.call("search_memories", query="anything")
        assert not bare.not_json
        bare.end_input()
        bare.process.wait(30)
    assert b"deep chatter" in bare.log


def test_a_client_that_does_not_read_is_waited_for_and_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / "n.md").write_text("word " * 2000)
    with Bare(tmp_path, read=False) as bare:
        bare.greet()
        bare.notify("notifications/initialized")
        messages = [
            bare.post("tools/call", {"name": "read_memory", "arguments": {"name": "n"}})
            for _ in range(200)
        ]
        bare.read_on()
        assert all(bare.answer(ident)["result"]["isError"] is False for ident in messages)
