"""What git knows of a note, and commits of what our tools changed: asked of libgit2, which starts no program.

A vault is somebody's clone, and its `.git` may hold anything. No setting of it runs anything here: libgit2 has no hooks, no
monitor, no pager, no signing, and no filter but its own for line ends. What could lead out of the repository or hold us up
is refused before it is opened. Nothing is fetched or pushed, and no file of the working tree is written.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path

import pygit2
from pygit2.enums import DiffFind, FileMode, RepositoryOpenFlag, RepositoryState, SortMode
from pygit2.ffi import C

from simplemem.errors import NotFound, TooLong, Unavailable

_SECONDS = 10.0  # for walking through commits; longer than this nobody waits
_MOST_BYTES = 10_000_000  # of a text
_YEAR_9999 = 253_402_300_799
_ID = re.compile(r"[0-9a-f]{7,64}")
_INCLUDES = re.compile(rb"\[\s*+include", re.IGNORECASE)  # a section may begin anywhere in a line
_PERSON = ("simplemem", "simplemem@localhost")
_LOCK, _OURS = "index.lock", "index.simplemem"
_TRAILER = "Simplemem-"
_FILES = "HEAD config config.worktree index index.lock index.simplemem packed-refs shallow commondir gitdir".split()
_PLAIN = (FileMode.BLOB, FileMode.BLOB_EXECUTABLE)
_SET_ASIDE = 0x8000, 0x4000  # of an index entry: assume-unchanged in its flags, skip-worktree in its further ones
_CANNOT = {
    "not owned": "it belongs to another user, and the setting safe.directory does not name it (dubious ownership)",
    "sha256": "its objects are named by SHA-256, which libgit2 cannot read",
    "mandatory extension": "its index is split or sparse, which libgit2 cannot read",
}

Entries = dict[str, tuple[str, int] | None]
"""Files of a tree or an index by path: object id and mode, None for no file."""


class Busy(Unavailable):
    """Another git is at work in it: over in a moment."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit that changed a note. `path` is where the note was then, `old_path` where it had been before."""

    commit: str
    path: str
    old_path: str | None
    op: str  # create, update, move or delete
    when: str  # UTC, as the author's clock had it
    who: str
    subject: str
    actor: str  # of one of our own commits: who asked for it
    tool: str
    reason: str
    versions: tuple[str, ...]  # the changes of our history that it holds
    before: str | None  # git's ids of the text before and after, None where there was none
    after: str | None


@dataclass(frozen=True, slots=True)
class Patch:
    """What a change of ours did to one note: the text before and after, None where there is no such note. `target` is where
    the note is afterwards."""

    path: str
    target: str
    before: bytes | None
    after: bytes | None


# -- where the repository is


@dataclass(frozen=True, slots=True)
class Checkout:
    """Where a vault lies in git: the working tree, its git directory, the one it shares, and the vault's place in it."""

    top: Path
    git_dir: Path
    common: Path
    prefix: str  # "" or "notes/deep/"


def find(root: Path) -> Checkout | None:
    """The repository a vault lies in, None for most. It is not opened for this."""
    real = Path(os.path.realpath(root))
    for folder in (real, *real.parents):
        if not folder.exists() or folder.stat().st_dev != real.stat().st_dev:
            break  # as git does: what lies on another disk is another matter
        here = folder / ".git"
        git_dir = Path(
            os.path.realpath(folder / _pointer(here).removeprefix("gitdir:").strip() if here.is_file() else here)
        )
        common = Path(os.path.realpath(git_dir / (_pointer(git_dir / "commondir") or ".")))
        if (git_dir / "HEAD").is_file() and (common / "objects").is_dir():
            if git_dir == here and common != git_dir:
                raise Unavailable(f"{here} leads to {common} by its `commondir`, which only a worktree's may.")
            prefix = "" if real == folder else real.relative_to(folder).as_posix() + "/"
            return Checkout(folder, git_dir, common, prefix)
    return None


def _pointer(file: Path) -> str:
    """What a pointer file of git's says, "" when there is none. Whatever lies there, no more than a path is read."""
    if not file.is_file():
        return ""
    with file.open("rb") as opened:
        return os.fsdecode(opened.read(8192)).strip("\r\n")


@contextmanager
def _opened(root: Path) -> Iterator[tuple[pygit2.Repository, Checkout]]:
    """The repository of a vault. What libgit2 reports in the block is Unavailable."""
    place = find(root)
    if place is None:
        raise NotFound("The vault is not in git.")
    _check(place)
    try:
        repo = pygit2.Repository(str(place.git_dir), RepositoryOpenFlag.NO_SEARCH)
        if repo.workdir is None or Path(os.path.realpath(repo.workdir)) != place.top:
            raise Unavailable(
                f"{place.top / '.git'} leads to {place.git_dir}, which does not name {place.top} as its working tree.",
                hint=f"If it is yours: git --git-dir={place.git_dir} config core.worktree {place.top}",
            )
        yield repo, place
        repo.free()
    except pygit2.GitError as error:
        said = next((why for part, why in _CANNOT.items() if part in str(error)), str(error))
        raise Unavailable(f"The repository at {place.top} cannot be used: {said}.") from error


def _check(place: Checkout) -> None:
    """Refuse what would lead out of the repository, or never answer: links, pipes, borrowed objects, included settings."""
    for folder in {place.git_dir, place.common}:
        alone = (path for name in _FILES if os.path.lexists(path := folder / name))
        odd = (path for path in alone if not stat.S_ISREG(path.lstat().st_mode))
        for path in chain(odd, *(_odd(folder / name) for name in ("objects", "refs", "logs"))):
            raise Unavailable(f"{path} is a link, or no plain file; simplemem reads no repository through one.")
    if (place.common / "objects" / "info" / "alternates").exists():
        raise Unavailable(f"{place.top} borrows objects of another repository (objects/info/alternates).")
    for file in (place.common / "config", place.git_dir / "config.worktree"):
        if file.exists() and _INCLUDES.search(file.read_bytes()):
            raise Unavailable(f"The settings of {place.top} include other files ({file.name}), which may lie anywhere.")


def _odd(folder: Path) -> Iterator[Path]:
    """What lies in a folder of git's and is neither a folder nor a plain file."""
    if folder.is_symlink():
        yield folder
    with suppress(FileNotFoundError), os.scandir(folder) as listed:
        for each in listed:
            if each.is_dir(follow_symlinks=False):
                yield from _odd(Path(each.path))
            elif not each.is_file(follow_symlinks=False):
                yield Path(each.path)


# -- what git knows


def history(root: Path, path: str, limit: int = 20) -> list[Commit]:
    """The commits that changed a note, newest first, followed back through its renames; none outside git."""
    if find(root) is None:
        return []
    with _opened(root) as (repo, place):
        return list(islice(_commits_of(repo, place, path), limit))


def text_at(root: Path, path: str, commit: str) -> tuple[str, bytes]:
    """A note's path and bytes at a commit, under whatever name it had then."""
    with _opened(root) as (repo, place):
        tree = _commit_called(repo, commit).tree
        for name in chain([path], (each.path for each in _commits_of(repo, place, path))):
            entry = _entry(tree, place.prefix + name)
            if entry is None or entry[1] not in _PLAIN:
                continue
            blob = repo.get(entry[0])
            if not isinstance(blob, pygit2.Blob):
                raise NotFound(f"The text of {path!r} at {commit[:12]} is not in this clone.")
            if blob.size > _MOST_BYTES:
                raise TooLong(f"{path!r} had {blob.size:,} bytes at {commit[:12]}; at most {_MOST_BYTES:,} are read.")
            return name, blob.data
    raise NotFound(f"{path!r} was not there at commit {commit[:12]}, under no name it has had.")


def texts(root: Path, wanted: Iterable[str]) -> dict[str, bytes]:
    """Texts by git's ids of them, as `Commit.before` and `after` name them. What is missing or too large is left out."""
    with _opened(root) as (repo, _):
        blobs = {oid: repo.get(oid) for oid in filter(_ID.fullmatch, set(wanted))}
        return {
            oid: blob.data for oid, blob in blobs.items() if isinstance(blob, pygit2.Blob) and blob.size <= _MOST_BYTES
        }


def _commits_of(repo: pygit2.Repository, place: Checkout, path: str) -> Iterator[Commit]:
    """The commits that changed a file: those in which it is another than in every parent."""
    if repo.head_is_unborn:
        return
    name, until, cut = place.prefix + path, time.monotonic() + _SECONDS, len(place.prefix)
    for commit in repo.walk(repo.head.target, SortMode.TOPOLOGICAL | SortMode.TIME):
        if time.monotonic() > until:
            raise Unavailable(f"git gave no answer within {_SECONDS:g} s.", hint="git.history = false leaves it out.")
        known: list[object] = [repo.get(oid) for oid in commit.parent_ids]
        parents = [each for each in known if isinstance(each, pygit2.Commit)]  # a shallow clone has not all of them
        if any(parent.tree_id == commit.tree_id for parent in parents):
            continue
        now = _entry(commit.tree, name)
        before = [_entry(parent.tree, name) for parent in parents] or [None]
        if now in before:
            continue
        was, old = before[0], None
        if now and was is None and parents:
            diff = parents[0].tree.diff_to_tree(commit.tree)
            diff.find_similar(flags=DiffFind.FIND_RENAMES)
            renamed = (str(d.old_file.path) for d in diff.deltas if d.status_char() == "R" and d.new_file.path == name)
            old = next((path for path in renamed if path.startswith(place.prefix)), None)
            was = _entry(parents[0].tree, old) if old else None
        said = commit.message
        yield Commit(
            commit=str(commit.id),
            path=name[cut:],
            old_path=old[cut:] if old else None,
            op="move" if old else "create" if was is None else "delete" if now is None else "update",
            when=datetime.fromtimestamp(max(0, min(commit.author.time, _YEAR_9999)), UTC).strftime(
                "%Y-%m-%dT%H:%M:%SZ"
            ),
            who=_printable(commit.author.name)[:200],
            subject=_printable(said.partition("\n")[0])[:300],
            actor="; ".join(_trailers(said, "Actor")),
            tool="; ".join(_trailers(said, "Tool")),
            reason="; ".join(_trailers(said, "Reason")),
            versions=_trailers(said, "Version"),
            before=was[0] if was else None,
            after=now[0] if now else None,
        )
        name = old or name


def _entry(tree: pygit2.Tree | None, path: str) -> tuple[str, int] | None:
    if tree is None or path not in tree or tree[path].filemode == FileMode.TREE:
        return None
    return str(tree[path].id), int(tree[path].filemode)


def _commit_called(repo: pygit2.Repository, commit: str) -> pygit2.Commit:
    """The commit of this id, or of the only one that begins so: no branch of that name is meant."""
    wanted = commit.strip().lower()
    with suppress(ValueError, pygit2.InvalidSpecError):
        found = repo.get(wanted) if _ID.fullmatch(wanted) else None
        if found is not None:
            return found.peel(pygit2.Commit)
    raise NotFound(f"There is no commit {commit[:64]!r}.", hint="The history of a note lists its commits.")


def _trailers(message: str, key: str) -> tuple[str, ...]:
    """What a commit of ours says of itself in the lines at its end."""
    lines = (line.partition(": ") for line in message.rstrip().rpartition("\n\n")[2].splitlines())
    return tuple(_printable(value) for name, _, value in lines if name == _TRAILER + key)


def _printable(text: str) -> str:
    """A field of a commit: anybody may have written it, so what could move a cursor or forge a line is taken out."""
    return "".join(c for c in text if c.isprintable()).strip()[:2000]


# -- commits of ours


class _Left(Exception):
    """A change that is not ours to commit, with the reason."""


def commit(root: Path, operations: Sequence[Sequence[Patch]], message: str, when: int) -> list[str]:
    """Make one commit of these operations, in their order, on the branch that is checked out: each whole, or not at all.
    Says which are left to the person, and why. What they staged or edited stays as it is and is not in the commit."""
    with _opened(root) as (repo, place), _index_held(repo, place) as index:
        if repo.state() != RepositoryState.NONE:
            raise Unavailable(f"A {repo.state().name.lower().replace('_', ' ')} is under way in the repository.")
        branch = repo.lookup_reference("HEAD").target
        if not isinstance(branch, str):
            raise Unavailable("No branch is checked out (HEAD is detached), so a commit would belong to none.")
        last = None if repo.head_is_unborn else repo.head.peel(pygit2.Commit)
        now: Entries = {}
        left = []
        for operation in operations:
            tried = dict(now)
            try:
                for patch in operation:
                    _apply(repo, place, index, last, tried, patch)
                for path in tried:
                    if _staged(index, path) not in (_head(last, path), tried[path]):
                        raise _Left(f"{path!r} is staged by you.")
            except _Left as reason:
                left.append(str(reason))
            else:
                now = tried
        changed: Entries = {path: entry for path, entry in now.items() if entry != _head(last, path)}
        if changed:
            made = _made(repo, last, changed, message, when)
            # The index first: a crash between the two leaves our change staged, never the undoing of it.
            _put_in_place(place, index, changed)
            _move_branch(repo, branch, last, made, message.partition("\n")[0])
        return left


def _apply(
    repo: pygit2.Repository,
    place: Checkout,
    index: pygit2.Index,
    last: pygit2.Commit | None,
    now: Entries,
    patch: Patch,
) -> None:
    """Make a change to `now`, what the last commit and the changes before it have."""
    path, target, before, after = place.prefix + patch.path, place.prefix + patch.target, patch.before, patch.after
    unwanted = {each for each in (path, target) if _is_ignored(repo, place, index, each)}
    if target in unwanted:  # a move out of sight is a deletion, and one into sight a creation
        target, after = path, None
    if path in unwanted:
        path, before = target, None
    if path in unwanted:
        return
    then = _head(last, path)
    there = now.get(path, then)
    old, new = _stored(repo, path, before), _stored(repo, target, after)
    if there is None:
        if old is not None and new is not None and (_head(last, target) or ("", 0))[0] != new:
            raise _Left(f"{path!r} was written by a person and is not in git yet.")
        entry = None if new is None else (new, int(FileMode.BLOB))
    elif there[1] not in _PLAIN:
        raise _Left(f"{path!r} is no plain file in git.")
    elif old == new:
        entry = there  # it only moved, with whatever a person has or has not committed of it
    elif old is None or new is None or there[0] in (old, new) or (then is not None and then[0] == old):
        entry = None if new is None else (new, there[1])
    else:  # a person's edits lie between, which are theirs to commit
        sides = (pygit2.IndexEntry(path, pygit2.Oid(hex=oid), FileMode.BLOB) for oid in (old, there[0], new))
        try:
            merged = repo.merge_file_from_index(next(sides), next(sides), next(sides))
        except UnicodeDecodeError:
            merged = None
        if merged is None or not merged.automergeable:
            raise _Left(f"{path!r} has edits of a person's in the lines that were changed.")
        entry = (str(repo.create_blob(merged.contents.encode())), there[1])
    now[path] = None
    now[target] = entry


def _is_ignored(repo: pygit2.Repository, place: Checkout, index: pygit2.Index, path: str) -> bool:
    """Whether git is not to have a note, as the person said. What only git's own programs could add is left to them."""
    folders = [folder for folder in (place.top / path).parents if folder.is_relative_to(place.top)]
    rules = [folder / name for folder in folders for name in (".gitignore", ".gitattributes")]
    for file in (*rules, place.common / "info" / "exclude", place.common / "info" / "attributes"):
        if os.path.lexists(file) and not file.is_file():
            raise _Left(f"{path!r} stands under {file}, which is no plain file.")
    if repo.path_is_ignored(path) and path not in index:
        return True
    if repo.get_attr(path, "filter") not in (None, False) or repo.get_attr(path, "working-tree-encoding"):
        raise _Left(f"{path!r} goes through a filter, and simplemem runs none.")  # the plain text must not go in
    entry = C.git_index_get_bypath(index._index, os.fsencode(path), 0)  # noqa: SLF001  (pygit2 shows no flags)
    if entry and (entry.flags & _SET_ASIDE[0] or entry.flags_extended & _SET_ASIDE[1]):
        raise _Left(f"{path!r} is one that git was told not to look at (skip-worktree or assume-unchanged).")
    return False


def _head(last: pygit2.Commit | None, path: str) -> tuple[str, int] | None:
    return _entry(last.tree, path) if last is not None else None


def _stored(repo: pygit2.Repository, path: str, text: bytes | None) -> str | None:
    """git's id of a text, which it has from now on, with the line ends that its attributes want."""
    if text is None:
        return None
    ends = repo.load_filter_list(path) if text and b"\0" not in text else None
    return str(repo.create_blob(text if ends is None else ends.apply_to_buffer(text)))


def _made(repo: pygit2.Repository, last: pygit2.Commit | None, changed: Entries, message: str, when: int) -> pygit2.Oid:
    """The commit as an object; no branch has it yet."""
    files = pygit2.Index()
    if last is not None:
        files.read_tree(last.tree)
    _set_entries(files, changed)
    name, email = (_identity(repo, key) for key in ("name", "email"))
    name, email = (name, email) if name and email else _PERSON
    author, committer = (pygit2.Signature(name, email, at, 0) for at in (when, int(time.time())))
    repo.set_ident(name, email)
    pygit2.settings.enable_fsync_gitdir(True)
    return repo.create_commit(None, author, committer, message, files.write_tree(repo), [last.id] if last else [])


def _identity(repo: pygit2.Repository, key: str) -> str:
    setting = f"user.{key}"
    said = os.environ.get(f"GIT_AUTHOR_{key.upper()}", "")
    if not said and setting in repo.config:
        said = str(repo.config[setting])
    return "".join(c for c in said if c.isprintable() and c not in "<>").strip()


def _move_branch(
    repo: pygit2.Repository, branch: str, last: pygit2.Commit | None, made: pygit2.Oid, subject: str
) -> None:
    """Have the branch point to a commit, if it is still where it was."""
    try:
        with repo.transaction() as moving:
            moving.lock_ref(branch)
            if (None if repo.head_is_unborn else repo.head.target) != (last.id if last else None):
                raise Busy("Another git is at work in the repository.")
            moving.set_target(branch, made, message=f"commit (simplemem): {subject}")
    except pygit2.GitError as error:
        raise Busy(f"git: {error}.") from error


# -- the person's index


@contextmanager
def _index_held(repo: pygit2.Repository, place: Checkout) -> Iterator[pygit2.Index]:
    """A copy of the person's index, under git's own lock of it: meanwhile no other git changes the index or commits it."""
    len(repo.index)  # one that libgit2 cannot read says so here
    lock, copy, index = place.git_dir / _LOCK, place.git_dir / _OURS, place.git_dir / "index"
    try:
        lock.open("xb").close()
    except FileExistsError as error:
        raise Busy("Another git is at work in the repository.", hint=f"If none is, remove {lock}.") from error
    try:
        if index.exists():
            shutil.copy2(index, copy)
        yield pygit2.Index(str(copy))
    finally:
        copy.unlink(missing_ok=True)
        lock.unlink(missing_ok=True)


def _put_in_place(place: Checkout, held: pygit2.Index, changed: Entries) -> None:
    """Set entries of the person's index, leaving all others as they are. It keeps its time: by that git tells what was
    edited in the moment it was staged."""
    copy = place.git_dir / _OURS
    was = copy.stat() if copy.exists() else None
    _set_entries(held, changed)
    held.write()
    if was is not None:
        os.chmod(copy, stat.S_IMODE(was.st_mode))
        os.utime(copy, ns=(was.st_atime_ns, was.st_mtime_ns))
    os.replace(copy, place.git_dir / "index")


def _set_entries(index: pygit2.Index, changed: Entries) -> None:
    for path in sorted(changed, key=lambda path: changed[path] is not None):  # what goes makes room
        entry = changed[path]
        if entry is not None:
            index.add(pygit2.IndexEntry(path, pygit2.Oid(hex=entry[0]), FileMode(entry[1])))
        elif path in index:
            index.remove(path)


def _staged(index: pygit2.Index, path: str) -> tuple[str, int] | None:
    """What the index has at a path; a conflict that is not settled is none of ours, and equals nothing."""
    try:
        return str(index[path].id), int(index[path].mode)
    except KeyError:
        return ("conflict", 0) if path in index else None
