"""More at once, deeper and larger than any client means: every call has an answer, and the next one is as it should be."""

from __future__ import annotations

import json
import random
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from bare_client import PATIENCE, Bare
from effort import chance, rounds

PLAIN = {"SIMPLEMEM_EMBED_PROVIDER": "none", "SIMPLEMEM_WRITE_DURABILITY": "fast"}
CODES = {
    "invalid", "not_found", "already_exists", "ambiguous", "conflict", "too_long", "read_only", "unreadable", "unavailable",
}  # fmt: skip


def call_of(luck: random.Random, number: int) -> dict[str, Any]:
    """A call of a tool on one of ten notes."""
    name = f"n{luck.randrange(10)}"
    calls: list[tuple[str, dict[str, Any]]] = [
        ("create_memory", {"name": f"new/{number}", "content": f"text {number}"}),
        ("update_memory", {"name": name, "append": f"line {number};"}),
        ("read_memory", {"name": name}),
        ("search_memories", {"query": "plum"}),
        ("list_memories", {"limit": 3}),
    ]
    tool, arguments = luck.choice(calls)
    return {"name": tool, "arguments": arguments}


def is_ours(answer: dict[str, Any]) -> bool:
    """Whether an answer is a result, or a failure that says what it is."""
    if not (result := answer.get("result")) or not result.get("isError"):
        return bool(result)
    error = result["structuredContent"]["error"]
    return error["code"] in CODES and "internal error" not in error["message"]


def is_written(vault: Path, call: dict[str, Any]) -> bool:
    """Whether what a write was to say stands in its note."""
    arguments = call["arguments"]
    said = arguments.get("content", arguments.get("append"))
    return said is None or said in (vault / f"{arguments['name']}.md").read_text()


@pytest.fixture
def ten(tmp_path: Path) -> Path:
    vault = tmp_path / "vault"
    vault.mkdir()
    for number in range(10):
        (vault / f"n{number}.md").write_text("A plum.\n")
    return vault


@pytest.mark.slow
def test_a_thousand_parallel_calls_are_all_answered_and_their_writes_stand(ten: Path) -> None:
    luck, many = chance("parallel"), rounds(1000, 20_000)
    calls = [call_of(luck, number) for number in range(many)]
    with Bare(ten, env=PLAIN) as server:
        server.initialize()
        idents = [server.post("tools/call", call) for call in calls]
        answers = [server.answer(ident, 60) for ident in idents]
        assert all(map(is_ours, answers))
        done = [
            call
            for call, answer in zip(calls, answers, strict=True)
            if not answer["result"].get("isError")
        ]
        assert len(done) == many and all(is_written(ten, call) for call in done)
        assert "result" in server.request("ping") and not server.not_json
    assert b"Traceback" not in server.log


@pytest.mark.slow
def test_a_storm_of_cancellations_leaves_a_server_that_answers(ten: Path) -> None:
    luck = chance("cancelled")
    calls = {}
    with Bare(ten, env=PLAIN) as server:
        server.initialize()
        for number in range(rounds(1000, 20_000)):
            ident = server.post("tools/call", call := call_of(luck, number))
            calls[ident] = call
            for _ in range(luck.randrange(3)):
                about = luck.choice(
                    [ident, ident - luck.randrange(50), f"no {number}", -1, None, 1e9, []]
                )
                server.notify("notifications/cancelled", {"requestId": about, "reason": "storm"})
        assert (
            "result" in server.request("ping")
            and server.call("read_memory", name="n1")["structuredContent"]
        )
        kept = [ident for ident in server.answered() if ident in calls]
        answers = {ident: server.answer(ident) for ident in kept}
        assert all(map(is_ours, answers.values()))
        assert all(
            is_written(ten, calls[each])
            for each, answer in answers.items()
            if not answer["result"].get("isError")
        )
        server.end_input()
        assert server.process.wait(PATIENCE) == 0
    assert b"Traceback" not in server.log


@pytest.mark.parametrize("kind", ["list", "object", "text of json", "wide", "long"])
def test_arguments_ten_thousand_deep_or_very_large_are_answered(ten: Path, kind: str) -> None:
    deep = 10_000
    value = {
        "list": "[" * deep + "]" * deep,
        "object": '{"a":' * deep + "1" + "}" * deep,
        "text of json": json.dumps("[" * deep + "]" * deep),
        "wide": json.dumps({f"k{number}": number for number in range(100_000)}),
        "long": json.dumps("x" * 7_000_000),
    }[kind]
    with Bare(ten, env=PLAIN) as server:
        server.initialize()
        for number, (tool, name) in enumerate(
            [
                ("create_memory", "metadata"),
                ("create_memory", "content"),
                ("search_memories", "tags"),
                ("read_memory", "x"),
            ]
        ):
            about = f'"name":"{tool}","arguments":{{"name":"big","query":"plum","{name}":{value}}}'
            server.send(
                f'{{"jsonrpc":"2.0","id":"d{number}","method":"tools/call","params":{{{about}}}}}\n'.encode()
            )
            answer = server.answer(f"d{number}" if kind not in ("list", "object") else None)
            assert "error" in answer or is_ours(answer), (tool, answer)
        assert server.call("read_memory", name="n1")["structuredContent"]["content"] == "A plum.\n"
    assert b"Traceback" not in server.log


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="open files cannot be removed there")
def test_with_its_folder_removed_again_and_again_every_call_is_answered_with_a_code_of_ours(
    ten: Path,
) -> None:
    luck, over = chance("removed"), threading.Event()

    def remove() -> None:
        while not over.wait(0.25):
            shutil.rmtree(ten / ".simplemem", ignore_errors=True)

    with Bare(ten, env=PLAIN) as one, Bare(ten, env=PLAIN) as other:
        for server in (one, other):
            server.initialize()
        remover = threading.Thread(target=remove)
        remover.start()
        answered = 0
        for number in range(rounds(150, 5000)):
            calls = [
                (server, call_of(luck, 10 * number + at)) for at, server in enumerate((one, other))
            ]
            posted = [(server, call, server.post("tools/call", call)) for server, call in calls]
            for server, call, ident in posted:
                answer = server.answer(ident)
                assert is_ours(answer), answer
                if not answer["result"].get("isError"):
                    answered += 1
                    assert is_written(ten, call)
        over.set()
        remover.join()
        assert answered > number
    assert b"Traceback" not in one.log + other.log
