"""The index is a function of the vault and the settings: after any changes, ours and by hand, it equals a rebuilt one.

Hypothesis plays the people of a vault: two stores that serve it, and a hand that writes, renames and deletes files
beneath them. Whenever a store has had the chance to look, every row is compared with an index made afresh.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from simplemem.errors import SimplememError
from simplemem.index import embeddings, sync_pass
from simplemem.index.comparison import dump
from simplemem.index.sqlite.engine import open_engine
from simplemem.providers.embeddings import create_embedder
from simplemem.providers.word_vectors import Multilingual, shared_wordllama
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore, embedding

_MEMORY = Path(
    "/dev/shm"
)  # a disk in memory where there is one: what a disk may lose is the crash tests' concern
EXAMPLES = settings.default.max_examples  # as the profile says

# Few names, in few folders, that are often one name by some rule: case, accents, a dot that looks like an extension.
_FOLDERS = st.sampled_from(["", "", "", "a/", "a/b/", "c d/", "A/"])
_NAMES = st.sampled_from(
    [
        "Note", "Note", "Other", "note", "Café", "Cafe\u0301", "plan", "v1.2 x", "third",
        "Note 2", "Note.sync-conflict-20260101-120000-ABCDEFG",
    ]
)  # fmt: skip
_PATHS = st.builds("{}{}".format, _FOLDERS, _NAMES)

_LINKS = [
    "[[Note]]", "[[note#Part|shown]]", "[[a/Note]]", "[[Other]]", "[[./Other]]", "[[../Note]]", "[[/Note]]",
    "[x](Note.md)", "[x](../a/Note.md)", "[x](<c d/Note.md> 't')", "[x](Caf%C3%A9.md)", "![[plan.png]]", "[[plan]]",
    "[[Café]]", "[[b/Note]]", "[[v1.2 x]]", "[[Nowhere]]", "[[#Part]]", "![](files/plan.png)", "[[third|third]]",
]  # fmt: skip
_PIECES = [
    *_LINKS, *_LINKS,
    "Plain words of a note.", "# Part", "## Deeper, with #tag", "- item\n- [ ] task #todo", "> quote [[Other]]",
    "| a | b |\n| --- | --- |\n| [[Note\\|n]] | 2 |", "```\n[[Note]] #no getUserName\n```",
    "Die Häuser der Stadt und die Straßen", "%% [[Other]] %%", "東京タワーに行く",
    "#status/done #Status/Done", "Not for all #private/x",
    "same words", "same words", "text ^id", "$$\nx [[Note]]\n$$", "\u2028 odd \x0b ends",
    "word " * 300,
]  # fmt: skip
_HEADERS = [
    "", "", "",
    "---\ntitle: A title\ntags: [one, status/done]\naliases: [Nick, Other]\n---\n",
    "---\ntitle: Another\ntags:\n  status: open\n  todo: true\naliases: Nick\n---\n",
    "---\ntags: one, two\ntype: person\nup: \"[[Note]]\"\nrelated:\n  - '[[Other|o]]'\n  - \"[x](Note.md)\"\n---\n",
    "---\ncreated: 2024-01-15\nmodified: 2099-01-01T10:00:00+02:00\ndescription: About it\n---\n\n",
    "---\nmodified: 2026-01-24T12:00:00\n---\n",
    "---\nbroken: [\ntags: [x]\n---\n",
    "---\nprivate: true\n---\n",
    "---\n{\"title\": \"JSON\", \"tags\": [\"j\"]}\n---\n",
    "---\nnever closed: yes\n",
]  # fmt: skip


class Half(Multilingual):
    """Another embedder: half the dimensions of the one in the package, and another name."""

    name = "half"

    def documents(
        self, texts: Sequence[str], *, stopped: Callable[[], bool] = lambda: False
    ) -> list[bytes]:
        return [vector[:128] for vector in super().documents(texts, stopped=stopped)]


@st.composite
def _texts(draw: st.DrawFn) -> bytes:
    """A note as anybody might leave it."""
    header = draw(st.sampled_from(_HEADERS))
    body = draw(st.sampled_from(["\n\n", "\n"])).join(
        draw(st.lists(st.sampled_from(_PIECES), max_size=4))
    )
    text = header + body + draw(st.sampled_from(["\n", "\n", ""]))
    text = text.replace("\n", draw(st.sampled_from(["\n", "\n", "\n", "\r\n", "\r"])))
    data = (draw(st.sampled_from(["", "", "", "\ufeff"])) + text).encode()
    return data + draw(
        st.sampled_from(
            [b"", b"", b"", b"", b"", b"\xff not UTF-8 [[Note]]\n", b"\0binary", b"big " * 900]
        )
    )


_ANY_TEXT = _texts()
_CONTENTS = st.lists(st.sampled_from(_PIECES), max_size=3).map("\n\n".join)
_METADATA: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {}, {}, {"title": "Given", "tags": ["one", "status/done"]}, {"tags": {"status": "open", "todo": True}},
        {"aliases": ["Nick"], "type": "person"}, {"description": "About it", "up": "[[Note]]"}, {"title": None},
    ]
)  # fmt: skip
_SETTINGS = st.sampled_from(
    [
        {},
        {"userIgnoreFilters": ["a/"]},
        {"userIgnoreFilters": ["/Note/", "c d"]},
        {"newLinkFormat": "relative"},
        {"newLinkFormat": "absolute", "userIgnoreFilters": ["A/b/"]},
    ]
)
_ACTS: dict[
    str, Callable[[EnhancedStore, str, Callable[[st.SearchStrategy[Any]], Any]], object]
] = {
    "rewrite": lambda store, name, draw: store.update(name, content=draw(_CONTENTS)),
    "append": lambda store, name, draw: store.update(name, append=draw(_CONTENTS)),
    "header": lambda store, name, draw: store.update(name, metadata=draw(_METADATA)),
    "edit": lambda store, name, draw: store.update(
        name,
        edits=[{"old": draw(st.sampled_from(["Note", "same words", "[[Other]]"])), "new": "third"}],
    ),
    "tag": lambda store, name, draw: store.change_tags(
        name, {"status": draw(st.sampled_from(["done", True, None, "Ann, B"]))}
    ),
    "move": lambda store, name, draw: store.move(name, draw(_PATHS)),
    "delete": lambda store, name, _: store.delete(name),
    "read": lambda store, name, _: store.read(name),
    "search": lambda store, name, _: store.search(f"words {name}", mode="text"),
}
_LOADED = cache(create_embedder)  # once for all stores, which would each load it for itself
_HALF = Half(shared_wordllama())
_LESS = {
    "write": {"durability": "fast"},
    "index": {"max_note_mb": 0.003},
}  # the disk is waited for elsewhere


def rows_of(index: Path) -> list[tuple[Any, ...]]:
    """All that an index holds, as it lies on the disk."""
    database = open_engine(index, nullcontext)
    try:
        with database.reading() as db:
            return list(dump(db))
    finally:
        database.close()


def remove_database(index: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{index}{suffix}").unlink(missing_ok=True)


def first_difference(ours: list[tuple[Any, ...]], rebuilt: list[tuple[Any, ...]]) -> str:
    """Where two indexes differ, in a line that can be read; nothing when they are equal."""
    if ours == rebuilt:
        return ""
    only_ours = next((row for row in ours if row not in rebuilt), None)
    only_rebuilt = next((row for row in rebuilt if row not in ours), None)
    return f"ours has {str(only_ours)[:500]}; a rebuilt one has {str(only_rebuilt)[:500]}"


class AVault(RuleBasedStateMachine):
    """A folder, and two stores that serve it. `in_step` says that some store has looked since a hand last touched it."""

    provider: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(
            tempfile.mkdtemp(
                prefix="simplemem-equality-", dir=_MEMORY if _MEMORY.is_dir() else None
            )
        )
        self.vault = self.folder / "vault"
        self.vault.mkdir()
        self.index = self.vault / ".simplemem/index.db"
        self.settings = Settings.model_validate({**_LESS, "embed": {"provider": self.provider}})
        self.stores = [EnhancedStore(self.vault, self.settings) for _ in range(2)]
        self.in_step = False
        self.touched: set[str] = set()
        self.patches = [
            patch.object(
                sync_pass, "MAX_BATCH_NOTES", 3
            ),  # as many transactions as if there were thousands of notes
            patch.object(
                sync_pass, "_MIN_BULK_NOTES", 3
            ),  # and both ways of writing: a few notes, and very many
            patch.object(embedding, "create_embedder", _LOADED),
        ]
        for each in self.patches:
            each.start()

    def teardown(self) -> None:
        try:
            self.stores[0].sync(embed=self.provider != "none")
            self.compare()
            assert [
                finding.message for finding in self.stores[0].doctor() if finding.check == "index"
            ] == []
        finally:
            for each in self.patches:
                each.stop()
            for store in self.stores:
                store.close()
            shutil.rmtree(self.folder)

    def compare(self) -> None:
        """The promise: every row of our index is a row of one made afresh, and the other way round."""
        beside = self.folder / "rebuilt.db"
        with EnhancedStore(self.vault, self.settings.model_copy(update={"db": beside})) as fresh:
            fresh.sync(embed=self.provider != "none")
        self.stores[
            0
        ]._parts.changes.newest()  # it is when it is asked that the table of changes follows the log
        ours, rebuilt = rows_of(self.index), rows_of(beside)
        remove_database(beside)
        assert first_difference(ours, rebuilt) == ""

    # -- what is there

    def files(self) -> list[str]:
        found = (path for path in self.vault.rglob("*") if path.is_file())
        return sorted(
            p
            for path in found
            if not (p := path.relative_to(self.vault).as_posix()).startswith(".")
        )

    def notes(self) -> list[str]:
        return [path for path in self.files() if path.casefold().endswith(".md")]

    def linked(self, who: int) -> list[str]:
        """Notes that a link means: it is seen when they go."""
        return [path for path in self.notes() if self.stores[who]._parts.index.links(path)]

    def folders(self) -> list[str]:
        found = (path for path in self.vault.rglob("*") if path.is_dir() and not path.is_symlink())
        return sorted(
            p
            for path in found
            if not (p := path.relative_to(self.vault).as_posix()).startswith(".")
        )

    def some(self, data: st.DataObject, among: list[str]) -> str:
        return data.draw(st.sampled_from(among))

    def by_hand(self, *paths: str) -> None:
        """A watcher tells where the file lies that was written through a link."""
        self.in_step = False
        root = os.path.realpath(self.vault)
        self.touched.update(
            paths, (os.path.relpath(os.path.realpath(self.vault / path), root) for path in paths)
        )

    def make_room(self, path: str) -> Path | None:
        """The folder of a path; None where a file stands in its way."""
        file = self.vault / path
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            return None
        return file

    def looked(self) -> None:
        self.in_step = True
        self.touched.clear()

    def ask(self, act: Callable[[], object]) -> None:
        """A store may refuse, as it says; it must not do half of it."""
        with suppress(SimplememError):
            act()


class AVaultWithManyHands(AVault):
    """All that people, their programs and two servers do to a vault."""

    provider = "none"

    # -- a hand

    @initialize(
        files=st.dictionaries(_PATHS, _ANY_TEXT, min_size=2, max_size=5), plan=st.booleans()
    )
    def people_bring_their_notes(self, files: dict[str, bytes], plan: bool) -> None:
        for path, text in files.items():
            self.write(path, text)
        if plan:
            self.bring_an_attachment("plan.png")
        self.stores[0].sync()
        self.looked()

    @rule(path=_PATHS, text=_ANY_TEXT)
    def write(self, path: str, text: bytes) -> None:
        file = self.make_room(path + ".md")
        if file is not None and not file.is_dir():
            with suppress(OSError):  # a link that leads in a circle
                file.write_bytes(text)
            self.by_hand(path + ".md")

    @rule(
        path=st.sampled_from(
            ["plan.png", "files/plan.png", "a/plan.png", "plan", "Note.canvas", "a/Note"]
        )
    )
    def bring_an_attachment(self, path: str) -> None:
        file = self.make_room(path)
        if file is not None and not file.is_dir():
            file.write_bytes(b"\x89PNG")
            self.by_hand(path)

    @rule(path=st.sampled_from(["e", "a/b", "third.md"]))
    def make_a_folder(self, path: str) -> None:
        file = self.make_room(path)
        if file is not None and not os.path.lexists(
            file
        ):  # a link to a note that went leads nowhere, and is there
            file.mkdir()
            self.by_hand(path)

    def overwrite_with_as_many_bytes(self, data: st.DataObject, path: str) -> None:
        file = self.vault / path
        before, old = file.stat(), file.read_bytes()
        file.write_bytes(old.replace(b"Note", b"Othr").replace(b"w", b"v").replace(b"one", b"two"))
        if data.draw(st.booleans()):
            os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    def set_the_time(self, data: st.DataObject, path: str) -> None:
        seconds = data.draw(st.sampled_from([1_000_000_000, 1_700_000_000, 4_000_000_000]))
        os.utime(self.vault / path, (seconds, seconds))

    def rename(self, data: st.DataObject, path: str) -> None:
        folder, name = os.path.split(path)
        by_case = os.path.join(folder, name.swapcase())  # by case alone, or to anywhere
        self.put_elsewhere(
            path, by_case if data.draw(st.booleans()) else data.draw(_PATHS) + Path(path).suffix
        )

    def put_elsewhere(self, path: str, new: str) -> None:
        file = self.make_room(new)
        if file is not None and not file.is_dir():
            (self.vault / path).replace(file)
            self.by_hand(new)

    def copy(self, data: st.DataObject, path: str) -> None:
        to = data.draw(_PATHS) + ".md"
        file = self.make_room(to)
        if file is not None and not file.is_dir():
            with suppress(OSError):  # onto itself, perhaps by way of a link
                shutil.copy2(self.vault / path, file)
            self.by_hand(to)

    def swap_with_another(self, data: st.DataObject, path: str) -> None:
        other = self.some(data, self.notes() or [path])
        if path != other:
            aside = self.folder / "aside"
            (self.vault / path).rename(aside)
            (self.vault / other).rename(self.vault / path)
            aside.rename(self.vault / other)
            self.by_hand(other)

    @precondition(lambda self: self.files())
    @rule(
        data=st.data(),
        act=st.sampled_from(
            [overwrite_with_as_many_bytes, set_the_time, rename, copy, swap_with_another]
        ),
    )
    def touch_a_file(
        self, data: st.DataObject, act: Callable[[AVaultWithManyHands, st.DataObject, str], None]
    ) -> None:
        path = self.some(data, self.notes() or self.files())
        act(self, data, path)
        self.by_hand(path)

    @precondition(lambda self: self.files())
    @rule(data=st.data())
    def delete_by_hand(self, data: st.DataObject) -> None:
        path = self.some(data, self.linked(0) or self.files())
        (self.vault / path).unlink()
        self.by_hand(path)

    @precondition(lambda self: self.folders())
    @rule(data=st.data(), to=st.sampled_from(["e", "a", "f/g", "node_modules", ".away"]))
    def rename_a_folder(self, data: st.DataObject, to: str) -> None:
        path = self.some(data, self.folders())
        file = self.make_room(to)
        if file is not None and not os.path.lexists(file) and not f"{to}/".startswith(f"{path}/"):
            (self.vault / path).rename(file)
            self.by_hand(path, to)

    @precondition(lambda self: self.notes())
    @rule(data=st.data(), at=st.sampled_from(["link.md", "third.md", "far"]))
    def make_a_link(self, data: st.DataObject, at: str) -> None:
        to = self.vault / (self.some(data, self.notes()) if at != "far" else "a")
        if to.exists() and not os.path.lexists(self.vault / at):
            (self.vault / at).symlink_to(to)
            self.by_hand(at)

    @rule()
    def lose_the_index(self) -> None:
        remove_database(self.index)
        self.in_step = False
        self.touched.add("")

    @rule(said=_SETTINGS)
    def set_up_obsidian(self, said: dict[str, Any]) -> None:
        (self.vault / ".obsidian").mkdir(exist_ok=True)
        (self.vault / ".obsidian/app.json").write_text(json.dumps(said))
        self.by_hand(".obsidian/app.json")

    # -- the stores

    @rule(
        who=st.integers(0, 1),
        name=_PATHS,
        content=_CONTENTS,
        metadata=_METADATA,
        overwrite=st.booleans(),
    )
    def create(
        self, who: int, name: str, content: str, metadata: dict[str, Any], overwrite: bool
    ) -> None:
        self.ask(lambda: self.stores[who].create(name, content, metadata, overwrite=overwrite))

    @precondition(lambda self: self.notes())
    @rule(who=st.integers(0, 1), data=st.data(), act=st.sampled_from(sorted(_ACTS)))
    def change_a_note(self, who: int, data: st.DataObject, act: str) -> None:
        name = self.some(data, self.notes())
        self.ask(lambda: _ACTS[act](self.stores[who], name, data.draw))

    @precondition(lambda self: self.notes())
    @rule(who=st.integers(0, 1), data=st.data())
    def delete(self, who: int, data: st.DataObject) -> None:
        name = self.some(data, self.linked(who) or self.notes())
        self.ask(lambda: self.stores[who].delete(name))

    @precondition(lambda self: self.stores[0].history(limit=1))
    @rule(who=st.integers(0, 1), data=st.data())
    def undo(self, who: int, data: st.DataObject) -> None:
        version = self.some(data, [entry.version for entry in self.stores[who].history(limit=4)])
        self.ask(lambda: self.stores[who].undo(version))

    @rule(who=st.integers(0, 1))
    def open_again(self, who: int) -> None:
        self.stores[who].close()
        self.stores[who] = EnhancedStore(self.vault, self.settings)

    @precondition(lambda self: not self.in_step)
    @rule(who=st.integers(0, 1), rebuild=st.sampled_from([False, False, True]))
    def look_through_the_vault(self, who: int, rebuild: bool) -> None:
        self.stores[who].sync(rebuild=rebuild)
        self.looked()

    @precondition(lambda self: not self.in_step)
    @rule(who=st.integers(0, 1))
    def look_where_the_hand_was(self, who: int) -> None:
        """As the watcher does, which tells of paths and of nothing else."""
        self.stores[who]._parts.keeper.look_at(set(self.touched))
        self.looked()

    @invariant()
    def the_index_equals_a_rebuilt_one(self) -> None:
        if self.in_step:
            self.compare()


_SHORT = st.sampled_from(
    [
        "The harbour crane was repaired.\n",
        "Tea from Assam.\n",
        "# Part\n\nTea from Assam.\n",
        "---\ntitle: Tea\n---\nTea from Assam.\n\nThe harbour crane was repaired.\n",
        "---\ntags: [one]\n---\nTea from Assam.\n",
        "The harbour crane was repaired.\n\n- Tea from Assam.\n- A ferry at noon.\n",
    ]
)
_FEW = st.sampled_from(["one", "two", "a/one", "a/three"])


class AVaultWithVectors(AVault):
    """What is embedded is embedded with its title or heading, and kept while both stay: under a new name, too."""

    provider = "wordllama"

    def __init__(self) -> None:
        super().__init__()
        self.embedded = False

    def changed(self, *paths: str) -> None:
        self.by_hand(*paths)
        self.embedded = False

    @initialize(files=st.dictionaries(_FEW, _SHORT, min_size=2))
    def people_bring_their_notes(self, files: dict[str, str]) -> None:
        for path, text in files.items():
            self.write(path, text)
        self.embed_what_waits(0)

    @rule(path=_FEW, text=_SHORT)
    def write(self, path: str, text: str) -> None:
        file = self.make_room(path + ".md")
        assert file is not None
        file.write_text(text)
        self.changed(path + ".md")

    @precondition(lambda self: self.notes())
    @rule(data=st.data(), to=_FEW, keep=st.booleans())
    def rename_or_copy(self, data: st.DataObject, to: str, keep: bool) -> None:
        path = self.some(data, self.notes())
        file = self.make_room(to + ".md")
        assert file is not None
        if file != self.vault / path:
            shutil.copy2(self.vault / path, file) if keep else (self.vault / path).replace(file)
            self.changed(path, to + ".md")

    @rule(hidden=st.booleans())
    def exclude_a_folder(self, hidden: bool) -> None:
        (self.vault / ".obsidian").mkdir(exist_ok=True)
        said = {"userIgnoreFilters": ["a/"]} if hidden else {}
        (self.vault / ".obsidian/app.json").write_text(json.dumps(said))
        self.changed(".obsidian/app.json")

    @precondition(lambda self: self.notes())
    @rule(who=st.integers(0, 1), data=st.data(), act=st.sampled_from(["move", "change", "delete"]))
    def change_a_note(self, who: int, data: st.DataObject, act: str) -> None:
        store, name = self.stores[who], self.some(data, self.notes())
        self.embedded = False
        if act == "change":
            title = data.draw(st.sampled_from(["Crane", None]))
            self.ask(
                lambda: store.update(name, append=data.draw(_SHORT), metadata={"title": title})
            )
        else:
            self.ask(
                lambda: store.move(name, data.draw(_FEW)) if act == "move" else store.delete(name)
            )

    @precondition(lambda self: not self.in_step)
    @rule(who=st.integers(0, 1))
    def look_at_the_words_alone(self, who: int) -> None:
        self.stores[who].sync(embed=False)
        self.looked()

    @rule(who=st.integers(0, 1), finish=st.booleans())
    def try_another_embedder(self, who: int, finish: bool) -> None:
        """Its vectors take the place of ours, until ours are made again."""
        step = self.stores[who]._parts
        embeddings.set_embedder(step.index.database, _HALF)
        if finish:
            embeddings.EmbeddingJob(step.vault, step.index.database, _HALF).run()
        self.embedded = False

    @rule(who=st.integers(0, 1))
    def embed_what_waits(self, who: int) -> None:
        self.stores[who].sync()
        self.looked()
        self.embedded = True

    @invariant()
    def kept_vectors_equal_fresh_ones(self) -> None:
        if self.in_step and self.embedded:
            self.compare()


_HEALTH = list(HealthCheck)
TestAVaultWithManyHands = AVaultWithManyHands.TestCase
TestAVaultWithManyHands.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=12, deadline=None, suppress_health_check=_HEALTH
)
TestAVaultWithVectors = AVaultWithVectors.TestCase
TestAVaultWithVectors.settings = settings(
    max_examples=max(1, EXAMPLES // 3),
    stateful_step_count=10,
    deadline=None,
    suppress_health_check=_HEALTH,
)
