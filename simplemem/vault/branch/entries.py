"""List the files of a commit as entries, whose times every server computes alike."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

import pygit2

from simplemem.gitrepo.repository import REGULAR_FILE_MODES
from simplemem.note.names import MAX_PATH_PARTS, check_path, is_path
from simplemem.vault.branch.log import BranchLog
from simplemem.vault.branch.repository import at, bounded
from simplemem.vault.values import Entry

_NANOSECONDS = 1_000_000_000
# These 29 bits of a blob's id are added to the time of a file, as nanoseconds: half a second at
# most. So two texts from the same second have different times.
_BLOB_ID_BITS = (1 << 29) - 1


class EntryReader:
    """Reads the entries of files in the commits of a branch.

    An entry depends on the commits alone, so all servers compute the same one, and the index of one
    server is up to date for the others.
    """

    def __init__(self, log: BranchLog) -> None:
        self._log = log
        self._branch = log.branch

    def entry_in(self, commit: str, path: str) -> Entry | None:
        """Return the entry of a file in a commit, None if there is no regular file."""
        blob = self._branch.file(commit, path)
        return None if blob is None else self.entry_of(path, blob)

    def entry_of(self, path: str, blob: pygit2.Object) -> Entry:
        """Return the entry of a file whose blob is known, by the commits that the log has read.

        Its time is that of the last commit that changed it, made unique by the id of the blob. Its
        inode is 0.
        """
        _, size = self._branch.repo.odb.read_header(blob.id)
        seconds = self._log.dates.get(path, 0)
        fraction = int(str(blob.id)[:8], 16) & _BLOB_ID_BITS
        time_ns = seconds * _NANOSECONDS + fraction
        return Entry(path, size, time_ns, time_ns, 0)

    def entries_below(self, commit: str, folder: str) -> tuple[list[Entry], dict[str, str]]:
        """Return the files below a folder of a commit, sorted, and why other paths are left out.

        The reasons are by path. "" is the whole branch. A folder that does not exist has no files.
        Files and folders that begin with a dot or are nested too deeply, and links, are left out
        without a reason. Raises Invalid for a malformed path, and Unavailable for a branch that is
        too large.
        """
        tree = at(self._branch.tree(commit), folder)
        prefix = f"{'/'.join(check_path(folder))}/" if folder else ""
        problems: dict[str, str] = {}
        if not isinstance(tree, pygit2.Tree):
            return [], problems

        entries = list(self._walk(tree, prefix, problems, bounded()))
        entries.sort(key=attrgetter("path"))
        return entries, problems

    def _walk(
        self,
        tree: pygit2.Tree,
        prefix: str,
        problems: dict[str, str],
        turns: Iterator[None],
    ) -> Iterator[Entry]:
        """Yield the entries of the files in a tree and its folders, and add to `problems`.

        `prefix` is the path of the tree with a final slash, or "". `turns` raises Unavailable after
        too many entries.
        """
        for item in tree:
            next(turns)
            # An entry without a name, which pygit2's types allow, is left out like a hidden one.
            name = (item.raw_name or b".").decode("utf-8", "surrogateescape")
            if name[0] == ".":
                continue

            path = prefix + name
            if isinstance(item, pygit2.Tree) and path.count("/") < MAX_PATH_PARTS:
                yield from self._walk(item, f"{path}/", problems, turns)
            elif item.filemode in REGULAR_FILE_MODES and is_path(path):
                yield self.entry_of(path, item)
            elif item.filemode in REGULAR_FILE_MODES:
                printable = path.encode("utf-8", "backslashreplace").decode()
                problems[printable] = "its name is not valid in a path"
