"""Take the screenshot of docs/graph-picture.md: the graph of the example vault, a note chosen, in a headless Chromium.

python docs/picture.py [FILE]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "graph"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from browser import chromium, opened_browser
from generate import copy_example

from simplemem.config import load_settings
from simplemem.kinds.graph.graph import graph_of
from simplemem.kinds.picture import drawing_of_store, html
from simplemem.store import EnhancedStore

REPOSITORY = Path(__file__).resolve().parent.parent
CHOSEN = "Tracker"


def main() -> int:
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else REPOSITORY / "docs" / "images" / "graph.png"
    if chromium() is None:
        print("no Chromium is installed")
        return 1
    with tempfile.TemporaryDirectory() as room:
        copy_example(Path(room) / "vault-example")
        with EnhancedStore(Path(room) / "vault-example", load_settings({"embed.provider": "none"})) as store:
            store.sync(embed=False)
            drawing = drawing_of_store(store, graph_of(store).read(), notes="all")
        page = Path(room) / "graph.html"
        page.write_text(html(drawing), encoding="utf-8")
        with opened_browser(Path(room)) as browser:
            browser.size(1440, 760)
            browser.open(page)
            browser.key("/")
            browser.type(CHOSEN)
            browser.key("Enter")
            browser.key("0")
            file.write_bytes(browser.screenshot())
    print(f"{file}  {file.stat().st_size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
