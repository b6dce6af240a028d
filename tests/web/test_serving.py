"""A server from its start to its end: where it may listen, what it reads again, and several vaults in one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from processes import run_program
from waiting import eventually

from tests.web.conftest import OWNER, Served


def _refused(tmp_path: Path, *arguments: str, **env: str) -> str:
    """What a server says that does not start."""
    folder = [] if "--vault" in arguments else ["--vault", str(tmp_path / "vault")]
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config"), **env}
    ended = run_program("serve", "--yes", *folder, *arguments, env=environment)
    assert ended.returncode == 1, ended
    assert not (tmp_path / "vault").exists()
    return ended.stderr


def test_an_address_that_others_reach_needs_a_name_and_a_certificate(tmp_path: Path) -> None:
    for address in ("0.0.0.0:0", "[::]:0", "192.0.2.1:0"):
        message = _refused(tmp_path, "--http", address)
        assert "--allow-host" in message and "--tls-cert" in message
    assert "--tls-cert" in _refused(
        tmp_path, "--http", "0.0.0.0:0", "--allow-host", "memory.example.org"
    )
    message = _refused(tmp_path, "--http", "0.0.0.0:0", "--behind-proxy")
    assert message.startswith(
        "simplemem: missing the host name that clients use (--allow-host NAME)"
    )
    assert "--tls-cert" not in message
    assert "too weak" in _refused(tmp_path, "--http", ":0", SIMPLEMEM_TOKEN="short")
    assert "not an address" in _refused(tmp_path, "--http", "127.0.0.1:http")
    assert "--http" in _refused(
        tmp_path, "--vault", f"a={tmp_path}/a", "--vault", f"b={tmp_path}/b"
    )


def test_options_of_the_network_without_it_and_ports_that_are_none_are_told(tmp_path: Path) -> None:
    assert "--http" in _refused(tmp_path, "--behind-proxy")
    assert "--http" in _refused(tmp_path, "--allow-host", "memory.example.org")
    assert "--http" in _refused(tmp_path, "--trusted-proxy", "192.0.2.1")
    for proxy in ("*", "caddy", "192.0.2.1/24", "192.0.2.1:80"):
        assert "not an address or a network" in _refused(
            tmp_path, "--http", "--trusted-proxy", proxy
        )
    assert "Did you mean 10.0.0.0/8?" in _refused(
        tmp_path, "--http", "--trusted-proxy", "10.0.0.1/8"
    )
    assert "not an address" in _refused(tmp_path, "--http", MCP_SERVER_PORT="many")


def test_the_compose_file_starts_a_server_that_trusts_its_proxy_alone(tmp_path: Path) -> None:
    compose = yaml.safe_load((Path(__file__).parents[2] / "deploy" / "compose.yaml").read_text())
    [network] = compose["networks"]["default"]["ipam"]["config"]
    command = compose["services"]["memory"]["command"]
    assert command[command.index("--trusted-proxy") + 1] == network["subnet"]
    options = [option.replace("${MEMORY_HOST}", "memory.example.org") for option in command[3:]]
    options[options.index("0.0.0.0:8080")] = "127.0.0.1:0"
    server = Served(["--vault", str(tmp_path / "vault"), *options[2:]], tmp_path / "config", {})
    try:
        assert server.ask("GET", "/health", headers={"Host": "memory.example.org"}).status == 200
    finally:
        server.clear()


def test_two_vaults_never_share_an_index(tmp_path: Path) -> None:
    two = ["--http", "127.0.0.1:0", "--vault", f"a={tmp_path}/a", "--vault", f"b={tmp_path}/b"]
    for more, env in ((["--db", "x.db"], {}), ([], {"SIMPLEMEM_DB": "x.db"})):
        assert "cannot be set for several vaults" in _refused(tmp_path, *two, *more, **env)
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("asked", "has_sse"),
    [
        (["--rest-api-serve"], False),
        (["--rest-api-serve", "--sse"], True),
        ({"GOMEM_SSE": "true"}, True),
        ({"GOMEM_REST_API_SERVE": "1"}, False),
    ],
)
def test_it_starts_as_the_servers_do_whose_places_it_takes(
    tmp_path: Path, asked: list[str] | dict[str, str], has_sse: bool
) -> None:
    flags, env = (asked, {}) if isinstance(asked, list) else ([], asked)
    db, unread = (
        tmp_path / "elsewhere.db",
        {"SURREALDB_URL": "ws://db", "NEO4J_URI": "bolt://db", "OLLAMA_URL": "http://o"},
    )
    said = {
        "SIMPLEMEM_EMBED_PROVIDER": "none",
        "MCP_SERVER_PORT": "0",
        "LOG_LEVEL": "INFO",
        "GOMEM_DB_PATH": str(db),
    }
    face = ["--profile", "remembrances", "--vault", str(tmp_path / "vault"), *flags]
    server = Served(face, tmp_path / "config", unread | said | env, http=())
    try:
        assert server.api("GET", "/health").data["database"] == "connected"
        assert server.ask("POST", "/messages", {}).status == (400 if has_sse else 404)
        assert server.api("GET", "/stats").status == 200 and db.exists()
        assert not [
            name for name in unread if not any(f"{name} is ignored" in line for line in server.log)
        ]
        server.end()
        assert any('"route": "/api/v1/health"' in line for line in server.log)  # as LOG_LEVEL says
    finally:
        server.clear()


def test_the_first_start_makes_a_token_that_nobody_else_may_read(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    server = serve(env={"SIMPLEMEM_TOKEN": ""})
    file = tmp_path / "config" / "simplemem" / "token"
    assert file.stat().st_mode & 0o77 == 0
    assert server.api("GET", "/tags", token=OWNER).status == 401
    assert server.api("GET", "/tags", token=file.read_text().strip()).status == 200
    server.end()
    again = serve(env={"SIMPLEMEM_TOKEN": ""})
    assert again.api("GET", "/tags", token=file.read_text().strip()).status == 200


def test_vaults_lie_side_by_side_each_with_its_face(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    two = ["--vault", f"work={tmp_path / 'work'}", "--vault", f"home={tmp_path / 'home'}"]
    server = serve(*two, "--profile", "work=memento")
    names = {
        name: {tool["name"] for tool in server.ask("GET", f"/{name}/api/v1/tools").data["tools"]}
        for name in ("work", "home")
    }
    assert "create_entities" in names["work"] and "search_memories" in names["home"]
    assert server.ask("PUT", "/home/api/v1/memories/a", {"content": "at home"}).status == 201
    assert server.ask("GET", "/work/api/v1/memories/a").status == 404
    assert server.api("GET", "/memories").status == 404


def test_many_clients_at_once_lose_nothing(serve: Callable[..., Served]) -> None:
    server = serve()
    server.api("PUT", "/memories/log", {"content": "begun"})

    def work(number: int) -> list[int]:
        found = []
        for line in range(4):
            found.append(
                server.api("PATCH", "/memories/log", {"append": f"line {number} {line}."}).status
            )
            found.append(server.api("GET", "/search?query=line").status)
        return found

    with ThreadPoolExecutor(20) as clients:
        assert {status for found in clients.map(work, range(20)) for status in found} == {200}
    text = server.api("GET", "/memories/log", headers={"Accept": "text/markdown"}).body.decode()
    assert all(
        f"\nline {number} {line}.\n" in text + "\n" for number in range(20) for line in range(4)
    )


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="Windows has no such signal")
def test_settings_are_read_again_without_an_end(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    server = serve()
    server.api("PUT", "/memories/secret/a", {"content": "hidden soon"})
    settings = tmp_path / "vault" / ".simplemem" / "config.toml"
    settings.write_text("[access]\nhidden = 3\nnonsense = 1\n")
    server.process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    assert server.api("GET", "/memories/secret/a").status == 200  # a mistake changes nothing
    settings.write_text('[access]\nhidden = ["secret/"]\n')
    server.process.send_signal(signal.SIGHUP)
    until = time.monotonic() + 20
    while server.api("GET", "/memories/secret/a").status != 404 and time.monotonic() < until:
        time.sleep(0.1)
    assert server.api("GET", "/memories/secret/a").status == 404
    assert any("could not be reloaded" in record for record in server.log)


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="Windows has no such signal")
def test_the_log_says_that_settings_were_reloaded_only_if_they_were(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    settings = tmp_path / "vault" / ".simplemem" / "config.toml"
    settings.parent.mkdir(parents=True)
    server = serve("--log-level", "info")

    def times(message: str) -> int:
        return sum(message in line for line in server.log)

    for wrong in (1, 2):
        settings.write_text("nonsense = 1\n")
        server.process.send_signal(signal.SIGHUP)
        assert eventually(lambda wrong=wrong: times("could not be reloaded") == wrong)
    assert times("the settings were reloaded") == 0
    settings.write_text("")
    server.process.send_signal(signal.SIGHUP)
    assert eventually(lambda: times(" info simplemem.web: the settings were reloaded") == 1)


def test_an_http_server_without_a_terminal_creates_no_vault_unless_told_to(tmp_path: Path) -> None:
    missing = tmp_path / "a typo"
    ended = _started_by_a_service(tmp_path, "--vault", str(missing), "--http", "127.0.0.1:0")
    assert ended.returncode == 1 and not missing.exists()
    hint = f"`simplemem init '{missing}'` creates it, and so does `--yes`."
    assert ended.stderr == f"simplemem: no vault at {missing}\n{hint}\n"
    both = _started_by_a_service(
        tmp_path, "--vault", str(missing), "--rest-api-serve", MCP_SERVER_PORT="0"
    )
    assert both.returncode == 1 and not missing.exists()


@pytest.mark.parametrize("options", [["--http", "127.0.0.1:0"], []])
def test_a_vault_that_cannot_be_served_ends_the_server_at_its_start(
    tmp_path: Path, options: list[str]
) -> None:
    file = tmp_path / "note.md"
    file.write_text("A note.")
    ended = _started_by_a_service(tmp_path, "--vault", str(file), "--yes", *options)
    assert ended.returncode == 1 and ended.stderr.startswith(
        f"simplemem: {file} is a file, not a folder\n"
    )
    missing = tmp_path / "missing"
    ended = _started_by_a_service(
        tmp_path, "--vault", str(missing), "--read-only", "--yes", *options
    )
    assert ended.returncode == 1 and ended.stderr.startswith(f"simplemem: no vault at {missing}\n")
    assert not missing.exists()


def test_a_port_in_use_is_reported_with_the_address(tmp_path: Path) -> None:
    with socket.socket() as occupied:
        occupied.bind(("127.0.0.1", 0))
        occupied.listen()
        address = f"127.0.0.1:{occupied.getsockname()[1]}"
        refused = _refused(tmp_path, "--http", address)
    assert (
        refused
        == f"simplemem: the address {address} is in use\nChoose another address with --http HOST:PORT.\n"
    )


def _started_by_a_service(
    tmp_path: Path, *arguments: str, **env: str
) -> subprocess.CompletedProcess[str]:
    """Run `serve` as a service manager does: without a terminal, and with nothing at standard input."""
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config"), **env}
    return run_program("serve", *arguments, env=environment, stdin=subprocess.DEVNULL)


def test_nothing_of_the_network_is_loaded_by_a_server_over_standard_streams(tmp_path: Path) -> None:
    code = (
        "import sys, atexit, os; from simplemem.cli.serve import serve_main; import simplemem.server.serve as s\n"
        "def end(*a, **k):\n"
        "    import simplemem.server.calls\n"
        "    bad = [m for m in sys.modules if m.startswith('simplemem.web') or m == 'jwt']\n"
        "    os.write(2, repr(bad).encode()); os._exit(0)\n"
        "s.serve_stdio = end\n"
        f"serve_main(['--vault', {str(tmp_path)!r}])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=True,
    )
    assert ended.stderr.endswith("[]"), ended.stderr
