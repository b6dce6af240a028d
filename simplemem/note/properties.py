"""Change one property of a note by splicing its text (obsidian.md §3.2): every other byte stays. Pure. The new text is
read again: where any other property came out different, the edit is refused with Unreadable."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from copy import deepcopy
from datetime import datetime
from functools import cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from simplemem.errors import Invalid, Unreadable
from simplemem.note.diff import changes, matches
from simplemem.note.header import (
    Header,
    Node,
    Scalar,
    core_value,
    find_key,
    read_header,
    read_yaml,
    same,
    skip_blanks,
)

if TYPE_CHECKING:
    from frontmatter.default_handlers import BaseHandler

_KEY_LIMIT: Final = 500  # libyaml looks 1,024 characters ahead for the colon of a key
_LINE_END: Final = re.compile(r"\r\n|\r|\n")

Edit = tuple[int, int, str]  # replace text[start:end]


def set_property(text: str, key: str, value: Any) -> str:
    """Give a property this value: in its place, item by item, when the note has it, else at the end of the header."""
    header = _read_to_edit(text)
    properties = dict(header.properties)
    spelled = find_key(properties, key)
    if spelled is None:
        wanted = _clean_value(value)
        return _checked(text, header, _add(text, header, key, wanted), {**properties, key: wanted})
    there = properties[spelled]
    wanted = (
        value if same(there, value) else _clean_value(value, there)
    )  # what is there may be what we never write
    if same(there, wanted):
        return text
    edits = _set(text, *_entry(header.root, spelled), wanted)
    return _checked(text, header, spliced(text, edits), {**properties, spelled: wanted})


def spliced(text: str, edits: Iterable[Edit]) -> str:
    """The text with these edits made in it."""
    pieces, kept = list[str](), 0
    for start, end, new in sorted(edits):
        pieces += [text[kept:start], new]
        kept = end
    return "".join([*pieces, text[kept:]])


def remove_property(text: str, key: str) -> str:
    """The note without this property. The fences stay, even when nothing is left between them."""
    header = _read_to_edit(text)
    spelled = find_key(header.properties, key)
    if spelled is None:
        return text
    left = {name: value for name, value in header.properties.items() if name != spelled}
    name, value = _entry(header.root, spelled)
    start, end = _line_start(text, name.start), _line_end(text, value.end)[1]
    return _checked(text, header, text[:start] + text[end:], left)


def replace_scalar(text: str, scalar: Scalar, value: str) -> str:
    """The note with another text in this place, in the quotes that stand there wherever they can hold it."""
    header = _read_to_edit(text)
    wanted = deepcopy(dict(header.properties))
    *way, last = scalar.path
    within: Any = wanted
    for step in way:
        within = within[int(step) if isinstance(within, list) else step]
    within[int(last) if isinstance(within, list) else last] = value
    written = _write_text(value, text[scalar.start : scalar.start + 1], flow=scalar.flow)
    return _checked(text, header, spliced(text, [(scalar.start, scalar.end, written)]), wanted)


def _read_to_edit(text: str) -> Header:
    header = read_header(text)
    if header.problem is not None:
        why, line, column = header.problem
        message = f"the properties cannot be changed: {why} (line {line}, column {column})"
        raise Unreadable(
            message,
            hint="Fix the frontmatter between the --- lines in an editor, then try again.",
            line=line,
        )
    return header


def _checked(before: str, was: Header, after: str, expected: dict[str, Any]) -> str:
    """The belt to the braces: what was spliced is read again before anybody may write it."""
    now = read_header(after)
    body = before[was.body_start :].removeprefix("\ufeff" if was.style == "none" else "")
    if (
        now.style != "yaml"
        or after[now.body_start :] != body
        or not same(dict(now.properties), expected)
    ):
        message = "this property cannot be changed without changing other frontmatter, so nothing was changed"
        raise Unreadable(message, hint="Write it as `name: value` in an editor, then try again.")
    return after


def render_header(properties: Mapping[str, Any], newline: str = "\n") -> str:
    """The header of a new note, as Obsidian writes it: block lists indented by two spaces, dates bare."""
    import frontmatter  # imported where a note is made: reading needs none of it

    post = frontmatter.Post("")
    post.metadata = {key: _clean_value(value) for key, value in properties.items()}
    lines = frontmatter.dumps(post, handler()).split("\n") if post.metadata else ["---", "---"]
    written = newline.join([*lines, ""])
    if not same(dict(read_header(written).properties), post.metadata):
        message = "these properties cannot be written as frontmatter that reads back the same"
        raise Invalid(message, hint="Use simpler names and values.")
    return written


@cache
def handler() -> BaseHandler:
    """What makes `python-frontmatter` read and write YAML 1.2 as we do."""
    from frontmatter.default_handlers import BaseHandler

    class CoreYaml(BaseHandler):
        FM_BOUNDARY = re.compile(r"^---[ \t]*$", re.MULTILINE)
        START_DELIMITER = END_DELIMITER = "---"

        def load(self, fm: str) -> dict[str, Any]:
            root, _ = read_yaml(fm, 0, len(fm))
            return dict(root.value) if root is not None and isinstance(root.value, dict) else {}

        def export(self, metadata: dict[str, object], **_: object) -> str:
            return "\n".join(
                line for key, value in metadata.items() for line in _property_lines(key, value)
            )

    return CoreYaml()


def _entry(node: Node | None, name: str) -> tuple[Node, Node]:
    """The name and the value of an entry that a map has."""
    assert node is not None
    return next((key, value) for key, value in node.pairs() if key.value == name)


def _line_start(text: str, at: int) -> int:
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def _line_end(text: str, at: int) -> tuple[int, int, str]:
    """Where the line ends, where the next begins, and what is between them."""
    found = _LINE_END.search(text, at)
    return (*found.span(), found[0]) if found else (len(text), len(text), "\n")


def _add(text: str, header: Header, key: str, value: Any) -> str:
    """A text with one more property: at the end of its header, indented as that is, or in a header made for it."""
    if header.style == "none":
        bom = 1 if text.startswith("\ufeff") else 0
        return text[:bom] + _line_end(text, 0)[2].join(
            ["---", *_property_lines(key, value), "---", text[bom:]]
        )
    at = header.end
    newline = "\r\n" if text[at - 2 : at] == "\r\n" else text[at - 1]
    first = header.root.children[0].start if header.root is not None and header.root.children else 0
    indent = first - _line_start(text, first) if first else 0
    return (
        text[:at]
        + "".join(line + newline for line in _property_lines(key, value, indent))
        + text[at:]
    )


def _set(text: str, key: Node, old: Node, value: Any) -> list[Edit]:
    """Give an entry of a block map another value. Its quotes stay where they fit, and so do the comments beside it."""
    if value and old.children and type(value) is type(old.value):
        return (
            _change_flow(text, old, value)
            if old.style in ("[", "{")
            else _change_inside(text, key, old, value)
        )
    colon = skip_blanks(text, key.end, old.start) + 1
    gap = text[colon : old.start]
    below = _LINE_END.search(gap)
    inline = _inline(value, old.style)
    if inline is not None and below is None:
        return [
            (old.start, old.end, inline if gap else " " + inline)
            if inline
            else (colon, old.end, "")
        ]
    # What follows the value, or the colon of a value that begins further down, is a comment, and it stays.
    line_end = _line_end(text, old.end)[0]
    comment = (gap[: below.start()] if below else text[old.end : line_end]).rstrip(" \t")
    if inline is not None:
        return [(colon, line_end, f" {inline}".rstrip(" ") + comment)]
    indent = key.start - _line_start(text, key.start)
    return [
        (
            colon,
            line_end,
            _line_end(text, key.start)[2].join([comment, *_block_lines(value, indent)]),
        )
    ]


def _change_inside(
    text: str, key: Node, node: Node, wanted: list[Any] | dict[str, Any]
) -> list[Edit]:
    """Only what differs between what there is and what is wanted: items by what they say, entries by their names."""
    edits: list[Edit] = []
    items: tuple[Node, ...] = ()
    texts: list[Callable[[], str]]
    if isinstance(wanted, dict):
        ends, lead = node.children[1::2], ""
        begins = [name.start for name, _ in node.pairs()]
        texts = [partial(_pair, name, value) for name, value in wanted.items()]
        old, new = list(node.value), list(wanted)
        for (name, there), match in zip(node.pairs(), matches(old, new), strict=True):
            if match >= 0 and not same(there.value, wanted[name.value]):
                edits += _set(text, name, there, wanted[name.value])
    else:
        ends = items = node.children
        begins = [
            node.start,
            *(skip_blanks(text, one.end, two.start) for one, two in pairwise(items)),
        ]
        texts = [partial(_write_scalar, value) for value in wanted]
        old, new = list(map(repr, node.value)), list(map(repr, wanted))
        space = text[begins[0] + 1 : items[0].start]
        lead = "-" + (space if space and not space.strip(" ") else " ")
    mark, newline = (
        text[_line_start(text, begins[0]) : begins[0]] + lead,
        _line_end(text, key.start)[2],
    )
    for start, stop, first, last in changes(old, new):
        # Where one text takes the place of another, its line stays, and so does the comment on it.
        if all(
            item.style in ("", "'", '"') and item.end > item.start for item in items[start:stop]
        ):
            for item, value in zip(items[start:stop], list(wanted)[first:last], strict=False):
                edits.append((item.start, item.end, _write_scalar(value, item.style)))
                start, first = start + 1, first + 1
        edits += [
            (_line_start(text, begins[at]), _line_end(text, ends[at].end)[1], "")
            for at in range(start, stop)
        ]
        where = _line_end(text, ends[start - 1].end)[1] if start else _line_start(text, begins[0])
        edits.append(
            (where, where, "".join(mark + write() + newline for write in texts[first:last]))
        )
    return edits


def _change_flow(text: str, node: Node, wanted: list[Any] | dict[str, Any]) -> list[Edit]:
    """A list in brackets or a map in braces, written on one line; an item that stays is spelled as it was."""
    source = text[node.start : node.end]
    if "#" in source and _LINE_END.search(source):
        raise Unreadable(
            "a list in brackets that contains comments cannot be changed",
            hint="Change it in an editor.",
        )
    if isinstance(wanted, list):
        spelled = {repr(item.value): text[item.start : item.end] for item in node.children}
        items = [spelled.get(repr(item)) or _write_scalar(item, flow=True) for item in wanted]
        return [(node.start, node.end, "[" + ", ".join(items) + "]")]
    kept = {
        key.value: text[key.start : old.end]
        for key, old in node.pairs()
        if same(old.value, wanted.get(key.value))
    }
    entries = [kept.get(name) or _pair(name, value, flow=True) for name, value in wanted.items()]
    return [(node.start, node.end, "{" + ", ".join(entries) + "}")]


# What is written reads back equal under YAML 1.2 core, and means the same to readers of YAML 1.1 (PyYAML, Ruby) where
# quotes can buy that: `yes`, `12:30` and `010` get quotes, ISO dates stay bare as Obsidian writes them.


def _property_lines(key: str, value: Any, indent: int = 0) -> list[str]:
    """The lines of one property; the items of a list stand two further in, as Obsidian writes them."""
    name = " " * indent + _write_key(key) + ":"
    inline = _inline(value)
    return (
        [name, *_block_lines(value, indent)] if inline is None else [f"{name} {inline}".rstrip(" ")]
    )


def _inline(value: Any, style: str = "") -> str | None:
    """A value that fits on the line of its key, None when it is a list or map with something in it."""
    if isinstance(value, (list, dict)):
        return None if value else "[]" if isinstance(value, list) else "{}"
    return "" if value is None else _write_scalar(value, style)


def _block_lines(value: Any, indent: int) -> list[str]:
    inside = " " * (indent + 2)
    if isinstance(value, list):
        return [f"{inside}- {_write_scalar(item)}" for item in value]
    return [inside + _pair(name, entry) for name, entry in value.items()]


def _pair(name: str, value: Any, *, flow: bool = False) -> str:
    return f"{_write_text(name, flow=True) if flow else _write_key(name)}: {_write_scalar(value, flow=flow)}"


# What some parser takes for the end of a line or a byte order mark, or refuses: only written as an escape.
_UNWRITABLE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_NOT_PLAIN: Final = re.compile(r"[-?:,\[\]{}#&*!|>'\"%@`=]|\.\.\.|.*?(?::\s|\s#|:$)", re.DOTALL)
_NOT_PLAIN_IN_FLOW: Final = re.compile(r"[,\[\]{}]|:\S")
_ISO_DATE: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|[-+][0-9]{2}:[0-9]{2})?)?"
)
# What YAML 1.1 takes for something else than text, beside what PyYAML knows of: words in any case, short dates (Ruby).
_OLD: Final = re.compile(
    r"(?s)(?i:y|n|yes|no|on|off|true|false|null)|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?"
)


def is_plain_safe(value: str, *, flow: bool = False) -> bool:
    """Whether this text may stand without quotes, and still be this text for every reader."""
    if not value or value != value.strip() or _UNWRITABLE.search(value) or _NOT_PLAIN.match(value):
        return False
    if (flow and _NOT_PLAIN_IN_FLOW.search(value)) or not isinstance(core_value(value), str):
        return False
    if _ISO_DATE.fullmatch(value):
        with suppress(ValueError):  # one that is not on the calendar makes PyYAML raise
            return bool(datetime.fromisoformat(value))
        return False
    import yaml

    old = yaml.SafeLoader.yaml_implicit_resolvers.get(value[0], ())
    return not (_OLD.fullmatch(value) or any(pattern.match(value) for _, pattern in old))


def _write_text(value: str, style: str = "", *, flow: bool = False) -> str:
    """A text in the quotes of what it replaces ("", "'" or '"'), escaped in double ones where it must be."""
    if half := re.search("[\ud800-\udfff]", value):
        message = f"a text contains a lone surrogate (U+{ord(half[0]):04X}), which cannot be stored in a file"
        raise Invalid(message, hint="Send the text again as valid Unicode.")
    if style == "'" and not _UNWRITABLE.search(value):
        return "'" + value.replace("'", "''") + "'"
    if style != '"' and is_plain_safe(value, flow=flow):
        return value
    return _UNWRITABLE.sub(
        lambda found: f"\\u{ord(found[0]):04X}", json.dumps(value, ensure_ascii=False)
    )


def _write_key(key: str) -> str:
    """A property's name: one line, and short enough for every parser to see the colon."""
    if not key or len(key) > _KEY_LIMIT or key != key.strip() or _UNWRITABLE.search(key):
        hint = f"Use one line of at most {_KEY_LIMIT} characters, without control characters or spaces around it."
        raise Invalid(f"{key[:40]!r} is not a valid name of a property", hint=hint)
    return _write_text(key, flow=":" in key or "," in key)


def _write_scalar(value: Any, style: str = "", *, flow: bool = False) -> str:
    """One plain value. None is written as `null`; a caller that may leave the place empty does so itself."""
    if isinstance(value, str):
        return _write_text(value, style, flow=flow)
    if value is None or isinstance(value, (bool, int)):
        return json.dumps(value)
    if isinstance(value, float):
        import yaml

        return str(yaml.representer.SafeRepresenter().represent_float(value).value)
    hint = "Use text, numbers, true, false or null, or a flat list or map of these."
    raise Invalid(
        f"a property cannot contain a value of type {type(value).__name__} here", hint=hint
    )


def _clean_value(value: Any, there: Any = None) -> Any:
    """The value as it will read back: a scalar, a list or a flat map of them, or what the note has; else Invalid."""
    kept = there.values() if isinstance(there, dict) else there if isinstance(there, list) else ()

    def clean(inner: Any) -> Any:
        if isinstance(inner, (list, dict)) and any(same(inner, one) for one in kept):
            return inner
        _write_scalar(inner)
        return (
            str.__str__(inner) if isinstance(inner, str) else inner
        )  # an enum's member reads back as its text

    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise Invalid("the keys in a property must be text", hint="Put the keys in quotes.")
        return {key: clean(entry) for key, entry in value.items()}
    return [clean(item) for item in value] if isinstance(value, (list, tuple)) else clean(value)
