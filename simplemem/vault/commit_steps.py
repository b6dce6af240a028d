"""What changes of ours did to notes, as steps that a commit is made of. Paths are the repository's."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from simplemem.vault.log import Version
from simplemem.vault.repository import Repository


@dataclass(frozen=True, slots=True)
class Step:
    """What one change did to one note, or several changes one after the other. Paths are the repository's."""

    path: str
    target: str
    before: str | None
    afters: tuple[str | None, ...]
    versions: tuple[Version, ...]

    @property
    def version(self) -> Version:
        return self.versions[-1]

    def touches(self, paths: Collection[str]) -> bool:
        return self.path in paths or self.target in paths

    def is_of(self, groups: Collection[str]) -> bool:
        return any(version.group in groups for version in self.versions)


def joined(versions: Sequence[Version], repository: Repository) -> list[Step]:
    """Changes as steps, in their order. Changes of a note that follow each other without a gap are one."""
    steps: list[Step] = []
    latest: dict[str, int] = {}
    for version in versions:
        if version.op == "recovered":
            continue
        path = repository.path(version.path)
        target = repository.path(version.new_path or version.path)
        before = latest.get(path)
        known = steps[before] if before is not None else None
        if before is not None and known and path == target == known.target and known.afters[-1] == version.before:
            steps[before] = replace(known, afters=(*known.afters, version.after), versions=(*known.versions, version))
            continue
        latest[path] = latest[target] = len(steps)
        steps.append(Step(path, target, version.before, (version.after,), (version,)))
    return steps


def hold_back(steps: Sequence[Step], staged: set[str]) -> tuple[tuple[str, ...], list[Step]]:
    """The groups that must wait because of what is staged, all of each, and the steps that need not."""
    blocked, held = set(staged), set[str]()
    while True:
        more = {v.group for s in steps if s.touches(blocked) or s.is_of(held) for v in s.versions} - held
        if not more:
            return tuple(sorted(held)), [s for s in steps if not s.is_of(held)]
        held |= more
        blocked |= {path for s in steps if s.is_of(held) for path in (s.path, s.target)}


def without(step: Step, unwanted: set[str]) -> list[Step]:
    """A step without the paths that git is not to have: a move out of sight is a delete, one into sight a creation."""
    if step.path not in unwanted and step.target not in unwanted:
        return [step]
    if step.path == step.target or {step.path, step.target} <= unwanted:
        return []
    if step.target in unwanted:
        return [replace(step, target=step.path, afters=(None,))]
    return [replace(step, path=step.target, before=None)]
