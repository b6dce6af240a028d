"""How many examples to try: `--hypothesis-profile soak` tries ten times as many as a test run."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("soak", max_examples=10 * settings.default.max_examples)
