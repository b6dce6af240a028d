"""A real server of the profile `self-improving`: where it keeps what is learned, and that nothing acknowledged is lost."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

import pytest
from bare_client import Bare, Inside

from simplemem.cli.serve import _vault
from simplemem.config import Settings
from simplemem.faces.profiles import PROFILES
from simplemem.kinds.learned.knowledge import knowledge_of
from simplemem.store import EnhancedStore

WORDS = {"SIMPLEMEM_EMBED_PROVIDER": "none"}
PROFILE = ("--profile", "self-improving")


def kept(vault: Path) -> list[str]:
    with EnhancedStore(vault, Settings.model_validate({"embed": {"provider": "none"}})) as store:
        return sorted(entry.id for entry in knowledge_of(store).entries())


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


def test_two_servers_and_a_person_keep_and_find_together(vault: Path) -> None:
    with Inside(vault, "self-improving") as one, Inside(vault, "self-improving") as other:
        for server in (one, other):
            server.initialize()
        saving = {"type": "pattern", "confidence": 0.5, "tags": ["a"]}
        asked = [
            (
                server,
                server.post("tools/call", {"name": "save_knowledge", "arguments": saving | {"content": f"It {k}"}}),
            )
            for k in (0, 1, 2, 0, 1, 2)
            for server in (one, other)
        ]
        answers = [server.answer(number)["result"]["structuredContent"] for server, number in asked]
        ids = sorted(answer["id"] for answer in answers)
        assert len(set(ids)) == len({answer["name"] for answer in answers}) == 12
        one.call("link_knowledge", sourceId=ids[0], targetId=ids[1], relationship="repeats")
        other.call("link_knowledge", sourceId=ids[0], targetId=ids[1], relationship="is like")
        assert other.call("get_stats")["structuredContent"]["total"] == 12
        file = vault / f"{answers[0]['name']}.md"
        file.write_text(file.read_text() + "\nA person says zebra.\n")
        one.call("search_knowledge", query="it")
        assert kept(vault) == ids
    text = "".join(path.read_text() for path in vault.glob("knowledge/**/*.md"))
    assert "- repeats [[" in text and "- is like [[" in text and "zebra" in text
