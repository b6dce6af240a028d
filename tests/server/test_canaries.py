"""Keys and passwords are in no log at the most verbose level, no error and no output about the settings.

The program runs as a real process; everything it prints is searched.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from bare_client import Bare
from embedding_service import EmbeddingService
from waiting import eventually
from watched import run_commands

from tests.web.conftest import Served, Session

_KEYS = {
    "SIMPLEMEM_EMBED_API_KEY": "canary-embed-7f3a",
    "SIMPLEMEM_RERANK_API_KEY": "canary-rerank-7f3b",
    "SIMPLEMEM_VOYAGE_AI_API_KEY": "canary-voyage-7f3c",
    "SIMPLEMEM_EMBED_URL": "http://ada:canary-url-7f3d@127.0.0.1:9/v1",
    "SIMPLEMEM_RERANK_URL": "http://ada:canary-url-7f3e@127.0.0.1:9/v1",
    "SIMPLEMEM_LOG_LEVEL": "debug",
}
_TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def env_of(tmp_path: Path, **more: str) -> dict[str, str]:
    return {**os.environ, **_KEYS, "SIMPLEMEM_VAULT": str(tmp_path / "vault"), **more}


@pytest.mark.parametrize(
    "provider", ["none", "openai"], ids=["keys that are not used", "a service that is not there"]
)
def test_no_command_prints_a_key(tmp_path: Path, provider: str) -> None:
    (tmp_path / "vault").mkdir()
    more = {"SIMPLEMEM_EMBED_PROVIDER": provider, "SIMPLEMEM_EMBED_MODEL": "m"}
    if provider != "none":
        more |= {"SIMPLEMEM_RERANK_PROVIDER": "http"}
    lines = [
        "init",
        "new|tea|--content|Oolong.",
        "index",
        "search|oolong",
        "config",
        "config|--json",
        "stats",
        "doctor",
    ]
    lines += ["stats|--json", "show|nowhere", "undo|v999", "context|oolong"]
    outputs = run_commands(lines, env_of(tmp_path, **more), "-X", "dev", "-W", "ignore")
    assert "embed.api_key" in outputs and "canary" not in outputs
    stored = b"".join(
        file.read_bytes() for file in (tmp_path / "vault").rglob("*") if file.is_file()
    )
    assert b"canary" not in stored


def test_no_answer_and_no_line_of_a_servers_log_holds_a_key_or_a_refused_secret(
    tmp_path: Path,
) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "tea.md").write_text("Oolong.\n")
    more = {
        "SIMPLEMEM_EMBED_PROVIDER": "openai",
        "SIMPLEMEM_EMBED_MODEL": "m",
        "SIMPLEMEM_RERANK_PROVIDER": "http",
    }
    env = {**_KEYS, **more, "SIMPLEMEM_WRITE_SECRETS": "refuse"}
    with Bare(vault, env=env, fresh=True) as bare:
        bare.initialize()
        bare.request("tools/list")
        answers = [
            bare.call("search_memories", query="oolong", explain=True),
            bare.call("build_context", query="oolong"),
            bare.call("create_memory", name="new", content=f"Use {_TOKEN}\r\n\x1b[31m"),
            bare.call("update_memory", name="tea", append=_TOKEN),
            bare.call("update_memory", name="tea", edits=[{"old": "Oolong", "new": _TOKEN}]),
            bare.call("change_tag", name="tea", tags={_TOKEN: True}),
            bare.call("memory_history", diff=True),
            bare.request("resources/list"),
        ]
        title = Path(f"/proc/{bare.process.pid}/cmdline")
        title_text = title.read_text() if title.exists() else ""
        bare.end_input()
        bare.process.wait(20)
    everything_sent = json.dumps(answers) + bare.log.decode() + title_text
    assert [answer["structuredContent"]["error"]["code"] for answer in answers[2:6]] == [
        "invalid"
    ] * 4
    assert "canary" not in everything_sent and _TOKEN not in everything_sent
    assert "\x1b" not in bare.log.decode()
    stored = b"".join(file.read_bytes() for file in vault.rglob("*") if file.is_file())
    assert _TOKEN.encode() not in stored and b"canary" not in stored


def test_the_most_verbose_log_of_a_network_server_holds_no_note_and_no_key(tmp_path: Path) -> None:
    """MCP, its events, REST and an embedding service all run below the log level `debug`."""
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "tea.md").write_text("The quokka drinks oolong.\n")
    with EmbeddingService() as service:
        embed = {
            "PROVIDER": "openai",
            "MODEL": "m",
            "URL": service.url,
            "API_KEY": "canary-embed-7f3a",
        }
        env = {f"SIMPLEMEM_EMBED_{name}": value for name, value in embed.items()}
        server = Served(["--vault", str(vault), "--log-level", "debug"], tmp_path / "config", env)
        try:
            session = Session(server)
            assert "quokka" in session.ask(
                "tools/call", {"name": "read_memory", "arguments": {"name": "tea"}}
            )
            arguments = {"query": "which animal drinks quokka tea"}
            assert "quokka" in session.ask(
                "tools/call", {"name": "search_memories", "arguments": arguments}
            )
            assert "quokka" in session.ask("resources/read", {"uri": "memory://tea"})
            assert "quokka" in session.ask(
                "prompts/get", {"name": "recall", "arguments": {"topic": "quokka"}}
            )
            note = {"name": "numbat", "content": "The numbat drinks water."}
            assert server.api("POST", "/memories", note).status == 201
            assert "numbat" in server.api("GET", "/memories/numbat").body.decode()
            assert eventually(
                lambda: any(
                    "numbat" in text for request in service.requests for text in request.texts
                )
            )
        finally:
            server.clear()
    log = "".join(server.log)
    assert "POST" in log  # the log was as verbose as it gets
    for planted in ("quokka", "oolong", "numbat", "canary", server.token):
        assert planted not in log
