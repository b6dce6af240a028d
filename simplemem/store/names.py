"""Which memory a name means: its path, or its file name, title or alias when only one has it."""

from __future__ import annotations

import difflib

from simplemem.errors import Ambiguous, Invalid, NotFound
from simplemem.note.names import clean_reference, compare_key, is_copy_reason, name_of, path_of
from simplemem.note.words import well_formed
from simplemem.store.core import Core


def path_meant(core: Core, name: str) -> str:
    """The path of the memory that a name, title, alias or wikilink means."""
    return core.index.consistently(lambda: _path_meant(core, name))


def _path_meant(core: Core, name: str) -> str:
    wanted = clean_reference(name)
    if not wanted:
        raise Invalid("a name is needed", hint="Names look like projects/apollo.")
    for path in dict.fromkeys((path_of(well_formed(name).strip()), path_of(wanted))):  # as it is written, first
        if core.entry(path) is None:
            continue
        if core.index.known(path) is None:
            core.look_at({path})
        return path
    groups = core.index.paths_named(compare_key(wanted))
    for kind, found in zip(("path", "name", "title", "alias"), groups, strict=True):
        there = [path for path in found if core.entry(path) is not None]
        if len(there) > 1:  # a conflict copy has the title and the aliases of its note, and is never meant by them
            there = [path for path in there if not _is_copy(core, path)] or there
        if len(there) == 1:
            return there[0]
        if there:
            raise Ambiguous(
                f"{name!r} is the {kind} of {len(there)} memories",
                candidates=[name_of(path) for path in there],
                hint="Use one of the candidates.",
            )
    near = _near(core, wanted)
    raise NotFound(
        f"there is no memory called {name!r}",
        candidates=near,
        hint=f"Did you mean {near[0]}?" if near else "Search for it, or list what there is.",
    )


def _is_copy(core: Core, path: str) -> bool:
    known = core.index.known(path)
    return known is not None and is_copy_reason(known.hidden)


def _near(core: Core, wanted: str) -> list[str]:
    """Names that a mistyped one may have meant."""
    names = [name_of(path) for path in core.index.all_known()]
    by_key = {compare_key(name): name for name in names}
    by_base = {compare_key(name.rsplit("/", 1)[-1]): name for name in names}
    key = compare_key(wanted)
    close = difflib.get_close_matches(key, by_key, 3, 0.6)
    close_base = difflib.get_close_matches(key.rsplit("/", 1)[-1], by_base, 3, 0.7)
    return list(dict.fromkeys([by_key[k] for k in close] + [by_base[k] for k in close_base]))[:5]
