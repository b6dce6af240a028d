"""Write values as YAML: the lines of a property, and the header of a new note. Pure.

What is written reads back equal under YAML 1.2 core. Quotes make it mean the same to readers of
YAML 1.1 (PyYAML, Ruby) too: `yes`, `12:30` and `010` get quotes. Only ISO dates, which YAML 1.1
takes for more than text, stay without quotes, because Obsidian writes them so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from simplemem.errors import Invalid
from simplemem.note.header import equal_in_yaml, parse_plain_scalar, read_header, read_yaml

if TYPE_CHECKING:
    from frontmatter.default_handlers import BaseHandler

_MAX_KEY_LENGTH: Final = 500  # libyaml looks for the colon only in the next 1,024 characters

# Characters that some parser takes for a line break or a byte order mark, or refuses.
_ONLY_ESCAPED: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
# What needs quotes: a text that begins with a character or mark of YAML, or has a colon before a
# space or at its end, or a hash behind a space.
_NOT_PLAIN: Final = re.compile(r"[-?:,\[\]{}#&*!|>'\"%@`=]|\.\.\.|.*?(?::\s|\s#|:$)", re.DOTALL)
# What needs quotes as well within brackets or braces, wherever it is in a text.
_NOT_PLAIN_IN_FLOW: Final = re.compile(r"[,\[\]{}]|:\S")
_ISO_DATE: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|[-+][0-9]{2}:[0-9]{2})?)?"
)
# What YAML 1.1 takes for something else than text, beyond the patterns of PyYAML: its words in any
# case, and dates with short months and days, which Ruby reads.
_NOT_TEXT_IN_YAML_1_1: Final = re.compile(
    r"(?i:y|n|yes|no|on|off|true|false|null)|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?",
    re.DOTALL,
)


def render_header(properties: Mapping[str, object], newline: str = "\n") -> str:
    """Return the header of a new note as Obsidian writes it, with both fences.

    Each line, also the last, ends with `newline`. Block lists are indented by two spaces, and dates
    have no quotes. Without properties, the header has only fences. Raises Invalid for keys and
    values that a header cannot contain.
    """
    import frontmatter  # imported where a header is written: reading notes does not need it

    post = frontmatter.Post("")
    post.metadata = {key: clean_value(value) for key, value in properties.items()}
    lines = ["---", "---"]
    if post.metadata:
        lines = frontmatter.dumps(post, yaml_handler()).split("\n")
    header = newline.join([*lines, ""])

    if not equal_in_yaml(dict(read_header(header).properties), post.metadata):
        raise Invalid(
            "these properties cannot be written as frontmatter that reads back the same",
            hint="Use simpler names and values.",
        )
    return header


@cache
def yaml_handler() -> BaseHandler:
    """Return the handler with which `python-frontmatter` reads and writes YAML 1.2.

    Reading raises RefusedError, writing Invalid, for what a header must not have.
    """
    from frontmatter.default_handlers import BaseHandler

    class CoreYaml(BaseHandler):  # defined here, because its base class is imported here
        """Reads and writes headers by the rules of this package instead of PyYAML's.

        Has no state.
        """

        FM_BOUNDARY = re.compile(r"^---[ \t]*$", re.MULTILINE)
        START_DELIMITER = END_DELIMITER = "---"

        def load(self, fm: str) -> dict[str, Any]:
            """Return the properties of some YAML; none if it is no map. Raises RefusedError."""
            root, _ = read_yaml(fm, 0, len(fm))
            if root is None or not isinstance(root.value, dict):
                return {}
            return dict(root.value)

        def export(self, metadata: dict[str, object], **_: object) -> str:
            """Return properties as lines of YAML without the fences.

            Raises Invalid for what it cannot write.
            """
            lines: list[str] = []
            for key, value in metadata.items():
                lines += format_property(key, value)
            return "\n".join(lines)

    return CoreYaml()


def is_plain_safe(value: str, *, flow: bool = False) -> bool:
    """Return whether a text without quotes is the same text for every reader of YAML.

    `flow` asks for a place inside brackets or braces.
    """
    if not value or value != value.strip():
        return False
    if _ONLY_ESCAPED.search(value) or _NOT_PLAIN.match(value):
        return False
    if flow and _NOT_PLAIN_IN_FLOW.search(value):
        return False
    if not isinstance(parse_plain_scalar(value), str):
        return False

    if _ISO_DATE.fullmatch(value):
        return _is_on_calendar(value)
    return _is_text_in_yaml_1_1(value)


def _is_on_calendar(date: str) -> bool:
    """Return whether a date exists; PyYAML raises for one that does not, unless it has quotes."""
    try:
        datetime.fromisoformat(date)
    except ValueError:
        return False
    return True


def _is_text_in_yaml_1_1(value: str) -> bool:
    """Return whether readers of YAML 1.1 take a text without quotes for a text."""
    import yaml

    if _NOT_TEXT_IN_YAML_1_1.fullmatch(value):
        return False
    resolvers = yaml.SafeLoader.yaml_implicit_resolvers.get(value[0], ())
    return not any(pattern.match(value) for _, pattern in resolvers)


def format_property(key: str, value: object, indent: int = 0) -> list[str]:
    """Return the lines of a property, which all begin with `indent` spaces.

    Items are indented by two more spaces, as Obsidian writes them. Raises Invalid for a key or
    value that a header cannot contain.
    """
    name = " " * indent + _format_key(key) + ":"
    inline = format_inline(value)
    if inline is None:
        return [name, *format_block(value, indent)]
    return [f"{name} {inline}".rstrip(" ")]


def format_inline(value: object, style: str = "") -> str | None:
    """Return a value as it stands on the line of its key; None if it needs lines of its own.

    Only a list or map that is not empty needs them; an empty one is `[]` or `{}`. The value None is
    written as "". `style` is the quote of the node that the value replaces, "" for none. Raises
    Invalid for a type that YAML does not have, and for a text with a lone surrogate.
    """
    if value is None:
        return ""
    if not isinstance(value, (list, dict)):
        return format_scalar(value, style)
    if value:
        return None
    if isinstance(value, list):
        return "[]"
    return "{}"


def format_block(value: object, indent: int) -> list[str]:
    """Return the lines of the items of a list or map whose key has this indentation.

    The value must not be empty. Raises Invalid for an item that is no scalar.
    """
    item_indent = " " * (indent + 2)
    if isinstance(value, list):
        return [f"{item_indent}- {format_scalar(item)}" for item in value]

    assert isinstance(value, dict)
    return [item_indent + format_entry(name, entry) for name, entry in value.items()]


def format_entry(name: str, value: object, *, flow: bool = False) -> str:
    """Return an entry `name: value` of a map within a property; None becomes `null`.

    With `flow`, it is for a map in braces. Raises Invalid for a name or value that it cannot
    contain.
    """
    if flow:
        key = format_text(name, flow=True)
    else:
        key = _format_key(name)
    return f"{key}: {format_scalar(value, flow=flow)}"


def _format_key(key: str) -> str:
    """Return a key as YAML, in quotes if it needs them.

    Raises Invalid for one that is empty or too long, or that some parser would not read whole.
    """
    has_valid_length = 0 < len(key) <= _MAX_KEY_LENGTH
    if not has_valid_length or key != key.strip() or _ONLY_ESCAPED.search(key):
        raise Invalid(
            f"{key[:40]!r} is not a valid name of a property",
            hint=f"Use one line of at most {_MAX_KEY_LENGTH} characters, "
            "without control characters or spaces around it.",
        )
    # A key with a colon or comma gets quotes, which YAML needs only within braces.
    needs_quotes = ":" in key or "," in key
    return format_text(key, flow=needs_quotes)


def format_scalar(value: object, style: str = "", *, flow: bool = False) -> str:
    """Return a scalar as YAML; raise Invalid for a list, a map or any other type.

    `style` is that of the node that the value replaces. None becomes `null`; a caller that can
    leave the place empty does that itself.
    """
    if isinstance(value, str):
        return format_text(value, style, flow=flow)
    if value is None or isinstance(value, (bool, int)):
        return json.dumps(value)
    if isinstance(value, float):
        return _format_float(value)
    raise Invalid(
        f"a property cannot contain a value of type {type(value).__name__} here",
        hint="Use text, numbers, true, false or null, or a flat list or map of these.",
    )


def _format_float(value: float) -> str:
    """Return a number as YAML, as PyYAML writes it."""
    import yaml

    representer = yaml.representer.SafeRepresenter()
    return str(representer.represent_float(value).value)


def format_text(value: str, style: str = "", *, flow: bool = False) -> str:
    """Return a text as YAML, in the quotes of what it replaces if they can hold it.

    `style` is that of the replaced node. Any other than a quote asks for no quotes. A text that
    needs quotes then gets double ones, with escapes where it needs them. With `flow`, it is for a
    place within brackets or braces. Raises Invalid for a lone surrogate.
    """
    surrogate = _LONE_SURROGATE.search(value)
    if surrogate is not None:
        code = f"U+{ord(surrogate[0]):04X}"
        raise Invalid(
            f"a text contains a lone surrogate ({code}), which cannot be stored in a file",
            hint="Send the text again as valid Unicode.",
        )

    if style == "'" and not _ONLY_ESCAPED.search(value):
        return "'" + value.replace("'", "''") + "'"
    if style != '"' and is_plain_safe(value, flow=flow):
        return value
    return _ONLY_ESCAPED.sub(_escape, json.dumps(value, ensure_ascii=False))


def _escape(match: re.Match[str]) -> str:
    r"""Return the escape of a character below U+10000 in double quotes, such as `\u2028`."""
    return f"\\u{ord(match[0]):04X}"


def clean_value(value: object, old: object = None) -> object:
    """Return a value as it will read back: a scalar, or a flat list or map of scalars.

    A tuple becomes a list. A list or map within the value is accepted only if `old`, the value of
    the property so far, has an equal one. Raises Invalid for anything else.
    """
    old_items = _items_of(old)

    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise Invalid("the keys in a property must be text", hint="Put the keys in quotes.")
        return {key: _clean_item(entry, old_items) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean_item(item, old_items) for item in value]
    return _clean_item(value, old_items)


def _items_of(value: object) -> list[object]:
    """Return the items of a list or the values of a map; a scalar has none."""
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list):
        return value
    return []


def _clean_item(item: object, old_items: list[object]) -> object:
    """Return an item of a value as it will read back.

    A list or map is accepted only if it equals one of `old_items`. Raises Invalid for what cannot
    be written.
    """
    is_collection = isinstance(item, (list, dict))
    if is_collection and any(equal_in_yaml(item, old_item) for old_item in old_items):
        return item

    format_scalar(item)  # only to raise Invalid for what cannot be written
    if isinstance(item, str):
        return str.__str__(item)  # the text of a str enum's member, which is what will read back
    return item
