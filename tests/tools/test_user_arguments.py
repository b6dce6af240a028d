"""A token that is limited to a user restricts the arguments that name a user, whatever their names."""

from __future__ import annotations

from typing import Annotated

import pytest

from simplemem.errors import Invalid
from simplemem.profiles.references import resolve
from simplemem.profiles.registry import all_profiles, tool_groups
from simplemem.server.calls import ToolCall, run_tool
from simplemem.server.executor import StoreExecutor
from simplemem.store import EnhancedStore
from simplemem.tools.arguments import about, aliases, names_user
from simplemem.tools.tool import Reply, Tool, tool
from simplemem.web.tokens import Grant

ADA = Grant("of ada", user="ada")


@tool("Find recipes")
def find_recipes(
    query: str,
    cook: Annotated[
        str | None, about("whose recipes"), aliases("cook", "chef"), names_user()
    ] = None,
) -> Reply[None]:
    """Find recipes."""
    return Reply(f"{query} of {cook}")


@tool("Find recipes")
def find_unmarked(
    query: str, cook: Annotated[str | None, about("whose recipes"), aliases("cook", "chef")] = None
) -> Reply[None]:
    """Find recipes."""
    return Reply(f"{query} of {cook}")


def tools_of_simplemem() -> list[Tool]:
    groups = tool_groups(all_profiles()).values()
    return [tool for reference in groups for tool in resolve(reference)]


def test_a_marked_argument_of_any_name_gets_the_user_of_the_token(store: EnhancedStore) -> None:
    def call(arguments: dict[str, object], grant: Grant | None) -> str:
        executor = StoreExecutor(lambda: store)
        return run_tool(find_recipes, executor, ToolCall(arguments, "", grant)).text

    assert find_recipes.user_arguments == ("cook",)
    assert call({"query": "soup"}, ADA) == "soup of ada"
    assert call({"query": "soup", "cook": "ada"}, ADA) == "soup of ada"
    assert call({"query": "soup", "chef": "ada"}, ADA) == "soup of ada"
    for name in ("cook", "chef", "Cook"):
        with pytest.raises(Invalid):
            call({"query": "soup", name: "ben"}, ADA)
    assert call({"query": "soup", "cook": "ben"}, Grant("everybody")) == "soup of ben"
    assert call({"query": "soup", "cook": "ben"}, None) == "soup of ben"


def test_the_mark_of_a_part_of_a_type_counts() -> None:
    @tool("Find recipes")
    def find(cook: Annotated[str, names_user()] | None = None) -> Reply[None]:
        """Find recipes."""
        return Reply(str(cook))

    assert find.user_arguments == ("cook",)


def test_a_mark_is_not_listed() -> None:
    assert find_recipes.listing() | {"name": ""} == find_unmarked.listing() | {"name": ""}
    assert find_unmarked.user_arguments == ()


def test_every_argument_that_names_a_user_is_marked() -> None:
    """The tools of the built-in profiles call these arguments so, and nothing else does."""
    named = {
        (each.name, argument)
        for each in tools_of_simplemem()
        for argument in each.input["properties"]
        if argument in ("user_id", "container_tag")
    }
    marked = {
        (each.name, argument) for each in tools_of_simplemem() for argument in each.user_arguments
    }
    assert named == marked and len(named) > 10
