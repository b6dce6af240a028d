"""The questions that features ask a language model: instructions, and the shape of the answer."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

_FILE: Final = "questions.toml"


def load_questions(module_file: str) -> dict[str, Any]:
    """Return the questions of a feature, by name, from the `questions.toml` beside a module.

    `module_file` is the `__file__` of the module that asks.
    """
    text = Path(module_file).with_name(_FILE).read_text(encoding="utf-8")
    return tomllib.loads(text)
