"""Small ways around the rules of a server: what a query string carries, what errors tell, what a token learns of the
whole server, and what two requests at once or one request of two lengths do."""

from __future__ import annotations

import json
import os
import socket
import stat
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest

from simplemem.tools.render import line
from simplemem.web.address import Address
from tests.web.conftest import OWNER, Served, Session, running

Serve = Callable[..., Served]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with running(
        tmp_path_factory.mktemp("leaks"), "--profile", "remembrances", "--log-level", "info"
    ) as served:
        yield served


def test_a_query_string_counts_towards_the_quota_of_bytes(server: Served) -> None:
    token = server.new_token("little", "--write", "--kilobytes", "2")
    content = quote("x" * 3000)
    answer = server.api("PUT", f"/memories/sent-in-the-query?content={content}", token=token)
    assert answer.status == 429
    assert server.api("GET", "/memories/sent-in-the-query").status == 404


def test_one_idempotency_key_sent_six_times_at_once_makes_one_document(server: Served) -> None:
    body = {
        "content": "The heron stands on one leg. " * 40,
        "container_tag": "bird",
        "title": "Heron",
    }

    def send(_: int) -> tuple[int, str]:
        answer = server.ask("POST", "/ingest/webhook", body, headers={"Idempotency-Key": "heron"})
        return answer.status, answer.data["id"]

    with ThreadPoolExecutor(6) as senders:
        answers = set(senders.map(send, range(6)))
    assert len(answers) == 1 and answers.pop()[0] == 202
    notes = server.api("GET", "/memories?folder=documents/bird").data
    assert len([note for note in notes["items"] if "Heron" in note["name"]]) == 1
    other = server.ask(
        "POST", "/ingest/webhook", body | {"title": "x"}, headers={"Idempotency-Key": "heron"}
    )
    assert other.status == 422


@pytest.mark.parametrize("length", [3, 0])
def test_a_request_of_two_lengths_ends_its_connection(server: Served, length: int) -> None:
    head = f"POST /api/v1/memories HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {OWNER}\r\n"
    head += f"Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n\r\n"
    smuggled = f"GET /api/v1/stats HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as wire:
        wire.sendall(head.encode() + b"0\r\n\r\n" + smuggled.encode())
        received = b""
        while chunk := wire.recv(65536):
            received += chunk
    assert received.startswith(b"HTTP/1.1 400") and received.count(b"HTTP/1.1 ") == 1


def test_a_bound_admin_token_learns_nothing_of_the_whole_server(
    server: Served, tmp_path: Path
) -> None:
    for options in (["--user", "ada"], ["--folder", "atoms"], ["--vault", "vault"]):
        token = server.new_token(f"bound {options[0]}", "--admin", *options)
        answer = server.ask("GET", "/metrics", token=token)
        assert (answer.status, answer.problem["code"]) == (403, "forbidden")
    token = server.new_token("bound", "--admin", "--user", "ada")
    stats = server.api("GET", "/stats", token=token).data
    assert str(server.config.parent) not in json.dumps(stats)
    whole = server.new_token("whole", "--admin")
    assert server.ask("GET", "/metrics", token=whole).status == 200


def test_a_log_line_names_the_address_of_the_client(server: Served) -> None:
    server.api("GET", "/tags")
    deadline = time.monotonic() + 20
    while (
        not any('"route": "/api/v1/tags"' in record for record in server.log)
        and time.monotonic() < deadline
    ):
        time.sleep(0.05)
    record = next(record for record in server.log if '"route": "/api/v1/tags"' in record)
    assert json.loads(record[record.index("{") :])["client"] == "127.0.0.1"


def test_a_broken_file_of_tokens_lets_the_owner_in_and_names_no_folder(serve: Serve) -> None:
    server = serve()
    token = server.new_token("reader")
    file = server.config / "simplemem" / "tokens.json"
    file.write_text("[{]")
    assert server.api("GET", "/tags").status == 200
    refused = server.api("GET", "/tags", token=token)
    assert refused.status == 503 and str(server.config) not in refused.body.decode()
    assert server.ask("GET", "/ready", token=None).status in (200, 503)
    again = serve()  # a restart does not lock the owner out either
    assert again.api("GET", "/tags").status == 200
    assert sum("is not a token file" in record for record in [*server.log, *again.log]) >= 1


def test_errors_over_the_network_name_no_folder_of_the_machine(
    serve: Serve, tmp_path: Path
) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "a.md").write_text("The heron.")
    server = serve("--read-only")
    session = Session(server)
    sent = {"name": "create_memory", "arguments": {"name": "b", "content": "x"}}
    answers = [
        server.api("POST", "/memories", {"name": "b", "content": "x"}).body.decode(),
        server.api("PATCH", "/memories/a", {"append": "x"}).body.decode(),
        session.ask("tools/call", sent),
    ]
    for answer in answers:
        assert "read" in answer
        assert str(tmp_path) not in answer and str(Path.home()) not in answer


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read every file")
def test_a_vault_that_cannot_be_opened_is_not_ready_and_names_no_folder(
    serve: Serve, tmp_path: Path
) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    server = serve()
    vault.chmod(stat.S_IWUSR)
    try:
        answer = server.ask("GET", "/ready", token=None)
    finally:
        vault.chmod(stat.S_IRWXU)
    assert answer.data.keys() == {"status"} and str(tmp_path) not in answer.body.decode()


def test_a_vault_whose_index_belongs_to_another_program_is_not_ready_and_names_no_folder(
    serve: Serve, tmp_path: Path
) -> None:
    index = tmp_path / "index.db"
    index.write_bytes(b"not a database of ours" * 400)
    server = serve("--db", str(index))
    answer = server.ask("GET", "/ready", token=None)
    assert answer.data.keys() == {"status"}
    answers = [answer, server.api("GET", "/tags"), server.api("GET", "/search?query=x")]
    assert not any(str(tmp_path) in answer.body.decode() for answer in answers)


@pytest.mark.parametrize(
    ("address", "host", "is_known"),
    [
        (
            Address("0.0.0.0", 8443, ("memory.example.org",), Path("c"), Path("k")),
            "memory.example.org:443",
            True,
        ),
        (
            Address("0.0.0.0", 8443, ("memory.example.org",), Path("c"), Path("k")),
            "memory.example.org:8443",
            True,
        ),
        (
            Address("0.0.0.0", 8443, ("memory.example.org",), Path("c"), Path("k")),
            "memory.example.org:80",
            False,
        ),
        (
            Address("0.0.0.0", 8080, ("memory.example.org",), behind_proxy=True),
            "memory.example.org:443",
            True,
        ),
        (
            Address("0.0.0.0", 8080, ("memory.example.org",), behind_proxy=True),
            "evil.example:443",
            False,
        ),
    ],
)
def test_a_host_may_spell_out_the_usual_port(address: Address, host: str, is_known: bool) -> None:
    assert (host in address.host_names()) is is_known


def test_showing_the_beginning_of_a_long_query_does_not_copy_all_of_it() -> None:
    query = "word " * 1_000_000
    tracemalloc.start()
    try:
        shortened = line(query, 200)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert shortened.startswith("word word") and len(shortened) <= 201
    assert peak < len(query) / 20


@pytest.mark.parametrize(
    "text", ["a" * 300, " \n " * 9000 + "a", "a" + " " * 9000 + "b", "a b " * 9, "a" * 200]
)
def test_a_line_is_as_it_was_before_however_long_the_text(text: str) -> None:
    shortened = line(text, 200)
    assert "\n" not in shortened and shortened.startswith("a") and len(shortened) <= 201
    assert shortened.endswith("…") == (
        len(" ".join(text.split())) > 200 or ("b" not in shortened and "b" in text)
    )
