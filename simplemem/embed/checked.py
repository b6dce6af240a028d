"""What a model gave, checked and made small: floating numbers become int8, and what is no vector never passes."""

from __future__ import annotations

from typing import Any

from simplemem.errors import Unavailable
from simplemem.remote.failures import Refused


def int8_vectors(rows: Any, count: int, dimension: int | None, name: str) -> list[bytes]:
    """One vector for each of `count` texts, each as wide as `dimension` if that is known, scaled to its own largest
    number. One text with a bad vector is refused; an answer that is wrong as a whole is a failure of the service."""
    import numpy as np

    if not hasattr(rows, "__len__"):
        raise Unavailable(f"{name} gave no vectors")
    if len(rows) != count:
        raise Unavailable(f"{name} gave {_counted(len(rows), 'vector')} for {_counted(count, 'text')}")
    widths = {len(row) if hasattr(row, "__len__") and not isinstance(row, (str, dict)) else 0 for row in rows}
    wanted = dimension or max(widths, default=0)
    if widths - {wanted} or not wanted:
        wrong = min(widths - {wanted} or widths)
        raise Unavailable(
            f"{name} gave a vector of {wrong} dimensions where {wanted or 'some'} were expected",
            hint="Another model may answer now. If that is meant, give it its own name in embed.model, or delete the file "
            "vectors.db beside the index.",
        )
    try:
        numbers = np.asarray(rows, np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        raise Unavailable(f"{name} gave vectors that are not of numbers") from error
    if numbers.ndim != 2:
        raise Unavailable(f"{name} gave vectors that are not of numbers")
    largest = np.abs(numbers).max(axis=1, keepdims=True)  # NaN and infinity stay what they are
    good = np.isfinite(largest[:, 0]) & (largest[:, 0] > 0)
    if not good.all():
        kind = Unavailable if count > 1 and not good.any() else Refused
        what = "of zeros alone" if np.isfinite(largest[~good]).all() else "with NaN or infinity in it"
        raise kind(f"{name} gave a vector {what} for {_counted(int((~good).sum()), 'text')} of {count}")
    return [row.tobytes() for row in np.rint(numbers / largest * 127).astype(np.int8)]


def _counted(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count} {what}s"
