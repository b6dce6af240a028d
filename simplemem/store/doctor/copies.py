"""Conflict copies: what synchronisers and git leave beside a note that was changed in two places."""

from __future__ import annotations

from collections.abc import Iterator

from simplemem.memory import Finding
from simplemem.store.conflicts import conflict_copies
from simplemem.store.doctor.case import Case, Discard, Noticed


def check_conflicts(case: Case) -> Iterator[Noticed]:
    for copy in case.core.healing(lambda: conflict_copies(case.index)):
        whose = " ".join(filter(None, (f"a conflict copy of {copy.of} by {copy.maker}", copy.by and f"({copy.by})")))
        if _are_one_text(case, copy.path, copy.original):
            why = f"the same text as {copy.of}"
            finding = Finding("conflicts", "warning", copy.path, f"{whose}, {why}", fix="move the copy to the trash")
            yield Noticed(finding, Discard(copy.path, why))
        else:
            hint = "`simplemem conflicts` shows what differs, and merges the two."
            yield Noticed(Finding("conflicts", "warning", copy.path, whose, hint))


def _are_one_text(case: Case, one: str, other: str) -> bool:
    here, there = case.read(one), case.read(other)
    return here is not None and there is not None and here.sha256 == there.sha256
