"""Rendering in processes of its own: the same HTML as in this process, its limits, and what is kept of it."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

import pytest

from simplemem.web import rendering
from simplemem.web.render import render_note
from simplemem.web.render_worker import EXIT_OUT_OF_MEMORY, MAX_HTML_BYTES
from simplemem.web.rendering import Renderer

PROGRAM = sys.executable
SLOW = "![" * 190_000


def render(*texts: str) -> list[str]:
    """The HTML of these notes, one after the other by one renderer."""

    async def body() -> list[str]:
        renderer = Renderer()
        try:
            return [await renderer.render(text, "/v") for text in texts]
        finally:
            await renderer.close()

    return asyncio.run(body())


def test_a_worker_renders_as_this_process_does() -> None:
    texts = ["# A *note*\n\n[[b|c]] #tag", "half a pair: \ud800", "", "| a |\n|---|\n| b |"]
    expected = [render_note(text, "/v").encode("utf-8", "replace").decode() for text in texts]
    assert render(*texts) == expected


def test_a_note_beyond_the_limit_of_time_is_shown_as_written_and_others_are_rendered() -> None:
    slow, other = render("<b>" + SLOW, "*quick*")
    assert "too much time or space" in slow
    assert "&lt;b&gt;![![" in slow
    assert other == "<p><em>quick</em></p>\n"


def test_a_note_whose_html_would_be_too_large_is_shown_as_written() -> None:
    long_addresses = ("[[" + "🌱" * 200 + "]] ") * 1_900  # 12 characters of an address for each
    [html] = render(long_addresses)
    assert "too much time or space" in html
    assert "<a " not in html


def test_several_views_of_one_note_share_one_rendering(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What was rendered once is there without any process."""

    async def body() -> tuple[list[str], str, str]:
        first = Renderer()
        results = await asyncio.gather(*(first.render("*a*", "/v") for _ in range(20)))
        monkeypatch.setattr(sys, "executable", str(tmp_path / "no-such-program"))
        again = await first.render("*a*", "/v")
        without_process = await Renderer().render("*a*", "/v")
        await first.close()
        return results, again, without_process

    results, again, without_process = asyncio.run(body())
    assert {*results, again} == {"<p><em>a</em></p>\n"}
    assert "could not start" in without_process
    assert "*a*" in without_process


def use_worker(monkeypatch: pytest.MonkeyPatch, folder: Path, code: str) -> None:
    """Have workers run this code, in place of the worker of the program."""
    program = folder / "worker"
    program.write_text(f"#!{PROGRAM}\n{code}")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))


def worker_whose_renderer(does: str) -> str:
    """A worker of the program whose renderer does something else."""
    return (
        "from simplemem.web import render, render_worker\n"
        f"def render_note(text, prefix, context):\n    {does}\n"
        "render.render_note = render_note\nrender_worker.main()\n"
    )


ANSWER_ONCE = """
import struct, sys
def answer():
    length, = struct.unpack(">I", sys.stdin.buffer.read(4))
    sys.stdin.buffer.read(length)
    sys.stdout.buffer.write(struct.pack(">I", 9) + b"<p>ok</p>")
    sys.stdout.buffer.flush()
answer()
"""
FAILED = "The process that renders notes failed"
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="a script is no program on Windows")


@posix_only
@pytest.mark.parametrize(
    ("code", "logged"),
    [
        ("raise SystemExit(3)", "exit code 3"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "signal 9"),
        (worker_whose_renderer("raise RecursionError"), "exit code 1"),
        (
            f"import sys, struct\nsys.stdout.buffer.write(struct.pack('>I', {MAX_HTML_BYTES + 1}) + b'x' * 99)\n"
            "sys.stdout.flush()\ninput()",  # ended by itself, it would be logged with its exit code
            "answer",
        ),
        (
            "import sys\nsys.stdout.buffer.write(b'\\0\\0\\0\\2\\xff\\xff')\nsys.stdout.flush()\ninput()",
            "UTF-8",
        ),
    ],
)
def test_a_worker_that_fails_is_logged_and_its_note_is_rendered_later(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    code: str,
    logged: str,
) -> None:
    monkeypatch.setattr(rendering, "_RETRY_SECONDS", 0.0)
    use_worker(monkeypatch, tmp_path, code)

    async def body() -> tuple[str, str]:
        renderer = Renderer()
        failed = await renderer.render("*a*", "/v")
        monkeypatch.setattr(sys, "executable", PROGRAM)
        await asyncio.sleep(0.01)
        again = await renderer.render("*a*", "/v")
        await renderer.close()
        return failed, again

    with caplog.at_level(logging.ERROR, "simplemem.web"):
        failed, again = asyncio.run(body())
    assert FAILED in failed and "*a*" in failed
    assert again == "<p><em>a</em></p>\n"
    [record] = caplog.records
    assert logged in record.getMessage()


@posix_only
def test_a_crash_tells_where_it_happened_and_no_word_of_the_note(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    use_worker(monkeypatch, tmp_path, worker_whose_renderer("raise KeyError(text)"))
    [html] = render("secretword")
    assert FAILED in html
    printed = capfd.readouterr().err
    assert "KeyError" in printed and "worker:" in printed
    assert "secretword" not in printed


@posix_only
def test_a_worker_that_needs_too_much_memory_has_reached_a_limit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for code in (
        worker_whose_renderer("raise MemoryError"),
        f"raise SystemExit({EXIT_OUT_OF_MEMORY})",
    ):
        use_worker(monkeypatch, tmp_path, code)
        [html] = render("*a*")
        assert "too much time or space" in html
    assert not caplog.records


@posix_only
def test_a_note_is_rendered_by_a_new_worker_if_the_one_used_before_has_died(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use_worker(monkeypatch, tmp_path, ANSWER_ONCE + "sys.stdin.buffer.read(4)\nraise SystemExit(1)")
    assert render("a", "b", "c") == ["<p>ok</p>"] * 3


@posix_only
def test_what_a_library_prints_is_no_part_of_an_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use_worker(
        monkeypatch, tmp_path, worker_whose_renderer("print('noise', flush=True); return text")
    )
    assert render("<p>a</p>", "<p>b</p>") == ["<p>a</p>", "<p>b</p>"]


def test_no_module_of_the_current_folder_is_executed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "json.py").write_text("open('executed', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    for folder in (str(tmp_path), ".", ""):
        monkeypatch.setattr(sys, "path", [folder, *sys.path])
    assert render("*a*") == ["<p><em>a</em></p>\n"]
    assert not (tmp_path / "executed").exists()


def test_the_cache_is_limited_by_bytes_and_not_by_characters(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def body() -> list[str]:
        renderer = Renderer(max_cached_bytes=4000)
        texts = ["a" * 3000, "€" * 3000]
        for text in texts:
            await renderer.render(text, "/v")
        await renderer.close()
        monkeypatch.setattr(sys, "executable", str(tmp_path / "no-such-program"))
        return [await renderer.render(text, "/v") for text in texts[1:]]

    [wide] = asyncio.run(body())
    assert "could not start" in wide


def test_closing_ends_what_is_being_rendered() -> None:
    async def body() -> tuple[str, bool]:
        renderer = Renderer()
        view = asyncio.create_task(renderer.render(SLOW, "/v"))
        await asyncio.sleep(0.3)
        await renderer.close()
        left = [task for task in asyncio.all_tasks() if task not in (view, asyncio.current_task())]
        return await view, bool(left)

    html, has_tasks = asyncio.run(body())
    assert "shutting down" in html and "![![" in html
    assert not has_tasks
