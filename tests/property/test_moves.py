"""A move keeps every link's meaning, and every byte that is no link's, in any vault.

Notes are built from pieces, so that it is known without asking the code under test what is a link, how it is written and
which bytes are its path.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import tempfile
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
import yaml
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from simplemem.errors import SimplememError
from simplemem.index.notes import named_in_memory
from simplemem.obsidian.settings import resolve_link
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

EXAMPLES = settings.default.max_examples  # as the profile says
_MEMORY = Path("/dev/shm")  # a disk in memory where there is one
_SETTINGS = Settings.model_validate(
    {"write": {"durability": "fast"}, "embed": {"provider": "none"}}
)
relaxed = settings(
    max_examples=max(1, 4 * EXAMPLES // 5), deadline=None, suppress_health_check=list(HealthCheck)
)


def key(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def means(target: str, source: str, files: Sequence[str]) -> str | None:
    """The file that a link with this target in `source` leads to, by rules that are tested by themselves."""
    return resolve_link(target, source, named_in_memory(files)).path


# -- notes in pieces


@dataclass(frozen=True)
class Link:
    """One link as it is written. In a property it stands in quotes, and may be spelled with escapes."""

    form: str  # wiki, markdown or angle
    before: str  # up to the path
    path: str
    target: str  # what the path stands for
    subpath: str
    display: str | None
    after: str  # from what is shown on
    quotes: str = ""  # ' or " or e, the last for double quotes with escapes
    in_table: bool = False

    @property
    def plain(self) -> str:
        shown = self.display or ""
        if self.form == "wiki":
            bar = "\\|" if self.in_table else "|"
            return f"{self.before}{self.path}{self.subpath}{'' if self.display is None else bar + shown}{self.after}"
        return f"{self.before.replace('@', shown, 1)}{self.path}{self.subpath}{self.after}"

    @property
    def source(self) -> str:
        if self.quotes == "'":
            return "'" + self.plain.replace("'", "''") + "'"
        if self.quotes == "e":
            at = len(self.before) + len(self.path) - 1
            return '"' + "".join(
                f"\\u{ord(c):04x}" if n == at or not c.isascii() or c in '"\\' else c for n, c in enumerate(self.plain)
            ) + '"'  # fmt: skip
        return (
            '"' + self.plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
            if self.quotes
            else self.plain
        )

    @property
    def pattern(self) -> str:
        """What may stand in its place afterwards: a link of the same form, with the same subpath and title."""
        if self.quotes:
            return r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')"""
        return self.link_pattern

    @property
    def link_pattern(self) -> str:
        if self.form == "wiki":
            bar = r"\\\|" if self.in_table else r"\|"
            shown = rf"(?:{bar}([^\]\n]*))" + ("?" if self.display is None else "")
            end = re.escape(self.subpath + self.after.removesuffix("]]"))
            return rf"{re.escape(self.before)}([^\]|#\\\n]*?){end}{shown}\]\]"
        before = re.escape(self.before).replace("@", r"([^\]\n]*)", 1)
        path = r"([^>#\n]*?)" if self.form == "angle" else r"([^\s#]*?)"
        return rf"{before}{path}{re.escape(self.subpath)}{re.escape(self.after)}"

    def read(self, source: str) -> tuple[str, str | None]:
        """The target and the shown text of the link that stands here now."""
        plain = yaml.safe_load(source) if self.quotes else source
        found = re.fullmatch(self.link_pattern, plain)
        assert found is not None, (self, source)
        if self.form == "wiki":
            return found[1].strip(), found[2]
        return unquote(found[2]), found[1]


Pieces = list[str | Link]


def text_of(pieces: Pieces) -> str:
    return "".join(piece if isinstance(piece, str) else piece.source for piece in pieces)


_FOLDERS = ["", "", "a/", "a/b/", "c d/", "Ünï/"]
_ODD = [
    "Ann's note", "50% off", "x%20y", "a (b)", "Café", "日本", "v1.2 x", "R&copy;", "plan", "a_b", "tick`s", "Old.md",
]  # fmt: skip
_NAMES = ["Note", "Note", "Note", "Target", "Target", "Other", "note", *_ODD]
_FILES = st.builds(
    "{}{}".format, st.sampled_from(_FOLDERS), st.sampled_from([*_NAMES, "C# tips", "Cafe\u0301"])
)
_NEW_NAMES = st.builds("{}{}".format, st.sampled_from(_FOLDERS), st.sampled_from([*_NAMES, "Goal"]))
_ATTACHMENTS = st.lists(
    st.sampled_from(["plan", "files/plan.png", "a/Note", "Target.canvas", "a/v1.2 x"]), max_size=2
)


@st.composite
def _targets(draw: st.DrawFn, source: str, files: list[str]) -> str:
    """A way to write a link to some file: it may mean another, or none."""
    path = draw(st.sampled_from(files))
    if path.endswith(".md") and draw(st.integers(0, 3)):
        path = path[:-3]
    ways = ["bare", "bare", "bare", "path", "path", "suffix", "relative", "rooted", "case", "none"]
    how = draw(st.sampled_from(ways))
    if how == "bare":
        return posixpath.basename(path)
    if how == "suffix":
        return "/".join(path.split("/")[-2:])
    if how == "relative":
        near = posixpath.relpath(path, posixpath.dirname(source) or ".")
        return near if near.startswith("../") else "./" + near
    if how == "rooted":
        return "/" + path
    if how == "case":
        return posixpath.basename(path).swapcase()
    return path if how == "path" else draw(st.sampled_from(["Nowhere", "Goal", "../Goal", ""]))


@st.composite
def _links(
    draw: st.DrawFn, source: str, files: list[str], quotes: str = "", in_table: bool = False
) -> Link:
    target = draw(_targets(source, files))
    forms = ["wiki", "wiki", "wiki", "markdown", "angle"]
    form = draw(st.sampled_from(forms if "#" not in target else ["markdown", "angle"]))
    embed = draw(st.sampled_from(["", "", "!"])) if not quotes else ""
    shown = [None, "shown", posixpath.basename(target).removesuffix(".md") or "self"]
    display = draw(st.sampled_from(shown if form == "wiki" else shown[1:]))
    if display is not None and re.search(r"[\[\]`*]", display):
        display = "shown"
    if form == "wiki":
        subpath = draw(
            st.sampled_from(["", "", "#Part", "#Part#Deep", "#^id"] if target else ["#Part"])
        )
        pad = draw(st.sampled_from(["", "", "", " "]))
        after = (pad if display is None and not subpath else "") + "]]"
        return Link(
            "wiki", f"{embed}[[{pad}", target, target, subpath, display, after, quotes, in_table
        )
    subpath = draw(st.sampled_from(["", "#Part"] if target else ["#Part"]))
    title = draw(st.sampled_from(["", " 'a title'", ' "t"'])) if not quotes else ""
    if form == "angle":
        path = target.replace("%", "%25").replace("#", "%23").replace("&", "%26")
        return Link("angle", f"{embed}[@](<", path, target, subpath, display, f">{title})", quotes)
    path = quote(target, safe=draw(st.sampled_from(["/", "/'ÜïéaБ日本"])))
    return Link("markdown", f"{embed}[@](", path, target, subpath, display, f"{title})", quotes)


_CONTEXTS = [
    ("See ", "."), ("", ""), ("- item ", ""), ("- [ ] ", " #task"), ("> quoted ", " here"), ("%% ", " %%"),
    ("## About ", ""), ("**", "**"), ("text <br>", ""), ("> [!note] ", "\n> more"), ("[^1]: ", ""), ("\u2028", "\x0b"),
    ("Costs 5 $ or ", ""),
]  # fmt: skip
_HIDING = [
    ("`", "`"), ("``` \n", "\n```"), ("~~~\n", "\n~~~"), ("<!-- ", " -->"), ("$$\n", "\n$$"),
    ("Plain.\n\n    ", ""), ("\\", ""),
]  # fmt: skip


@st.composite
def _notes(draw: st.DrawFn, source: str, files: list[str]) -> Pieces:
    """A note that links to the others: in its properties, its text, a table, and where links do not count."""
    pieces: Pieces = []
    properties = draw(st.lists(st.sampled_from(["text", "list", "flow", "title"]), max_size=3))
    if properties:
        pieces.append("---\n")
        for number, kind in enumerate(properties):
            quotes = draw(st.sampled_from(["'", '"', '"', "e"]))
            if kind == "title":
                pieces.append(f"title{number}: [[not a link]] # [[Note]]\n")
            elif kind == "text":
                pieces += [f"up{number}: ", draw(_links(source, files, quotes)), "  # a comment\n"]
            elif kind == "list":
                pieces += [
                    f"rel{number}:\n  - ",
                    draw(_links(source, files, quotes)),
                    "\n  - plain [[Note]] text\n  - ",
                ]
                pieces += [draw(_links(source, files, "'")), "\n"]
            else:
                pieces += [
                    f"flow{number}: [ one, ",
                    draw(_links(source, files, quotes)),
                    ", two ]\n",
                ]
        pieces.append("---\n\n")
    kinds = st.sampled_from(["link", "link", "link", "two", "table", "hidden", "plain"])
    for kind in draw(st.lists(kinds, max_size=5)):
        if kind == "table":
            pieces += [
                "| a | b |\n| --- | --- |\n| ",
                draw(_links(source, files, in_table=True)),
                " | x |",
            ]
        elif kind == "hidden":
            before, after = draw(st.sampled_from(_HIDING))
            link = draw(_links(source, files))
            hidden = (
                before
                + (link.plain if before != "\\" else link.plain.replace("[[", "[\\["))
                + after
            )
            pieces.append(hidden if link.form == "wiki" or before != "\\" else before)
        elif kind == "plain":
            pieces.append("Words about Note and Target, [[unclosed and [x] (y).")
        else:
            before, after = draw(st.sampled_from(_CONTEXTS))
            pieces += [before, draw(_links(source, files))]
            pieces += [" and ", draw(_links(source, files))] if kind == "two" else []
            pieces.append(after)
        pieces.append("\n\n")
    return pieces


@dataclass(frozen=True)
class Sample:
    """A vault in pieces. `newline` is how its lines end."""

    notes: dict[str, Pieces]
    attachments: list[str]
    link_format: str

    @property
    def files(self) -> list[str]:
        return sorted([*self.notes, *self.attachments])


@st.composite
def _vaults(draw: st.DrawFn) -> Sample:
    names = draw(
        st.lists(
            _FILES,
            min_size=2,
            max_size=6,
            unique_by=lambda name: unicodedata.normalize("NFC", name),
        )
    )
    paths = [f"{name}.md" for name in names]
    attachments = [
        a
        for a in dict.fromkeys(draw(_ATTACHMENTS))
        if not any(p.startswith(a + "/") for p in paths)
    ]
    attachments = [a for a in attachments if not any(b.startswith(a + "/") for b in attachments)]
    files = sorted([*paths, *attachments])
    newline = draw(st.sampled_from(["\n", "\n", "\r\n", "\r"]))
    notes = {path: _with_line_ends(draw(_notes(path, files)), newline) for path in paths}
    return Sample(
        notes, attachments, draw(st.sampled_from(["shortest", "shortest", "relative", "absolute"]))
    )


def _with_line_ends(pieces: Pieces, newline: str) -> Pieces:
    return [piece.replace("\n", newline) if isinstance(piece, str) else piece for piece in pieces]


@contextmanager
def opened(sample: Sample) -> Iterator[EnhancedStore]:
    folder = Path(
        tempfile.mkdtemp(prefix="simplemem-moves-", dir=_MEMORY if _MEMORY.is_dir() else None)
    )
    try:
        for path, data in {
            **dict.fromkeys(sample.attachments, b"x"),
            **contents_of(sample),
        }.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        (folder / ".obsidian").mkdir()
        (folder / ".obsidian/app.json").write_text(f'{{"newLinkFormat": "{sample.link_format}"}}')
        with EnhancedStore(folder, _SETTINGS) as store:
            store.sync(embed=False)
            yield store
    finally:
        shutil.rmtree(folder)


def contents_of(sample: Sample) -> dict[str, bytes]:
    return {path: text_of(pieces).encode() for path, pieces in sample.notes.items()}


def on_disk(root: Path) -> dict[str, bytes]:
    found = {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}
    return {
        path: file.read_bytes()
        for path, file in found.items()
        if not path.startswith(".") and path.endswith(".md")
    }


# -- the properties


def check_note(
    pieces: Pieces, now: str, was_at: str, old: str | None, new: str, before: list[str]
) -> None:
    """Each link means what it meant, in its own form, and all else is as it was."""
    after = sorted([*(path for path in before if path != old), new])
    here = new if was_at == old else was_at
    found = re.fullmatch(_pattern_of(pieces), now)
    assert found, f"something else than links has changed in {was_at}: {now!r}"
    links = [piece for piece in pieces if isinstance(piece, Link)]
    for number, link in enumerate(links):
        stands = found[f"l{number}"]
        meant = means(link.target, was_at, before)
        wanted = new if meant is not None and meant == old else meant
        if wanted is None or means(link.target, here, after) == wanted:
            assert stands == link.source, "a link was written again that need not have been"
            continue
        target, shown = link.read(stands)
        assert means(target, here, after) == wanted, (
            f"{link.source} in {was_at} has become {stands}"
        )
        check_form(link, target, shown, str(meant), wanted, here, after)


def _pattern_of(pieces: Pieces) -> str:
    parts, number = [], 0
    for piece in pieces:
        if isinstance(piece, str):
            parts.append(re.escape(piece))
        else:
            parts.append(f"(?P<l{number}>{piece.pattern})")
            number += 1
    return "".join(parts)


def check_form(
    link: Link, target: str, shown: str | None, meant: str, wanted: str, here: str, files: list[str]
) -> None:
    """A relative link stays relative, a rooted one rooted, and the reader sees what was seen before."""
    for start in ("./", "../", "/"):
        if link.target.startswith(start):
            assert target.startswith(("/",) if start == "/" else ("./", "../"))
    if link.target.casefold().endswith(".md"):
        assert target.casefold().endswith(".md")
    elif target.endswith(".md") and wanted.endswith(".md"):
        assert means(target[:-3], here, files) != wanted, (
            "an extension was added that is not needed"
        )
    old_name, new_name = (posixpath.basename(path).removesuffix(".md") for path in (meant, wanted))
    if link.display is not None:
        follows = link.display == old_name and (link.form == "wiki" or "`" not in new_name)
        assert shown == (new_name if follows else link.display)
    elif shown is not None:
        seen = link.target if old_name == new_name else posixpath.basename(target)
        assert key(shown.split(" > ")[0]) == key(seen), (
            "a path put before a name must not be what the reader sees"
        )


@relaxed
@given(_vaults(), st.data(), _NEW_NAMES)
def test_a_move_keeps_the_meaning_of_every_link_and_every_other_byte(
    sample: Sample, data: st.DataObject, new_name: str
) -> None:
    old = data.draw(st.sampled_from(sorted(sample.notes)))
    new = new_name.removesuffix(".md") + ".md"
    assume(new != old)
    with opened(sample) as store:
        before = on_disk(store.root)
        try:
            moved = store.move(old, new_name)
        except SimplememError:
            event("refused")
            assert on_disk(store.root) == before
            assert any(
                key(path) == key(new) or key(path).startswith(key(new) + "/")
                for path in sample.files
            )
            return
        now = on_disk(store.root)
        assert now.keys() == {new if path == old else path for path in before}
        for path, pieces in sample.notes.items():
            check_note(
                pieces, now[new if path == old else path].decode(), path, old, new, sample.files
            )
        changed = {
            new if path == old else path
            for path in before
            if now[new if path == old else path] != before[path]
        }
        assert {f"{name}.md" for name in moved.rewritten} == changed
        event(f"links rewritten in {min(len(changed), 3)} notes")
        if not any(
            key(path) == key(old) for path in now
        ):  # a name that has a twin is not given again
            store.undo(moved.version)
            assert on_disk(store.root) == before


@relaxed
@given(_vaults(), _NEW_NAMES)
def test_a_new_note_takes_no_link_from_another(sample: Sample, name: str) -> None:
    with opened(sample) as store:
        before = on_disk(store.root)
        new = name.removesuffix(".md") + ".md"
        try:
            store.create(name, "It is new.")
        except SimplememError:
            assert on_disk(store.root) == before
            return
        now = on_disk(store.root)
        for path, pieces in sample.notes.items():
            check_note(pieces, now[path].decode(), path, None, new, sample.files)


# -- names that need care, each once lost a link


@pytest.mark.parametrize(
    ("text", "old", "new", "after"),
    [
        (
            "---\nup: '[[Target]]'\n---\n",
            "Target",
            "Ann's note",
            "---\nup: '[[Ann''s note]]'\n---\n",
        ),
        (
            '---\na: "[[Target]]"\nb: "[[Target\\u007cshown]]"\n---\n',
            "Target",
            "A longer name",
            '---\na: "[[A longer name]]"\nb: "[[A longer name|shown]]"\n---\n',
        ),
        (
            '---\nup: "[Target 1](\\u0064/Target%201.md)"\n---\n',
            "d/Target 1",
            "New one",
            '---\nup: "[New one](New%20one.md)"\n---\n',
        ),
        (
            "[x](Target.md) [y](<Target.md>)",
            "Target",
            "R&copy;",
            "[x](R%26copy;.md) [y](<R%26copy;.md>)",
        ),
        ("a ` b [Target](Target.md)", "Target", "tick`s", "a ` b [Target](tick%60s.md)"),
        ("costs $5 [x](Target.md)", "Target", "US$ rates", "costs $5 [x](US%24%20rates.md)"),
        ("[x](<../C%23/Note.md>)", "A", "b/c/A", "[x](<../../C%23/Note.md>)"),
        ("[[Target]]", "Target", "plan", "[[plan.md]]"),
        (
            "[[Target]] [[Target#Part]]",
            "Target",
            "d/Other",
            "[[d/Other|Other]] [[d/Other#Part|Other > Part]]",
        ),
    ],
)
def test_a_name_that_needs_care_is_written_with_care(
    text: str, old: str, new: str, after: str
) -> None:
    source = "b/A.md" if "../C" in text else "A.md"
    old = "b/A" if old == "A" else old
    others = {"C#/Note.md": "", "Target.md": "", "d/Target 1.md": "", "Other.md": ""}
    notes: dict[str, Pieces] = {path: [said] for path, said in {**others, source: text}.items()}
    with opened(Sample(notes, ["files/plan"], "shortest")) as store:
        store.move(old, new)
        assert on_disk(store.root)["b/c/A.md" if old == "b/A" else source].decode() == after
