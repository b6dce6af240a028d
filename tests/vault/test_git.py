"""What git knows of a note is told as it is, and asking runs nothing that the repository names."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simplemem.errors import NotFound, Unavailable
from simplemem.vault import repository
from simplemem.vault.git import blame, commits, is_commit, short, text_at, texts

Write = Callable[[str, str | bytes], Path]
MONDAY, TUESDAY, FRIDAY = "2026-03-02T10:00:00+0000", "2026-03-03T10:00:00+0000", "2026-03-06T10:00:00+0100"


def said(lines: Any) -> list[tuple[str, str]]:
    return [(line.who, line.when[:10]) for line in lines]


# -- the history of a note


def test_commits_of_a_note_come_newest_first_and_say_who_and_when(git: Any, vault: Path, write: Write) -> None:
    write("a.md", "one\n")
    first = git.commit("Begin", at=MONDAY)
    write("b.md", "of no concern\n")
    git.commit("Another note", at=TUESDAY)
    write("a.md", "one\ntwo\n")
    last = git.commit("Say more", at=FRIDAY)
    found = commits(vault, "a.md")
    assert [(each.commit, each.op, each.subject) for each in found] == [
        (last, "update", "Say more"),
        (first, "create", "Begin"),
    ]
    assert (found[0].who, found[0].email, found[0].when) == ("Ida Marsh", "ida@example.org", "2026-03-06T09:00:00Z")
    told = texts(vault, [oid for each in found for oid in (each.before, each.after) if oid])
    assert told[found[0].before or ""] == b"one\n" == told[found[1].after or ""] and found[1].before is None
    assert told[found[0].after or ""] == b"one\ntwo\n" and texts(vault, ["0" * 40, "--all"]) == {}
    assert commits(vault, "a.md", limit=1) == found[:1] and commits(vault, "never.md") == []


def test_a_note_is_followed_through_its_renames(git: Any, vault: Path, write: Write) -> None:
    text = "".join(f"line {n}\n" for n in range(20))
    write("old.md", text)
    first = git.commit("Begin")
    (vault / "deep").mkdir()
    git("mv", "old.md", "deep/new.md")
    moved = git.commit("Move it")
    write("deep/new.md", text + "and more\n")
    git.commit("Say more")
    found = commits(vault, "deep/new.md")
    assert [(each.op, each.path, each.old_path) for each in found] == [
        ("update", "deep/new.md", None),
        ("move", "deep/new.md", "old.md"),
        ("create", "old.md", None),
    ]
    assert text_at(vault, "deep/new.md", first) == ("old.md", text.encode())
    assert text_at(vault, "deep/new.md", moved[:9]) == ("deep/new.md", text.encode())


def test_a_vault_deep_in_a_repository_sees_only_its_own_notes(git: Any, vault: Path, write: Write) -> None:
    write("notes/deep/a.md", "here\n")
    write("a.md", "above\n")
    commit = git.commit("Both")
    inner = vault / "notes" / "deep"
    assert [each.path for each in commits(inner, "a.md")] == ["a.md"]
    assert text_at(inner, "a.md", commit) == ("a.md", b"here\n")
    assert said(blame(inner, "a.md")) == said(blame(vault, "notes/deep/a.md")) != []


@pytest.mark.parametrize(
    "name",
    [
        "with space.md",
        "-rf.md",
        "--help.md",
        "Köln/田.md",
        ":(top)x.md",
        "[a]*.md",
        "a\"b'c.md",
        "a\nb\tc.md",
        "$(x).md",
    ],
)
def test_any_name_of_a_note_is_only_a_name(git: Any, vault: Path, write: Write, name: str) -> None:
    if sys.platform == "win32" and set(name) & set('*":\n\t'):
        pytest.skip("Windows has no such names")
    write(name, "one\ntwo\n")
    write("a.md", "another\n")
    commit = git.commit("Begin")
    write(name, "one\nTWO\n")
    assert [each.path for each in commits(vault, name)] == [name]
    assert text_at(vault, name, commit) == (name, b"one\ntwo\n")
    assert [line.who for line in blame(vault, name)] == ["Ida Marsh", ""]


def test_merged_work_of_another_branch_is_told(git: Any, vault: Path, write: Write) -> None:
    write("a.md", "one\ntwo\nthree\n")
    git.commit("Begin")
    git("checkout", "--quiet", "-b", "side")
    write("a.md", "ONE\ntwo\nthree\n")
    git.commit("On the side")
    git("checkout", "--quiet", "main")
    write("a.md", "one\ntwo\nTHREE\n")
    git.commit("On main")
    git("merge", "--quiet", "-m", "Together", "side")
    assert {each.subject for each in commits(vault, "a.md")} == {"Begin", "On the side", "On main", "Together"}
    by_line = {line.number: line.commit for line in blame(vault, "a.md")}
    subjects = [git("show", "-s", "--format=%s", by_line[n]).strip() for n in (1, 2, 3)]
    assert subjects == ["On the side", "Begin", "On main"]


def test_without_git_a_commit_or_the_program_nothing_is_told(
    vault: Path, write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write("a.md", "one\n")
    assert commits(vault, "a.md") == [] and blame(vault, "a.md") == []
    with pytest.raises(NotFound):
        text_at(vault, "a.md", "0123456789")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commits(vault, "a.md") == [], "outside a repository git is not needed"
    (vault / ".git/objects").mkdir(parents=True)
    (vault / ".git/HEAD").write_text("ref: refs/heads/main\n")
    with pytest.raises(Unavailable, match="not installed"):
        commits(vault, "a.md")


def test_before_the_first_commit_no_line_is_anybodys(git: Any, vault: Path, write: Write) -> None:
    write("a.md", "one\ntwo")
    assert commits(vault, "a.md") == []
    assert said(blame(vault, "a.md")) == [("", ""), ("", "")]
    with pytest.raises(NotFound):
        text_at(vault, "a.md", "0123456789")


def test_an_unknown_commit_and_a_note_that_was_not_there_are_said(git: Any, vault: Path, write: Write) -> None:
    write("a.md", "one\n")
    first = git.commit("Begin")
    write("b.md", "of another kind altogether\n")
    git.commit("More")
    for wrong in ("0" * 40, "HEAD", "main", "--all", "deadbeef", ""):
        with pytest.raises(NotFound):
            text_at(vault, "a.md", wrong)
    with pytest.raises(NotFound, match="was not there"):
        text_at(vault, "b.md", first)


def test_a_shallow_clone_tells_what_it_has(git: Any, vault: Path, write: Write, tmp_path: Path) -> None:
    write("a.md", "one\n")
    git.commit("Begin")
    write("a.md", "one\ntwo\n")
    git.commit("Say more")
    git("clone", "--quiet", "--depth=1", vault.as_uri(), str(tmp_path / "clone"))
    assert [each.subject for each in commits(tmp_path / "clone", "a.md")] == ["Say more"]
    assert len(blame(tmp_path / "clone", "a.md")) == 2


def test_what_a_partial_clone_would_have_to_fetch_is_not_fetched(
    git: Any, vault: Path, write: Write, tmp_path: Path
) -> None:
    write("a.md", "one\n")
    first = git.commit("Begin")
    write("a.md", "one\ntwo\n")
    git.commit("Say more")
    git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    git("clone", "--quiet", "--filter=blob:none", vault.as_uri(), str(clone))
    canary = tmp_path / "canary"
    config = clone / ".git" / "config"
    config.write_text(config.read_text().replace(vault.as_uri(), f"ext::sh -c touch% {canary}"))
    config.write_text(config.read_text() + '[protocol "ext"]\n\tallow = always\n')
    with pytest.raises((NotFound, Unavailable)):
        text_at(clone, "a.md", first)
    assert not canary.exists()


# -- lines


def test_each_line_names_who_last_changed_it(git: Any, vault: Path, write: Write) -> None:
    write("a.md", "# Title\n\nfirst\nsecond\n")
    git.commit("Begin", at=MONDAY)
    git("config", "user.name", "Priya")
    write("a.md", "# Title\n\nfirst\nSECOND\n")
    last = git.commit("Louder", at=FRIDAY)
    write("a.md", "# Title\nnot committed\n\nfirst\nSECOND\n")
    lines = blame(vault, "a.md")
    monday, friday = ("Ida Marsh", "2026-03-02"), ("Priya", "2026-03-06")
    assert said(lines) == [monday, ("", ""), monday, monday, friday]
    assert [line.number for line in lines] == [1, 2, 3, 4, 5] and lines[4].commit == last
    assert [line.actor for line in lines] == [""] * 5


def test_lines_of_a_commit_with_our_trailer_name_the_actor(git: Any, vault: Path, write: Write) -> None:
    write("a.md", "hers\n")
    git.commit("Begin")
    write("a.md", "hers\nits\n")
    git.commit("Add a line\n\nSimplemem-Actor: claude-code 2.0\nSimplemem-Tool: update_memory\n")
    assert [(line.who, line.actor) for line in blame(vault, "a.md")] == [
        ("Ida Marsh", ""),
        ("Ida Marsh", "claude-code 2.0"),
    ]
    found = commits(vault, "a.md")
    assert [(each.actor, each.tool) for each in found] == [("claude-code 2.0", "update_memory"), ("", "")]


def test_line_ends_and_odd_separators_do_not_shift_lines(git: Any, vault: Path, write: Write) -> None:
    write("a.md", "one\u2028still one\ntwo\rstill two\n\nfour")
    git.commit("Begin")
    assert [line.who for line in blame(vault, "a.md")] == ["Ida Marsh"] * 4
    write("b.md", "one\ntwo\n")
    write("c.md", b"one\r\ntwo\r\n")
    git.commit("More")
    write("b.md", b"one\r\nTWO\r\n")  # as git lays it down where core.autocrlf is set
    assert [line.who for line in blame(vault, "b.md")] == ["Ida Marsh", ""]
    assert [line.who for line in blame(vault, "c.md")] == ["Ida Marsh"] * 2
    write("empty.md", "")
    assert blame(vault, "empty.md") == []


def test_what_a_commit_says_cannot_move_a_cursor_or_forge_an_entry(git: Any, vault: Path, write: Write) -> None:
    git("config", "user.name", "Ida \x1b[2J\u202e Marsh")
    write("a.md", "one\n")
    git.commit("Say\x1b]0;title\x07 \x1f" + "x" * 5000)
    (found,) = commits(vault, "a.md")
    assert found.who == "Ida [2J Marsh" and len(found.subject) < 400
    assert not any(ord(c) < 32 or c == "\u202e" for c in found.who + found.subject)
    assert [line.who for line in blame(vault, "a.md")] == ["Ida [2J Marsh"]


# -- where the repository is


def test_a_worktree_and_a_submodule_are_followed(git: Any, vault: Path, write: Write, tmp_path: Path) -> None:
    write("a.md", "one\n")
    commit = git.commit("Begin")
    git("worktree", "add", "--quiet", "-b", "other", str(tmp_path / "tree"))
    assert [each.commit for each in commits(tmp_path / "tree", "a.md")] == [commit]
    outer = type(git)(_made(tmp_path / "outer"))
    outer("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", vault.as_uri(), "inner")
    assert [each.commit for each in commits(tmp_path / "outer" / "inner", "a.md")] == [commit]


def test_a_dot_git_that_leads_to_another_repository_is_refused(git: Any, vault: Path, tmp_path: Path) -> None:
    (vault / "secret.md").write_text("private\n")
    git.commit("Private")
    for kind in ("file", "link", "commondir", "refs"):
        fake = _made(tmp_path / kind)
        if kind == "file":
            (fake / ".git").write_text(f"gitdir: {vault}/.git\n")
        elif kind == "link":
            (fake / ".git").symlink_to(vault / ".git")
        elif kind == "commondir":
            (fake / ".git").mkdir()
            (fake / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
            (fake / ".git" / "commondir").write_text(f"{vault}/.git\n")
        else:
            shutil.copytree(vault / ".git", fake / ".git")
            shutil.rmtree(fake / ".git" / "refs")
            (fake / ".git" / "refs").symlink_to(vault / ".git" / "refs")
        with pytest.raises(Unavailable):
            commits(fake, "secret.md")
    git("config", "core.worktree", str(tmp_path / "file"))
    assert len(commits(tmp_path / "file", "secret.md")) == 1, "its git directory names it, so it is its own"


def test_a_repository_of_somebody_else_is_read(git: Any, vault: Path, write: Write) -> None:
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    write("a.md", "one\n")
    git.commit("Begin")
    for folder, _, files in os.walk(vault):
        for name in (folder, *(os.path.join(folder, file) for file in files)):
            os.chown(name, 12345, 12345)
    assert "dubious" in _fails(git, "status")
    assert [each.subject for each in commits(vault, "a.md")] == ["Begin"] and len(blame(vault, "a.md")) == 1


def test_a_git_that_hangs_is_given_up(
    git: Any, vault: Path, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sys.platform == "win32":
        pytest.skip("the stand-in for git is a shell script")
    write("a.md", "one\n")
    git.commit("Begin")
    slow = git.script(tmp_path / "bin" / "git", "sleep 60")
    monkeypatch.setenv("PATH", f"{slow.parent}{os.pathsep}{os.environ['PATH']}")
    found = repository.find(vault)
    assert found is not None
    with repository.asking(found, seconds=0.3) as asked, pytest.raises(Unavailable, match=r"within 0\.3 s"):
        asked.head()


def test_a_git_in_the_vault_is_not_the_git_that_is_run(
    git: Any, vault: Path, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("a.md", "one\n")
    git.commit("Begin")
    git.script(vault / "git", f"touch '{tmp_path}/canary'")
    monkeypatch.chdir(vault)
    monkeypatch.setenv("PATH", f".{os.pathsep}{os.pathsep}{os.environ['PATH']}")
    assert len(commits(vault, "a.md")) == 1 and not (tmp_path / "canary").exists()


def test_the_persons_own_git_variables_lead_nowhere_else(
    git: Any, vault: Path, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("a.md", "one\n")
    git.commit("Begin")
    other = type(git)(_made(tmp_path / "other"))
    (other.folder / "a.md").write_text("another\n")
    other.commit("Not this one")
    for name in ("GIT_DIR", "GIT_COMMON_DIR"):
        monkeypatch.setenv(name, str(other.folder / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.folder))
    monkeypatch.setenv("GIT_TRACE", str(tmp_path / "trace"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(tmp_path / "no-such-program"))
    assert [each.subject for each in commits(vault, "a.md")] == ["Begin"]
    assert not (tmp_path / "trace").exists()


def test_nothing_that_a_repository_names_is_run(git: Any, vault: Path, write: Write, tmp_path: Path) -> None:
    write("a.md", "one\n")
    git.commit("Begin")
    write("a.md", "one\ntwo\n")
    commit = git.commit("Say more")
    write("a.md", "one\ntwo\nthree\n")
    canary = git.set_traps(tmp_path)
    assert len(commits(vault, "a.md")) == 2
    assert len(blame(vault, "a.md")) == 3
    assert text_at(vault, "a.md", commit)[1] == b"one\ntwo\n"
    assert not canary.exists()
    git("status", check=False)
    assert canary.exists(), "the traps are live: git itself walks into them"


def test_ids_of_commits_are_told_from_numbers_of_the_history() -> None:
    assert is_commit("0a1b2c3d") and is_commit("A" * 40)
    assert not any(map(is_commit, ("v000012", "12", "abc", "g" * 10, "abc def0", "-abcdef0", "")))
    assert short("1234567890a" + "0" * 29) == "1234567890a" and short("a" * 40) == "a" * 10


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _fails(git: Any, *args: str) -> str:
    with pytest.raises(AssertionError) as failed:
        git(*args)
    return str(failed.value)
