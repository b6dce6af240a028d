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
from simplemem.gitrepo.history import NoteCommit, read_history, read_text_at
from simplemem.gitrepo.repository import open_repository
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]
MONDAY, TUESDAY, FRIDAY = (
    "2026-03-02T10:00:00+0000",
    "2026-03-03T10:00:00+0000",
    "2026-03-06T10:00:00+0100",
)


def commits(
    vault: Path, path: str, limit: int = 20, allowed: tuple[str, ...] = ()
) -> list[NoteCommit]:
    return read_history(open_repository(vault, allowed), path, limit)


def text_at(vault: Path, path: str, commit: str) -> tuple[str, bytes]:
    return read_text_at(open_repository(vault, ()), path, commit)


# -- the history of a note


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


@pytest.mark.parametrize(
    "name", ["with space.md", "--help.md", "Köln/田.md", ":(top)x.md", "[a]*.md", "a\nb\tc.md"]
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


def test_without_git_or_in_what_only_looks_like_it_nothing_is_told(
    vault: Path, write: Write
) -> None:
    write("a.md", "one\n")
    for ask in (lambda: commits(vault, "a.md"), lambda: text_at(vault, "a.md", "0123456789")):
        with pytest.raises(NotFound):
            ask()
    (vault / ".git/objects").mkdir(parents=True)
    (vault / ".git/HEAD").write_text("ref: refs/heads/main\n")
    with pytest.raises(Unavailable, match="not found"):
        commits(vault, "a.md")


def test_an_unknown_commit_and_a_note_that_was_not_there_are_said(
    git: Any, vault: Path, write: Write
) -> None:
    write("a.md", "one\n")
    first = git.commit("Begin")
    write("b.md", "of another kind altogether\n")
    git.commit("More")
    for wrong in ("0" * 40, "HEAD", "main", "--all", "deadbeef", ""):
        with pytest.raises(NotFound):
            text_at(vault, "a.md", wrong)
    with pytest.raises(NotFound, match=r"does not contain 'b\.md'"):
        text_at(vault, "b.md", first)


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


def test_what_a_commit_says_cannot_move_a_cursor_or_forge_an_entry(
    git: Any, vault: Path, write: Write
) -> None:
    git("config", "user.name", "Ida \x1b[2J\u202e Marsh")
    write("a.md", "one\n")
    git.commit("Say\x1b]0;title\x07 \x1f" + "x" * 5000)
    (found,) = commits(vault, "a.md")
    assert found.who == "Ida [2J Marsh" and len(found.subject) < 400
    assert not any(ord(c) < 32 or c == "\u202e" for c in found.who + found.subject)


# -- where the repository is


def test_a_dot_git_that_leads_to_another_repository_is_refused(
    git: Any, vault: Path, tmp_path: Path
) -> None:
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
    with pytest.raises(Unavailable, match="which is outside of"):
        commits(tmp_path / "file", "secret.md")
    assert len(commits(tmp_path / "file", "secret.md", allowed=[str(vault)])) == 1, (
        "it names it, and the person allows it"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
@pytest.mark.parametrize(
    "trick",
    [
        "ref",
        "pack",
        "object",
        "alternates",
        "late alternates",
        "blank alternates",
        "alternates and NUL",
        "borrowed twice",
        "gitdir",
        "commondir",
    ],
)
def test_no_trick_of_a_repository_shows_another_of_the_machine(
    git: Any, vault: Path, write: Write, tmp_path: Path, trick: str
) -> None:
    theirs = type(git)(_made(tmp_path / "theirs"))
    (theirs.folder / "a.md").write_text("their secret\n")
    secret = theirs.commit("Secret")
    write("a.md", "one\n")
    git.commit("Begin")
    folder, other = vault / ".git", theirs.folder / ".git"
    assert [each.subject for each in commits(vault, "a.md")] == ["Begin"]
    if trick == "ref":
        (folder / "refs/heads/main").unlink()
        (folder / "refs/heads/main").symlink_to(other / "refs/heads/main")
    elif trick == "pack":
        theirs("gc", "--quiet")
        for each in (other / "objects/pack").iterdir():
            (folder / "objects/pack" / each.name).symlink_to(each)
    elif trick == "object":
        (folder / "objects" / secret[:2]).mkdir(exist_ok=True)
        (folder / "objects" / secret[:2] / secret[2:]).symlink_to(
            other / "objects" / secret[:2] / secret[2:]
        )
    elif "alternates" in trick:
        before = {"late": "x" * 9000, "blank": "\n" * 9000}.get(trick.split()[0], "")
        before += "\n.\0" if "NUL" in trick else ""
        (folder / "objects/info").mkdir(exist_ok=True)
        (folder / "objects/info/alternates").write_text(f"{before}\n{other}/objects\n")
    elif trick == "borrowed twice":
        between = vault / "between" / "objects"
        for each in (folder / "objects/info", between / "info"):
            each.mkdir(parents=True, exist_ok=True)
        (folder / "objects/info/alternates").write_text("../../between/objects\n")
        (between / "info/alternates").write_text(f"{other}/objects\n")
    elif trick == "gitdir":
        theirs("config", "core.worktree", str(vault))
        shutil.rmtree(folder)
        folder.write_text(f"gitdir: {other}\n")
    else:
        mine = _made(vault / "mine")
        (mine / "HEAD").write_text("ref: refs/heads/main\n")
        (mine / "commondir").write_text(f"{other}\n")
        (mine / "gitdir").write_text(f"{folder}\n")
        shutil.rmtree(folder)
        folder.write_text("gitdir: mine\n")
    if not folder.is_file():
        (folder / "refs/heads").mkdir(exist_ok=True)
        if trick != "ref":
            (folder / "refs/heads/main").write_text(f"{secret}\n")
    with pytest.raises(Unavailable):
        commits(vault, "a.md")
    with pytest.raises(Unavailable):
        text_at(vault, "a.md", secret)


@pytest.mark.parametrize("kind", ["clone --shared", "worktree", "gitdir inside", "packed"])
def test_an_honest_repository_of_each_shape_is_read_where_the_person_allows_it(
    git: Any, vault: Path, write: Write, tmp_path: Path, kind: str
) -> None:
    write("a.md", "one\n")
    git.commit("Begin")
    place = vault if kind in ("packed", "gitdir inside") else tmp_path / "place"
    if kind == "clone --shared":
        git("clone", "--quiet", "--shared", str(vault), str(place))
    elif kind == "worktree":
        git("worktree", "add", "--quiet", "-b", "other", str(place))
    elif kind == "gitdir inside":
        (vault / ".git").rename(vault / "kept")
        (vault / ".git").write_text("gitdir: kept\n")
        type(git).__call__(git, "config", "core.worktree", "..")
    else:
        git("gc", "--quiet")
    if place != vault:
        with pytest.raises(Unavailable, match="which is outside of") as refused:
            commits(place, "a.md")
        assert "git.folders" in refused.value.hint and str(vault) in refused.value.hint
    assert [each.subject for each in commits(place, "a.md", allowed=[str(vault)])] == ["Begin"]


def test_a_repository_of_somebody_else_is_not_opened(git: Any, vault: Path, write: Write) -> None:
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    write("a.md", "one\n")
    git.commit("Begin")
    for folder, _, files in os.walk(vault):
        for name in (folder, *(os.path.join(folder, file) for file in files)):
            os.chown(name, 12345, 12345)
    assert "dubious" in _fails(git, "status")
    with pytest.raises(Unavailable, match="not owned"):
        commits(vault, "a.md")


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


@pytest.mark.skipif(sys.platform == "win32", reason="a script is no program there")
def test_a_git_in_the_vault_is_not_run_though_the_path_leads_to_it(
    git: Any, vault: Path, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("a.md", "one\n")
    git.commit("Begin")
    for place in (vault / "git", vault / "bin" / "git"):
        git.script(place, f"touch '{tmp_path}/canary'")
    monkeypatch.chdir(vault)
    monkeypatch.setenv("PATH", f".:bin:{vault}:{os.environ['PATH']}")
    with EnhancedStore(
        vault, Settings.model_validate({"embed": {"provider": "none"}, "git": {"commit": "each"}})
    ) as store:
        store.update("a", append="two")
    with EnhancedStore(vault, Settings.model_validate({"embed": {"provider": "none"}})) as store:
        assert {entry.source for entry in store.history("a")} == {
            "simplemem",
            "git",
        } and store.doctor() is not None
    assert len(commits(vault, "a.md")) == 2 and not (tmp_path / "canary").exists()


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _fails(git: Any, *args: str) -> str:
    with pytest.raises(AssertionError) as failed:
        git(*args)
    return str(failed.value)


@pytest.mark.skipif(sys.platform == "win32", reason="no such files there")
@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("alternates", "borrows objects"), ("include", "includes other files"),
        ("pipe", "not a regular file"), ("link to an object", "link"), ("link to logs", "link"), ("link for HEAD", "link"),
    ],
)  # fmt: skip
def test_what_leads_out_of_a_repository_or_never_answers_is_refused(
    git: Any, vault: Path, write: Write, tmp_path: Path, what: str, said: str
) -> None:
    write("a.md", "one\n")
    git.commit("Begin")
    folder = vault / ".git"
    os.mkfifo(tmp_path / "pipe")
    if what == "alternates":
        (folder / "objects" / "info").mkdir(exist_ok=True)
        (folder / "objects" / "info" / "alternates").write_text(f"{tmp_path}/objects\n")
    elif what == "include":
        with (folder / "config").open("a") as config:
            config.write(f"[include]\n\tpath = {tmp_path}/pipe\n")
    elif what == "pipe":
        os.mkfifo(folder / "packed-refs")
    elif what == "link to an object":
        (folder / "objects" / "ab").mkdir(exist_ok=True)
        (folder / "objects" / "ab" / ("0" * 38)).symlink_to(tmp_path / "pipe")
    elif what == "link to logs":
        shutil.rmtree(folder / "logs")
        (folder / "logs").symlink_to(tmp_path)
    else:
        (folder / "HEAD").rename(tmp_path / "HEAD")
        (folder / "HEAD").symlink_to(tmp_path / "HEAD")
    with pytest.raises(Unavailable, match=said):
        commits(vault, "a.md")
