"""What the documentation says the program prints is what it prints."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
import typer.main

from simplemem.cli.app import app

DOCS = Path(__file__).resolve().parent.parent / "docs"


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


def test_the_page_of_the_command_line_is_what_the_program_prints(generate: ModuleType) -> None:
    assert (DOCS / "command-line.md").read_text(encoding="utf-8") == generate.page()


def test_the_page_shows_every_command(generate: ModuleType) -> None:
    assert sorted(generate.COMMANDS) == sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
