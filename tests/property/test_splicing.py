"""Changing one property leaves every other byte of a note as it was, for headers as people write them.

Headers are built from entries whose source and meaning are known by construction, so that what must stay is
known without asking the code under test.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Any

import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from simplemem.errors import SimplememError, Unreadable
from simplemem.note.header import RefusedError, read_header, read_plain_yaml, read_yaml
from simplemem.note.properties import remove_property, replace_scalar, set_property
from simplemem.note.yaml_writer import is_plain_safe, render_header

EXAMPLES = settings.default.max_examples  # as the profile says
relaxed = settings(
    max_examples=6 * EXAMPLES // 5, deadline=None, suppress_health_check=list(HealthCheck)
)


@dataclass(frozen=True)
class Entry:
    """One property as it stands in a header: its source, and what it means in YAML 1.2 core."""

    key: str
    source: str
    value: Any
    comment: str = ""  # behind its name or its value: there whatever the value becomes


@dataclass(frozen=True)
class Sample:
    """A note in pieces; `loose[n]` are the blank lines and comments before entry n, the last after all."""

    before: str
    loose: tuple[str, ...]
    entries: tuple[Entry, ...]
    after: str
    newline: str = "\n"

    @property
    def text(self) -> str:
        return "".join(self.parts()) + self.after

    def parts(self) -> list[str]:
        pieces = [self.before]
        for loose, entry in zip(self.loose, self.entries, strict=False):
            pieces += [loose, entry.source]
        return [*pieces, self.loose[-1]]

    def around(self, number: int) -> tuple[str, str]:
        """What stands before and after one entry."""
        parts = self.parts()
        at = 2 * number + 2
        return "".join(parts[:at]), "".join(parts[at + 1 :]) + self.after

    @property
    def values(self) -> dict[str, Any]:
        return {entry.key: entry.value for entry in self.entries}


words = st.sampled_from(
    "status|draft idea|été|日本語|🚀 launch|a:b|x#y|C++|2024-01-15|it's|no-break\u00a0space".split(
        "|"
    )
)
line_of_text = st.text(
    st.characters(
        exclude_categories=("Cs", "Cc"), exclude_characters="\u2028\u2029\ufeff\ufffe\uffff"
    ),
    max_size=20,
)
# Of all characters, and of those that quotes and YAML make something of.
any_text = st.text(st.characters(exclude_categories=("Cs",)), max_size=30) | st.text(
    "'\"\\ab:#-[]{},\n ", max_size=9
)
keys = st.sampled_from(
    ["title", "Tags", "date created", "🚀", "日本", "a/b", "up", "x-y", "status", "ünïcode", "9"]
)
plain_values = st.tuples(words, st.none()).map(lambda pair: (pair[0], pair[0])) | st.sampled_from(
    [
        ("yes", "yes"), ("12:30", "12:30"), ("2024-02-30", "2024-02-30"), ("1_000", "1_000"), ("=", "="), ("010", 10),
        ("0o17", 15), ("0x1F", 31), ("1e3", 1000.0), ("-.5", -0.5), (".inf", math.inf), ("true", True), ("FALSE", False),
        ("~", None), ("Null", None), ("nULL", "nULL"), ("9" * 5000, "9" * 5000),
    ]
)  # fmt: skip
comments = st.sampled_from(["", "", "", " # why", '  # "quoted" - [x]: y', "   ", " #"])


@st.composite
def scalars(draw: st.DrawFn) -> tuple[str, Any]:
    """A scalar on one line, as source and value."""
    style = draw(st.sampled_from("pppsdd"))
    if style == "p":
        return draw(plain_values)
    text = draw(line_of_text)
    if style == "s":
        return "'" + text.replace("'", "''") + "'", text
    return '"' + text.replace("\\", "\\\\").replace(
        '"', draw(st.sampled_from(['\\"', "\\x22"]))
    ) + '"', text


simple = scalars().filter(lambda pair: "\u0085" not in pair[0])
# Sources of other kinds: N is the name, G the gap behind the colon, C a comment.
TEMPLATES: list[tuple[str, Any]] = [
    ("N:C", None),
    ("N:G{one: x, two: true, three}C", {"one": "x", "two": True, "three": None}),
    ("N:G{ one : x,two: true, three: }C", {"one": "x", "two": True, "three": None}),
    ("N:C\n  one: x # c\n  'two':  2", {"one": "x", "two": 2}),
    ("N:C\n    one: x # c\n    # in\n    'two':  2", {"one": "x", "two": 2}),
    ("N: [\n    a,\n    'b',\n  ]C", ["a", "b"]),
    ('N: "first\n\n    second \\\n    third"C', "first\nsecond third"),
    ("N :Gfirst line\n    second\n\n  thirdC", "first line second\nthird"),
    (
        "N:C\n- a: 1\n  b: [x]\n- [[Note]]\n- - deep\n-\n  # below its dash\n  'last'C",
        [{"a": 1, "b": ["x"]}, [["Note"]], ["deep"], "last"],
    ),
    ("N: >-\n  folded\n  text\n\n   more", "folded text\n\n more"),
]
FLOW = {
    "a": "a",
    "'b'": "b",
    '"c, d"': "c, d",
    "e f": "e f",
    "1": 1,
    "{x: y}": {"x": "y"},
    "🚀": "🚀",
}


@st.composite
def entries(draw: st.DrawFn, key: str) -> Entry:
    name = draw(st.sampled_from([key, key, f'"{key}"', f"'{key}'"]))
    gap = draw(st.sampled_from([" ", " ", "  ", "\t" if yaml.__with_libyaml__ else " "]))
    comment = draw(comments)
    style = draw(st.sampled_from("pppplllffbbtttttt"))
    value: Any
    if style == "p":
        source, value = draw(simple)
        source = f"{name}:{gap}{source}{comment}"
    elif style == "l":
        indent = draw(st.sampled_from(["", "  ", "    ", " "]))
        items = draw(st.lists(simple, min_size=1, max_size=4))
        source, value = f"{name}:{comment}", [item for _, item in items]
        for item, _ in items:
            if draw(st.integers(0, 5)) == 0:
                source += "\n" + draw(st.sampled_from(["# between", "      # deeper", "", "   "]))
            source += f"\n{indent}-{draw(st.sampled_from([' ', ' ', '   ']))}{item}{draw(comments)}"
        if draw(st.integers(0, 3)) == 0:
            source, value = f"{source}\n{indent}-{draw(comments)}", [*value, None]
    elif style == "f":
        sources = draw(st.lists(st.sampled_from(list(FLOW)), max_size=4, unique=True))
        space, comma = (
            draw(st.sampled_from(["", " "])),
            "," if sources and draw(st.booleans()) else "",
        )
        source, value = (
            f"{name}:{gap}[{space}{', '.join(sources)}{comma}{space}]{comment}",
            [FLOW[it] for it in sources],
        )
    elif style == "b":
        chomp = draw(st.sampled_from(["", "-"]))
        source = f"{name}: |{chomp}{draw(st.sampled_from(['', ' # c']))}\n  one: [\n\n    - # two\n  three\n"
        value = "one: [\n\n  - # two\nthree" + ("" if chomp == "-" else "\n")
        return Entry(key, source, value)
    else:
        template, value = draw(st.sampled_from(TEMPLATES))
        parts = {"N": name, "G": gap, "C": comment}
        source = re.sub(r"\bN(?=[ :C])|G|C", lambda found: parts[found[0]], template)
        comment = comment if "C" in template else ""
    return Entry(key, source + "\n", value, comment=comment.strip())


loose_lines = st.lists(
    st.sampled_from(["", "# a comment: [x", "   ", "#", "# ---", " # indented"]), max_size=2
).map(lambda lines: "".join(line + "\n" for line in lines))


@st.composite
def samples(draw: st.DrawFn, min_size: int = 0) -> Sample:
    names = draw(st.lists(keys, min_size=min_size, max_size=5, unique_by=str.casefold))
    found = [draw(entries(name)) for name in names]
    loose = [draw(loose_lines) for _ in range(len(found) + 1)]
    for number, entry in enumerate(found):
        if entry.source.split("\n", 1)[0].split("#")[0].rstrip().endswith(("|", "|-", ">-")):
            loose[number + 1] = loose[number + 1].replace(
                "   \n", " \n"
            )  # three blanks would be text
    bom = draw(st.sampled_from(["", "", "\ufeff"]))
    end = draw(st.sampled_from(["---\n", "---  \n", "---"]))
    bodies = ["", "\n", "# Body\n\n---\ntitle: no\n---\n", "text", "\u2028\x0b\n"]
    body = draw(st.sampled_from(bodies)) if end != "---" else ""
    line = draw(st.sampled_from(["\n", "\n", "\r\n", "\r"]))
    before, *loose = (text.replace("\n", line) for text in ("---\n", *loose))
    found = [replace(entry, source=entry.source.replace("\n", line)) for entry in found]
    return Sample(bom + before, tuple(loose), tuple(found), end.replace("\n", line) + body, line)


def line_ends(text: str) -> set[str]:
    return set(re.findall(r"\r\n|\r|\n", text))


def same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)


written_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    any_text,
    words,
    st.sampled_from(["yes", "12:30", "- x", " "]),
)
written = st.one_of(
    written_scalars,
    st.lists(written_scalars, max_size=4),
    st.dictionaries(keys, written_scalars, max_size=3),
)


def plain_and_full(text: str) -> tuple[str | None, str]:
    """What the reader of plain headers and libyaml make of a header, with all places; None where the first leaves it."""
    plain = read_plain_yaml(text, 0, len(text))
    try:
        return repr(plain) if plain else None, repr(read_yaml(text, 0, len(text)))
    except RefusedError as refused:
        return repr(plain) if plain else None, refused.message


@relaxed
@given(samples(), simple, st.text("ab12 .:/+(),'&!?=;@_[]{}\"|%~^$*<>-#é\t", max_size=9))
def test_the_reader_of_plain_headers_agrees_with_libyaml_or_says_nothing(
    sample: Sample, scalar: tuple[str, Any], value: str
) -> None:
    for text in (
        "".join(sample.parts()[1:]),
        f"a b: {scalar[0]}\nl:\n  - {value}\n",
        f"x: {value}\n",
    ):
        plain, full = plain_and_full(text)
        assert plain is None or plain == full
    plain, full = plain_and_full(
        "title: Notes on Ada\ntags:\n  - person\n  - 'a b'\nempty:\nn: 12\nup: \"[[A#b]]\"\n"
    )
    assert plain == full


@relaxed
@given(samples())
def test_a_header_means_what_its_source_says(sample: Sample) -> None:
    header = read_header(sample.text)
    assert header.problem is None, sample.text
    assert same(dict(header.properties), sample.values)
    assert (
        sample.text[header.body_start :]
        == sample.after[re.match(r"---[ ]*(\r\n|\r|\n)?", sample.after).end() :]
    )  # type: ignore[union-attr]


@relaxed
@given(samples(min_size=1), st.data(), written)
def test_setting_a_property_touches_its_own_source_and_nothing_else(
    sample: Sample, data: st.DataObject, value: Any
) -> None:
    number = data.draw(st.integers(0, len(sample.entries) - 1))
    key = sample.entries[number].key
    after = set_property(
        sample.text, key.swapcase() if key.swapcase().casefold() == key.casefold() else key, value
    )
    head, tail = sample.around(number)
    assert after.startswith(head) and after.endswith(tail)
    between = after[len(head) : len(after) - len(tail)]
    assert line_ends(between) == {sample.newline} and sample.entries[number].comment in between
    assert same(dict(read_header(after).properties), {**sample.values, key: value})
    assert set_property(after, key, value) == after


@relaxed
@given(samples(), written)
def test_a_new_property_is_one_piece_at_the_end_of_the_header(sample: Sample, value: Any) -> None:
    after = set_property(sample.text, "new one", value)
    head = "".join(sample.parts())
    assert after.startswith(head) and after.endswith(sample.after)
    assert line_ends(after[len(head) : len(after) - len(sample.after)]) == {sample.newline}
    assert same(dict(read_header(after).properties), {**sample.values, "new one": value})
    assert remove_property(after, "new one") == sample.text


@relaxed
@given(samples(min_size=1), st.data())
def test_removing_a_property_takes_its_own_source_and_nothing_else(
    sample: Sample, data: st.DataObject
) -> None:
    number = data.draw(st.integers(0, len(sample.entries) - 1))
    head, tail = sample.around(number)
    try:
        after = remove_property(sample.text, sample.entries[number].key)
    except Unreadable:  # what stands below it would become part of the text above
        assert number and re.search("[|>]", sample.entries[number - 1].source)
        return
    assert after == head + tail
    kept = {key: value for key, value in sample.values.items() if key != sample.entries[number].key}
    assert same(dict(read_header(after).properties), kept)


@relaxed
@given(samples(min_size=1), st.data(), words, words)
def test_a_change_and_its_opposite_give_the_same_bytes(
    sample: Sample, data: st.DataObject, one: str, other: str
) -> None:
    entry = data.draw(st.sampled_from(sample.entries))
    key = entry.key
    first = set_property(sample.text, key, one)
    assert set_property(set_property(first, key, other), key, one) == first
    spelled = [
        scalar
        for scalar in read_header(sample.text).scalars
        if scalar.path == (key,) and scalar.verbatim >= 0
    ]
    if spelled:
        quoted = spelled[0].verbatim > spelled[0].start
        if quoted or is_plain_safe(entry.value):  # it stands there as we would write it
            assert set_property(first, key, entry.value) == sample.text
    many = set_property(sample.text, key, [one, "second", "third"])
    assert (
        set_property(
            set_property(many, key, [one, "changed", "third"]), key, [one, "second", "third"]
        )
        == many
    )
    more = set_property(many, key, [one, "second", "third", "fourth"])
    assert set_property(more, key, [one, "second", "third"]) == many


@relaxed
@given(samples(min_size=1), st.data())
def test_items_come_and_go_without_disturbing_the_others(
    sample: Sample, data: st.DataObject
) -> None:
    lists = [
        number
        for number, entry in enumerate(sample.entries)
        if isinstance(entry.value, list) and entry.value
    ]
    assume(lists)
    number = data.draw(st.sampled_from(lists))
    entry = sample.entries[number]
    head, tail = sample.around(number)
    added = set_property(sample.text, entry.key, [*entry.value, "brand new"])
    assert added.startswith(head) and added.endswith(tail)
    assert same(read_header(added).properties[entry.key], [*entry.value, "brand new"])
    is_flow = re.match(r"[^:]*:\s*\[", entry.source) is not None  # written anew, on one line
    assert is_flow or set_property(added, entry.key, entry.value) == sample.text
    item = data.draw(st.sampled_from(entry.value))
    kept = [there for there in entry.value if not same(there, item)]
    removed = set_property(sample.text, entry.key, kept)
    assert removed.startswith(head) and removed.endswith(tail)
    assert same(read_header(removed).properties[entry.key], kept)
    if kept:  # the lines that stayed are lines that were there
        assert (
            set(re.split(r"[\r\n]+", removed)) <= set(re.split(r"[\r\n]+", sample.text)) or is_flow
        )


@relaxed
@given(samples(min_size=1), st.data(), written_scalars)
def test_entries_of_a_map_change_one_by_one(
    sample: Sample, data: st.DataObject, value: Any
) -> None:
    maps = [number for number, entry in enumerate(sample.entries) if isinstance(entry.value, dict)]
    assume(maps)
    number = data.draw(st.sampled_from(maps))
    entry = sample.entries[number]
    head, tail = sample.around(number)
    name = data.draw(st.sampled_from([*entry.value, "fresh"]))
    changed = set_property(sample.text, entry.key, {**entry.value, name: value})
    assert changed.startswith(head) and changed.endswith(tail)
    assert same(read_header(changed).properties[entry.key], {**entry.value, name: value})
    removed = set_property(changed, entry.key, {k: v for k, v in entry.value.items() if k != name})
    assert same(
        read_header(removed).properties[entry.key],
        {k: v for k, v in entry.value.items() if k != name},
    )
    if name == "fresh" and "{" not in entry.source:
        assert removed == sample.text


@relaxed
@given(samples(min_size=1), any_text)
def test_every_text_in_a_header_can_be_replaced_in_its_place(sample: Sample, value: str) -> None:
    for scalar in read_header(sample.text).scalars:
        if scalar.verbatim >= 0:
            assert sample.text[scalar.verbatim :].startswith(scalar.value)
        after = replace_scalar(sample.text, scalar, value)
        assert after.startswith(sample.text[: scalar.start]) and after.endswith(
            sample.text[scalar.end :]
        )
        found = {there.path: there.value for there in read_header(after).scalars}
        assert found == {there.path: there.value for there in read_header(sample.text).scalars} | {
            scalar.path: value
        }


@settings(relaxed, max_examples=3 * EXAMPLES)
@given(st.dictionaries(keys, written, max_size=5), st.sampled_from(["\n", "\r\n", "\r"]))
def test_what_we_write_reads_back_the_same(properties: dict[str, Any], newline: str) -> None:
    text = render_header(properties, newline)
    assert same(dict(read_header(text).properties), properties)


@settings(relaxed, max_examples=3 * EXAMPLES)
@given(st.one_of(any_text, words, st.from_regex(r"[-+0-9.eExob_:yYnNoOfF]{1,8}", fullmatch=True)))
def test_texts_mean_the_same_to_readers_of_yaml_1_1(value: str) -> None:
    header = (
        render_header({"text": value, "items": [value]}).removeprefix("---\n").removesuffix("---\n")
    )
    if not re.fullmatch(
        r"\d{4}-\d\d-\d\d(T.*)?", value
    ):  # dates stay bare, as Obsidian writes them
        assert yaml.safe_load(header) == {"text": value, "items": [value]}


yaml_soup = st.lists(
    st.sampled_from(
        [
            "a", "b: ", "- ", "? ", ": ", "[", "]", "{", "}", ", ", "|", ">", "|+\n", "'", '"', "#", " # ", "\n", "\n  ",
            "\n    ", "\r\n", "\r", "\t", "---", "...", "\n---\n", "&x ", "*x", "!t ", "%", "@", "\\", "\u2028", "\x85",
            "\ufeff", "\0", "🚀", "key: v\n", "\n- i", "title: ", "x: [a, b]\n", "<<", "~", "1",
        ]
    ),
    max_size=25,
).map("".join)  # fmt: skip


@settings(relaxed, max_examples=4 * EXAMPLES)
@given(yaml_soup, st.sampled_from(["---\n", "\ufeff---\r\n", ""]), written)
def test_no_text_whatever_breaks_reading_or_is_damaged_by_writing(
    soup: str, fence: str, value: Any
) -> None:
    text = f"{fence}{soup}\n---\nbody\n"
    header = read_header(text)
    body = text[header.body_start :].removeprefix("\ufeff" if header.style == "none" else "")
    for key in [*header.properties, "new"]:
        for change in (
            lambda key=key: set_property(text, key, value),
            lambda key=key: remove_property(text, key),
        ):
            try:
                after = change()
            except SimplememError:
                continue
            now = read_header(after)
            others = {k: v for k, v in header.properties.items() if k != key}
            assert same({k: v for k, v in now.properties.items() if k != key}, others)
            assert after == text or after.endswith(body)
