"""A real server of the profile `self-improving`: where it keeps what is learned, and that nothing acknowledged is lost."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

import pytest
from bare_client import Bare

from simplemem.cli.serve import _vault
from simplemem.faces.profiles import PROFILES

WORDS = {"SIMPLEMEM_EMBED_PROVIDER": "none"}
PROFILE = ("--profile", "self-improving")


@pytest.mark.parametrize(
    ("env", "named", "where"),
    [
        ({}, None, ".claude-memory"),
        ({"MEMORY_STORAGE_PATH": "learned/here"}, None, "learned/here"),
        ({"MEMORY_STORAGE_PATH": "learned/here", "SIMPLEMEM_VAULT": "own"}, None, "own"),
        ({"MEMORY_STORAGE_PATH": "learned/here", "SIMPLEMEM_VAULT": "own"}, "named", "named"),
    ],
)
def test_which_vault_it_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, env: dict[str, str], named: str | None, where: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert _vault(Namespace(vault=named), PROFILES["self-improving"]) == tmp_path / where


def test_it_keeps_what_is_learned_where_the_original_was_told_to(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "simplemem", "serve", *PROFILE]
    env = WORDS | {"MEMORY_STORAGE_PATH": "learned/here"}
    with Bare(tmp_path, env=env, command=command, cwd=tmp_path) as server:
        assert server.initialize()["instructions"].startswith("This is what you have learned")
        assert len(server.request("tools/list")["result"]["tools"]) == 25
        server.call("save_knowledge", type="error", content="It broke", confidence=0.9, tags=[])
        refused = server.call("link_knowledge", sourceId="a", targetId="b")
        assert refused["isError"] and refused["content"][0]["text"].startswith("Error: Knowledge entry not found: a")
        assert refused["structuredContent"]["error"]["code"] == "not_found"
    assert (tmp_path / "learned" / "here" / "knowledge" / "error" / "it-broke.md").exists()
