"""The tools of the profile recipes."""

from __future__ import annotations

from typing import Annotated, TypedDict

from simplemem.store import EnhancedStore
from simplemem.tools.arguments import about
from simplemem.tools.tool import Caller, Reply, tool


class Kept(TypedDict):
    name: str


class Recipes(TypedDict):
    names: list[str]


@tool("Keep a recipe", writes=True)
def keep_recipe(
    store: EnhancedStore,
    caller: Caller,
    title: Annotated[str, about("what the dish is called")],
    text: Annotated[str, about("ingredients and steps, as Markdown")],
) -> Reply[Kept]:
    """Keep a recipe as a note."""
    saved = store.create(f"recipes/{title}", text, {"tags": ["recipe"]}, **caller)
    return Reply(f"Kept {title}.", Kept(name=saved.name))


@tool("Find recipes")
def find_recipes(
    store: EnhancedStore,
    ingredients: Annotated[str, about("what is at home")],
) -> Reply[Recipes]:
    """Find recipes by their ingredients."""
    names = [hit.name for hit in store.search(ingredients, limit=5).hits]
    return Reply("\n".join(names) or "No recipe was found.", Recipes(names=names))


TOOLS = (keep_recipe, find_recipes)
