"""Mending: all that is sure as one change of many notes, shown before it is written, which one undo takes back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from simplemem.errors import SimplememError
from simplemem.index.links import named_in_memory
from simplemem.index.reconcile import Progress
from simplemem.memory import Finding, Mend, Mended
from simplemem.note.diff import unified_diff
from simplemem.note.names import name_of
from simplemem.note.note import Note, read_note
from simplemem.store.core import Core
from simplemem.store.doctor.case import Discard, MakeIndexAnew, Noticed, Point, Remedy
from simplemem.vault.links import resolve
from simplemem.vault.rewrite import Aim, lead_links
from simplemem.vault.vault import Change, Wish


@dataclass(frozen=True, slots=True)
class Mending:
    """Everything that was found, and what of it can be mended: the changes as a person reads them, and as wishes; and what
    is left then. Where the index is to be made anew, no note is touched for that."""

    findings: tuple[Finding, ...]
    left: tuple[Finding, ...]
    changes: tuple[Mend, ...]
    wishes: tuple[Wish, ...]
    makes_index_anew: bool
    unmended: tuple[str, ...] = ()  # what cannot be mended after all, and why

    @property
    def is_empty(self) -> bool:
        return not self.wishes and not self.makes_index_anew


@dataclass(slots=True)
class _Mended:
    """One file as it is, and as it shall be."""

    path: str
    sha256: str
    data: bytes
    wanted: bytes
    gone: bool = False
    what: list[str] = field(default_factory=list)

    @property
    def note(self) -> Note:
        return read_note(self.wanted)


class _Plan:
    """All files that change, each read once."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._files: dict[str, _Mended] = {}
        self._named = named_in_memory(core.index.files())
        self.unmended: list[str] = []

    def changed(self) -> list[_Mended]:
        changed = [each for each in self._files.values() if each.gone or each.wanted != each.data]
        return sorted(changed, key=lambda each: each.path)

    def apply(self, path: str, remedies: Sequence[Remedy]) -> list[Remedy]:
        """What remedies of one kind do to one file; those that came to nothing. ReadOnly where the rules forbid it."""
        self._core.vault.access.check(path, asked=True)
        if path not in self._files:
            file = self._core.vault.read(path)
            self._files[path] = _Mended(path, file.sha256, file.data, file.data)
        mended, first = self._files[path], remedies[0]
        if isinstance(first, Discard):
            self._core.vault.access.check_gone(path)
            mended.gone, mended.wanted = True, mended.data
            mended.what = [f"goes to the trash: {first.why}"]
        else:
            return self._lead(mended, [each for each in remedies if isinstance(each, Point)])
        return []

    def _lead(self, mended: _Mended, points: Sequence[Point]) -> list[Remedy]:
        source, note = mended.path, mended.note
        note.must_be_editable(source)
        aims = {point.target: Aim(point.path, point.was) for point in points}
        mended.wanted = lead_links(note, source, aims, self._named, self._core.conventions.link_format).encode()
        nowhere = {link.target for link in mended.note.links if resolve(link.target, source, self._named).path is None}
        mended.what += [f"[[{t}]] leads to {name_of(aim.path)}" for t, aim in aims.items() if t not in nowhere]
        if stubborn := nowhere & aims.keys():
            targets = ", ".join(sorted(stubborn))
            self.unmended.append(f"{source}: [[{targets}]] can be written in no way that leads there")
        return [point for point in points if point.target in nowhere]


_ORDER = (Point, Discard)


def plan(core: Core, noticed: Sequence[Noticed]) -> Mending:
    """One change of all that can be mended in what was noticed. Writes nothing."""
    drafted = _Plan(core)
    groups: dict[tuple[int, str], list[tuple[Finding, Remedy]]] = {}
    for each in noticed:
        if isinstance(each.remedy, _ORDER):
            key = (_ORDER.index(type(each.remedy)), each.remedy.source)
            groups.setdefault(key, []).append((each.finding, each.remedy))
    left = {each.finding for each in noticed if each.remedy is None}
    for (_, path), group in sorted(groups.items(), key=lambda item: item[0]):
        remedies = [remedy for _, remedy in group]
        try:
            failed = drafted.apply(path, remedies)
        except SimplememError as error:
            drafted.unmended.append(error.message)
            failed = remedies
        left |= {finding for finding, remedy in group if remedy in failed}
    changed = drafted.changed()
    return Mending(
        tuple(each.finding for each in noticed),
        tuple(each.finding for each in noticed if each.finding in left),
        tuple(map(_shown, changed)),
        tuple(map(_wish, changed)),
        any(isinstance(each.remedy, MakeIndexAnew) for each in noticed),
        tuple(drafted.unmended),
    )


def _shown(mended: _Mended) -> Mend:
    diff = unified_diff(mended.data, mended.wanted, (mended.path, mended.path), most=None)
    return Mend(mended.path, "", tuple(dict.fromkeys(mended.what)), diff, mended.gone)


def _wish(mended: _Mended) -> Wish:
    if mended.gone:
        return Wish("delete", mended.path, before=mended.sha256, gone=True)
    return Wish("update", mended.path, before=mended.sha256, data=mended.wanted)


def mend(core: Core, mending: Mending, change: Change, progress: Progress | None) -> Mended:
    """Do what was planned. Conflict, and nothing is done, when one of the notes has changed since."""
    version, changed, warnings = "", [], list(mending.unmended)
    if mending.wishes:
        core.must_be_writable()
        paths = {wish.path for wish in mending.wishes}
        with core.vault.lock():
            written = core.vault.carry_out(mending.wishes, change)
            version, changed = written[0].version, [each.path for each in written]
            warnings += core.indexed(paths, lambda: core.look_at(paths))
            core.fill_soon()
    anew = mending.makes_index_anew
    if anew and (why_not := _too_much_to_send(core)):
        anew = False
        warnings.append(why_not)
    if anew:
        report = core.sync(progress, embed=True, rebuild=True, believe=False, begin=False)
        warnings += [report.trouble] if report.trouble else []
    return Mended(version, tuple(changed), anew, tuple(warnings))


def _too_much_to_send(core: Core) -> str:
    """Why the index is not made anew unasked: an embedder elsewhere would have to be given too much."""
    if not core.embedding.is_remote:
        return ""
    wanted = core.embedding.estimate(anew=True)
    if wanted.tokens <= core.settings.embed.max_tokens_unasked:
        return ""
    return (
        f"the index was left as it is: making it anew would send {wanted.tokens:,} tokens to {wanted.embedder}; "
        "`simplemem index --rebuild` does it, and asks before"
    )


def reason_of(mending: Mending) -> str:
    """What the history says of why: the checks, and how much of each was mended."""
    left = set(mending.left)
    counted = Counter(finding.check for finding in mending.findings if finding not in left)
    return "mended: " + ", ".join(f"{check} {number}" for check, number in counted.items())
