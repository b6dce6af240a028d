"""Notes that are not indexed, or are no text: too large, binary, in another encoding, or closed to us."""

from __future__ import annotations

from collections.abc import Iterator

from simplemem.memory import Finding
from simplemem.store.doctor.case import Case, Noticed

_MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


def is_text(problem: str) -> bool:
    """Whether what is wrong with a note is its header, and not that its bytes are no UTF-8."""
    return problem.startswith("its header")


def check_notes(case: Case) -> Iterator[Noticed]:
    most = case.settings.max_note_bytes
    for path, entry in case.entries.items():
        if path.casefold().endswith(".md") and entry.size > most:
            message = f"{entry.size:,} bytes: notes over {most:,} are not indexed"
            hint = "Split it, or raise the setting index.max_note_mb."
            yield Noticed(Finding("notes", "warning", path, message, hint))
    told = {path for path, entry in case.entries.items() if entry.size > most}
    for path, why in case.core.not_indexed():
        if path not in told:
            yield Noticed(Finding("notes", "warning", path, f"not indexed: {why}"))
    for path, problem in case.problems.items():
        if not is_text(problem):
            yield _no_text(case, path, problem)


def _no_text(case: Case, path: str, problem: str) -> Noticed:
    file = case.read(path)
    encoding = _MARKS.get(file.data[:2], "") if file is not None else ""
    message = f"it is {encoding} text, not UTF-8" if encoding else problem
    hint = "Save it as UTF-8 in an editor."
    if "binary" in problem and not encoding:
        hint = "If it is no text, it wants another extension than .md."
    return Noticed(Finding("notes", "warning", path, message, hint))
