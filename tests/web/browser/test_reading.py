"""A note in all of Obsidian's notation, read in light and dark, on a phone, and without a script."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from tests.web.browser.conftest import PHONE_WIDTH, OpenPage
from tests.web.browser.test_accessibility import findings_of
from tests.web.conftest import Served

pytestmark = pytest.mark.slow

NOTE = """---
done: true
due: 2026-01-24
see: ["[[Other]]", "[[Nowhere]]"]
---
## First steps

See [[Other#Part]], [[Nowhere]] and [[#First steps]].[^1] The area is $\\frac{a}{b}$.

$$
\\sum_{i=0}^n i^2
$$

![[Other]]

> [!tip]- Folded
> Hidden words

> [!bug] Broken
> Visible words

- [ ] open
- [x] done

```mermaid
graph TD; a-->b
```

[^1]: The footnote.
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, PHONE_WIDTH])
def test_a_note_in_all_notations_is_accessible_and_fits_its_page(
    serve: Callable[..., Served],
    open_page: OpenPage,
    tmp_path: Path,
    scheme: Literal["light", "dark"],
    width: int,
) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "Plan.md").write_text(NOTE)
    (vault / "Other.md").write_text("## Part\n\nThe other note.\n")
    page = open_page(serve(), "/note/Plan?blame=1", width=width, scheme=scheme)
    assert page.locator(".embed").inner_text().endswith("The other note.")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert findings_of(page) == []


def test_the_parts_of_a_long_note_follow_by_scrolling_or_by_a_link(
    serve: Callable[..., Served], open_page: OpenPage, tmp_path: Path
) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "Long.md").write_text("A paragraph of words.\n\n" * 4000 + "The very end.\n")
    server = serve()
    page = open_page(server, "/note/Long")
    while page.get_by_text("The very end.").count() == 0:
        page.mouse.wheel(0, 20_000)
        page.wait_for_timeout(50)

    page = open_page(server, "/note/Long", script=False)
    page.click("text=Next part")
    page.click("text=Next part")
    assert page.get_by_text("The very end.").is_visible()


def test_a_change_of_the_open_note_keeps_its_open_details_and_the_scroll_position(
    serve: Callable[..., Served], open_page: OpenPage, tmp_path: Path
) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    callouts = "> [!tip]- Folded\n> First words\n\n> [!tip]- Folded\n> Second words\n\n"
    (vault / "Plan.md").write_text("Above.\n\n" * 60 + callouts + "Below.\n\n" * 60)
    server = serve()
    page = open_page(server, "/note/Plan")
    page.locator("details.callout summary").nth(1).click()
    top = page.evaluate("scrollY")
    assert top > 0

    server.tool("update_memory", name="Plan", append="Written by an agent.")
    page.wait_for_selector("text=Written by an agent.", state="attached")
    assert page.locator("text=Second words").is_visible()
    assert page.locator("text=First words").is_hidden()
    assert page.evaluate("scrollY") == top
    focused = page.evaluate("document.activeElement.parentElement.innerText")
    assert "Second words" in focused
