"""All checks, by the name a person asks for them, run on one vault. Looking changes nothing."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

from simplemem.errors import Invalid
from simplemem.index.reconcile import Progress
from simplemem.store.core import Core
from simplemem.store.doctor.broken_links import check_links
from simplemem.store.doctor.case import Case, Noticed
from simplemem.store.doctor.files import check_attachments, check_strays
from simplemem.store.doctor.index import check_index, check_vectors
from simplemem.store.doctor.notes import check_conflicts, check_headers, check_names, check_notes, check_secrets
from simplemem.store.doctor.system import check_place, check_system

CHECKS: Mapping[str, Callable[[Case], Iterator[Noticed]]] = MappingProxyType({
    "index": check_index,
    "vectors": check_vectors,
    "headers": check_headers,
    "notes": check_notes,
    "names": check_names,
    "links": check_links,
    "conflicts": check_conflicts,
    "secrets": check_secrets,
    "attachments": check_attachments,
    "strays": check_strays,
    "place": check_place,
    "system": check_system,
})  # fmt: skip


def examine(core: Core, only: Collection[str], progress: Progress | None) -> tuple[Noticed, ...]:
    """What the checks notice, in the order of the checks. Of a damaged index nothing but that is asked."""
    asked = asked_for(only)
    case = Case(core, progress, asked)
    found: list[Noticed] = []
    for name, check in CHECKS.items():
        if not asked or name in asked:
            found += check(case)
        if name == "index" and any("damaged" in noticed.finding.message for noticed in found):
            break  # the rest is asked of the index, once it is made anew
    return tuple(found)


def asked_for(only: Iterable[str]) -> frozenset[str]:
    """The checks that were asked for; none is all of them. Invalid for a name that is none."""
    names = frozenset(name for name in only if name)
    for name in sorted(names - CHECKS.keys()):
        near = difflib.get_close_matches(name, CHECKS, 1)
        hint = f"Did you mean {near[0]}?" if near else ""
        raise Invalid(f"There is no check {name!r}: there are {', '.join(CHECKS)}.", hint=hint)
    return names
