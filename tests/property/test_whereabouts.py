"""Where a note went is what a plain model of the vault says, whatever was made, moved, deleted and brought back."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import example, given
from hypothesis import strategies as st

from simplemem.store.doctor.whereabouts import Whereabouts
from simplemem.vault.log import Version

PATHS = ("a.md", "b.md", "x/a.md", "x/c.md", "d.md")
ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["create", "move", "delete", "update", "undo"]), st.sampled_from(PATHS), st.sampled_from(PATHS)
    ),
    max_size=25,
)


@dataclass
class Model:
    """A vault as a dictionary from path to the number of the note that lies there, and the log of what was done to it."""

    lie: dict[str, int] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)  # who lay last at a path
    deleted: dict[int, str] = field(default_factory=dict)  # in which version
    texts: dict[int, str] = field(default_factory=dict)
    from_where: dict[int, str] = field(default_factory=dict)  # a delete that is undone brings the note back there
    log: list[Version] = field(default_factory=list)
    made: int = 0

    def write(self, op: str, path: str, before: str | None, after: str | None, new_path: str | None = None) -> str:
        version = f"v{len(self.log) + 1:06d}"
        self.log.append(
            Version(version, version, path, new_path, "", op, "", "", "", before, after)  # type: ignore[arg-type]
        )
        return version

    def put(self, path: str, note: int, op: str) -> None:
        self.write(op, path, None, self.texts[note])
        self.lie[path] = self.last[path] = note
        self.deleted.pop(note, None)

    def do(self, action: str, path: str, other: str) -> None:
        note = self.lie.get(path)
        if action == "create" and note is None:
            self.made += 1
            self.texts[self.made] = f"text {self.made}"
            self.put(path, self.made, "create")
        elif action == "undo" and note is None:
            gone = self.last.get(path, 0)
            if gone in self.deleted and self.from_where[gone] == path:
                self.put(path, gone, "undo")
        elif note is None:
            return
        elif action == "move" and other not in self.lie:
            self.write("move", path, self.texts[note], self.texts[note], other)
            del self.lie[path]
            self.lie[other] = self.last[other] = note
        elif action == "delete":
            self.from_where[note] = path
            self.deleted[note] = self.write("delete", path, self.texts[note], None)
            del self.lie[path]
        elif action == "update":
            before, self.texts[note] = self.texts[note], self.texts[note] + "+"
            self.write("update", path, before, self.texts[note])


A, B, C, D = "a.md", "b.md", "x/c.md", "d.md"


@given(ACTIONS)
@example([("create", A, A), ("move", A, B), ("delete", B, B), ("create", B, B)])
@example([("create", A, A), ("move", A, B), ("delete", B, B), ("undo", B, B)])
@example([("create", A, A), ("move", A, B), ("delete", B, B), ("create", A, A), ("undo", B, B), ("move", A, C)])
@example([("create", A, A), ("move", A, B), ("create", A, A), ("move", A, C), ("move", B, D)])
@example([("create", A, A), ("move", A, B), ("create", C, C), ("move", C, A), ("delete", A, A)])
@example([("create", A, A), ("move", A, B), ("create", A, A), ("delete", A, A), ("undo", A, A), ("move", A, C)])
def test_every_former_path_leads_to_who_lay_there_last(actions: list[tuple[str, str, str]]) -> None:
    model = Model()
    for action in actions:
        model.do(*action)
    whereabouts = Whereabouts(model.log, model.lie, lambda _sha: ())
    assert whereabouts.former == sorted(path for path in model.last if path not in model.lie)
    now = {note: path for path, note in model.lie.items()}
    for path in whereabouts.former:
        place = whereabouts.of(path)
        note = model.last[path]
        assert place is not None
        assert place.path == now.get(note)
        if note in model.deleted:
            assert place.version == model.deleted[note]
