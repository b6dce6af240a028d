"""References to objects that are imported when they are needed: "module:attribute"."""

from __future__ import annotations

import importlib
from typing import Any


def resolve(reference: str) -> Any:
    """Import the module and return the attribute that "module:attribute" names.

    Raises ImportError or AttributeError if there is no such module or attribute.
    """
    module, _, attribute = reference.partition(":")
    return getattr(importlib.import_module(module), attribute)
