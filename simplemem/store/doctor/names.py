"""Names that are one on a Mac or on Windows: by case, or by how an accent is written."""

from __future__ import annotations

from collections.abc import Iterator

from simplemem.memory import Finding
from simplemem.note.names import compare_key
from simplemem.store.doctor.case import Case, Noticed, Rename

_HINT = "Rename one of them before the vault is synced to another computer."


def check_names(case: Case) -> Iterator[Noticed]:
    yield from _folders(case)
    same: dict[str, list[str]] = {}
    for path in case.entries:
        same.setdefault(compare_key(path), []).append(path)
    taken = set(same)
    for paths in same.values():
        if len(paths) > 1:
            kept, *others = sorted(paths, key=lambda path: (-case.links_to[path], case.entries[path].mtime_ns, path))
            for path in sorted(others):
                yield _colliding(path, kept, taken, asked="names" in case.only)


def _colliding(path: str, kept: str, taken: set[str], *, asked: bool) -> Noticed:
    new_path = _free(path, taken)
    taken.add(compare_key(new_path))
    message = f"{path} and {kept} are the same name on some systems"
    if not asked:  # a name is a person's choice: it is changed only where this check was asked for
        hint = f"{_HINT} `simplemem doctor --fix --only names` calls this one {new_path}."
        return Noticed(Finding("names", "warning", path, message, hint))
    fix = f"rename it to {new_path}"
    return Noticed(Finding("names", "warning", path, message, fix=fix), Rename(path, new_path))


def _free(path: str, taken: set[str]) -> str:
    """A name beside it that nothing has on any system."""
    above, _, name = path.rpartition("/")
    stem, dot, extension = name.rpartition(".")
    stem, ending = (stem, dot + extension) if stem else (name, "")
    number = 2
    while compare_key(found := f"{above}/{stem} {number}{ending}".lstrip("/")) in taken:
        number += 1
    return found


def _folders(case: Case) -> Iterator[Noticed]:
    """Folders that would become one: whether that is wanted, only a person knows."""
    seen: dict[str, str] = {}
    folders = {path[:at] for path in case.entries for at, char in enumerate(path) if char == "/"}
    for folder in sorted(folders):
        other = seen.setdefault(compare_key(folder), folder)
        if other != folder:
            message = f"the folders {other} and {folder} are one on some systems"
            yield Noticed(Finding("names", "warning", folder, message, "Put their notes into one of them."))
