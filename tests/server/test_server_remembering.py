"""What the server takes from its environment for remembering: the time, and a folder of Markdown beside the vault."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from bare_client import Bare
from waiting import eventually

BASE = {"query_knowledge_base", "update_knowledge_base"}
SERVE = [sys.executable, "-m", "simplemem", "serve"]
PLAIN = {"SIMPLEMEM_EMBED_PROVIDER": "none"}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (folder := tmp_path / "kb").mkdir()
    (folder / "intro.md").write_text("# Intro\n\nThe lighthouse keeper is called Osmund.\n")
    return folder


def tools(bare: Bare) -> set[str]:
    bare.initialize()
    return {tool["name"] for tool in bare.request("tools/list")["result"]["tools"]}


def test_the_time_that_is_named_is_the_servers(vault: Path) -> None:
    (vault / "old.md").write_text("---\nmodified: 2030-12-31T12:00:00\n---\n\nOld.\n")
    with Bare(vault, env={**PLAIN, "SIMPLEMEM_NOW": "2031-05-06T12:00:00"}) as bare:
        bare.initialize()
        bare.call("create_memory", name="tea", content="Oolong.")
        assert "created: 2031-05-06T12:00:00" in (vault / "tea.md").read_text()
        found = str(bare.call("list_memories", since="this year")["structuredContent"])
        assert "'tea'" in found and "'old'" not in found


@pytest.mark.parametrize("way", ["--knowledge-base", "GOMEM_KB_PATH", "GOMEM_KNOWLEDGE_BASE"])
def test_a_knowledge_base_has_two_tools_beside_those_of_any_profile(
    vault: Path, base: Path, way: str
) -> None:
    options = [way, str(base)] if way.startswith("--") else []
    env = {**PLAIN, **({} if options else {way: str(base)})}
    with Bare(vault, "--profile", "remembrances", *options, env=env) as bare:
        assert tools(bare) >= BASE
        answer = bare.call("query_knowledge_base", query="who is the lighthouse keeper?")[
            "structuredContent"
        ]
        assert [result["source"] for result in answer["results"]] == ["intro.md"]


def test_what_changes_there_is_found_and_all_ends_with_the_server(vault: Path, base: Path) -> None:
    def answers() -> str:
        return str(bare.call("query_knowledge_base", query="the keeper")["structuredContent"])

    with Bare(vault, "--knowledge-base", str(base), env=PLAIN) as bare:
        assert tools(bare) > BASE
        bare.call(
            "update_knowledge_base",
            file_path="docs/fog.md",
            content="# Fog\r\n\r\nThe keeper sounds it.\r\n",
        )
        assert (base / "docs" / "fog.md").read_bytes() == b"# Fog\r\n\r\nThe keeper sounds it.\r\n"
        assert eventually(lambda: "sounds it" in answers())
        (base / "intro.md").write_text("The keeper is called Ida.\n")
        assert eventually(lambda: "Ida" in answers() and "Osmund" not in answers())
        assert not list(vault.rglob("*.md"))
        assert bare.process.stdin is not None
        bare.process.stdin.close()
        assert bare.process.wait(30) == 0


@pytest.mark.parametrize("place", ["kb/intro.md", "nowhere", "vault", "."])
def test_what_can_be_none_ends_the_server_with_a_sentence(
    vault: Path, base: Path, place: str
) -> None:
    command = [*SERVE, "--vault", str(vault), "--knowledge-base", str(base.parent / place)]
    ended = subprocess.run(
        command, input=b"", capture_output=True, timeout=60, env={**os.environ, **PLAIN}
    )
    assert (
        ended.returncode == 1
        and b"knowledge base" in ended.stderr
        and b"Traceback" not in ended.stderr
    )


def test_a_client_is_told_of_it(vault: Path, base: Path) -> None:
    command = [sys.executable, "-m", "simplemem", "connect", "json", "--vault", str(vault)]
    shown_page = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "GOMEM_KB_PATH": str(base)}
    )
    assert f'"--knowledge-base",\n        "{base}"' in shown_page.stdout
