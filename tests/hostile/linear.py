"""Whether the time of a function grows linearly with its text, measured by doubling the text."""

from __future__ import annotations

import time
from collections.abc import Callable

# CPU seconds. Shorter times are not compared: at this size they do no harm.
NOTICEABLE = 0.03

# Mostly beginnings without an end. Each is repeated, and followed by a character that ends none.
HOSTILE = [
    "[[", "[[a|", "[[a]", "![[", "[a](", "[a](<", "[a](b \"", "![", "<!--", "<a ", "<a b=\"", "</", "<?",
    "<![CDATA[", "`", "`a``", "$", "$$a", "#", "#a/", "# ", "##a\n", "> ", "- ", "1. ", "* * ", "_", "**a", "~",
    "==a", "|", "| a ", "|-:", "\\", "\\[", "&#1", "&a", "[^", "[^a]: ", "[a]: b '", "%%", "^a ", "a", "aA", "A",
    "1", "1.", "-", "--", ": ", "a: ", "{", "{a: ", "\"", "'", "\t", " ", "\n", " \n", "\r\n", "\r", "\u2028",
    "\u200b", "é", "é", "日", "。", "?!", "...", ".a", "://a@", "key-", "a_b.", "a/b", "/", "../", "tag:", "\"a ",
    "-\"", "[1]", " [", "last ", "2026-01-", "%2e", "\x00", "🧠",
]  # fmt: skip


def cost(work: Callable[[str], object], text: str, tries: int) -> float:
    """Return the CPU seconds of a function, the least of some tries: noise only adds time."""
    least = float("inf")
    for _ in range(tries):
        start = time.process_time()
        work(text)
        least = min(least, time.process_time() - start)
    return least


def grows_too_fast(work: Callable[[str], object], piece: str, size: int) -> str:
    """Return "" if twice the text takes at most three times the time, up to a size.

    Otherwise, return the measurement. The lengths begin small, so that an exponential function is
    found before it takes too long. Each is four times the last one: what is fast at a length is
    fast at its half, and only slow lengths are compared with their halves.
    """
    for length in lengths(size):
        if cost(work, repeated(piece, length), 1) <= NOTICEABLE:
            continue
        for compared_length in (length // 2, length):
            text = repeated(piece, compared_length)
            half = repeated(piece, compared_length // 2)
            if cost(work, text, 1) <= max(3 * cost(work, half, 1), NOTICEABLE):
                continue
            # The first measurements may be noise: repeat them.
            half_cost = cost(work, half, 5)
            text_cost = cost(work, text, 5)
            if text_cost > max(3 * half_cost, NOTICEABLE):
                factor = f"{text_cost / half_cost:.1f} times the work"
                return f"{factor} for twice {piece!r} ({compared_length} characters)"
    return ""


def lengths(size: int) -> list[int]:
    """Return lengths from a few hundred to `size`, each four times the last one."""
    return [size] if size < 1000 else [*lengths(size // 4), size]


def repeated(piece: str, length: int) -> str:
    """Return a text of about this length that repeats a piece and ends differently."""
    return piece * (length // len(piece)) + "!"
