"""How many constraints and preferences the rules recognise in natural messages.

    python bench/constraints.py [--material tests/data/natural/development] [--misses]

Each message of `constraints.json` is stored in a vault of its own, through the service of
conversations. It is recognised if the profile then has a constraint or preference. It is wrong if
that is so for an item that is neither. `--misses` also prints the messages that are not recognised.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.natural_material import ConstraintItem, read_folder
from simplemem.features.conversations.exchange import new_exchange
from simplemem.features.conversations.profile import Profile
from simplemem.features.conversations.service import conversation_service
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore


def store_alone(item: ConstraintItem) -> Profile:
    """Return the profile of a vault in which only this message is stored, at its time."""
    with (
        tempfile.TemporaryDirectory() as folder,
        EnhancedStore(Path(folder), Settings()) as store,
    ):
        service = conversation_service(store)
        service.record(new_exchange(item.text, timestamp=item.at.isoformat()))
        profiles = service.items(Profile)
        return profiles[0] if profiles else Profile(path="")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--material", type=Path, default=Path("tests/data/natural/development"))
    parser.add_argument("--misses", action="store_true")
    args = parser.parse_args()

    items = read_folder(args.material).constraints
    recognised = []
    missed = []
    wrong = []
    for item in items:
        profile = store_alone(item)
        is_stored = bool(profile.constraints or profile.preferences)
        is_rule = item.kind != "neither"
        if is_rule:
            (recognised if is_stored else missed).append(item)
        elif is_stored:
            wrong.append(item)

    rules = len(recognised) + len(missed)
    print(f"recognised: {len(recognised)} of {rules} ({len(recognised) / rules:.2f})")
    print(f"wrong: {len(wrong)} of {len(items) - rules}")
    for item in wrong:
        print(f"  wrong: {item.id} {item.text}")
    for item in missed if args.misses else []:
        print(f"  missed: {item.id} {item.text}")


if __name__ == "__main__":
    main()
