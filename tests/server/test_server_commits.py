"""Servers that commit to the person's repository: behind the answers, with the client's name, and after a death."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bare_client import Bare
from waiting import eventually

BATCH = {"SIMPLEMEM_GIT_COMMIT": "batch", "SIMPLEMEM_GIT_QUIET_SECONDS": "1", "SIMPLEMEM_EMBED_PROVIDER": "none"}


def test_a_server_commits_what_its_client_changed_under_the_clients_name(git: Any, vault: Path) -> None:
    git.commit("Begin")
    with Bare(vault, env=BATCH) as bare:
        bare.initialize()
        bare.call("create_memory", name="tea", content="Oolong.")
        bare.call("update_memory", name="tea", append="Green.")
        assert eventually(lambda: git("rev-list", "--count", "HEAD").strip() == "2")
        told = bare.call("memory_history", name="tea")["structuredContent"]["versions"]
        bare.end_input()
        assert bare.process.wait(3) == 0
    assert [version["what"].partition(" (")[0] for version in told] == ["update tea", "create tea"]
    actor = git("log", "-1", "--format=%(trailers:key=Simplemem-Actor,valueonly)").strip()
    assert actor == told[0]["who"] and "bare" in actor
    assert git("status", "--porcelain") == ""


def test_an_agent_sees_what_a_person_committed_and_reads_it(git: Any, vault: Path) -> None:
    (vault / "tea.md").write_text("Oolong.\n")
    first = git.commit("Prefer oolong", at="2026-01-05T10:00:00+0000")
    (vault / "tea.md").write_text("Green.\n")
    git.commit("Change my mind")
    with Bare(vault, env={"SIMPLEMEM_EMBED_PROVIDER": "none"}) as bare:
        bare.initialize()
        answer = bare.call("memory_history", name="tea", diff=True)
        versions = answer["structuredContent"]["versions"]
        assert [(v["version"], v["who"], v["what"]) for v in versions][1] == (
            first[:10],
            "Ida Marsh",
            "create tea (git): Prefer oolong",
        )
        assert "-Oolong." in versions[0]["diff"] and "Change my mind" in answer["content"][0]["text"]
        read = bare.call("read_memory", name="tea", version=first[:10])
        assert read["structuredContent"]["content"].strip() == "Oolong."
        refused = bare.call("undo_change", version=first[:10])
        assert refused["isError"] and "commit of git" in refused["content"][0]["text"]


def test_a_repository_that_cannot_be_committed_to_costs_no_write(git: Any, vault: Path) -> None:
    git.commit("Begin")
    (vault / ".git" / "MERGE_HEAD").write_text(git("rev-parse", "HEAD"))
    with Bare(vault, env=BATCH) as bare:
        bare.initialize()
        made = bare.call("create_memory", name="tea", content="Oolong.")
        assert not made.get("isError")
        assert eventually(lambda: b"A merge is under way" in bare.said)
        bare.end_input()
        assert bare.process.wait(3) == 0
    assert (vault / "tea.md").exists() and git("rev-list", "--count", "HEAD").strip() == "1"
