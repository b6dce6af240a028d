"""Read the header of a note: the YAML between a `---` on its first line and the next `---`. Pure.

A header gives the properties as YAML 1.2 core values, and the place of each value in the text, so
that an edit can replace one and leave the rest as it was. Reading never raises and never stalls.

Nearly all headers are plain: a block map of texts and of lists of texts, without comments, tabs and
nested maps. These are read line by line, in a quarter of the time that libyaml needs, into the same
nodes. `read_header` chooses the reader: it is at the end of the module, below both readers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from simplemem.note.words import count_lines

if TYPE_CHECKING:
    from yaml.events import CollectionStartEvent, Event, ScalarEvent


# -- YAML: nodes and scalars

CoreValue = str | int | float | bool | None

# Python refuses to convert numbers of more than 4,300 digits. Longer ones than this stay text.
_MAX_DIGITS: Final = 3_000
# A plain scalar that begins with any other character is text.
_CORE_FIRST: Final = frozenset("~nNtTfF+-.0123456789")
_CORE_WORDS: Final[dict[str, bool | float | None]] = {
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
    ".inf": math.inf,
    ".Inf": math.inf,
    ".INF": math.inf,
    "+.inf": math.inf,
    "+.Inf": math.inf,
    "+.INF": math.inf,
    "-.inf": -math.inf,
    "-.Inf": -math.inf,
    "-.INF": -math.inf,
    ".nan": math.nan,
    ".NaN": math.nan,
    ".NAN": math.nan,
}
_NUMBER: Final = re.compile(
    r"(?P<decimal>[-+]?[0-9]+)"
    r"|0o(?P<octal>[0-7]+)"
    r"|0x(?P<hexadecimal>[0-9a-fA-F]+)"
    r"|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
)


class RefusedError(Exception):
    """Raised for YAML that is not supported as a header; `offset` counts from the note's start."""

    def __init__(self, message: str, offset: int) -> None:
        """Say what is wrong, and at which offset of the note's text."""
        self.message = message
        self.offset = offset


class Node(NamedTuple):
    """A value and its place in the text. Offsets count the characters of the whole note."""

    style: str  # "" plain, "'", '"', "|", ">": a scalar; "-" and "[": a list; ":" and "{": a map
    value: Any
    start: int
    end: int  # a block scalar ends with its last line, without the line break
    children: tuple[Node, ...] = ()  # the items of a list; key, value, key, value ... of a map

    def pairs(self) -> Iterator[tuple[Node, Node]]:
        """Iterate over the key nodes and value nodes of a map.

        Must not be called for a list.
        """
        nodes = iter(self.children)
        return zip(nodes, nodes, strict=True)


class YamlDocument(NamedTuple):
    """A YAML document: its root, None if it has only comments and blanks, and where it ends."""

    root: Node | None
    end: int


def parse_plain_scalar(text: str) -> CoreValue:
    """Return the value of a scalar without quotes, by the rules of YAML 1.2 core.

    An empty text is None. Dates, `yes` and `12:30` are text, and so are numbers of more than 3,000
    digits. Never raises.
    """
    if not text:
        return None
    if text[0] not in _CORE_FIRST:
        return text
    if text in _CORE_WORDS:
        return _CORE_WORDS[text]
    if len(text) > _MAX_DIGITS:
        return text

    number = _NUMBER.fullmatch(text)
    if number is None:
        return text
    if number["decimal"]:
        return int(number["decimal"])
    if number["octal"]:
        return int(number["octal"], 8)
    if number["hexadecimal"]:
        return int(number["hexadecimal"], 16)
    return float(text)


def equal_in_yaml(one: object, other: object) -> bool:
    """Return whether two values are equal in YAML, and not only in Python.

    1, 1.0 and true differ, .nan equals itself, and the order of keys counts.
    """
    if type(one) is not type(other):
        return False
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return False
        return all(map(equal_in_yaml, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        if list(one) != list(other):
            return False
        return all(map(equal_in_yaml, one.values(), other.values()))
    if isinstance(one, float):
        return repr(one) == repr(other)
    return bool(one == other)


# -- YAML of plain headers, read line by line

_MAX_PLAIN_CHARACTERS: Final = 8_000
# The characters that are part of any scalar which does not begin with them. Tabs and backslashes
# are left out. Quotes, colons and hashes are added below, where a scalar may contain them.
_INSIDE: Final = r"\w ./+(),&!?=;@\[\]{}|%~^$*<>\-"
_QUOTED: Final = rf"\"[{_INSIDE}':#]*+\"|'[{_INSIDE}\":#]*+'"
_PLAIN: Final = rf"\w(?:[{_INSIDE}'\"]|:(?=\S))*+"
_VALUE: Final = rf"(?:(?P<quoted>{_QUOTED}) *|(?P<plain>{_PLAIN}))"
_ENTRY: Final = re.compile(rf"(?P<key>\w(?:[\w-]| (?=[\w-])){{0,99}}):(?: *| +{_VALUE})\n")
_ITEM: Final = re.compile(rf"(?P<indent> *)- +{_VALUE}\n")


def read_plain_yaml(text: str, start: int, end: int) -> YamlDocument | None:
    """Read text[start:end] as a block map of plain texts and lists of such texts.

    Returns None if it is empty, is long, has a key twice, or may contain any other YAML; then
    `read_yaml` has to read it. Never raises.
    """
    if end - start > _MAX_PLAIN_CHARACTERS:
        return None

    nodes: list[Node] = []
    properties: dict[str, Any] = {}
    position = start
    while position < end:
        entry = _ENTRY.match(text, position, end)
        if entry is None:
            return None
        name = entry["key"]
        if name in properties:
            return None  # `read_yaml` reports where the key occurs again

        value, position = _read_value(text, entry, end)
        nodes.append(Node("", name, entry.start(), entry.end("key")))
        nodes.append(value)
        properties[name] = value.value

    if not nodes:
        return None
    root = Node(":", properties, start, nodes[-1].end, tuple(nodes))
    return YamlDocument(root, end)


def _read_value(text: str, entry: re.Match[str], end: int) -> tuple[Node, int]:
    """Return the value of an entry, and the offset of the line behind the entry.

    `entry` is a match of `_ENTRY`. Without a value on its line, the value is the list below it,
    else None.
    """
    has_value_on_line = entry.lastgroup != "key"  # the last group is then "quoted" or "plain"
    if has_value_on_line:
        return _plain_scalar(entry), entry.end()

    items = _match_items(text, entry.end(), end)
    if items:
        return _plain_list(items), items[-1].end()
    value_start = entry.end("key") + len(":")
    return Node("", None, value_start, value_start), entry.end()


def _match_items(text: str, position: int, end: int) -> list[re.Match[str]]:
    """Match the lines of a block list at a position, as far as their indentation is the same.

    Returns no matches if there is no list.
    """
    items: list[re.Match[str]] = []
    item = _ITEM.match(text, position, end)
    while item is not None and (not items or item["indent"] == items[0]["indent"]):
        items.append(item)
        item = _ITEM.match(text, item.end(), end)
    return items


def _plain_list(items: Sequence[re.Match[str]]) -> Node:
    """Return the node of a block list from the matches of its lines, at least one."""
    first_dash = items[0].end("indent")
    nodes = tuple([_plain_scalar(item) for item in items])
    values = [node.value for node in nodes]
    return Node("-", values, first_dash, nodes[-1].end, nodes)


def _plain_scalar(match: re.Match[str]) -> Node:
    """Return the node of the scalar on the line of an entry or an item, quoted or not."""
    if match.lastgroup == "quoted":
        start, end = match.span("quoted")
        source = match["quoted"]
        return Node(source[0], source[1:-1], start, end)

    start = match.start("plain")
    source = match["plain"].rstrip(" ")
    return Node("", parse_plain_scalar(source), start, start + len(source))


# -- any other YAML, read by libyaml

MAX_HEADER_CHARACTERS: Final = 256 * 1024  # characters; real headers are under 2,000
MAX_DEPTH: Final = 16
MAX_VALUES: Final = 20_000  # scalars and collections

# libyaml follows YAML 1.1: it takes NEL, LS and PS for line breaks, and control characters for
# errors. In YAML 1.2 and for Obsidian they are ordinary characters. Each of them is replaced by one
# character that the text does not contain, so that all offsets stay the same.
_REPLACED: Final = re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_FORBIDDEN: Final = re.compile("[\x00\ud800-\udfff]")
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_PRIVATE_USE: Final = range(0xF0000, 0xFFFFE)
_COLON: Final = re.compile(r"[ \t]*+:")
_BLANKS: Final = re.compile(r"(?:[ \t\r\n]+|(?<![^ \t\r\n])#[^\r\n]*)*+")


def read_yaml(text: str, start: int, end: int) -> YamlDocument:
    """Read text[start:end] as one YAML document. Raises RefusedError, and nothing else.

    It is raised for YAML with an error, with anchors, tags, or a key twice, and for one that is too
    long, too deep or has too many values. Its offset and those of the nodes count from the start of
    `text`.
    """
    import yaml  # imported late: `read_plain_yaml` reads nearly all headers without it

    if end - start > MAX_HEADER_CHARACTERS:
        raise RefusedError(f"it is longer than {MAX_HEADER_CHARACTERS // 1024} kB", start)

    reader = _YamlReader(text, start, end)
    loader = getattr(yaml, "CLoader", yaml.Loader)
    events: Any = yaml.parse(reader.source, Loader=loader)
    try:
        return reader.read_document(events, end)
    except (yaml.YAMLError, UnicodeError) as error:
        raise _refusal(error, start) from None
    finally:
        events.close()


def skip_blanks(text: str, at: int, end: int) -> int:
    """Return the first place in text[at:end] that is neither white space nor comment, or `end`.

    Line ends count as white space.
    """
    blanks = _BLANKS.match(text, at, end)
    assert blanks is not None  # the pattern matches an empty text
    return blanks.end()


def _refusal(error: Exception, start: int) -> RefusedError:
    """Return an error of PyYAML as a RefusedError at its place; the YAML begins at `start`."""
    message = getattr(error, "problem", None)
    if not message:
        message, _, _ = str(error).partition("\n")

    mark = getattr(error, "problem_mark", None)
    if not mark:
        mark = getattr(error, "context_mark", None)
    if mark is None:
        return RefusedError(message, start)
    return RefusedError(message, start + mark.index)


# The events that begin a value. An alias does too, but `_check_value` refuses it.
_ValueEvent: TypeAlias = "ScalarEvent | CollectionStartEvent"


class _YamlReader:
    """Builds nodes from the events of PyYAML, for one header.

    Guards the number of values so far, and which characters of the source stand for others.
    """

    def __init__(self, text: str, start: int, end: int) -> None:
        """Prepare text[start:end] for libyaml.

        Raises RefusedError for characters that a header must not have.
        """
        self.text = text
        self.base = start  # of the offsets that PyYAML counts
        self.source = text[start:end]
        self.originals: dict[int, str] = {}  # by the code of the character that replaces them
        self.value_count = 0
        self._check_characters()
        self._replace_characters()

    def read_document(self, events: Iterator[Any], end: int) -> YamlDocument:
        """Return the only document. It ends at `end`, or at a line of three dots above that.

        Raises RefusedError for a second document, and for what `_node` refuses. Errors of PyYAML
        pass through.
        """
        import yaml

        root: Node | None = None
        is_over = False
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                if is_over:
                    raise RefusedError("a second YAML document begins", self._start(event))
            elif isinstance(event, yaml.DocumentEndEvent):
                is_over = True
                if event.explicit:
                    end = self._start(event)
            elif not isinstance(event, (yaml.StreamStartEvent, yaml.StreamEndEvent)):
                root = self._node(event, events, MAX_DEPTH)
        return YamlDocument(root, end)

    def _check_characters(self) -> None:
        """Raise RefusedError for the first NUL or half of a surrogate pair in the source."""
        match = _FORBIDDEN.search(self.source)
        if match is not None:
            code = f"U+{ord(match[0]):04X}"
            raise RefusedError(f"it contains the character {code}", self.base + match.start())

    def _replace_characters(self) -> None:
        """Replace the characters that libyaml does not take for ordinary ones, in `source` only.

        Each is replaced by one character that the text does not have, noted in `originals`, so that
        all offsets stay. Raises RefusedError if no such character is left.
        """
        characters = set(_REPLACED.findall(self.source))
        if not characters:
            return

        replacements: dict[int, int] = {}
        unused_codes = self._unused_codes()
        for character in characters:
            code = next(unused_codes, None)
            if code is None:
                raise RefusedError("it contains too many characters for private use", self.base)
            replacements[ord(character)] = code
            self.originals[code] = character
        self.source = self.source.translate(replacements)

    def _unused_codes(self) -> Iterator[int]:
        r"""Yield the codes of characters that are not in the source, not even as an escape.

        In double quotes, the escape `\U000F0000` stands for a character, with its digits in either
        case.
        """
        lowered = self.source.lower()
        for code in _PRIVATE_USE:
            escape = f"{code:08x}"
            if chr(code) not in lowered and escape not in lowered:
                yield code

    def _start(self, event: Event) -> int:
        """Return where an event begins, as an offset in the whole text."""
        return self.base + event.start_mark.index  # type: ignore[union-attr]  # always set

    def _end(self, event: Event) -> int:
        """Return where an event ends, as an offset in the whole text."""
        return self.base + event.end_mark.index  # type: ignore[union-attr]  # always set

    def _node(self, event: _ValueEvent, events: Iterator[Any], levels: int) -> Node:
        """Return the node that begins with an event, and consume the events up to its end.

        `levels` is how deep it may still be nested. Raises RefusedError if it is deeper, or has
        what a header must not have.
        """
        import yaml

        start = self._start(event)
        self._check_value(event, start)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, start)

        if levels == 0:
            raise RefusedError(f"it is nested more than {MAX_DEPTH} levels deep", start)
        if isinstance(event, yaml.MappingStartEvent):
            return self._map(event, events, levels)
        return self._list(event, events, levels)

    def _check_value(self, event: _ValueEvent, start: int) -> None:
        """Count a value. Raise RefusedError if there are too many, or for an anchor or tag."""
        self.value_count += 1
        if self.value_count > MAX_VALUES:
            raise RefusedError(f"it has more than {MAX_VALUES:,} values", start)
        if event.anchor is not None or event.tag is not None:
            raise RefusedError("anchors (&), aliases (*) and tags (!) are not supported", start)

    def _scalar(self, event: ScalarEvent, start: int) -> Node:
        """Return the node of a scalar. A block scalar ends with its last line that is not blank.

        Raises RefusedError for an escape that gives half a surrogate.
        """
        style = event.style or ""
        value = event.value.translate(self.originals)
        end = self._end(event)

        if not style:
            return Node(style, parse_plain_scalar(value), start, end)
        if style in ("|", ">"):
            # The blank lines below a block scalar stay when it is replaced.
            block = self.text[start:end].rstrip(" \t\r\n")
            return Node(style, value, start, start + len(block))
        if style == '"' and _LONE_SURROGATE.search(value):
            raise RefusedError("it contains a lone surrogate", start)
        return Node(style, value, start, end)

    def _list(self, event: CollectionStartEvent, events: Iterator[Any], levels: int) -> Node:
        """Return the node of a list, and consume the events up to its end."""
        import yaml

        items: list[Node] = []
        next_event = next(events)
        while not isinstance(next_event, yaml.SequenceEndEvent):
            items.append(self._node(next_event, events, levels - 1))
            next_event = next(events)

        start = self._start(event)
        values = [item.value for item in items]
        if event.flow_style:
            style = "["
            end = self._end(next_event)
        else:
            style = "-"
            end = items[-1].end
        return Node(
            style=style,
            value=values,
            start=start,
            end=end,
            children=tuple(items),
        )

    def _map(self, event: CollectionStartEvent, events: Iterator[Any], levels: int) -> Node:
        """Return the node of a map, and consume the events up to its end.

        Raises RefusedError for a key with `?` before it, a key that occurs twice, and `[a: b]`.
        """
        import yaml

        nodes: list[Node] = []
        properties: dict[str, Any] = {}
        next_event = next(events)
        while not isinstance(next_event, yaml.MappingEndEvent):
            key = self._key(next_event, properties)
            value = self._node(next(events), events, levels - 1)
            if not event.flow_style and not _COLON.match(self.text, key.end):
                raise RefusedError("a key with a question mark before it", key.start)
            nodes += [key, value]
            properties[key.value] = value.value
            next_event = next(events)

        start = self._start(event)
        if not event.flow_style:
            style = ":"
            end = nodes[-1].end
        elif self.text[start] == "{":
            style = "{"
            end = self._end(next_event)
        else:  # `[a: b]`
            raise RefusedError("a name in a list without braces", start)
        return Node(
            style=style,
            value=properties,
            start=start,
            end=end,
            children=tuple(nodes),
        )

    def _key(self, event: _ValueEvent, names: Mapping[str, object]) -> Node:
        """Return the node of a key.

        Raises RefusedError for a key that is no scalar, or that is one of `names`, those of the map
        so far. Obsidian shows no properties at all if a key occurs twice. The message does not
        quote the key, because text of a note must not look like a message of this program.
        """
        import yaml

        start = self._start(event)
        if not isinstance(event, yaml.ScalarEvent) or event.anchor is not None:
            raise RefusedError(
                "a property name that is not plain text (put a {{placeholder}} into quotes)", start
            )

        name = event.value.translate(self.originals)
        if name in names:
            raise RefusedError("a key occurs twice", start)

        self._check_value(event, start)
        # The name of a property is text, also if it reads like a number: `2026: a year`.
        return self._scalar(event, start)._replace(value=name)


# -- headers

_OPENING: Final = re.compile(r"\ufeff?---[ \t]*(?:\r\n|\r|\n)")
_CLOSING: Final = re.compile(r"---[ \t]*(?:\r\n|\r|\n|\Z)")

Properties = Mapping[str, Any]
"""The properties of a note by their names, with YAML 1.2 core values."""


class HeaderProblem(NamedTuple):
    """What is wrong with a header, and where in the file (line and column count from 1)."""

    message: str
    line: int
    column: int


class Scalar(NamedTuple):
    """A text in a header and its place. Links in properties are read and rewritten as scalars."""

    path: tuple[str, ...]  # ("related", "0")
    value: str
    start: int  # in the whole note, with the quotes
    end: int
    verbatim: int  # where `value` stands letter for letter; -1 if escapes or folding changed it
    flow: bool = False  # whether it is inside brackets or braces


@dataclass(frozen=True)
class Header:
    """The properties of a note, in order.

    If `problem` is set, the header must not be rewritten. `body_start` is the offset of the body,
    `end` that at which a property can be added. `root` is the map that the properties were read
    from, None if there are none.
    """

    style: Literal["none", "yaml", "broken"]
    properties: Properties
    problem: HeaderProblem | None
    body_start: int
    end: int = 0  # where a property can be added
    text: str = ""  # the whole note
    root: Node | None = None

    @cached_property
    def scalars(self) -> tuple[Scalar, ...]:
        """The texts among the values, in order, also those within lists and maps.

        Numbers and other values are left out, and so are keys.
        """
        if self.root is None:
            return ()
        return tuple(_scalars(self.text, self.root, ()))

    def get(self, key: str) -> Any:
        """Return the value of a property, whatever the case of its name; None without one.

        None may also be the value of an empty property.
        """
        return find_value(self.properties, key)


def find_key(properties: Properties, key: str) -> str | None:
    """Return the name of a property as the note spells it, None if the note does not have it.

    Obsidian ignores the case of names. A note can have two that differ only in case; then the exact
    one wins.
    """
    if key in properties:
        return key

    folded = key.casefold()
    for name in properties:
        if name.casefold() == folded:
            return name
    return None


def find_value(properties: Properties, key: str) -> Any:
    """Return the value of a property, whatever the case of its name; None without one.

    None may also be the value of an empty property. Of two names that differ in case, the exact one
    wins.
    """
    name = find_key(properties, key)
    if name is None:
        return None
    return properties[name]


@lru_cache(maxsize=1)  # a change of a note asks several times for the header of the same text
def read_header(text: str) -> Header:
    """Return the header of a note. Never raises and never stalls.

    `style` is "none" without a header, and "broken" with one that cannot be read, which then has no
    properties but a `problem`. JSON in braces is read, but has a problem too, because it must not
    be rewritten.
    """
    fences = _find_fences(text)
    if fences is None:
        return Header("none", {}, problem=None, body_start=0)

    try:
        root, end = _read_document(text, fences.start, fences.end)
    except RefusedError as refused:
        refusal = _problem_at(text, refused.message, refused.offset)
        return Header("broken", {}, problem=refusal, body_start=fences.body_start)

    if root is None:
        return Header(
            style="yaml",
            properties={},
            problem=None,
            body_start=fences.body_start,
            end=end,
            text=text,
        )

    problem: HeaderProblem | None = None
    if root.style == "{":  # Obsidian reads JSON as properties too. It is YAML in braces.
        message = "it is JSON or one pair of braces, which is read but not rewritten"
        problem = _problem_at(text, message, root.start)
    return Header(
        style="yaml",
        properties=root.value,
        problem=problem,
        body_start=fences.body_start,
        end=end,
        text=text,
        root=root,
    )


def content_start(text: str, header: Header) -> int:
    """Return the offset at which the content starts, below the header and blank lines.

    It is 0 without a header. Lines with only spaces are not blank here.
    """
    position = header.body_start
    if position == 0:
        return 0

    while text[position : position + 1] in ("\n", "\r"):
        position += 1
    return position


class _Fences(NamedTuple):
    """Where the text between the fences starts and ends, and where the body starts."""

    start: int
    end: int
    body_start: int


def _find_fences(text: str) -> _Fences | None:
    """Return where the fences of the header are; None if the text has no header.

    Only a BOM may stand before the first fence, and both are required.
    """
    opening = _OPENING.match(text)
    if opening is None:
        return None

    for closing in _CLOSING.finditer(text, opening.end()):
        is_at_line_start = text[closing.start() - 1] in "\r\n"
        if is_at_line_start:
            return _Fences(opening.end(), closing.start(), closing.end())
    return None


def _read_document(text: str, start: int, end: int) -> YamlDocument:
    """Read text[start:end] as YAML that is a map, or that has only comments and blanks.

    Raises RefusedError for any other YAML, and for what `read_yaml` refuses. The faster reader is
    tried first.
    """
    document = read_plain_yaml(text, start, end)
    if document is None:
        document = read_yaml(text, start, end)

    root = document.root
    if root is not None and root.style not in (":", "{"):
        raise RefusedError("it is not a list of properties (name: value)", root.start)
    return document


def _problem_at(text: str, message: str, offset: int) -> HeaderProblem:
    """Return a problem at an offset as one with line and column, which count from 1."""
    line_feed = text.rfind("\n", 0, offset)
    carriage_return = text.rfind("\r", 0, offset)
    line_start = max(line_feed, carriage_return) + 1

    lines_before = count_lines(text, 0, line_start)
    return HeaderProblem(message, lines_before + 1, offset - line_start + 1)


def _scalars(
    text: str,
    node: Node,
    path: tuple[str, ...],
    flow: bool = False,
) -> Iterator[Scalar]:
    """Yield the texts in a node, in order; numbers, other values and keys are left out.

    `path` is that of the node. `flow` says that the node stands within brackets or braces.
    """
    is_flow = flow or node.style in ("[", "{")
    value = node.value
    if isinstance(value, dict):
        for key, entry in node.pairs():
            entry_path = (*path, key.value)
            yield from _scalars(text, entry, entry_path, is_flow)
    elif isinstance(value, list):
        for index, item in enumerate(node.children):
            item_path = (*path, str(index))
            yield from _scalars(text, item, item_path, is_flow)
    elif isinstance(value, str):
        verbatim = _find_verbatim(text, node)
        yield Scalar(
            path=path,
            value=value,
            start=node.start,
            end=node.end,
            verbatim=verbatim,
            flow=is_flow,
        )


def _find_verbatim(text: str, node: Node) -> int:
    """Return the offset at which the value of a scalar stands letter for letter, -1 if nowhere.

    Escapes, folding and block scalars give -1.
    """
    style = node.style
    if style in ("|", ">"):
        return -1

    quote_length = len(style)  # the style of a quoted scalar is its quote, of a plain one ""
    start = node.start + quote_length
    if text[start : node.end - quote_length] == node.value:
        return start
    return -1
