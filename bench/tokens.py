"""Count the tokens of the lists of tools, which a client sends to its model with every request.

    python bench/tokens.py               each profile
    python bench/tokens.py default hmlr  only these

"to the model" counts names, descriptions and input schemas, as most clients pass them on. "as
listed" counts all that `tools/list` answers: titles, annotations and output schemas too.
"instructions" are sent once per connection. Tokens are those of
`simplemem.note.words.count_tokens`, an estimate.
"""

from __future__ import annotations

import json
import sys
from typing import Final

from simplemem.note.words import count_tokens
from simplemem.profiles.profile import Profile
from simplemem.profiles.registry import built_in_profiles, choose_tools

SENT_TO_MODELS: Final = ("name", "description", "inputSchema")


def tokens(value: object) -> int:
    """Return the tokens of a value as compact JSON."""
    return count_tokens(json.dumps(value, separators=(",", ":"), ensure_ascii=False))


def measure(profile: Profile) -> dict[str, int]:
    """Return the figures of one profile by the headings of their columns."""
    listed = [tool.listing() for tool in choose_tools(profile)]
    sent = [{key: tool[key] for key in SENT_TO_MODELS} for tool in listed]
    return {
        "tools": len(listed),
        "to the model": tokens(sent),
        "as listed": tokens(listed),
        "instructions": count_tokens(profile.instructions),
    }


def main(names: list[str]) -> int:
    """Print a row for each profile that is named, or for all. Return the exit code."""
    profiles = built_in_profiles()
    for name in names:
        if name not in profiles:
            known_names = ", ".join(profiles)
            print(f"no profile {name!r}; the profiles are {known_names}", file=sys.stderr)
            return 2

    figures = {name: measure(profiles[name]) for name in names or profiles}
    headings = list(next(iter(figures.values())))
    print("  ".join([f"{'profile':18}", *headings]))
    for name, row in figures.items():
        cells = [f"{row[heading]:>{len(heading)},}" for heading in headings]
        print("  ".join([f"{name:18}", *cells]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
