"""Many ids as a table that a statement can look in: handed to SQLite as they lie in memory, where it can take them so."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable
from typing import Any

import apsw

_CAN_TAKE_ARRAYS = "ENABLE_CARRAY" in apsw.compile_options  # as every wheel of apsw does; a system's build may not

TABLE = "carray(:ids)" if _CAN_TAKE_ARRAYS else "json_each(:ids)"  # its one column of interest is `value`


def bound(ids: Iterable[int]) -> Any:
    """The value of `:ids` beside TABLE."""
    values = ids if isinstance(ids, array) and ids.typecode == "q" else array("q", ids)
    if not _CAN_TAKE_ARRAYS:
        return json.dumps(values.tolist())
    return apsw.carray(values) if values else apsw.carray(_NOTHING)


_NOTHING = array("q", [-1])  # no id is negative, and an array of nothing cannot be handed over
