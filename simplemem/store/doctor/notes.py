"""Notes and their names: headers that cannot be read, what is not indexed, names that collide, conflict copies, secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator

from simplemem.memory import Finding
from simplemem.note.names import compare_key
from simplemem.note.secrets import find_secrets
from simplemem.store.conflicts import conflict_copies
from simplemem.store.doctor.case import Case, Discard, Noticed, warning

_SERVED = "served and searched, but not changed by any tool"
_PLACE = re.compile(r" \(line (\d+), column (\d+)\)$")


def check_headers(case: Case) -> Iterator[Noticed]:
    """Headers that cannot be read: where, and why."""
    for path, problem in case.problems.items():
        if not _is_of_header(problem):
            continue
        place = _PLACE.search(problem)
        line = int(place[1]) if place else 0
        yield warning("headers", path, f"{_PLACE.sub('', problem)}; {_SERVED}", "Mend it in an editor.", line)


def _is_of_header(problem: str) -> bool:
    """Whether what is wrong with a note is its header, and not that its bytes are no UTF-8."""
    return problem.startswith("its header")


def check_notes(case: Case) -> Iterator[Noticed]:
    """Notes that are not indexed, or are no text: too large, binary, in another encoding, or closed to us."""
    most = case.settings.max_note_bytes
    large = {path for path, entry in case.entries.items() if entry.size > most}
    for path in sorted(large):
        if path.casefold().endswith(".md"):
            message = f"{case.entries[path].size:,} bytes: notes over {most:,} are not indexed"
            yield warning("notes", path, message, "Split it, or raise the setting index.max_note_mb.")
    for path, why in case.core.not_indexed():
        if path not in large:
            yield warning("notes", path, f"not indexed: {why}")
    for path, problem in case.problems.items():
        if not _is_of_header(problem):
            file = case.read(path)
            is_utf16 = file is not None and file.data[:2] in (b"\xff\xfe", b"\xfe\xff")
            hint = "Save it as UTF-8 in an editor."
            if "binary" in problem and not is_utf16:
                hint = "If it is no text, it wants another extension than .md."
            yield warning("notes", path, "it is UTF-16 text, not UTF-8" if is_utf16 else problem, hint)


def check_names(case: Case) -> Iterator[Noticed]:
    """Names that are one on a Mac or on Windows: by case, or by how an accent is written."""
    hint = "Rename one of them before the vault is synced to another computer."
    folders = {path[:at] for path in case.entries for at, char in enumerate(path) if char == "/"}
    for paths, of in ((sorted(folders), "the folders "), (sorted(case.entries), "")):
        seen: dict[str, str] = {}
        for path in paths:
            other = seen.setdefault(compare_key(path), path)
            if other != path and other.count("/") == path.count("/"):
                yield warning("names", path, f"{of}{path} and {other} are the same name on some systems", hint)


def check_conflicts(case: Case) -> Iterator[Noticed]:
    """Conflict copies: what synchronisers and git leave beside a note that was changed in two places."""
    for copy in conflict_copies(case.index):
        whose = f"a conflict copy of {copy.of} by {copy.maker}"
        here, there = case.read(copy.path), case.read(copy.original)
        if here is not None and there is not None and here.sha256 == there.sha256:
            why = f"the same text as {copy.of}"
            finding = Finding("conflicts", "warning", copy.path, f"{whose}, {why}", fix="move the copy to the trash")
            yield Noticed(finding, Discard(copy.path, why))
        else:
            hint = "`simplemem conflicts` shows what differs, and merges the two."
            yield warning("conflicts", copy.path, whose, hint)


def check_secrets(case: Case) -> Iterator[Noticed]:
    """Passwords, keys and tokens in notes and in their names. What they are is never shown, only their kind and line; a
    name has to be, to say which note it is."""
    hint = (
        "Keep it in a password manager, write here where it is, and renew it: this text may have been copied and sent."
    )
    for path in case.entries:
        for secret in find_secrets(path[:-3]) if path.casefold().endswith(".md") else ():
            yield warning("secrets", path, f"its name holds a {secret.kind}: {secret.shown}", hint)
    for path, data in case.small_files("secrets", (".md",)):
        for secret in find_secrets(data.decode("utf-8", "replace"))[:20]:  # a dump of keys is one finding too many
            yield warning("secrets", path, f"{secret.kind}: {secret.shown}", hint, secret.line)
