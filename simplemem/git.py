"""What git knows of a note, and commits of what our tools changed, by libgit2: no program, hook or filter is run.
Nothing is fetched or pushed. What could lead out of a repository or hold us up is refused before it is opened."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import pygit2
from pygit2.enums import DiffFind, FileMode, RepositoryOpenFlag, RepositoryState, SortMode
from pygit2.ffi import C

from simplemem.errors import NotFound, Unavailable

_PATIENCE, _MOMENT = 2.0, 0.05  # seconds: another git at work is over in a moment
_SECONDS = 10.0  # for walking through commits; longer than this nobody waits
_MOST_BYTES = 10_000_000  # of a text
_YEAR_9999 = 253_402_300_799
_ID = re.compile(r"[0-9a-f]{7,64}")
_INCLUDES = re.compile(rb"\[\s*+include", re.IGNORECASE)  # a section may begin anywhere in a line
_VERSION = re.compile(r"^Simplemem-Version: (v[0-9]{6,15})$", re.MULTILINE)
_PARTS = "head config config.worktree index index.lock index.simplemem packed-refs shallow commondir gitdir".split()
_PARTS += ["refs", "logs", "info"]
PLAIN = (FileMode.BLOB, FileMode.BLOB_EXECUTABLE)
Files = dict[str, pygit2.IndexEntry | None]
Patch = tuple[
    str, str, bytes | None, bytes | None
]  # a note's path, then and afterwards, and its text


class Commit(NamedTuple):
    """One commit that changed a note. `path` is where the note was then, `old_path` where it had been before."""

    commit: str
    path: str
    old_path: str | None
    op: str  # create, update, move or delete
    when: str  # UTC, as the author's clock had it
    who: str
    subject: str
    versions: set[str]  # of one of our own commits: the changes of our history that it holds
    before: bytes | None  # the text, None where there was none, or it is not in this clone
    after: bytes | None


class Checkout(NamedTuple):
    """A working tree, its git directory, the one it shares with others, and the vault's place in the tree."""

    top: Path
    git_dir: Path
    common: Path
    prefix: str  # "" or "notes/deep/"
    ref: str = "HEAD"


def _find(root: Path, allowed: Sequence[str]) -> Checkout:
    """The repository a vault lies in, all of it in its working tree or in `allowed` folders. It is not opened yet."""
    real = Path(os.path.realpath(root))
    for top in (real, *real.parents):
        if not top.exists() or top.stat().st_dev != real.stat().st_dev:
            break  # as git does: what lies on another disk is another matter
        here = top / ".git"
        there = top / _pointer(here).removeprefix("gitdir:").strip() if here.is_file() else here
        git_dir = Path(os.path.realpath(there))
        common = Path(os.path.realpath(git_dir / (_pointer(git_dir / "commondir") or ".")))
        if (git_dir / "HEAD").is_file() and (common / "objects").is_dir():
            if git_dir == here and common != git_dir:
                raise Unavailable(
                    f"the `commondir` of {here} points to {common}, which is allowed only in a worktree"
                )
            for folder in dict.fromkeys((git_dir, common)):
                _check_inside(folder, top, allowed, "is in")
                _check_borrowed(folder / "objects", top, allowed)
            return Checkout(
                top, git_dir, common, "" if real == top else real.relative_to(top).as_posix() + "/"
            )
    raise NotFound(
        "the vault is not in a git repository",
        hint="`git init` creates one; commit once after that.",
    )


def _check_inside(folder: Path, top: Path, allowed: Sequence[str], how: str) -> None:
    """Unavailable for what is neither in the working tree nor where the person allows it: it may be anybody's."""
    roots = (top, *(Path(os.path.realpath(os.path.expanduser(each))) for each in allowed))
    if not any(folder.is_relative_to(each) for each in roots):
        hint = f"If the repository is yours, add {folder} or a folder above it to `git.folders` in your own settings."
        raise Unavailable(
            f"the repository of {top} {how} {folder}, which is outside of {top}", hint=hint
        )


def _check_borrowed(objects: Path, top: Path, allowed: Sequence[str], depth: int = 0) -> None:
    """Unavailable when objects are borrowed, by links or from elsewhere (objects/info/alternates), where none may be."""
    _check_plain(objects)
    file = objects / "info" / "alternates"
    if depth > 5 or (file.is_file() and file.stat().st_size > 4000):
        raise Unavailable(
            f"the repository of {top} borrows objects from too many other repositories"
        )
    for line in filter(
        None, re.split(r"[\r\n]+", _pointer(file))
    ):  # read as libgit2 does, comments as well
        folder = Path(os.path.realpath(objects / line if line.startswith(".") else line))
        _check_inside(folder, top, allowed, "borrows objects from")
        _check_borrowed(folder, top, allowed, depth + 1)


def _pointer(file: Path) -> str:
    """What a pointer file of git's says, "" when there is none; no more than a path is read."""
    if not file.is_file():
        return ""
    with file.open("rb") as opened:
        return os.fsdecode(opened.read(8192)).replace("\0", "\n").strip("\r\n")


@contextmanager
def opened(root: Path, allowed: Sequence[str]) -> Iterator[tuple[pygit2.Repository, Checkout]]:
    """The repository of a vault. What libgit2 reports in the block is Unavailable."""
    place = _find(root, allowed)
    for folder in {place.git_dir, place.common}:
        _check_plain(folder, _PARTS)
    for file in (place.common / "config", place.git_dir / "config.worktree"):
        if file.exists() and _INCLUDES.search(file.read_bytes()):
            message = (
                f"{file} includes other files, and simplemem does not read such a git configuration"
            )
            raise Unavailable(
                message, hint="Replace each include with the settings that it includes."
            )
    try:
        repo = pygit2.Repository(str(place.git_dir), RepositoryOpenFlag.NO_SEARCH)
        if repo.workdir is None or Path(os.path.realpath(repo.workdir)) != place.top:
            message = f"{place.top}/.git points to {place.git_dir}, whose `core.worktree` is not {place.top}"
            hint = f"If the repository is yours, run `git --git-dir={place.git_dir} config core.worktree {place.top}`."
            raise Unavailable(message, hint=hint)
        yield repo, place
        repo.free()
    except pygit2.GitError as error:
        raise Unavailable(f"libgit2 cannot use the repository at {place.top}: {error}") from error


def _check_plain(folder: Path, only: Collection[str] = ()) -> None:
    """Unavailable when something in a folder of git's, or in `only` these parts, is neither folder nor plain file."""
    with suppress(FileNotFoundError), os.scandir(folder) as listed:
        for each in listed:
            if only and each.name.casefold() not in only:
                continue
            if each.is_dir(follow_symlinks=False):
                _check_plain(Path(each.path))
            elif not each.is_file(follow_symlinks=False):
                message = f"{each.path} is a link or not a regular file, and simplemem does not read such a repository"
                raise Unavailable(message)


Opened = AbstractContextManager[tuple[pygit2.Repository, Checkout]]


def history(repository: Opened, path: str, limit: int = 20) -> list[Commit]:
    """The commits that changed a note, newest first, through its renames."""
    with repository as (repo, place):
        return list(islice(_commits_of(repo, place, path), limit))


def text_at(repository: Opened, path: str, commit: str) -> tuple[str, bytes]:
    """A note's path and bytes at a commit, given by its id or the beginning of it, under the name it had then."""
    wanted, found = commit.strip().lower(), None
    with repository as (repo, place):
        with suppress(ValueError):  # several commits begin so
            found = repo.get(wanted) if _ID.fullmatch(wanted) else None
        head = repo.references.get(place.ref)
        tip = (
            head.resolve().target if head is not None and place.ref != "HEAD" else None
        )  # of a branch: none of another
        is_told = isinstance(found, pygit2.Commit) and (
            tip in (None, found.id) or repo.descendant_of(tip, found.id)
        )
        if not isinstance(found, pygit2.Commit) or not is_told:
            raise NotFound(f"no commit {commit[:64]!r}")
        for name in chain([path], (each.path for each in _commits_of(repo, place, path))):
            file = _file(found.tree, place.prefix + name)
            data = _text(repo, file) if file is not None and file.mode in PLAIN else None
            if data is not None:
                return name, data
    raise NotFound(f"commit {commit[:12]} does not contain {path!r} under any of its names")


def _commits_of(repo: pygit2.Repository, place: Checkout, path: str) -> Iterator[Commit]:
    """The commits that changed a file: those in which it is another than in every parent."""
    if (head := repo.references.get(place.ref)) is None or (
        place.ref == "HEAD" and repo.head_is_unborn
    ):
        return
    name, until, cut = place.prefix + path, time.monotonic() + _SECONDS, len(place.prefix)
    for commit in repo.walk(head.resolve().target, SortMode.TOPOLOGICAL | SortMode.TIME):
        if time.monotonic() > until:
            raise Unavailable(
                f"git did not answer within {_SECONDS:g} s",
                hint="To leave git commits out of the history, set git.history = false.",
            )
        known: list[object] = [repo.get(oid) for oid in commit.parent_ids]
        parents = [
            each for each in known if isinstance(each, pygit2.Commit)
        ]  # a shallow clone has not all of them
        now, before = (
            _file(commit.tree, name),
            [_file(parent.tree, name) for parent in parents] or [None],
        )
        if now in before:
            continue
        was, old = before[0], None
        if now and was is None and parents:
            diff = parents[0].tree.diff_to_tree(commit.tree)
            diff.find_similar(flags=DiffFind.FIND_RENAMES)
            renamed = (
                str(d.old_file.path)
                for d in diff.deltas
                if d.status_char() == "R" and d.new_file.path == name
            )
            old = next((path for path in renamed if path.startswith(place.prefix)), None)
            was = _file(parents[0].tree, old) if old else None
        op = "move" if old else "create" if was is None else "delete" if now is None else "update"
        when = datetime.fromtimestamp(max(0, min(commit.author.time, _YEAR_9999)), UTC).strftime(
            "%Y-%m-%dT%H:%M:%SZ"
        )
        said = (one_line(commit.author.name), one_line(commit.message.partition("\n")[0]))
        ours, texts = set(_VERSION.findall(commit.message)), (_text(repo, was), _text(repo, now))
        yield Commit(
            str(commit.id), name[cut:], old[cut:] if old else None, op, when, *said, ours, *texts
        )
        name = old or name


def _file(tree: pygit2.Tree, path: str) -> pygit2.IndexEntry | None:
    if path not in tree or tree[path].filemode == FileMode.TREE:
        return None
    return pygit2.IndexEntry(path, tree[path].id, tree[path].filemode)


def _text(repo: pygit2.Repository, file: pygit2.IndexEntry | None) -> bytes | None:
    blob = repo.get(file.id) if file is not None else None
    return blob.data if isinstance(blob, pygit2.Blob) and blob.size <= _MOST_BYTES else None


def one_line(text: str, most: int = 300) -> str:
    """One line of printable text: what could hold two lines could forge an entry, or a trailer of somebody else's."""
    words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return words if len(words) <= most else words[: most - 1] + "…"


def commit(
    root: Path,
    patches: Sequence[Patch],
    subject: str,
    said: Mapping[str, str],
    when: int,
    allowed: Sequence[str] = (),
) -> None:
    """Commit these changes, all or none, and nothing that a person staged or edited; Unavailable where it is theirs."""
    trailers = (
        f"Simplemem-{key}: {line}\n" for key, value in said.items() if (line := one_line(value))
    )
    message = f"{one_line(subject, 110)}\n\n{''.join(trailers)}"
    with opened(root, allowed) as (repo, place), index_held(repo, place) as index:
        settle(repo, place)
        if repo.state() != RepositoryState.NONE:
            raise Unavailable(
                f"a {repo.state().name.lower().replace('_', ' ')} is in progress in the repository"
            )
        branch = repo.lookup_reference("HEAD").target
        if not isinstance(branch, str) or repo.head_is_unborn:
            raise Unavailable("no branch with a commit is checked out")
        draft = _Draft(repo, place, index)
        for patch in patches:
            draft.apply(*patch)
        if changed := draft.changed():
            tree = with_files(repo, index, draft.last.tree, changed)
            person = signature(repo) or pygit2.Signature("simplemem", "simplemem@localhost")
            author = pygit2.Signature(person.name, person.email, when, 0)
            made = repo.create_commit(None, author, person, message, tree, [draft.last.id])
            go_on(repo, place, index, branch, made)


def with_files(
    repo: pygit2.Repository, index: pygit2.Index, tree: pygit2.Tree, files: Files
) -> pygit2.Oid:
    """A tree with these files, which the index takes in as well."""
    changed = pygit2.Index()
    changed.read_tree(tree)
    for each in (index, changed):
        for path in (path for path in files if path in each):  # what goes makes room
            each.remove(path)
        for file in filter(None, files.values()):
            each.add(file)
    return changed.write_tree(repo)


def go_on(
    repo: pygit2.Repository, place: Checkout, index: pygit2.Index, branch: str, commit: pygit2.Oid
) -> None:
    """Let the person's index and then their branch go on to a commit. `settle` finishes what a crash interrupts: else
    our change would stay staged."""
    mark = place.git_dir / "simplemem.commit"
    mark.write_text(f"{repo.head.target} {commit}")
    index_taken(index, place)
    person = signature(repo) or pygit2.Signature("simplemem", "simplemem@localhost")
    repo.set_ident(person.name, person.email)
    pygit2.settings.enable_fsync_gitdir(True)
    try:
        patiently(lambda: repo.references[branch].set_target(commit, "simplemem"), OSError)
    except OSError as error:
        hint = "If no other git process is running, remove the file that ends with .lock."
        raise Unavailable(f"the branch cannot be updated: {error}", hint=hint) from error
    mark.unlink()


def settle(repo: pygit2.Repository, place: Checkout) -> None:
    """Finish a commit that a crash interrupted when its index had taken the place of the person's."""
    mark = place.git_dir / "simplemem.commit"
    old, _, new = _pointer(mark).partition(" ")
    known = [repo.get(each) if _ID.fullmatch(each) else None for each in (old, new)]
    if (
        not repo.head_is_unborn
        and str(repo.head.target) == old
        and all(isinstance(e, pygit2.Commit) for e in known)
    ):
        was, now = (each.peel(pygit2.Tree) for each in known if each is not None)
        index = repo.index
        ids = {delta.new_file.path: delta.new_file.id for delta in was.diff_to_tree(now).deltas}
        there = {
            path: index[path].id if path in index else pygit2.Oid(hex="0" * 40) for path in ids
        }
        if there == ids:
            repo.references[str(repo.references["HEAD"].target)].set_target(new, "simplemem")
    mark.unlink(missing_ok=True)


def signature(repo: pygit2.Repository) -> pygit2.Signature | None:
    """The person as git knows them."""
    try:
        return repo.default_signature
    except (KeyError, ValueError, pygit2.GitError):
        return None


def index_taken(index: pygit2.Index, place: Checkout) -> None:
    """Let our copy of the index take the place of the person's. Before the branch moves: a crash between the two leaves
    our change staged, never the undoing of it."""
    index.write()
    ours, theirs = place.git_dir / "index.simplemem", place.git_dir / "index"
    if theirs.exists():
        shutil.copystat(
            theirs, ours
        )  # by its time git tells what was edited in the moment it was staged
    os.replace(ours, theirs)


def patiently(act: Callable[[], object], failure: type[Exception]) -> None:
    """Try it again for a moment: what another git is at is soon over."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        with suppress(failure):
            act()
            return
        time.sleep(_MOMENT)
    act()


class _Draft:
    """What a commit will change: files by their path, None for no file, on top of the last commit."""

    def __init__(self, repo: pygit2.Repository, place: Checkout, index: pygit2.Index) -> None:
        self._repo, self._place, self._index = repo, place, index
        self.last = repo.head.peel(pygit2.Commit)
        self._files: Files = {}

    def changed(self) -> Files:
        """The files that are others than in the last commit, none of them staged by the person."""
        changed: Files = {}
        for path, file in self._files.items():
            staged, committed = None, _file(self.last.tree, path)
            with suppress(KeyError):
                staged = self._index[path]
            if staged not in (committed, file):
                raise Unavailable(f"{path!r} has staged changes")
            if file != committed:
                changed[path] = file
        return changed

    def apply(self, path: str, target: str, before: bytes | None, after: bytes | None) -> None:
        """Take in a change."""
        path, target = self._place.prefix + path, self._place.prefix + target
        ignored = {each for each in (path, target) if self._is_ignored(each)}
        if target in ignored:  # a move out of sight is a deletion, and one into sight a creation
            target, after = path, None
        if path in ignored:
            path, before = target, None
        if path in ignored:
            return
        there = self._files.get(path, _file(self.last.tree, path))
        old, new = self._stored(path, before), self._stored(target, after)
        held = there.id if there is not None else None
        if held is not None and old == new:
            new = held  # it only moved, with whatever a person has or has not committed of it
        elif held not in (old, new):
            raise Unavailable(f"{path!r} has changes that you have not committed")
        self._files[path] = None
        mode = there.mode if there is not None else FileMode.BLOB
        self._files[target] = None if new is None else pygit2.IndexEntry(target, new, mode)

    def _is_ignored(self, path: str) -> bool:
        """Whether git is not to have a note, as the person said."""
        place = self._place
        folders = (
            folder for folder in (place.top / path).parents if folder.is_relative_to(place.top)
        )
        rules = (folder / name for folder in folders for name in (".gitignore", ".gitattributes"))
        for file in chain(
            rules, (place.common / "info" / name for name in ("exclude", "attributes"))
        ):
            if os.path.lexists(file) and not file.is_file():
                raise Unavailable(f"{file}, which applies to {path!r}, is not a regular file")
        if self._repo.path_is_ignored(path) and path not in self._index:
            return True
        filtered = self._repo.get_attr(path, "filter") not in (None, False)
        if filtered or self._repo.get_attr(
            path, "working-tree-encoding"
        ):  # the plain text must not go in
            raise Unavailable(f"{path!r} has a git filter, and simplemem does not run filters")
        entry = C.git_index_get_bypath(self._index._index, os.fsencode(path), 0)  # noqa: SLF001  (pygit2 shows no flags)
        if entry and (
            entry.flags & 0x8000 or entry.flags_extended & 0x4000
        ):  # assume-unchanged, skip-worktree
            raise Unavailable(f"{path!r} is marked assume-unchanged or skip-worktree in git")
        return False

    def _stored(self, path: str, text: bytes | None) -> pygit2.Oid | None:
        """git's id of a text, which it has from now on, with the line ends that its attributes want."""
        if text is None:
            return None
        ends = self._repo.load_filter_list(path) if text and b"\0" not in text else None
        return self._repo.create_blob(text if ends is None else ends.apply_to_buffer(text))


@contextmanager
def index_held(repo: pygit2.Repository, place: Checkout) -> Iterator[pygit2.Index]:
    """A copy of the person's index, under git's lock of it: meanwhile no other git changes the index or commits it."""
    len(repo.index)  # one that libgit2 cannot read says so here
    lock, copy, index = (
        place.git_dir / name for name in ("index.lock", "index.simplemem", "index")
    )
    try:
        patiently(lambda: lock.open("xb").close(), FileExistsError)
    except FileExistsError as error:
        raise Unavailable(
            "another git process is running in the repository",
            hint=f"If none is running, remove {lock}.",
        ) from error
    try:
        if index.exists():
            shutil.copy2(index, copy)
        yield pygit2.Index(str(copy))
    finally:
        copy.unlink(missing_ok=True)
        lock.unlink(missing_ok=True)
