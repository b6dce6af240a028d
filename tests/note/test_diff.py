"""One differ, bounded whatever the texts."""

from __future__ import annotations

from simplemem.note.diff import WHAT_YOU_HAD, WHAT_YOU_WANT, unified_diff


def test_it_is_bounded_whatever_the_texts() -> None:
    texts = [
        b"",
        b"x" * 150_000,
        b"\n" * 150_000,
        b"a\nb\n" * 40_000,
        b"b\na\n" * 40_000,
        b"\xff\xfe\x00" * 1000,
        "\u2028\u0085".encode() * 5000,
        b"".join(b"%d\n" % (k * 7919 % 1000) for k in range(20_000)),
    ]
    for one in texts:
        for other in texts:
            assert len(unified_diff(one, other, WHAT_YOU_HAD)) <= 4100
    assert (
        unified_diff(None, b"x", WHAT_YOU_WANT)
        == unified_diff(b"x" * 300_000, b"y", WHAT_YOU_HAD)
        == ""
    )


def test_equal_texts_differ_in_nothing_and_a_last_line_without_newline_is_seen() -> None:
    assert unified_diff(b"a\nb", b"a\nb", WHAT_YOU_HAD) == ""
    assert "-b" in unified_diff(b"a\nb\n", b"a\nc\n", WHAT_YOU_HAD)
    assert unified_diff(b"a\n", b"a", WHAT_YOU_HAD) != ""
