"""Servers that commit to the person's repository: behind the answers, with the client's name, and after a death."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bare_client import Bare
from waiting import eventually

EACH = {"SIMPLEMEM_GIT_COMMIT": "each", "SIMPLEMEM_EMBED_PROVIDER": "none"}


def test_a_server_commits_what_its_client_changed_under_the_clients_name(git: Any, vault: Path) -> None:
    git.commit("Begin")
    with Bare(vault, env=EACH) as bare:
        bare.initialize()
        bare.call("create_memory", name="tea", content="Oolong.")
        bare.call("update_memory", name="tea", append="Green.")
        assert eventually(lambda: git("rev-list", "--count", "HEAD").strip() == "3")
        told = bare.call("memory_history", name="tea")["structuredContent"]["versions"]
        bare.end_input()
        assert bare.process.wait(3) == 0
    assert [version["what"].partition(" (")[0] for version in told] == ["update tea", "create tea"]
    actor = git("log", "-1", "--format=%(trailers:key=Simplemem-Actor,valueonly)").strip()
    assert actor == told[0]["who"] and "bare" in actor
    assert git("status", "--porcelain") == ""


def test_a_repository_that_cannot_be_committed_to_costs_no_write(git: Any, vault: Path) -> None:
    git.commit("Begin")
    (vault / ".git" / "MERGE_HEAD").write_text(git("rev-parse", "HEAD"))
    with Bare(vault, env=EACH) as bare:
        bare.initialize()
        made = bare.call("create_memory", name="tea", content="Oolong.")
        assert not made.get("isError")
        assert eventually(lambda: b"A merge is under way" in bare.said)
        bare.end_input()
        assert bare.process.wait(3) == 0
    assert (vault / "tea.md").exists() and git("rev-list", "--count", "HEAD").strip() == "1"
