"""Whether work grows with its text, or with its square: asked by doubling the text."""

from __future__ import annotations

import time
from collections.abc import Callable

NOTICEABLE = 0.03
"""Seconds of processor time under which nothing is concluded: what is that quick at this size does no harm."""

HOSTILE = [
    "[[", "[[a|", "[[a]", "![[", "[a](", "[a](<", "[a](b \"", "![", "<!--", "<a ", "<a b=\"", "</", "<?",
    "<![CDATA[", "`", "`a``", "$", "$$a", "#", "#a/", "# ", "##a\n", "> ", "- ", "1. ", "* * ", "_", "**a", "~",
    "==a", "|", "| a ", "|-:", "\\", "\\[", "&#1", "&a", "[^", "[^a]: ", "[a]: b '", "%%", "^a ", "a", "aA", "A",
    "1", "1.", "-", "--", ": ", "a: ", "{", "{a: ", "\"", "'", "\t", " ", "\n", " \n", "\r\n", "\r", "\u2028",
    "\u200b", "é", "é", "日", "。", "?!", "...", ".a", "://a@", "key-", "a_b.", "a/b", "/", "../", "tag:", "\"a ",
    "-\"", "[1]", " [", "last ", "2026-01-", "%2e", "\x00", "🧠",
]  # fmt: skip
"""Beginnings that are never ended, mostly. Each is repeated, and followed by what ends nothing."""


def cost(work: Callable[[str], object], text: str, tries: int) -> float:
    """Processor seconds, the least of some tries: noise only ever adds."""
    found = float("inf")
    for _ in range(tries):
        began = time.process_time()
        work(text)
        found = min(found, time.process_time() - began)
    return found


def grows_too_fast(work: Callable[[str], object], piece: str, size: int) -> str:
    """Nothing when doubling the text makes at most three times the work, from short texts to `size`; else what was
    seen. It begins small, so that work which explodes is seen before it takes for ever, and goes in strides of four:
    what is quick at one length was quick at its half, and only where it is not are the doublings up to there
    compared."""
    for length in lengths(size):
        if cost(work, repeated(piece, length), 1) <= NOTICEABLE:
            continue
        for at in (length // 2, length):
            text, half = repeated(piece, at), repeated(piece, at // 2)
            if cost(work, text, 1) > max(3 * cost(work, half, 1), NOTICEABLE):
                before, now = cost(work, half, 5), cost(work, text, 5)
                if now > max(3 * before, NOTICEABLE):
                    return (
                        f"{now / before:.1f} times the work for twice {piece!r} ({at} characters)"
                    )
    return ""


def lengths(size: int) -> list[int]:
    """From some hundred to `size`, each four times the one before."""
    return [size] if size < 1000 else [*lengths(size // 4), size]


def repeated(piece: str, length: int) -> str:
    return piece * (length // len(piece)) + "!"
