"""A vault read as if some of its files were others: what `read` gives is laid over what lies on the disk. Writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from simplemem.vault.access import WHOLE_ACCESS, Access
from simplemem.vault.disk import sha256
from simplemem.vault.paths import Beneath
from simplemem.vault.scan import Entry
from simplemem.vault.vault import File, Vault
from simplemem.vault.write import no_such

__all__ = ["LaidOver", "Sheet"]


@dataclass(frozen=True, slots=True)
class Sheet:
    """What is read at a path in place of what lies there; None: nothing is there. `mtime_ns` is when it was written."""

    data: bytes | None
    mtime_ns: int


class LaidOver(Vault):
    """A vault for reading, with other bytes at some paths."""

    def __init__(self, root: Path, sheets: Mapping[str, Sheet], *, access: Access = WHOLE_ACCESS) -> None:
        super().__init__(root, read_only=True, access=access)
        self._sheets = {path: sheet for path, sheet in sheets.items() if not access.hides(path)}

    def lies_over(self, path: str) -> bool:
        """Whether a path is not read from the disk."""
        return path in self._sheets

    def scan(self) -> list[Entry]:
        return self._with_sheets(super().scan(), "")

    def entries_below(self, folder: str) -> list[Entry]:
        return self._with_sheets(super().entries_below(folder), f"{folder}/" if folder else "")

    def entry(self, path: str) -> Entry | None:
        sheet = self._sheets.get(path)
        return super().entry(path) if sheet is None else _entry(path, sheet)

    def _read(self, here: Beneath, path: str) -> File:
        sheet = self._sheets.get(path)
        if sheet is None:
            return super()._read(here, path)
        entry = _entry(path, sheet)
        if sheet.data is None or entry is None:
            raise no_such(path)
        return File(path, sheet.data, sha256(sheet.data), entry)

    def _with_sheets(self, found: list[Entry], below: str) -> list[Entry]:
        entries = [entry for entry in found if entry.path not in self._sheets]
        laid = (_entry(path, sheet) for path, sheet in self._sheets.items() if path.startswith(below))
        return sorted([*entries, *filter(None, laid)], key=lambda entry: entry.path)


def _entry(path: str, sheet: Sheet) -> Entry | None:
    if sheet.data is None:
        return None
    return Entry(path, len(sheet.data), sheet.mtime_ns, sheet.mtime_ns, 0)
