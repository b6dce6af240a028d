"""What git knows of a note: its commits, its text at one of them, and who last changed each line.

All of it is asked only when somebody asks, and of the objects alone (`repository.py`). Nothing here writes.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from simplemem.errors import NotFound, TooLong, Unavailable
from simplemem.vault.disk import MOST_BYTES
from simplemem.vault.repository import Git, Repository, asking, find

_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_HEADER = re.compile(rb"([0-9a-f]{40,64}) [0-9]+ ([0-9]+)(?: [0-9]+)?")
_MOST_FOLLOWED = 1000
_MOST_TEXT = 64_000_000  # bytes of texts that one question brings


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit that changed a note. `path` is where the note was then, `old_path` where it had been before."""

    commit: str
    path: str
    old_path: str | None
    op: str  # create, update, move or delete
    when: str  # UTC, as the author's clock had it
    who: str
    email: str
    subject: str
    actor: str  # of one of our own commits: who asked for it
    tool: str
    reason: str
    versions: tuple[str, ...]  # the changes of our history that it holds
    before: str | None  # git's ids of the text before and after, None where there was none
    after: str | None


@dataclass(frozen=True, slots=True)
class Line:
    """Who last changed a line of a note, and when. All is empty for what is not committed."""

    number: int  # from 1
    who: str
    when: str
    commit: str
    actor: str = ""  # of one of our own commits: who asked for it; empty where a person committed


def commits(root: Path, path: str, limit: int = 20) -> list[Commit]:
    """The commits that changed a note, newest first, followed back through its renames; none outside git."""
    repository = find(root)
    if repository is None:
        return []
    with asking(repository) as git:
        return [] if git.head() is None else _log(git, path, limit)


def text_at(root: Path, path: str, commit: str) -> tuple[str, bytes]:
    """A note's path and bytes at a commit, under whatever name it had then."""
    repository = find(root)
    if repository is None or not is_commit(commit):
        raise NotFound(f"There is no commit {commit[:64]!r}: the vault is not in git.")
    with asking(repository) as git:
        oid = _whole(git, commit)
        data = _text(git, oid, repository.path(path))
        if data is not None:
            return path, data
        for known in dict.fromkeys(each.path for each in _log(git, path, _MOST_FOLLOWED)):
            data = _text(git, oid, repository.path(known))
            if data is not None:
                return known, data
    raise NotFound(f"{path!r} was not there at commit {commit[:12]}, under no name it has had.")


def changes_in(root: Path, commit: str) -> tuple[str, ...]:
    """The changes of our history that a commit of ours holds; none for a person's."""
    repository = find(root)
    if repository is None or not is_commit(commit):
        return ()
    with asking(repository) as git:
        form = "%<(2000,trunc)%(trailers:key=Simplemem-Version,valueonly,separator=%x20)"
        said = git.apart("log", "--max-count=1", "--no-show-signature", f"--format={form}", _whole(git, commit), "--")
        return tuple(_words(said).split())


def texts(root: Path, wanted: Iterable[str]) -> dict[str, bytes]:
    """Texts by git's ids of them, as `Commit.before` and `after` name them. What is missing or too large is left out."""
    oids = sorted({oid for oid in wanted if is_commit(oid)})
    repository = find(root) if oids else None
    if repository is None:
        return {}
    with asking(repository) as git:
        return {} if git.head() is None else _texts(git, oids)


def blame(root: Path, path: str, data: bytes | None = None) -> list[Line]:
    """Who last changed each line of a note, as it stands in the vault or in `data`; empty outside git.

    Lines are those of git: they end with a line feed. What differs from the last commit belongs to nobody yet.
    """
    repository = find(root)
    if repository is None:
        return []
    if data is None:
        data = (root / path).read_bytes()
    with asking(repository) as git:
        return _blame(git, repository.path(path), data)


def is_commit(text: str) -> bool:
    """Whether a text can be the id of a commit, whole or shortened so far that it is no date and no number of ours."""
    text = text.strip().lower()
    return _COMMIT.fullmatch(text) is not None and (len(text) >= 40 or not text.isdecimal())


def short(commit: str) -> str:
    """The first characters of a commit's id, so many that nobody takes it for a number of our history."""
    for length in range(10, len(commit)):
        if not commit[:length].isdigit():
            return commit[:length]
    return commit


def _whole(git: Git, commit: str) -> str:
    """The whole id of a commit. Only objects are looked at, so that no branch of that name is meant."""
    if git.head() is None:
        raise NotFound("There is no commit yet.")
    wanted = commit.strip().lower() + "^{commit}"
    said = git.apart("rev-parse", "--quiet", "--verify", "--end-of-options", wanted, ok=(0, 1, 128))
    oid = said.decode("ascii", "replace").strip()
    if not oid:
        raise NotFound(f"There is no commit {commit[:64]!r}.", hint="The history of a note lists its commits.")
    return oid


def _log(git: Git, path: str, limit: int) -> list[Commit]:
    mark = secrets.token_hex(16)  # no commit can hold it: what follows it is ours
    fields = "%H %at %<(200,trunc)%an %<(200,trunc)%ae %<(300,trunc)%s".split()
    for key in ("Actor", "Tool", "Reason", "Version"):
        fields.append(f"%<(2000,trunc)%(trailers:key=Simplemem-{key},valueonly,separator=%x3B%x20)")
    answer = git.apart(
        "log",
        "--follow",
        "-M",
        "-z",
        "--raw",
        "--no-abbrev",
        "--diff-merges=first-parent",
        "--no-show-signature",
        "--no-ext-diff",
        "--no-textconv",
        "--no-mailmap",
        f"--max-count={max(limit, 0)}",
        f"--format=%x00{mark}%x00" + "%x00".join(fields),
        "HEAD",
        "--",
        git.repository.path(path),
    )
    found = []
    for record in answer.split(b"\0" + mark.encode() + b"\0")[1:]:
        known = _commit_of(git.repository, record.split(b"\0"))
        if known is not None:
            found.append(known)
    return found


def _commit_of(repository: Repository, parts: list[bytes]) -> Commit | None:
    commit, at, who, email, subject, actor, tool, reason, versions = (_words(part) for part in parts[:9])
    raw = parts[9].decode("ascii", "replace").lstrip("\n:").split() if len(parts) > 9 else []
    names = [repository.note(os.fsdecode(name)) for name in parts[10:] if name]
    if len(raw) != 5 or not names or names[-1] is None:
        return None
    before, after, status = (*(None if set(oid) == {"0"} else oid for oid in raw[2:4]), raw[4])
    moved = status[0] == "R" and len(names) == 2
    op = "move" if moved else {"A": "create", "D": "delete", "C": "create"}.get(status[0], "update")
    ours = tuple(versions.replace(";", " ").split())
    old = names[0] if moved else None
    before = None if op == "create" else before  # of a copy, git names the text of what it was copied from
    when = _moment(at)
    return Commit(commit, names[-1], old, op, when, who, email, subject, actor, tool, reason, ours, before, after)


def _words(part: bytes) -> str:
    """A field of a commit: anybody may have written it, so what could move a cursor or forge a line is taken out."""
    text = part.decode("utf-8", "replace")
    return "".join(c for c in text if c.isprintable()).strip()


def _moment(seconds: str) -> str:
    try:
        return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return ""


def _text(git: Git, commit: str, path: str) -> bytes | None:
    """The bytes of a file at a commit, None when there was none."""
    listed = git.apart("ls-tree", "-z", "--full-tree", commit, "--", path)
    mode, _, rest = listed.partition(b" ")
    kind, _, rest = rest.partition(b" ")
    if kind != b"blob" or mode == b"120000":
        return None
    oid = rest.partition(b"\t")[0].decode("ascii")
    size = int(git.apart("cat-file", "-s", oid))
    if size > MOST_BYTES:
        raise TooLong(f"{path!r} had {size:,} bytes at {commit[:12]}; at most {MOST_BYTES:,} are read.")
    return git.apart("cat-file", "blob", oid)


def _texts(git: Git, oids: list[str]) -> dict[str, bytes]:
    listed = git.apart("cat-file", "--batch-check", stdin="\n".join(oids).encode() + b"\n").decode("ascii", "replace")
    small: list[tuple[str, int]] = []
    left = _MOST_TEXT
    for row in listed.splitlines():
        oid, _, rest = row.partition(" ")
        kind, _, size = rest.partition(" ")
        if kind == "blob" and size.isdecimal() and int(size) <= min(MOST_BYTES, left):
            small.append((oid, int(size)))
            left -= int(size)
    answer = git.apart("cat-file", "--batch", stdin="".join(f"{oid}\n" for oid, _ in small).encode())
    found: dict[str, bytes] = {}
    at = 0
    for oid, length in small:
        at = answer.index(b"\n", at) + 1
        found[oid] = answer[at : at + length]
        at += length + 1
    return found


def _blame(git: Git, path: str, data: bytes) -> list[Line]:
    lines = data.count(b"\n") + (not data.endswith(b"\n") and data != b"")
    nobody = [Line(number, "", "", "") for number in range(1, lines + 1)]
    if git.head() is None:
        return nobody
    committed = _text(git, "HEAD", path)
    if committed is None:
        return nobody  # a note that git does not know yet, or not under this name
    if b"\r\n" in data and b"\r\n" not in committed:
        data = data.replace(b"\r\n", b"\n")  # a working tree that git gave its own line ends
    answer = git.apart("blame", "--porcelain", "--contents", "-", "--", path, stdin=data)
    found = list(_lines(answer, lines))
    if len(found) != lines:
        raise Unavailable(f"git's account of {path!r} could not be read.")
    actors = _actors(git, {line.commit for line in found if line.commit})
    return [Line(line.number, line.who, line.when, line.commit, actors.get(line.commit, "")) for line in found]


def _lines(answer: bytes, most: int) -> Iterator[Line]:
    about: dict[str, dict[bytes, str]] = {}
    commit, number, count = "", 0, 0
    for row in answer.split(b"\n"):
        header = _HEADER.fullmatch(row)
        if row.startswith(b"\t"):
            known = about.get(commit, {})
            count += 1
            if set(commit) == {"0"}:
                yield Line(number, "", "", "")
            else:
                yield Line(number, known.get(b"author", ""), _moment(known.get(b"author-time", "")), commit)
            if count == most:
                return
        elif header is not None:
            commit, number = header[1].decode(), int(header[2])
            about.setdefault(commit, {})
        else:
            key, _, value = row.partition(b" ")
            about.setdefault(commit, {}).setdefault(key, _words(value))


def _actors(git: Git, wanted: set[str]) -> dict[str, str]:
    """Who asked for those of these commits that are our own."""
    if not wanted:
        return {}
    form = "%H %(trailers:key=Simplemem-Actor,valueonly,separator=%x3B%x20)"
    listed = "\n".join(sorted(wanted)).encode() + b"\n"
    answer = git.apart(
        "log", "--no-walk=unsorted", "--no-show-signature", "--stdin", f"--format={form}", "-z", stdin=listed
    )
    found = {}
    for record in answer.split(b"\0"):
        commit, _, actor = record.partition(b" ")
        if actor:
            found[commit.decode("ascii", "replace")] = _words(actor)
    return found
