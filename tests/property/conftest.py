"""How long to look for a counterexample. `--hypothesis-profile soak` looks ten times as long as every test run does."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("soak", max_examples=10 * settings.default.max_examples)
