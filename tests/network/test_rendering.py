"""Rendering in processes of its own: the same HTML as in this process, its limits, and what is kept of it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from simplemem.network.render import rendered
from simplemem.network.rendering import Renderer

SLOW = "![" * 190_000


def render(*texts: str) -> list[str]:
    """The HTML of these notes, one after the other by one renderer."""

    async def body() -> list[str]:
        renderer = Renderer()
        try:
            return [await renderer.html(text, "/v") for text in texts]
        finally:
            await renderer.close()

    return asyncio.run(body())


def test_a_worker_renders_as_this_process_does() -> None:
    texts = ["# A *note*\n\n[[b|c]] #tag", "half a pair: \ud800", "", "| a |\n|---|\n| b |"]
    expected = [rendered(text, "/v").encode("utf-8", "replace").decode() for text in texts]
    assert render(*texts) == expected


def test_a_note_beyond_the_limit_of_time_is_shown_as_written_and_others_are_rendered() -> None:
    slow, other = render("<b>" + SLOW, "*quick*")
    assert "too much time or space" in slow
    assert "&lt;b&gt;![![" in slow
    assert other == "<p><em>quick</em></p>\n"


def test_a_note_whose_html_would_be_too_large_is_shown_as_written() -> None:
    many_cells = "|" + "a|" * 300 + "\n|" + "-|" * 300 + "\n" + "|b\n" * 100_000
    [html] = render(many_cells)
    assert "too much time or space" in html
    assert "<td>" not in html


def test_several_views_of_one_note_share_one_rendering(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What was rendered once is there without any process."""

    async def body() -> tuple[list[str], str, str]:
        first = Renderer()
        together = await asyncio.gather(*(first.html("*a*", "/v") for _ in range(20)))
        monkeypatch.setattr(sys, "executable", str(tmp_path / "no-such-program"))
        again = await first.html("*a*", "/v")
        without_process = await Renderer().html("*a*", "/v")
        await first.close()
        return together, again, without_process

    together, again, without_process = asyncio.run(body())
    assert {*together, again} == {"<p><em>a</em></p>\n"}
    assert "could not start" in without_process
    assert "*a*" in without_process
