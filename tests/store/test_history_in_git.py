"""The past of a memory in a repository: git's commits beside our own changes, and what it said at one of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simplemem.errors import Invalid, NotFound
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore
from simplemem.tools.history import memory_history
from simplemem.vault.values import sha256

Write = Callable[[str, str | bytes], Path]


def opened(vault: Path, access: dict[str, Any] | None = None, **git: Any) -> EnhancedStore:
    given = {"embed": {"provider": "none"}, "git": git, "access": access or {}}
    return EnhancedStore(vault, Settings.model_validate(given))


def told(store: EnhancedStore, name: str, **which: Any) -> list[tuple[str, str, str]]:
    return [(entry.source, entry.op, entry.reason) for entry in store.history(name, **which)]


def test_commits_and_our_changes_are_one_history(git: Any, vault: Path, write: Write) -> None:
    write("a.md", "one\n")
    first = git.commit("Begin", at="2026-01-05T10:00:00+0000")
    with opened(vault) as store:
        store.update("a", append="two", who="agent", reason="ours")
        git.commit("Keep both", at="2098-01-01T00:00:00+0000")
        entries = store.history("a", diff=True)
        assert [(e.source, e.op, e.who, e.tool, e.reason) for e in entries] == [
            ("git", "update", "Ida Marsh", "git", "Keep both"),
            ("simplemem", "update", "agent", "update", "ours"),
            ("git", "create", "Ida Marsh", "git", "Begin"),
        ]
        assert first.startswith(entries[2].version) and entries[2].commit == first
        assert (
            entries[2].sha256 == entries[1].before == sha256(b"one\n") and entries[2].before is None
        )
        assert entries[0].sha256 == entries[1].sha256
        assert "+one" in (entries[2].diff or "") and "+two" in (entries[0].diff or "")
        assert len(store.history("a", limit=2)) == 2 and store.history()[0].source == "simplemem"


def test_a_commit_of_ours_is_told_once_with_the_change_it_holds(
    git: Any, vault: Path, write: Write
) -> None:
    write("a.md", "one\n")
    git.commit("Begin", at="2026-01-05T10:00:00+0000")
    with opened(vault, commit="each") as store:
        store.update("a", append="two", who="agent", reason="ours")
    head = git("rev-parse", "HEAD").strip()
    with opened(vault) as store:
        entries = store.history("a")
        assert [(e.source, e.reason) for e in entries] == [("simplemem", "ours"), ("git", "Begin")]
        assert entries[0].commit == head and entries[0].version == "v000001"


def test_a_memory_is_read_compared_and_restored_at_a_commit(
    git: Any, vault: Path, write: Write
) -> None:
    write("a.md", "# Old\n\none\n")
    first = git.commit("Begin")
    write("a.md", "# New\n\ntwo\n")
    git.commit("Another")
    with opened(vault) as store:
        short = store.history("a")[-1].version  # as many digits as no version of ours has
        for version in (first, short, short.upper()):
            memory = store.read("a", version=version)
            assert memory.text == "# Old\n\none\n" and memory.name == "a"
        assert store.read("a", at=first, section="Old").content.strip().endswith("one")
        (difference,) = store.diff("a", since=short)
        assert "-one" in difference.diff and "+two" in difference.diff
        restored = store.restore("a", at=short)
        assert restored.changed and (vault / "a.md").read_text() == "# Old\n\none\n"
        store.undo("a")
        assert (vault / "a.md").read_text() == "# New\n\ntwo\n"
        with pytest.raises(Invalid, match="commit of git"):
            store.undo(short)
        for wrong in ("deadbeefdeadbeef", "0" * 40):
            with pytest.raises(NotFound):
                store.read("a", version=wrong)


def test_a_note_that_only_git_remembers_comes_back(git: Any, vault: Path, write: Write) -> None:
    write("gone.md", "precious\n")
    first = git.commit("Begin")
    (vault / "gone.md").unlink()
    git.commit("Tidy up")
    with opened(vault) as store:
        assert [(op, reason) for _, op, reason in told(store, "gone")] == [
            ("delete", "Tidy up"),
            ("create", "Begin"),
        ]
        assert store.read("gone", version=first).text == "precious\n"
        store.restore("gone", at=first)
    assert (vault / "gone.md").read_text() == "precious\n"


_ASKING = """
import sys
from pathlib import Path
from simplemem import EnhancedStore, Settings
with EnhancedStore(Path(sys.argv[1]), Settings.model_validate({"embed": {"provider": "none"}})) as store:
    store.sync()
    store.search("one")
    store.read("a")
    store.update("a", append="two")
    store.history()
    store.read("a", version="1")
    assert "pygit2" not in sys.modules
    assert {entry.source for entry in store.history("a")} == {"simplemem", "git"}
    assert "pygit2" in sys.modules
"""


def test_libgit2_is_not_loaded_unless_the_past_of_a_memory_is_asked_for(
    git: Any, vault: Path, write: Write
) -> None:
    write("a.md", "one\n")
    git.commit("Begin")
    subprocess.run([sys.executable, "-c", _ASKING, str(vault)], check=True, timeout=60)


def test_a_git_that_cannot_answer_costs_only_what_it_would_have_told(
    git: Any, vault: Path, write: Write
) -> None:
    write("a.md", "one\n")
    git.commit("Begin")
    (vault / ".git" / "objects" / "info").mkdir(exist_ok=True)
    (vault / ".git" / "objects" / "info" / "alternates").write_text("/somewhere/else\n")
    with opened(vault) as store:
        store.update("a", append="two")
        assert [entry.source for entry in store.history("a")] == ["simplemem"]
        assert (
            "borrows objects from /somewhere/else" in store.git_trouble
            and "git.folders" in store.git_trouble
        )
        reply = memory_history.run(store, name="a")
        assert "git commits are not shown" in reply.text and reply.data()["warnings"] == [
            store.git_trouble
        ]
        reply = memory_history.run(store)
        assert "not shown" not in reply.text and "warnings" not in reply.data()
    (vault / ".git" / "objects" / "info" / "alternates").unlink()
    with opened(vault, history=False) as store:
        assert [entry.source for entry in store.history("a")] == ["simplemem"]


def test_what_is_hidden_from_a_reader_is_hidden_in_git_too(
    git: Any, vault: Path, write: Write
) -> None:
    text = "".join(f"the secret of line {n}\n" for n in range(20))
    write("private/a.md", text)
    first = git.commit("Begin")
    git("mv", "private/a.md", "a.md")
    write("a.md", text.replace("secret of line 7", "open text"))
    second = git.commit("Open it")
    write("private/b.md", "closed\n")
    third = git.commit("Another")
    with opened(vault) as store:
        assert len(store.history("a")) + len(store.history("private/b")) == 3
    with opened(vault, {"hidden": ["private/"]}) as store:
        assert all(
            "private" not in entry.name and entry.commit != first for entry in store.history("a")
        )
        assert store.read("a", version=second).name == "a"
        for name, commit in (("a", first), ("private/a", first), ("private/b", third)):
            with pytest.raises(NotFound):
                store.read(name, version=commit)
        with pytest.raises(NotFound):
            store.history("private/b")
