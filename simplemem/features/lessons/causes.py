"""Chains of cause and fix: what caused a lesson, what that led to, and what fixed it.

A chain follows the relations between lessons, in both directions. Pure.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from simplemem.features.lessons.description import RelationsByPath
from simplemem.features.lessons.lesson import Lesson

CAUSED_BY: Final = "caused_by"
FIXED_BY: Final = "fixed_by"

_CAUSES: Final = frozenset("causes caused leads_to led_to triggers triggered".split())
_CAUSED_BY: Final = frozenset("caused_by because_of due_to triggered_by results_from".split())
_FIXES: Final = frozenset("fixes fixed solves solved resolves resolved mitigates".split())
_FIXED_BY: Final = frozenset("fixed_by solved_by resolved_by mitigated_by".split())

LessonsByPath = defaultdict[str, list[Lesson]]
"""Lessons that a lesson leads to, by the path of its note."""

Role = Literal["cause", "entry", "effect", "fix"]


class ChainStep(NamedTuple):
    """A lesson of a chain."""

    lesson: Lesson
    role: Role  # a cause, direct or not; the lesson asked for; an effect; or a fix of one of these
    of: Lesson | None  # the lesson of which it is the direct cause, effect or fix
    distance: int  # how many relations lead from the lesson asked for to it


class _Links(NamedTuple):
    """The causal relations of some lessons, by path."""

    causes: LessonsByPath
    effects: LessonsByPath
    fixes: LessonsByPath

    def add_cause(self, cause: Lesson, effect: Lesson) -> None:
        """Add a relation of cause and effect."""
        self.causes[effect.path].append(cause)
        self.effects[cause.path].append(effect)


def trace_causes(
    lesson: Lesson, lessons: Sequence[Lesson], relations: RelationsByPath, max_steps: int
) -> list[ChainStep]:
    """Return the chain of a lesson: its causes, the farthest first, then itself and its effects.

    The fixes of each follow it. A lesson is only once in the chain. If it is a fix itself, the
    chain is that of what it fixes. Up to `max_steps` relations are followed in each direction.
    """
    links = _read_links(lessons, relations)
    fixed = [other for other in lessons if lesson in links.fixes.get(other.path, ())]
    starts = fixed or [lesson]

    steps: list[ChainStep] = []
    visited = {start.path for start in starts}
    for start in starts:
        causes = _follow(start, links.causes, "cause", max_steps, visited)
        effects = _follow(start, links.effects, "effect", max_steps, visited)
        steps += [*reversed(causes), ChainStep(start, "entry", None, 0), *effects]
    return _with_fixes(steps, links)


def _read_links(lessons: Sequence[Lesson], relations: RelationsByPath) -> _Links:
    """Return the causal relations of lessons, each in the direction that is followed."""
    links = _Links(LessonsByPath(list), LessonsByPath(list), LessonsByPath(list))
    for lesson in lessons:
        for relation in relations.get(lesson.path, ()):
            key = relation.type.casefold().replace(" ", "_").replace("-", "_")
            target = relation.target
            if key in _CAUSES:
                links.add_cause(lesson, target)
            elif key in _CAUSED_BY:
                links.add_cause(target, lesson)
            elif key in _FIXES:
                links.fixes[target.path].append(lesson)
            elif key in _FIXED_BY:
                links.fixes[lesson.path].append(target)
    return links


def _follow(
    start: Lesson,
    links: LessonsByPath,
    role: Role,
    max_steps: int,
    visited: set[str],
) -> list[ChainStep]:
    """Return the lessons that links lead to from a lesson, the nearest first.

    Lessons in `visited` are left out, and those that are returned are added to it.
    """
    steps: list[ChainStep] = []
    waiting = deque([(start, 0)])
    while waiting:
        lesson, distance = waiting.popleft()
        if distance == max_steps:
            continue
        for target in links.get(lesson.path, ()):
            if target.path not in visited:
                visited.add(target.path)
                steps.append(ChainStep(target, role, lesson, distance + 1))
                waiting.append((target, distance + 1))
    return steps


def _with_fixes(steps: Sequence[ChainStep], links: _Links) -> list[ChainStep]:
    """Return the steps of a chain, each followed by the fixes of its lesson."""
    visited = {step.lesson.path for step in steps}
    chain: list[ChainStep] = []
    for step in steps:
        chain.append(step)
        for fix in links.fixes.get(step.lesson.path, ()):
            if fix.path not in visited:
                visited.add(fix.path)
                chain.append(ChainStep(fix, "fix", step.lesson, step.distance + 1))
    return chain
