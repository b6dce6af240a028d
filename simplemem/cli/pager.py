"""The pager of this process."""

from __future__ import annotations

import os


def show_in_pager(text: str) -> None:
    """Show a text in the pager of this process. Sets the options of `less` unless the user has.

    Without a pager or a terminal, the text is printed.
    """
    import pydoc

    os.environ.setdefault("LESS", "-FRX")  # as git sets it: colours, and no clearing of the screen
    pydoc.pager(text)
