"""Obsidian's "Excluded files": filters that hide paths from search. Pure.

A filter is the beginning of a path, or a regular expression between slashes. A vault may come from
a stranger, so a regular expression is limited in size and time. One that exceeds a limit is not
applied any more, and `refusal_of` states the reason.
"""

from __future__ import annotations

import math
import re
import unicodedata
from typing import Final

from simplemem.note.names import compare_key

_MAX_PATTERN_CHARACTERS: Final = 500  # a filter is a line that somebody typed
# The product of all counts in a pattern. The engine writes repetitions out, so a greater product
# would fill the memory.
_MAX_REPETITIONS: Final = 10_000
_MAX_SECONDS: Final = 0.1  # matching a path takes a few microseconds
_COUNT: Final = re.compile(r"(\d{1,9}),?\}")  # of `{n}`, `{m,n}` and `{m,}`

# The regular expressions that are not applied, and the reasons. It belongs to the process, so that
# a slow expression costs its time once.
_REFUSALS: Final[dict[str, str]] = {}


def is_excluded(entry: str, path: str, path_key: str) -> bool:
    """Return whether the filter `entry` matches a path, whose compare key is `path_key`.

    A filter is the beginning of a path, in any case of letters and without slashes before it, or a
    regular expression between slashes that is found anywhere in it. An expression that is refused
    matches nothing, and so does a filter of slashes only. Never raises.
    """
    if is_expression(entry):
        return _is_found(entry, path)
    beginning = compare_key(entry.lstrip("/")) or "/"
    return path_key.startswith(beginning)


def is_expression(entry: str) -> bool:
    """Return whether a filter is a regular expression between slashes."""
    return len(entry) > 2 and entry.startswith("/") and entry.endswith("/")


def refusal_of(entry: str) -> str | None:
    """Return why a filter, which must be a regular expression, is not applied; None if it is.

    An expression that takes too long is only noticed when a path is matched with it.
    """
    _is_found(entry, "")
    return _REFUSALS.get(entry)


def _is_found(entry: str, path: str) -> bool:
    """Return whether a regular expression is found in a path.

    Refuses it if that takes too long, or if it is not valid or too large. A refused one is never
    tried again in this process.
    """
    if entry in _REFUSALS:
        return False

    pattern = unicodedata.normalize("NFC", entry[1:-1])
    if _is_too_large(pattern):
        _REFUSALS[entry] = "the pattern is too large"
        return False

    import regex  # imported late: it takes 20 ms, and few vaults have such filters

    text = unicodedata.normalize("NFC", path)
    try:
        match = regex.search(pattern, text, regex.IGNORECASE, timeout=_MAX_SECONDS)
    except (regex.error, RecursionError) as error:
        _REFUSALS[entry] = f"the pattern is not valid: {error}"
        return False
    except (TimeoutError, MemoryError):
        _REFUSALS[entry] = "the pattern takes too long to match"
        return False
    return match is not None


def _is_too_large(pattern: str) -> bool:
    """Return whether a pattern is too long, or repeats its parts too often for memory."""
    if len(pattern) > _MAX_PATTERN_CHARACTERS:
        return True
    counts = [max(1, int(count)) for count in _COUNT.findall(pattern)]
    return math.prod(counts) > _MAX_REPETITIONS
