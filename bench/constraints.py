"""How many constraints and preferences the rules recognise in natural messages.

    python bench/constraints.py [--material tests/data/natural/development] [--misses]

Each message of `constraints.json` is stored in a vault of its own, through the service of
conversations. It is recognised if the profile then has a constraint or preference. It is wrong if
that is so for an item that is neither. `--misses` also prints the messages that are not recognised.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from simplemem.features.conversations.exchange import new_exchange
from simplemem.features.conversations.profile import Profile
from simplemem.features.conversations.service import conversation_service
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore


def store_alone(text: str, date: str) -> Profile:
    """Return the profile of a vault in which only this message is stored, at this time."""
    with (
        tempfile.TemporaryDirectory() as folder,
        EnhancedStore(Path(folder), Settings()) as store,
    ):
        service = conversation_service(store)
        service.record(new_exchange(text, timestamp=date))
        profiles = service.items(Profile)
        return profiles[0] if profiles else Profile(path="")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--material", type=Path, default=Path("tests/data/natural/development"))
    parser.add_argument("--misses", action="store_true")
    args = parser.parse_args()

    items = _read_items(args.material / "constraints.json")
    gold = {row["id"]: row for row in _read_items(args.material / "constraints.gold.json")}
    recognised = []
    missed = []
    wrong = []
    for item in items:
        profile = store_alone(item["text"], item["date"])
        is_stored = bool(profile.constraints or profile.preferences)
        is_rule = gold[item["id"]]["kind"] != "neither"
        if is_rule:
            (recognised if is_stored else missed).append(item)
        elif is_stored:
            wrong.append(item)

    rules = len(recognised) + len(missed)
    print(f"recognised: {len(recognised)} of {rules} ({len(recognised) / rules:.2f})")
    print(f"wrong: {len(wrong)} of {len(items) - rules}")
    for item in wrong:
        print(f"  wrong: {item['id']} {item['text']}")
    for item in missed if args.misses else []:
        print(f"  missed: {item['id']} {item['text']}")


def _read_items(path: Path) -> list[dict[str, Any]]:
    """Return the items of a file of the material."""
    items: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["items"]
    return items


if __name__ == "__main__":
    main()
