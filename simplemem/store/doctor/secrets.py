"""Passwords, keys and tokens that stand in notes or in their names. What they are is never shown, only their kind and their
line; a name has to be, to say which note it is."""

from __future__ import annotations

from collections.abc import Iterator

from simplemem.memory import Finding
from simplemem.note.secrets import find_secrets
from simplemem.store.doctor.case import Case, Noticed

_HINT = "Keep it in a password manager, write here where it is, and renew it: this text may have been copied and sent."
_MOST = 20  # of one note: a dump of keys is one finding too many


def check_secrets(case: Case) -> Iterator[Noticed]:
    notes = [path for path in case.entries if path.casefold().endswith(".md")]
    for done, path in enumerate(notes):
        if done % 250 == 0:
            case.tell("secrets", done, len(notes))
        for secret in find_secrets(path[:-3]):
            message = f"its name holds a {secret.kind}: {secret.shown}"
            yield Noticed(Finding("secrets", "warning", path, message, _HINT))
        if case.entries[path].size > case.settings.max_note_bytes or (file := case.read(path)) is None:
            continue
        for secret in find_secrets(file.data.decode("utf-8", "replace"))[:_MOST]:
            message = f"{secret.kind}: {secret.shown}"
            yield Noticed(Finding("secrets", "warning", path, message, _HINT, secret.line))
