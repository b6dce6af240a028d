"""Where each node stands: neighbours near each other, everything else apart (after Fruchterman and Reingold). Pure.

All nodes push each other away and edges pull. In a large graph the push is that of a grid's cells, by a convolution, and
of the nearest nodes alone in full; so it takes seconds for tens of thousands of nodes. The same graph is laid out alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from simplemem.kinds.picture.drawing import Drawing

SPACING: Final = 40.0  # units between neighbours
_EXACT: Final = 200  # so many nodes are compared each with each
_GRID: Final = 128
_NEAREST: Final = 10
_GRAVITY: Final = 0.5


def places_of(drawing: Drawing) -> list[tuple[float, float]]:
    """A place for every node, about the middle, to a tenth of a unit."""
    return layout(len(drawing.nodes), [(edge.source, edge.target) for edge in drawing.edges])


def layout(count: int, edges: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
    """A place for each of so many nodes."""
    if count == 0:
        return []
    import numpy as np

    pairs = {(min(a, b), max(a, b)) for a, b in edges if a != b}
    ends = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    degree = np.bincount(ends.ravel(), minlength=count).astype(np.float64)
    tied = np.flatnonzero(degree)
    at = np.zeros((count, 2))
    at[tied] = _laid_out(np, np.searchsorted(tied, ends), degree[tied])
    at[degree == 0] = _around(np, at[tied], count - len(tied))
    at -= (at.min(axis=0) + at.max(axis=0)) / 2
    return [(round(x, 1) + 0.0, round(y, 1) + 0.0) for x, y in (at * SPACING).tolist()]


def _laid_out(np: Any, ends: Any, degree: Any) -> Any:
    """Places of nodes that are all tied to some other."""
    count = len(degree)
    at = _begin(np, count, ends, degree)
    rounds = 300 if count <= _EXACT else 160
    push = _push_of_each if count <= _EXACT else _Grid(np).push
    mass = 1.0 + 0.3 * np.minimum(degree, 30.0)
    spread = 1.0 / np.sqrt(np.minimum(degree[ends[:, 0]], degree[ends[:, 1]]))  # what ties many ties each less closely
    heat = 0.1 * count**0.5 + 0.5
    for round_ in range(rounds):
        force = push(np, at, mass) * mass[:, None]
        force += _pull(np, at, ends, spread)
        force -= at * _GRAVITY * mass[:, None]  # parts that nothing ties together must not drift away
        length = np.hypot(force[:, 0], force[:, 1])[:, None]
        at = at + force / np.maximum(length, 1e-9) * np.minimum(length, heat * (1.0 - round_ / rounds) ** 1.5 + 0.01)
    return at


def _around(np: Any, inside: Any, count: int) -> Any:
    """Places for nodes that are tied to nothing: in rings about all the others."""
    middle = (inside.min(axis=0) + inside.max(axis=0)) / 2 if len(inside) else np.zeros(2)
    within = float(np.hypot(*(inside - middle).T).max()) + 2.0 if len(inside) else 0.0
    turn = np.arange(count) * math.pi * (3 - math.sqrt(5))
    far = np.sqrt(within**2 + 0.9 * (np.arange(count) + 0.5))
    return np.stack([np.cos(turn) * far, np.sin(turn) * far], axis=1) + middle


def _begin(np: Any, count: int, ends: Any, degree: Any) -> Any:
    """Places to begin with: at random, then each between its neighbours for a while, so that what belongs together is
    together before anything pushes."""
    chance = np.random.default_rng(1)
    at = chance.standard_normal((count, 2))
    for _ in range(60 if count > 2 else 0):
        mean = _sum_at(np, ends[:, 0], at[ends[:, 1]], count) + _sum_at(np, ends[:, 1], at[ends[:, 0]], count)
        at = 0.5 * at + 0.5 * mean / degree[:, None]
        at -= at.mean(axis=0)
        at /= np.maximum(at.std(axis=0), 1e-9)
    return at * (0.5 * count**0.5) + chance.standard_normal((count, 2)) * 0.3


def _sum_at(np: Any, where: Any, vectors: Any, count: int) -> Any:
    return np.stack([np.bincount(where, weights=vectors[:, k], minlength=count) for k in (0, 1)], axis=1)


def _pull(np: Any, at: Any, ends: Any, weight: Any) -> Any:
    away = (at[ends[:, 1]] - at[ends[:, 0]]) * weight[:, None]
    return _sum_at(np, ends[:, 0], away, len(at)) - _sum_at(np, ends[:, 1], away, len(at))


def _push_of_each(_: Any, at: Any, mass: Any) -> Any:
    away = at[:, None, :] - at[None, :, :]
    weight = mass[None, :] / ((away**2).sum(axis=2) + 1e-3)
    return (away * weight[:, :, None]).sum(axis=1)


class _Grid:
    """The push of many nodes at once: their weights laid on a grid, convolved with the push of one."""

    def __init__(self, np: Any) -> None:
        steps = np.fft.fftfreq(2 * _GRID, 1 / (2 * _GRID))
        x, y = np.meshgrid(steps, steps, indexing="ij")
        square = x**2 + y**2
        square[0, 0] = 1.0
        self._kernel = [np.fft.rfft2(x / square), np.fft.rfft2(y / square)]

    def push(self, np: Any, at: Any, mass: Any) -> Any:
        low = at.min(axis=0)
        cell = float((at.max(axis=0) - low).max()) / (_GRID - 2) + 1e-9
        spot = (at - low) / cell
        corner = np.floor(spot).astype(np.int64)
        part = spot - corner
        size = 2 * _GRID
        corners = []  # each node lies between four corners of the grid, and has a share in each
        for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
            share = (part[:, 0] if i else 1 - part[:, 0]) * (part[:, 1] if j else 1 - part[:, 1])
            corners.append(((corner[:, 0] + i) * size + corner[:, 1] + j, share))
        weights = np.zeros(size * size)
        for where, share in corners:
            weights += np.bincount(where, weights=share * mass, minlength=size * size)
        spectrum = np.fft.rfft2(weights.reshape(size, size))
        field = [np.fft.irfft2(spectrum * kernel, s=(size, size)).ravel() for kernel in self._kernel]
        force = np.stack([sum(part[where] * share for where, share in corners) for part in field], axis=1) / cell
        return force + self._near(np, at, spot, cell)

    def _near(self, np: Any, at: Any, spot: Any, cell: float) -> Any:
        """What the grid is too coarse for: the push of those that lie next to a node, in columns and in rows."""
        force = np.zeros_like(at)
        reach = max(1.0, cell)
        for first, second in ((0, 1), (1, 0)):
            order = np.lexsort((spot[:, second], np.floor(spot[:, first])))
            for step in range(1, _NEAREST):
                one, other = order[:-step], order[step:]
                away = at[one] - at[other]
                square = (away**2).sum(axis=1) + 1e-3
                away *= np.where(square < reach * reach, 1.0 / square - 1.0 / (reach * reach), 0.0)[:, None]
                np.add.at(force, one, away)
                np.subtract.at(force, other, away)
        return force
