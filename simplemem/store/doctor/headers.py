"""Headers that cannot be read: where, why, and whether it is only a key that stands twice and says the same."""

from __future__ import annotations

import re
from collections.abc import Iterator

from simplemem.memory import Finding
from simplemem.note.header import Repeated, repeated_keys
from simplemem.note.note import read_note
from simplemem.store.doctor.case import Case, DropRepeated, Noticed
from simplemem.store.doctor.notes import is_text

_SERVED = "served and searched, but not changed by any tool"
_PLACE = re.compile(r" \(line (\d+), column (\d+)\)$")


def check_headers(case: Case) -> Iterator[Noticed]:
    for path, problem in case.problems.items():
        if not is_text(problem):
            continue  # that it is no text is told of the note
        file = case.read(path)
        text = "" if file is None else read_note(file.data).text
        repeated = repeated_keys(text)
        if repeated:
            yield _repeated(case, path, repeated)
            continue
        place = _PLACE.search(problem)
        line = int(place[1]) if place else 0
        message = f"{_PLACE.sub('', problem)}; {_SERVED}"
        yield Noticed(Finding("headers", "warning", path, message, "Mend it in an editor.", line))


def _repeated(case: Case, path: str, repeated: tuple[Repeated, ...]) -> Noticed:
    told = ", ".join(f"{each.key!r} stands there twice (lines {each.first_line} and {each.line})" for each in repeated)
    message = f"its header cannot be read: {told}; {_SERVED}"
    line = next((each.line for each in repeated if not each.equal), repeated[0].line)
    if path not in case.mendable_headers:
        differing = [each.key for each in repeated if not each.equal]
        keep = f"Keep one of the values of {', '.join(differing)}"
        hint = f"{keep}." if differing else "More is wrong with it: mend it in an editor."
        return Noticed(Finding("headers", "warning", path, message, hint, line))
    keys = ", ".join(dict.fromkeys(each.key for each in repeated))
    fix = f"leave {keys} there once"
    return Noticed(Finding("headers", "warning", path, message, line=line, fix=fix), DropRepeated(path))
