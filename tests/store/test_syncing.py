"""The same memory on several machines, by git: whatever is done on any of them, all end equal and nothing is lost."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from waiting import eventually

from simplemem import open_store
from simplemem.errors import SimplememError, Unavailable
from simplemem.settings.model import Settings

HOOK = '#!/bin/sh\ntouch "{}"\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person as git knows them."""
    for name in [each for each in os.environ if each.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / ".gitconfig").write_text(
        "[user]\nname = Ida\nemail = ida@example.org\n[init]\ndefaultBranch = main\n"
    )
    import pygit2

    pygit2.settings.search_path[pygit2.enums.ConfigLevel.GLOBAL] = str(tmp_path)
    return tmp_path


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


def clones(home: Path, count: int) -> list[Path]:
    """Clones of one bare repository, each with hooks that leave a trace."""
    git(home, "init", "-q", "--bare", "remote.git")
    git(home, "clone", "-q", "remote.git", "first")
    (home / "first" / "Start.md").write_text("---\ntags: [one]\n---\nStart\n")
    git(home / "first", "add", "-A")
    git(home / "first", "commit", "-qm", "start")
    git(home / "first", "push", "-q", "origin", "main")
    for name in ("pre-receive", "update", "post-receive", "post-update", "reference-transaction"):
        (home / "remote.git" / "hooks" / name).write_text(HOOK.format(home / "ran there"))
        (home / "remote.git" / "hooks" / name).chmod(0o755)
    every = [home / f"clone {k}" for k in range(count)]
    for each in every:
        git(home, "clone", "-q", "remote.git", each.name)
        for name in (
            "pre-commit",
            "post-commit",
            "post-merge",
            "pre-push",
            "post-checkout",
            "reference-transaction",
        ):
            (each / ".git" / "hooks" / name).write_text(HOOK.format(home / "ran"))
            (each / ".git" / "hooks" / name).chmod(0o755)
    return every


def sync(vault: Path) -> Any:
    with open_store(vault) as store:
        return store.sync_with_remote(who="test")


def tree(vault: Path) -> dict[str, bytes]:
    every = (
        each
        for each in vault.rglob("*")
        if each.is_file() and not {".git", ".simplemem"} & {*each.parts}
    )
    return {each.relative_to(vault).as_posix(): each.read_bytes() for each in every}


def settle(every: list[Path]) -> dict[str, bytes]:
    """Sync until all are equal."""
    for _ in range(2):
        for each in every:
            sync(each)
    trees = [tree(each) for each in every]
    assert all(each == trees[0] for each in trees)
    return trees[0]


def test_changes_of_both_sides_come_together(home: Path) -> None:
    one, two = clones(home, 2)
    (one / "Start.md").write_text("---\ntags: [one, here]\n---\nStart\nfrom one\n")
    (two / "Start.md").write_text("---\ntags: [one, there]\n---\nStart\nfrom two\n")
    (two / "New.md").write_text("new\n")
    sync(one)
    done = sync(two)
    assert (done.committed, done.changed, done.copies, done.pushed) == (2, ("Start.md",), (), True)
    both = settle([one, two])
    assert both[
        "Start.md"
    ] == b"---\ntags:\n  - one\n  - here\n  - there\n---\nStart\nfrom two\nfrom one\n" or sorted(
        both["Start.md"].split()
    ) == sorted(b"--- tags: [one, here, there] --- Start from two from one".split())
    with open_store(two) as store:
        store.undo(done.version)
        assert (two / "Start.md").read_text() == "---\ntags: [one, there]\n---\nStart\nfrom two\n"


def test_a_note_moved_out_of_a_vault_comes_back_when_it_was_changed_there(home: Path) -> None:
    one, two = clones(home, 2)
    (one / "notes").mkdir()
    for name in ("Stay", "Leave"):
        (one / "notes" / f"{name}.md").write_text(f"{name}\n" + "a line that both have\n" * 9)
    git(one, "add", "-A")
    git(one, "commit", "-qm", "a folder of notes")
    git(one, "push", "-q", "origin", "main")
    git(two, "pull", "-q")
    git(two, "mv", "notes/Leave.md", "Left.md")  # out of the vault, while the other side writes on
    git(two, "commit", "-qm", "moved out")
    (two / "notes" / "Stay.md").rename(two / "notes" / "Moved.md")
    for name in ("Stay", "Leave"):
        with (one / "notes" / f"{name}.md").open("a") as file:
            file.write("from one\n")
    sync(one / "notes")
    done = sync(two / "notes")
    assert (done.changed, done.copies, done.pushed) == (("Leave.md", "Moved.md"), (), True)
    assert sorted(tree(two / "notes")) == ["Leave.md", "Moved.md"]
    assert all(text.endswith(b"from one\n") for text in tree(two / "notes").values())
    assert (two / "Left.md").read_text().startswith("Leave\n")


def test_what_cannot_be_merged_lies_beside_its_note_on_both_sides(home: Path) -> None:
    one, two = clones(home, 2)
    (one / "Start.md").write_text("---\ntags: [one]\n---\nOne says this\n")
    (two / "Start.md").write_text("---\ntags: [one]\n---\nTwo says that\n")
    sync(one)
    [copy] = sync(two).copies
    both = settle([one, two])
    assert (both["Start.md"][-14:], both[f"{copy}.md"][-14:]) == (
        b"Two says that\n",
        b"One says this\n",
    )
    for each in (one, two):
        with open_store(each) as store:
            store.sync()
            assert [(found.name, found.of) for found in store.conflict_copies()] == [
                (copy, "Start")
            ]


def test_what_is_staged_stays_so_and_waits(home: Path) -> None:
    one, two = clones(home, 2)
    (one / "Start.md").write_text("staged\n")
    git(one, "add", "Start.md")
    (one / "Start.md").write_text("staged\nand not\n")
    (two / "Other.md").write_text("other\n")
    sync(two)
    assert sync(one).waiting == ("Start.md",)
    assert (
        git(one, "show", ":Start.md") == "staged\n"
        and (one / "Start.md").read_text() == "staged\nand not\n"
    )
    assert (one / "Other.md").read_text() == "other\n"
    (two / "Start.md").write_text("changed there\n")
    sync(two)
    with pytest.raises(Unavailable, match="is staged here"):
        sync(one)
    assert (
        git(one, "show", ":Start.md") == "staged\n"
        and (one / "Start.md").read_text() == "staged\nand not\n"
    )


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (["mkdir .git/rebase-merge", "touch .git/rebase-merge/interactive"], "in progress"),
        (["git remote remove origin"], "no remote"),
        (["git checkout -q --detach"], "no branch"),
        (["git config remote.origin.url ext::touch%20ran"], "is not supported"),
        (["git config remote.origin.url '-u./ran'"], "is not supported"),
        (["git config remote.origin.url ../gone.git"], "is not supported"),
        (["git config remote.origin.url https://127.0.0.1:9/x.git"], "cannot be reached"),
    ],
)
def test_what_stands_in_the_way_is_a_sentence_and_no_change(
    home: Path, state: list[str], said: str
) -> None:
    [one] = clones(home, 1)
    for each in state:
        subprocess.run(each, shell=True, cwd=one, check=True)
    (home / "ran").unlink(missing_ok=True)
    before = tree(one)
    with pytest.raises(Unavailable, match=said) as error:
        sync(one)
    assert error.value.hint and tree(one) == before and not (home / "ran").exists()


def test_nothing_that_a_clone_says_is_run(home: Path) -> None:
    [one] = clones(home, 1)
    trace = home / "ran"
    run = f"touch '{trace}'; false"
    for key in (
        "core.sshCommand",
        "core.fsmonitor",
        "core.askPass",
        "credential.helper",
        "core.editor",
        "gpg.program",
    ):
        git(one, "config", key, f"!{run}" if key == "credential.helper" else run)
    for key in (
        "remote.origin.uploadpack",
        "remote.origin.receivepack",
        "filter.x.clean",
        "filter.x.smudge",
    ):
        git(one, "config", key, run)
    git(one, "config", "core.hooksPath", str(one / ".git" / "hooks"))
    trace.unlink(missing_ok=True)
    (one / "Start.md").write_text("changed\n")
    sync(one)
    assert git(one, "log", "-1", "--format=%an") == "Ida\n" and not trace.exists()
    assert not (home / "ran there").exists()


EVIL = {
    "a link": "ln -s /etc/hostname Link.md && git add Link.md",
    "our settings": "mkdir -p .simplemem && echo x > .simplemem/config.toml && git add -f .simplemem/config.toml",
    "a submodule": "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),Sub",
    "a plugin": "mkdir -p .obsidian && echo x > .obsidian/app.json && git add .obsidian",
}


@pytest.mark.parametrize("what", EVIL)
def test_what_is_no_note_is_not_taken_in(home: Path, what: str) -> None:
    one, two = clones(home, 2)
    quiet = ("-c", "core.hooksPath=/dev/null")
    subprocess.run(EVIL[what], shell=True, cwd=two, check=True)
    git(two, *quiet, "commit", "-qm", "evil")
    git(two, *quiet, "push", "-q")
    (home / "ran").unlink(missing_ok=True)
    (one / "Start.md").write_text("changed here\n")
    with pytest.raises(Unavailable, match="not a note or an attachment"):
        sync(one)
    assert tree(one) == {"Start.md": b"changed here\n"} and not (home / "ran").exists()


@pytest.mark.parametrize("name", ["../x.md", ".git"])
def test_a_tree_that_no_git_makes_is_refused(home: Path, name: str) -> None:
    one, two = clones(home, 2)
    blob = bytes.fromhex(git(two, "hash-object", "-w", "Start.md").strip())
    entry = b"100644 " + name.encode() + b"\0" + blob
    made = ["git", "hash-object", "-t", "tree", "-w", "--literally", "--stdin"]
    evil = (
        subprocess.run(made, cwd=two, input=entry, capture_output=True, check=True)
        .stdout.decode()
        .strip()
    )
    commit = git(two, "commit-tree", evil, "-p", "HEAD", "-m", "evil").strip()
    git(two, "-c", "core.hooksPath=/dev/null", "push", "-q", "origin", f"{commit}:main")
    before = tree(one)
    with pytest.raises(Unavailable):
        sync(one)
    assert (
        tree(one) == before
        and {each.name for each in home.iterdir()} >= {"remote.git"}
        and not (home / "x.md").exists()
    )


def test_a_history_that_was_rewritten_is_not_merged(home: Path) -> None:
    one, two = clones(home, 2)
    (two / "Start.md").write_text("a secret\n")
    settle([two, one])
    quiet = ("-c", "core.hooksPath=/dev/null")
    git(two, *quiet, "reset", "-q", "--hard", "HEAD~1")
    (two / "Other.md").write_text("other\n")
    git(two, "add", "-A")
    git(two, *quiet, "commit", "-qm", "without it")
    git(two, *quiet, "push", "-q", "--force")
    before = tree(one)
    with pytest.raises(Unavailable, match="rewritten"):
        sync(one)
    assert tree(one) == before


def test_links_follow_a_note_that_either_side_moved(home: Path) -> None:
    one, two = clones(home, 2)
    (one / "Old one.md").write_text("text of one\nand more of it\n")
    (two / "Old two.md").write_text("text of two\nand more of it\n")
    settle([one, two])
    with open_store(one) as store:
        store.move("Old one", "moved/New one")
    with open_store(two) as store:
        store.move("Old two", "moved/New two")
    (one / "There.md").write_text("see [[Old two]] and [[Old one]]\n")
    (two / "Here.md").write_text("see [[Old one]]\n")
    (two / "Old one.md").write_text("text of one\nand more of it\nappended\n")
    both = settle([one, two])
    assert both["moved/New one.md"].endswith(b"appended\n") and "Old one.md" not in both
    assert (both["Here.md"], both["There.md"][:16]) == (b"see [[New one]]\n", b"see [[New two]] ")


def test_a_deleted_note_that_was_changed_there_comes_back(home: Path) -> None:
    one, two = clones(home, 2)
    (one / "Start.md").unlink()
    (two / "Start.md").write_text("---\ntags: [one]\n---\nStart\nmore\n")
    sync(one)
    assert settle([two, one])["Start.md"].endswith(b"more\n")


def test_a_server_writes_meanwhile_and_loses_nothing(home: Path) -> None:
    one, two = clones(home, 2)
    ended = threading.Event()

    def write() -> None:
        with open_store(one) as store:
            for number in range(40):
                store.update("Start", append=f"w{number}")
        ended.set()

    writer = threading.Thread(target=write)
    writer.start()
    number = 0
    while not ended.is_set():
        with (two / "Other.md").open("a") as file:
            file.write(f"o{(number := number + 1)}\n")
        sync(two)
        sync(one)
    writer.join()
    both = settle([one, two])
    assert {f"w{k}" for k in range(40)} <= {*both["Start.md"].decode().split()}
    assert len(both["Other.md"].split()) == number


def test_a_push_that_meets_another_at_the_remote_starts_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other push arrives while the remote takes this one, so that git cannot lock the branch."""
    one, two = clones(home, 2)
    (two / "Other.md").write_text("from two\n")
    git(two, "add", "-A")
    git(two, "-c", "core.hooksPath=/dev/null", "commit", "-qm", "by hand")
    git(two, "-c", "core.hooksPath=/dev/null", "push", "-q", "origin", "HEAD:refs/heads/other")
    remote = home / "remote.git"
    other = git(remote, "rev-parse", "other").strip()
    hook = remote / "hooks" / "pre-receive"
    hook.write_text(
        "#!/bin/sh\n"
        'rm "$0"\n'
        "unset GIT_QUARANTINE_PATH\n"
        f"git -c core.hooksPath=/dev/null update-ref refs/heads/main {other}\n"
    )
    ssh = home / "ssh"
    ssh.write_text('#!/bin/sh\nfor command; do :; done\nexec sh -c "$command"\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", f"'{ssh}'")
    monkeypatch.setenv("GIT_SSH_VARIANT", "simple")
    git(one, "remote", "set-url", "origin", f"ssh://localhost{remote}")

    (one / "Start.md").write_text("from one\n")
    done = sync(one)

    assert not hook.exists()
    assert (done.pushed, done.changed) == (True, ("Other.md",))
    assert git(remote, "show", "main:Start.md") == "from one\n"
    assert git(remote, "show", "main:Other.md") == "from two\n"


def test_a_server_exchanges_now_and_then_if_the_person_says_so(home: Path) -> None:
    one, two = clones(home, 2)
    (one / "Start.md").write_text("from one\n")
    hidden = Settings(sync={"every": 0.01}, access={"hidden": ["Start.md"]})
    with open_store(one, settings=hidden) as store:
        store.start(embed=False)
        assert eventually(lambda: "from one" in git(home / "remote.git", "show", "main:Start.md"))
    sync(two)
    assert (two / "Start.md").read_text() == "from one\n"
    with open_store(two) as store:
        (two / "Start.md").write_text("from two\n")
        git(two, "-c", "core.hooksPath=/dev/null", "commit", "-qam", "by hand")
        told = store.stats()["git"]
        assert (told["remote"], told["ahead"], told["behind"]) == ("origin", 1, 0)
        assert [each.hint for each in store.doctor(only=["git"])] == [
            "`simplemem sync` exchanges them."
        ]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_one_that_is_killed_goes_on_where_it_was(home: Path, seed: int) -> None:
    one, two = clones(home, 2)
    dice = random.Random(seed)
    command = [sys.executable, "-m", "simplemem", "sync", "--vault", str(one)]
    for number in range(int(os.environ.get("KILLS", "8"))):
        (one / f"One {number}.md").write_text(f"one {number}\n")
        (two / "Start.md").write_text((two / "Start.md").read_text() + f"t{number}\n")
        (one / "Start.md").write_text((one / "Start.md").read_text() + f"u{number}\n")
        sync(two)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(dice.uniform(0.3, 1.0))
        process.kill()
        process.wait()
        for lock in [*(one / ".git").glob("*.lock"), *(one / ".git" / "refs").rglob("*.lock")]:
            lock.unlink()  # as git asks a person to after such an end
    both = settle([one, two])
    said = re.findall(r"^[tu]\d+$", both["Start.md"].decode(), re.MULTILINE)
    assert sorted(said) == sorted(f"{side}{k}" for side in "tu" for k in range(number + 1))
    assert "error" not in git(one, "fsck")


WORDS = "ash beech cedar elm fir".split()


def act(vault: Path, dice: random.Random, token: str, gone: set[str]) -> None:
    """Something a person or an agent does; `gone` takes what is lost on purpose."""
    notes = sorted(each for each in tree(vault) if each.endswith(".md") and ".REMOTE." not in each)
    by_hand, name = dice.random() < 0.5, dice.choice(notes) if notes else ""
    what = (
        dice.choice(["create", "append", "append", "append", "edit", "move", "delete", "tag"])
        if notes
        else "create"
    )
    text = (vault / name).read_text() if name else ""
    with open_store(vault) as store:
        if what == "create":
            path = f"{dice.choice(['', 'deep/', 'deep/er/'])}{dice.choice(WORDS)} {token}.md"
            (vault / path).parent.mkdir(parents=True, exist_ok=True)
            (vault / path).write_text(f"---\ntags: [new]\n---\n{token}\n[[{Path(name).stem}]]\n")
        elif what == "append" and by_hand:
            (vault / name).write_text(text + token + "\n")
        elif what == "append":
            store.update(name[:-3], append=token)
        elif what == "edit":
            lines = text.split("\n")
            at = dice.randrange(len(lines))
            if re.fullmatch(r"t\d+", lines[at]):
                gone.add(lines[at])
                lines[at] = token
                (vault / name).write_text("\n".join(lines))
            else:
                gone.add(token)
        elif what == "delete":
            gone |= {token, *re.findall(r"\bt\d+\b", text)}
            store.delete(name[:-3]) if not by_hand else (vault / name).unlink()
        else:
            gone.add(token)
            if what == "tag":
                store.change_tags(name[:-3], {dice.choice(WORDS): True})
            elif by_hand:
                (vault / name).rename(vault / f"{Path(name).stem} x.md")
            else:
                store.move(name[:-3], f"moved/{Path(name).stem} {token}")


@pytest.mark.parametrize(
    ("count", "seed"),
    [(2, 1), *(pytest.param(*each, marks=pytest.mark.slow) for each in ((2, 2), (3, 3), (3, 4)))],
)
def test_whatever_is_done_all_sides_end_equal_and_nothing_is_lost(
    home: Path, count: int, seed: int
) -> None:
    every, dice = clones(home, count), random.Random(seed)
    gone, tokens = set[str](), list[str]()
    for number in range(int(os.environ.get("ROUNDS", "25"))):
        vault = dice.choice(every)
        tokens.append(token := f"t{number}")
        try:
            act(vault, dice, token, gone)
        except SimplememError:
            gone.add(token)
        if dice.random() < 0.4:
            sync(dice.choice(every))
    final = settle(every)
    whole = b"\n".join(final.values()).decode()
    assert {each for each in tokens if not re.search(rf"\b{each}\b", whole)} <= gone
    assert not (home / "ran").exists()
    for each in every:
        assert "error" not in git(each, "fsck") and not git(each, "status", "--short")
        assert "<<<<<<<" not in whole
