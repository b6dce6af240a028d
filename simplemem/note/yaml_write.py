"""Single YAML values as text: plain where that is safe, quoted where it is not. Pure.

What is written here reads back equal under YAML 1.2 core, and means the same to readers of YAML 1.1
(PyYAML, Ruby) where quotes can buy that: `yes`, `12:30` and `010` get quotes, ISO dates stay bare as
Obsidian writes them. This room writes values and keys, never a document: where they go is the business of
`splice.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from simplemem.errors import Invalid, TooLong
from simplemem.note.yaml_read import DIGIT_LIMIT, core_value

KEY_LIMIT: Final = 500  # libyaml looks 1,024 characters ahead for the colon of a key

# What some parser takes for the end of a line or a byte order mark, or refuses: only written as an escape.
_UNWRITABLE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_FIRST: Final = frozenset("-?:,[]{}#&*!|>'\"%@`=")
_INSIDE: Final = re.compile(r":\s|\s#|:$")
_FLOW_INSIDE: Final = re.compile(r"[,\[\]{}]|:\S")
_ISO_DATE: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|[-+][0-9]{2}:[0-9]{2})?)?"
)
# What YAML 1.1 would take for something else than text; its words in any case, which is more than it says.
_OLD_WORDS: Final = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", "<<", "..."))
_OLD_NUMBER: Final = re.compile(
    r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?|\.[0-9_]+(?:[eE][-+]?[0-9]+)?"
    r"|[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?|\.(?:inf|nan))",
    re.IGNORECASE,
)
_OLD_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?")
_LARGEST: Final = 10 ** (DIGIT_LIMIT - 1)
_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}
_TO_ESCAPE: Final = re.compile('[\\\\"]|' + _UNWRITABLE.pattern)


def is_plain_safe(value: str, *, flow: bool = False) -> bool:
    """Whether this text may stand without quotes, and still be this text for every reader."""
    if not value or value != value.strip() or value[0] in _FIRST:
        return False
    if _UNWRITABLE.search(value) or _INSIDE.search(value) or (flow and _FLOW_INSIDE.search(value)):
        return False
    if not isinstance(core_value(value), str) or value.lower() in _OLD_WORDS or _OLD_NUMBER.fullmatch(value):
        return False
    return not value.startswith("...") and (_is_date(value) or not _OLD_DATE.fullmatch(value))


def _is_date(value: str) -> bool:
    """A date or date-time in the form Obsidian writes, and on the calendar: others make PyYAML raise."""
    if not _ISO_DATE.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def write_text(value: str, style: str = "", *, flow: bool = False) -> str:
    """A text in the quotes of what it replaces ("", "'" or '"'), escaped in double ones where it must be."""
    half = _SURROGATE.search(value)
    if half:
        raise Invalid(
            f"A text holds half of a character (U+{ord(half[0]):04X}), which no file can hold.",
            hint="Send the text again as valid Unicode.",
        )
    if style == "'" and not _UNWRITABLE.search(value):
        return "'" + value.replace("'", "''") + "'"
    if style != '"' and is_plain_safe(value, flow=flow):
        return value
    return '"' + _TO_ESCAPE.sub(_escape, value) + '"'


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    code = ord(character)
    return _ESCAPES.get(character) or (f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}")


def write_key(key: str) -> str:
    """A property's name. Names are one line, and short enough for every parser to see the colon."""
    if len(key) > KEY_LIMIT:
        raise TooLong(
            f"The property name {key[:40]!r}... is longer than {KEY_LIMIT} characters.",
            hint="Use a shorter one.",
        )
    if not key or key != key.strip() or _UNWRITABLE.search(key):
        raise Invalid(
            f"{key!r} cannot be the name of a property.",
            hint="Use one line of text without control characters or spaces around it.",
        )
    return write_text(key, flow=":" in key or "," in key)


def write_scalar(value: Any, style: str = "", *, flow: bool = False) -> str:
    """One plain value. None is written as `null`; a caller that may leave the place empty does so itself."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if abs(value) >= _LARGEST:
            raise TooLong(f"A number has more than {DIGIT_LIMIT:,} digits.", hint="Write it as text.")
        return str(int(value))
    if isinstance(value, float):
        return _write_float(value)
    if isinstance(value, str):
        return write_text(value, style, flow=flow)
    raise Invalid(
        f"A value of type {type(value).__name__} cannot stand in a property here.",
        hint="Use text, numbers, true, false or null, and lists of these.",
    )


def _write_float(value: float) -> str:
    if math.isnan(value):
        return ".nan"
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    mantissa, exponent, power = repr(value).partition("e")
    # YAML 1.1 takes 1e+16 for text: it wants the dot.
    return mantissa + (".0" if exponent and "." not in mantissa else "") + exponent + power


def clean_value(value: Any, there: Any = None) -> Any:
    """The value as it will read back: a scalar, a list of them or a flat dict. Invalid for anything else.

    `there` is the list that stands in the note: what is in it may stay, whatever it is.
    """
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise Invalid("The entries of a property must have names that are text.", hint="Quote the names.")
        return {key: _clean_scalar(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        nested = [one for one in there if isinstance(one, (list, dict))] if isinstance(there, list) else []
        return [item if any(same(item, one) for one in nested) else _clean_scalar(item) for item in value]
    return _clean_scalar(value)


def _clean_scalar(value: Any) -> Any:
    if isinstance(value, (list, tuple, Mapping)):
        raise Invalid(
            "A property cannot hold lists or maps inside lists or maps.",
            hint="Keep properties flat: text, numbers, true, false, null, and lists of these.",
        )
    write_scalar(value)
    return str.__str__(value) if isinstance(value, str) else value  # an enum's member reads back as its text


def same(one: Any, other: Any) -> bool:
    """Equal as YAML values: 1, 1.0 and true differ, .nan equals itself, the order of keys counts."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(map(same, one.values(), other.values()))
    if isinstance(one, float):
        return repr(one) == repr(other)
    return bool(one == other)
