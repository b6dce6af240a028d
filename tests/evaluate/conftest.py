"""A small vault with a bit of everything that questions are made of."""

from __future__ import annotations

from pathlib import Path

import pytest

from simplemem.config import Settings
from simplemem.evaluate.mentions import Source
from simplemem.evaluate.scratch import Read, read_vault
from simplemem.note.names import name_of

NOTES = {
    "Kettle repair.md": (
        "---\ndescription: Descaling with citric vinegar mornings\naliases:\n  - Samovar clinic\n  - Teapot ward\n---\n"
        "# Kettle repair\n\nThe heating coil gathers limestone in hard water.\n\n## Thermostat replacement steps\n\n"
        "Unplug everything and open the base with a torx driver. Limestone on the coil makes a rumbling\n"
        "noise before boiling and wastes electricity every day.\n\nKettles and the samovar last longer in soft water.\n"
    ),
    "garden/Tomatoes.md": (
        "---\ntitle: Growing tomatoes\n---\n\nSow under glass in March. Blight arrives with wet August weather and spoils "
        "green fruit overnight.\n\n- Pinch out the side shoots weekly.\n- Feed with comfrey tea once trusses form.\n\n"
        "Ripe fruit goes to the kitchen, where the [[Kettle repair|boiling vessel handbook]] lies.\n"
    ),
    "garden/Compost.md": (
        "# Heap\n\nLayers of straw and kitchen waste heat up within days. Turning the straw monthly with a garden fork lets "
        "air reach the middle layers.\n\n## Overview\n\nA heap needs one cubic metre. Worms arrive by themselves.\n"
    ),
    "music/Violin practice.md": (
        "---\ndescription: Scales before pieces\n---\n\nBegin with slow scales in thirds. A metronome at sixty beats keeps "
        "bowing honest and thirds in tune.\n\n## Overview\n\nRosin the bow. Mute strings at night for the neighbours.\n"
    ),
    "music/Choir.md": (
        "Rehearsals are on Thursdays in the chapel. Altos sit by the heater; tenors bring biscuits for the chapel "
        "interval.\n\nSee [[Violin practice|string warm-up routine]] and [the metronome](Violin%20practice.md).\n"
    ),
    "daily/2026-01-05.md": "Walked along the canal until the lock. Herons fished beside the lock gates all morning.\n",
}


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    for path, text in NOTES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text.encode())
    return folder


@pytest.fixture
def words_only() -> Settings:
    """Settings without vectors, for what does not concern them."""
    return Settings.model_validate({"embed": {"provider": "none"}})


@pytest.fixture
def read(notes: Path) -> Read:
    return read_vault(notes, Settings())


def sources_of(texts: dict[str, str]) -> list[Source]:
    """Notes that lie in no folder."""
    return [Source(path, name_of(path), text.encode()) for path, text in texts.items()]
