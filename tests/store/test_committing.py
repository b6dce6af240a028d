"""What our tools changed is committed; what a person changed or staged is theirs; and nobody waits for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pygit2
import pytest
from pygit2.enums import ConfigLevel

from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]


def opened(vault: Path, *folders: Path) -> EnhancedStore:
    given = {
        "embed": {"provider": "none"},
        "git": {"commit": "each", "folders": [str(each) for each in folders]},
    }
    return EnhancedStore(vault, Settings.model_validate(given))


def subjects(git: Any) -> list[str]:
    return str(git("log", "--reverse", "--format=%s")).splitlines()


def in_head(git: Any, path: str) -> str:
    return str(git("show", f"HEAD:{path}"))


# -- each change


def test_nothing_is_committed_unless_it_is_switched_on(git: Any, vault: Path) -> None:
    git.commit("Begin")
    with EnhancedStore(vault, Settings.model_validate({"embed": {"provider": "none"}})) as store:
        store.create("a", "text")
    assert subjects(git) == ["Begin"] and not (vault / ".simplemem" / "git").exists()


def test_each_change_is_a_commit_with_who_asked_and_why(git: Any, vault: Path) -> None:
    git.commit("Begin")
    with opened(vault) as store:
        store.create(
            "projects/apollo",
            "one",
            who="claude-code 2.0",
            tool="create_memory",
            reason="the user said so",
        )
        store.update("projects/apollo", append="two", who="claude-code 2.0", tool="update_memory")
        store.move("projects/apollo", "archive/apollo", who="claude-code 2.0", tool="move_memory")
        store.delete("archive/apollo", who="command line", tool="delete")
    assert subjects(git) == [
        "Begin",
        "simplemem: create projects/apollo",
        "simplemem: update projects/apollo",
        "simplemem: move projects/apollo to archive/apollo",
        "simplemem: delete archive/apollo",
    ]
    form = "%(trailers:only,unfold)"
    assert git("log", "-1", f"--format={form}", "HEAD~3").strip().splitlines() == [
        "Simplemem-Actor: claude-code 2.0",
        "Simplemem-Tool: create_memory",
        "Simplemem-Reason: the user said so",
        "Simplemem-Version: v000001",
    ]
    assert git("log", "-1", "--format=%an <%ae>").strip() == "Ida Marsh <ida@example.org>"
    assert git("status", "--porcelain") == "" == git("ls-tree", "HEAD")
    assert git("fsck", "--strict") == ""
    assert "one" in git("show", "HEAD~3:projects/apollo.md")


def test_a_vault_deep_in_a_repository_commits_beneath_itself(
    git: Any, vault: Path, write: Write
) -> None:
    write("code/main.c", "int main;\n")
    write("docs/notes/a.md", "one\n")
    git.commit("Begin")
    write("code/main.c", "int main, half_done;\n")
    with opened(vault / "docs" / "notes") as store:
        store.update("a", append="two")
        store.create("Köln/with 'quotes' -- and", "text")
    assert git("status", "--porcelain", "--untracked-files=all").split() == ["M", "code/main.c"]
    assert (
        git("show", "--format=", "--name-only", "-z", "HEAD").strip("\0\n")
        == "docs/notes/Köln/with 'quotes' -- and.md"
    )


def test_what_was_asked_for_cannot_forge_a_trailer(git: Any, vault: Path) -> None:
    git.commit("Begin")
    with opened(vault) as store:
        store.create(
            "a",
            "text",
            who="agent\nSimplemem-Actor: Ida",
            reason="because\n\nSigned-off-by: Ida\x1b[2J",
        )
    trailers = git("log", "-1", "--format=%(trailers:only)").strip().splitlines()
    assert [line.partition(":")[0] for line in trailers] == [
        "Simplemem-Actor", "Simplemem-Tool", "Simplemem-Reason", "Simplemem-Version"
    ]  # fmt: skip
    assert trailers[0] == "Simplemem-Actor: agent Simplemem-Actor: Ida"


def test_without_an_identity_a_plain_one_stands_in(git: Any, vault: Path) -> None:
    git.commit("Begin")
    git("config", "--unset", "user.name")
    git("config", "--unset", "user.email")
    for level in (ConfigLevel.GLOBAL, ConfigLevel.XDG, ConfigLevel.SYSTEM):
        pygit2.settings.search_path[level] = str(
            vault / "nowhere"
        )  # libgit2 looked for a home before the test had one
    with opened(vault) as store:
        store.create("a", "text")
    assert (
        git("log", "-1", "--format=%an <%ae>|%cn").strip()
        == "simplemem <simplemem@localhost>|simplemem"
    )


# -- what is the person's


def test_what_is_staged_stays_staged_and_is_the_persons_to_commit(
    git: Any, vault: Path, write: Write
) -> None:
    for name in ("a", "b", "c", "d"):
        write(f"{name}.md", f"{name}\n")
    git.commit("Begin")
    write("b.md", "b, prepared\n")
    write("new.md", "also prepared\n")
    git("add", "b.md", "new.md")
    git("rm", "--quiet", "--cached", "c.md")
    write("b.md", "b, prepared and more\n")
    staged = git("diff", "--cached", "--raw", "--no-abbrev")
    with opened(vault) as store:
        store.update("a", append="ours")
        store.update("b", append="ours")
        store.update("d", append="ours")
    assert git("diff", "--cached", "--raw", "--no-abbrev") == staged
    assert subjects(git)[1:] == ["simplemem: update a", "simplemem: update d"]
    assert any(
        "commit it yourself: 'b.md'" in sentence for sentence in store._parts.committing.failures
    )
    assert git("diff", "--name-only").split() == ["b.md"]


def test_an_edit_in_the_very_moment_of_staging_is_still_seen(
    git: Any, vault: Path, write: Write
) -> None:
    git("config", "core.trustctime", "false")
    git.commit("Begin")
    moment = 1_700_000_000 * 10**9
    note = write("b.md", "1")
    os.utime(note, ns=(moment, moment))
    git("add", "b.md")
    os.utime(vault / ".git" / "index", ns=(moment, moment))
    note.write_text("2")  # of the same size, within one tick of the clock
    os.utime(note, ns=(moment, moment))
    with opened(vault) as store:
        store.create("a", "ours")
    assert git("show", ":b.md") == "1" and git("diff", "--name-only") == "b.md\n"


def test_a_note_with_uncommitted_edits_is_left_to_the_person(
    git: Any, vault: Path, write: Write
) -> None:
    write("a.md", "one\n")
    write("b.md", "b\n")
    git.commit("Begin")
    write("a.md", "one, by a person\n")
    with opened(vault) as store:
        store.update("a", append="ours")
        store.update("b", append="ours")
        store.move("b", "c")
        write("draft.md", "a draft\n")  # which no git has seen yet
        store.update("draft", append="ours")
        store.move("draft", "drafts/one")
    assert subjects(git)[1:] == ["simplemem: update b", "simplemem: move b to c"]
    assert (
        git("status", "--porcelain").split() == ["M", "a.md", "??", "drafts/"]
        and in_head(git, "a.md") == "one\n"
    )
    assert any(
        "'a.md'" in sentence and "commit it yourself" in sentence
        for sentence in store._parts.committing.failures
    )


@pytest.mark.parametrize("how", ["--skip-worktree", "--assume-unchanged"])
def test_a_note_that_git_was_told_not_to_look_at_is_left_so(
    git: Any, vault: Path, write: Write, how: str
) -> None:
    write("a.md", "one\n")
    write("b.md", "b\n")
    git.commit("Begin")
    git("update-index", how, "a.md")
    flags = git("ls-files", "-v")
    assert flags != "H a.md\nH b.md\n"
    with opened(vault) as store:
        store.update("a", append="ours")
        store.update("b", append="ours")
    assert any(
        "'a.md'" in sentence and "commit it yourself" in sentence
        for sentence in store._parts.committing.failures
    )
    assert subjects(git)[1:] == ["simplemem: update b"]
    assert git("ls-files", "-v") == flags and in_head(git, "a.md") == "one\n"


def test_what_is_ignored_is_not_committed(git: Any, vault: Path, write: Write) -> None:
    write(".gitignore", "private/\n*.tmp.md\n")
    git.commit("Begin")
    with opened(vault) as store:
        store.create("private/diary", "secret")
        store.create("b.tmp", "text")
        store.create("shown", "text")
        store.move("shown", "private/shown")
        store.move("private/shown", "again")
    assert subjects(git)[1:] == [
        "simplemem: create shown",
        "simplemem: move shown to private/shown",
        "simplemem: move private/shown to again",
    ]
    assert (
        git("ls-files").split() == [".gitignore", "again.md"] and git("status", "--porcelain") == ""
    )


def test_a_note_behind_a_filter_is_never_stored_in_the_clear(
    git: Any, vault: Path, write: Write
) -> None:
    write(".gitattributes", "secret/** filter=git-crypt diff=git-crypt\n")
    git.commit("Begin")
    with opened(vault) as store:
        store.create("secret/a", "the launch code")
        store.create("b", "text")
    assert subjects(git)[1:] == ["simplemem: create b"]
    kept = [
        row.split() for row in git("cat-file", "--batch-check", "--batch-all-objects").splitlines()
    ]
    assert not any(
        "launch code" in git("cat-file", "blob", oid) for oid, kind, _ in kept if kind == "blob"
    )


def test_line_ends_are_stored_as_the_repository_wants_them(
    git: Any, vault: Path, write: Write
) -> None:
    write(".gitattributes", "*.md text=auto\n")
    write("a.md", b"one\r\ntwo\r\n")
    git.commit("Begin")
    with opened(vault) as store:
        store.update("a", append="three")
    assert "\r" not in in_head(git, "a.md") and "three" in in_head(git, "a.md")
    assert (vault / "a.md").read_bytes().count(b"\r\n") >= 2 and git("status", "--porcelain") == ""


# -- kinds of repositories


@pytest.mark.parametrize(
    "kind", ["worktree", "submodule", "sha256", "split index", "sparse", "packed"]
)
def test_repositories_of_every_kind_are_committed_to_or_it_is_said_why_not(
    git: Any, vault: Path, write: Write, tmp_path: Path, kind: str
) -> None:
    if kind == "sha256":
        shutil.rmtree(vault / ".git")
        git("init", "--quiet", "--initial-branch=main", "--object-format=sha256")
        git("config", "user.name", "Ida Marsh")
        git("config", "user.email", "ida@example.org")
    write("notes/a.md", "one\n")
    write("elsewhere/b.md", "b\n")
    git.commit("Begin")
    place = vault
    if kind == "worktree":
        place = tmp_path / "tree"
        git("worktree", "add", "--quiet", "-b", "other", str(place))
    elif kind == "submodule":
        (tmp_path / "outer").mkdir()
        outer = type(git)(tmp_path / "outer")
        outer(
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "--quiet",
            "add",
            vault.as_uri(),
            "inner",
        )
        place = tmp_path / "outer" / "inner"
    elif kind == "split index":
        git("update-index", "--split-index")
        git("config", "core.splitIndex", "true")
    elif kind == "sparse":
        git("sparse-checkout", "set", "--cone", "--sparse-index", "notes")
    elif kind == "packed":
        git("pack-refs", "--all")
        git("gc", "--quiet")
    here = type(git).__new__(type(git))
    here.folder = place
    with opened(place / "notes", vault, tmp_path / "outer" / ".git") as store:
        store.update("a", append="two")
        store.create("c", "text")
        told = {entry.source for entry in store.history("a")}
    if kind in ("sha256", "split index", "sparse"):
        assert "libgit2 cannot use the repository" in store._parts.committing.failures[
            0
        ] and subjects(here) == ["Begin"]
        return
    assert told == {"simplemem", "git"}
    assert store._parts.committing.failures == []
    assert subjects(here)[1:] == ["simplemem: update a", "simplemem: create c"]
    assert here("status", "--porcelain") == ""
    assert "two" in in_head(here, "notes/a.md") and in_head(here, "elsewhere/b.md") == "b\n"


# -- a repository that is busy with something else


@pytest.mark.parametrize("state", ["detached", "merge", "rebase", "bisect", "lock"])
def test_what_is_changed_while_the_repository_is_busy_is_left_to_the_person(
    git: Any, vault: Path, write: Write, state: str
) -> None:
    write("a.md", "one\n")
    git.commit("Begin")
    folder = vault / ".git"
    files = {
        "merge": "MERGE_HEAD",
        "rebase": "rebase-merge",
        "bisect": "BISECT_LOG",
        "lock": "index.lock",
    }
    if state == "detached":
        git("checkout", "--quiet", "--detach")
    elif state == "rebase":
        (folder / files[state]).mkdir()
    else:
        (folder / files[state]).write_text(git("rev-parse", "HEAD"))
    with opened(vault) as store:
        assert store.update("a", append="two").changed, "the write itself waits for nothing"
    assert "commit it yourself" in store._parts.committing.failures[0] and subjects(git) == [
        "Begin"
    ]
    assert "two" in (vault / "a.md").read_text()


def test_no_hook_filter_or_program_of_the_repository_is_run(
    git: Any, vault: Path, write: Write, tmp_path: Path
) -> None:
    write("a.md", "one\ntwo\nthree\n")
    git.commit("Begin")
    canary = git.set_traps(tmp_path)
    with opened(vault) as store:
        store.update("a", append="four")
        store.create("b", "text")
        store.move("b", "c")
        (begin,) = (entry for entry in store.history("a", diff=True) if entry.reason == "Begin")
        assert store.read("a", version=begin.version).text == "one\ntwo\nthree\n"
        said = store._parts.committing.failures
    assert not canary.exists() and said == []
    assert len((vault / ".git" / "logs" / "HEAD").read_text().splitlines()) == 4
    git("status", check=False)
    assert canary.exists(), "the traps are live"


# -- company


DYING = """
import os, sys
from pathlib import Path
from simplemem.gitrepo import committing
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore
taken = committing.replace_index if sys.argv[2] == "branch" else lambda *args, **more: None
name = "commit_patches" if sys.argv[2] == "commit" else "replace_index"
setattr(committing, name, lambda *args, **more: (taken(*args), os._exit(9)))
given = {"embed": {"provider": "none"}, "git": {"commit": "each"}}
with EnhancedStore(Path(sys.argv[1]), Settings.model_validate(given)) as store:
    store.update("a", append="ours")
"""


@pytest.mark.parametrize("at", ["commit", "branch"])
def test_what_a_dead_process_had_not_committed_is_left_to_the_person_and_what_it_had_begun_is_finished(
    git: Any, vault: Path, write: Write, at: str
) -> None:
    write("a.md", "one\n")
    git.commit("Begin")
    ended = subprocess.run(
        [sys.executable, "-c", DYING, str(vault), at], capture_output=True, check=False, timeout=60
    )
    assert ended.returncode == 9, ended.stderr.decode()
    (vault / ".git" / "index.lock").unlink(missing_ok=True)  # as git tells a person whose git died
    assert git("status", "--porcelain") == (" M a.md\n" if at == "commit" else "M  a.md\n")
    with opened(vault) as store:
        store.create("b", "text")
    assert subjects(git)[1:] == [
        *(["simplemem: update a"] if at == "branch" else []),
        "simplemem: create b",
    ]
    assert git("status", "--porcelain") == (" M a.md\n" if at == "commit" else "")


@pytest.mark.slow
def test_eight_processes_on_one_repository_commit_each_change_once(
    git: Any, vault: Path, write: Write
) -> None:
    write("mine.md", "mine\n")
    git.commit("Begin")
    writer = """
import sys
from pathlib import Path
from simplemem.settings.model import Settings
from simplemem.errors import Unavailable
from simplemem.gitrepo.history import read_history
from simplemem.store import EnhancedStore
given = {"embed": {"provider": "none"}, "git": {"commit": "each"}}
with EnhancedStore(Path(sys.argv[1]), Settings.model_validate(given)) as store:
    for n in range(3):
        store.create(f"by {sys.argv[2]}/note {n}", "text", who=sys.argv[2])
"""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", writer, str(vault), f"p{n}"], stderr=subprocess.PIPE
        )
        for n in range(8)
    ]
    for n in range(6):  # the person works on
        write("mine.md", f"mine {n}\n")
        git("add", "mine.md", check=False)
        git("commit", "--quiet", "-m", f"Mine {n}", "mine.md", check=False)
    for process in running:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors.decode()
    said = [subject for subject in subjects(git) if subject.startswith("simplemem: create by p")]
    left = [
        row
        for row in git("status", "--porcelain", "--untracked-files=all").splitlines()
        if "by p" in row
    ]
    # An end waits some seconds only: what is not committed then is there for the person.
    assert len(set(said)) == len(said) and len(said) + len(left) == 24 and len(said) > 12
    assert "error" not in git("fsck", "--strict")
