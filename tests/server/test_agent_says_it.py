"""An agent that passes what it understood: facts, what they replace, constraints, preferences.

The agent is a script. The client and the server are the real ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from mcp import Client
from sdk_client import MODERN, connected, run, text_of

from simplemem.store import open_store


async def call(client: Client, name: str, **arguments: Any) -> Any:
    """Call a tool, and return its structured answer. Fails the test if the call failed."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, text_of(result)
    return result.structured_content


async def error_of(client: Client, name: str, /, **arguments: Any) -> Any:
    """Call a tool that has to fail, and return its error."""
    result = await client.call_tool(name, arguments)
    assert result.is_error, text_of(result)
    assert result.structured_content is not None
    return result.structured_content["error"]


def note(vault: Path, pattern: str) -> str:
    """Return the text of the one note whose path matches a pattern."""
    [path] = (path for path in vault.rglob(pattern) if ".simplemem" not in path.parts)
    return path.read_text(encoding="utf-8")


def undo(vault: Path, name: str) -> None:
    """Take back the last change of a note, with all that the same call changed."""
    with open_store(vault) as store:
        store.undo(name)


def test_an_agent_confirms_in_a_conversation_what_a_fact_replaces(vault: Path) -> None:
    async def talk() -> None:
        async with connected(vault, MODERN, "hmlr") as client:
            first = await call(
                client,
                "store_conversation",
                message="I've got a flat by the harbour in Hamburg.",
                topic="Homes",
                timestamp="2026-03-02T10:00:00Z",
                facts=[{"key": "home", "value": "Hamburg", "since": "2026-03-01"}],
                constraints=["strictly vegetarian"],
                preferences=["tea to coffee"],
                user_name="Ana",
            )
            assert "needs_review" not in first

            second = await call(
                client,
                "store_conversation",
                message="The new address for letters is Leipzig, Karl-Heine-Straße 4.",
                timestamp="2026-06-20T10:00:00Z",
                facts=[{"key": "address", "value": "Leipzig", "since": "2026-06-15"}],
            )
            [review] = second["needs_review"]
            assert review["id"] == "address"
            assert "This may replace: " in review["hint"]
            assert "(2026-03-01) [home]" in review["hint"]
            [candidate] = review["candidates"]

            confirmed = await call(
                client,
                "store_conversation",
                message="Yes, we gave up the flat in Hamburg.",
                timestamp="2026-06-20T10:01:00Z",
                facts=[
                    {
                        "key": "address",
                        "value": "Leipzig",
                        "since": "2026-06-15",
                        "replaces": candidate["id"],
                    }
                ],
            )
            assert [fact["id"] for fact in confirmed["replaced"]] == ["home"]

            found = await call(client, "retrieve_memory", query="what is my address")
            assert [fact["value"] for fact in found["facts"]] == ["Leipzig"]
            outdated = await call(client, "retrieve_memory", query="where is my home")
            assert not outdated["facts"]
            profile = (await call(client, "get_user_profile"))["profile"]
            assert profile["name"] == "Ana"
            assert [constraint["text"] for constraint in profile["constraints"]] == [
                "strictly vegetarian"
            ]
            assert "tea to coffee" in profile["preferences"].values()

    run(talk)
    old = note(vault, "facts/home.md")
    assert "valid_from: 2026-03-01T00:00:00Z" in old and "valid_to: 2026-06-15T00:00:00Z" in old
    assert 'superseded_by: "[[address]]"' in old
    assert "valid_from: 2026-06-15T00:00:00Z" in note(vault, "facts/address.md")

    undo(vault, "facts/home")
    assert "superseded_by" not in note(vault, "facts/home.md")
    assert "valid_to" not in note(vault, "facts/home.md")


def test_one_fact_of_a_conversation_replaces_several_in_one_step(vault: Path) -> None:
    async def talk() -> None:
        async with connected(vault, MODERN, "hmlr") as client:
            await call(
                client,
                "store_conversation",
                message="I teach in Ghent and rent a room there.",
                timestamp="2026-03-02T10:00:00Z",
                facts=[{"key": "job", "value": "teacher"}, {"key": "home", "value": "Ghent"}],
            )
            change = await call(
                client,
                "store_conversation",
                message="I sail around the world now.",
                timestamp="2026-06-20T10:00:00Z",
                facts=[{"key": "days", "value": "sailing", "replaces": ["job", "home"]}],
            )
            assert [fact["id"] for fact in change["replaced"]] == ["job", "home"]

    run(talk)
    for name in ("home", "job"):
        assert 'superseded_by: "[[days]]"' in note(vault, f"facts/{name}.md")

    undo(vault, "facts/job")
    assert "superseded_by" not in note(vault, "facts/job.md")
    assert "superseded_by" not in note(vault, "facts/home.md")


@pytest.mark.parametrize(("first", "second"), [("Alpha-19", "Zeta-19"), ("Zeta-19", "Alpha-19")])
def test_two_facts_of_one_message_with_one_key_both_replace_what_they_name(
    vault: Path, first: str, second: str
) -> None:
    async def talk() -> None:
        async with connected(vault, MODERN, "hmlr") as client:
            await call(
                client,
                "store_conversation",
                message="I teach in Ghent and rent a room there.",
                timestamp="2026-03-02T10:00:00Z",
                facts=[
                    {"key": "wifi password", "value": "Kestrel-1"},
                    {"key": "job", "value": "teacher"},
                    {"key": "home", "value": "Ghent"},
                ],
            )
            change = await call(
                client,
                "store_conversation",
                message="I left the room and the school.",
                timestamp="2026-06-20T10:00:00Z",
                facts=[
                    {"key": "password", "value": first, "replaces": ["job"]},
                    {"key": "wifi password", "value": second, "replaces": ["home", "job"]},
                ],
            )
            assert [fact["key"] for fact in change["facts"]] == ["wifi_password"] * 2
            assert [fact["id"] for fact in change["replaced"]] == ["job", "home"]
            assert not change.get("warnings")

    run(talk)
    for name in ("home", "job"):
        assert 'superseded_by: "[[wifi password]]"' in note(vault, f"facts/{name}.md")
    history = note(vault, "facts/wifi password.md")
    assert "superseded_by" not in history
    for value in ("Kestrel-1", first, second):
        assert f"- {value} · " in history


@pytest.mark.parametrize("is_first", [True, False])
def test_a_value_that_a_message_states_is_not_replaced_by_another_fact_of_it(
    vault: Path, is_first: bool
) -> None:
    facts: list[dict[str, Any]] = [
        {"key": "days", "value": "sailing", "replaces": ["job"]},
        {"key": "job", "value": "sailor"},
    ]

    async def talk() -> None:
        async with connected(vault, MODERN, "hmlr") as client:
            await call(
                client,
                "store_conversation",
                message="I teach in Ghent.",
                timestamp="2026-03-02T10:00:00Z",
                facts=[{"key": "job", "value": "teacher"}],
            )
            await call(
                client,
                "store_conversation",
                message="I sail around the world now.",
                timestamp="2026-06-20T10:00:00Z",
                facts=facts if is_first else facts[::-1],
            )
            found = await call(client, "retrieve_memory", query="what is my job")
            assert [fact["value"] for fact in found["facts"]] == ["sailor"]

    run(talk)
    assert "superseded_by" not in note(vault, "facts/job.md")


class MemoryTool(NamedTuple):
    """The tool of a profile that stores a text for a user."""

    name: str
    user_argument: str
    events_field: str  # of its answer: the memories that the call changed

    def user(self, user_id: str) -> dict[str, str]:
        """Return the argument that names a user."""
        return {self.user_argument: user_id}


MEMORY_TOOLS = {
    "remembrances": MemoryTool("add_memory", "user_id", "events"),
    "supermemento": MemoryTool("ingest_text", "container_tag", "memories"),
}
"""The tools by their profiles."""


@pytest.mark.parametrize("profile", MEMORY_TOOLS)
def test_an_agent_confirms_what_a_statement_replaces(vault: Path, profile: str) -> None:
    tool = MEMORY_TOOLS[profile]
    user = tool.user("ann")

    async def talk() -> None:
        async with connected(vault, MODERN, profile) as client:
            first = await call(
                client,
                tool.name,
                content="I've got a flat by the harbour in Hamburg.",
                facts=[{"key": "home", "value": "Hamburg", "since": "2026-03-01"}],
                constraints=["strictly vegetarian"],
                preferences=["tea to coffee"],
                user_name="Ann Lee",
                **user,
            )
            home = first[tool.events_field][0]
            assert home["memory"] == "I've got a flat by the harbour in Hamburg."

            second = await call(
                client,
                tool.name,
                content="Letters reach us at Karl-Heine-Straße 4, Leipzig.",
                facts=[{"key": "address", "value": "Karl-Heine-Straße 4, Leipzig"}],
                **user,
            )
            [review] = second["needs_review"]
            [candidate] = [one for one in review["candidates"] if one["id"] == home["id"]]
            assert candidate["since"] == "2026-03-01"
            assert f"{home['memory']} (2026-03-01) [{home['id']}]" in review["hint"]

            confirmed = await call(
                client,
                tool.name,
                content="Yes, we gave that flat up.",
                facts=[
                    {
                        "key": "address",
                        "value": "Karl-Heine-Straße 4, Leipzig",
                        "since": "2026-06-15",
                        "replaces": candidate["id"],
                    }
                ],
                **user,
            )
            [update] = [one for one in confirmed[tool.events_field] if one["relation"] == "UPDATES"]
            assert update["previous"]["id"] == home["id"]

    run(talk)
    old = note(vault, "atoms/ann/I've got a flat*.md")
    assert "status: superseded" in old and "superseded_by" in old
    assert "valid_from: 2026-03-01T00:00:00Z" in old and "valid_to: 2026-06-15T00:00:00Z" in old
    profile_note = note(vault, "profiles/ann.md")
    assert "name: Ann Lee" in profile_note
    assert "- strictly vegetarian %%severity=strict" in profile_note
    assert "- tea to coffee %%since=" in profile_note

    undo(vault, "atoms/ann/I've got a flat by the harbour in Hamburg")
    restored = note(vault, "atoms/ann/I've got a flat*.md")
    assert "status: active" in restored and "valid_to" not in restored


@pytest.mark.parametrize("profile", MEMORY_TOOLS)
def test_one_statement_replaces_several_in_one_step(vault: Path, profile: str) -> None:
    tool = MEMORY_TOOLS[profile]
    user = tool.user("ann")

    async def talk() -> None:
        async with connected(vault, MODERN, profile) as client:
            ids = []
            for text, fact in (
                ("I teach at a school in Ghent.", {"key": "job", "value": "teach"}),
                ("My room is above a bakery.", {"key": "home", "value": "above a bakery"}),
            ):
                stored = await call(client, tool.name, content=text, facts=[fact], **user)
                ids.append(stored[tool.events_field][0]["id"])

            fact = {"key": "days", "value": "sail", "replaces": ids}
            change = await call(
                client, tool.name, content="I sail around the world now.", facts=[fact], **user
            )
            [update] = change[tool.events_field]
            assert update["previous"]["id"] == ids[0]
            assert [other["id"] for other in update["also_replaced"]] == [ids[1]]
            assert "needs_review" not in change or not change["needs_review"]

            wrong = {**fact, "value": "row", "replaces": [update["id"], "atom_0"]}
            error = await error_of(
                client, tool.name, content="I row around the world.", facts=[wrong], **user
            )
            assert error["code"] == "not_found"

    run(talk)
    assert "status: superseded" in note(vault, "atoms/ann/I teach*.md")
    assert "status: superseded" in note(vault, "atoms/ann/My room*.md")
    assert "status: active" in note(vault, "atoms/ann/I sail*.md")

    undo(vault, "atoms/ann/I teach at a school in Ghent")
    assert "status: active" in note(vault, "atoms/ann/I teach*.md")
    assert "status: active" in note(vault, "atoms/ann/My room*.md")


@pytest.mark.parametrize(
    ("since", "ends"),
    [("2026-02-01", "2026-02-01T00:00:00Z"), ("", "2026-04-30T23:59:59Z")],
)
@pytest.mark.parametrize("profile", MEMORY_TOOLS)
def test_a_restated_fact_that_is_over_ends_others_when_the_agent_says(
    vault: Path, profile: str, since: str, ends: str
) -> None:
    tool = MEMORY_TOOLS[profile]
    user = tool.user("ann")

    async def talk() -> None:
        async with connected(vault, MODERN, profile) as client:
            school = {"key": "job", "value": "teach", "since": "2020"}
            text = "I teach at a school in Ghent."
            stored = await call(client, tool.name, content=text, facts=[school], **user)
            id_ = stored[tool.events_field][0]["id"]

            sea = {"key": "days", "value": "sail"}
            text = "I sail around the world."
            await call(client, tool.name, content=text, facts=[sea], **user)
            past = {**sea, "until": "2026-04-30", "replaces": id_}
            if since:
                past["since"] = since
            change = await call(client, tool.name, content=text, facts=[past], **user)
            [update] = change[tool.events_field]
            assert (update["relation"], update["previous"]["id"]) == ("UPDATES", id_)

    run(talk)
    school = note(vault, "atoms/ann/I teach*.md")
    assert "status: superseded" in school
    assert f"valid_to: {ends}" in school
    assert "valid_to: 2026-04-30T23:59:59Z" in note(vault, "atoms/ann/I sail*.md")


@pytest.mark.parametrize("profile", MEMORY_TOOLS)
def test_an_id_that_two_facts_of_one_text_name_is_replaced_once_without_a_warning(
    vault: Path, profile: str
) -> None:
    tool = MEMORY_TOOLS[profile]
    user = tool.user("ann")

    async def talk() -> None:
        async with connected(vault, MODERN, profile) as client:
            school = {"key": "job", "value": "teach"}
            text = "I teach at a school in Ghent."
            stored = await call(client, tool.name, content=text, facts=[school], **user)
            id_ = stored[tool.events_field][0]["id"]

            facts = [
                {"key": "days", "value": "sailing the seas", "replaces": id_},
                {"key": "boat", "value": "a ketch named Plover", "replaces": id_},
            ]
            text = "I spend my days sailing the seas on a ketch named Plover."
            change = await call(client, tool.name, content=text, facts=facts, **user)
            assert [event["relation"] for event in change[tool.events_field]] == ["UPDATES", None]
            assert change[tool.events_field][0]["previous"]["id"] == id_
            assert not change.get("warnings")

    run(talk)
    assert "status: superseded" in note(vault, "atoms/ann/I teach*.md")


@pytest.mark.parametrize("is_read", [True, False])
def test_what_an_agent_read_about_someone_else_disputes_nothing_of_the_user(
    vault: Path, is_read: bool
) -> None:
    async def talk() -> None:
        async with connected(vault, MODERN, "remembrances") as client:
            await call(
                client,
                "add_memory",
                content="It is my husband Graham who cooks.",
                facts=[{"key": "husband", "value": "Graham"}],
                user_id="ann",
            )
            widow = {"key": "state", "value": "widowed", "subject": "neighbour Pauline"}
            await call(
                client,
                "add_memory",
                content="I need a card for Pauline next door, her husband passed away on Sunday.",
                facts=[widow] if is_read else [],
                user_id="ann",
            )

    run(talk)
    is_disputed = "status: disputed" in note(vault, "atoms/ann/It is my*.md")
    assert is_disputed == (not is_read)


def test_an_agent_that_names_what_is_outdated_puts_no_other_fact_in_doubt(vault: Path) -> None:
    async def talk() -> None:
        async with connected(vault, MODERN, "remembrances") as client:
            for text, key, value in (
                ("I bowl on Mondays.", "sport", "bowl"),
                ("I row on Sundays.", "hobby", "row"),
            ):
                fact = {"key": key, "value": value}
                stored = await call(client, "add_memory", content=text, facts=[fact], user_id="ann")
            rowing = stored["events"][0]["id"]
            fact = {"key": "sport", "value": "climb", "replaces": rowing}
            await call(client, "add_memory", content="I climb now.", facts=[fact], user_id="ann")

    run(talk)
    assert "status: superseded" in note(vault, "atoms/ann/I row*.md")
    assert "status: active" in note(vault, "atoms/ann/I bowl*.md")


WRONG_FACTS = [
    ({"key": "home", "value": "Rome", "place": "x"}, "invalid", "'facts.0.place' is unknown"),
    ({"key": "home", "value": "Rome", "since": "last spring"}, "invalid", "must be a date such as"),
    ({"key": "home", "value": "Rome", "until": "2026-13"}, "invalid", "must be a date such as"),
    ({"key": "home", "value": "Rome", "since": "2026-02-30"}, "invalid", "must be a date such as"),
    (
        {"key": "home", "value": "Rome", "since": "2026-03", "until": "2025"},
        "invalid",
        "ends before it begins",
    ),
    ({"key": "home", "value": " "}, "invalid", "needs a key and a value"),
    ({"value": "Rome"}, "invalid", "'facts.0.key' is missing"),
    ({"key": "home", "value": "Rome", "subject": "x" * 201}, "too_long", "the limit is 200"),
    ({"key": "home", "value": "Rome", "replaces": "nothing"}, "not_found", "'nothing'"),
]


@pytest.mark.parametrize("profile", ["hmlr", *MEMORY_TOOLS])
def test_a_wrong_fact_is_refused_with_its_reason_and_nothing_is_stored(
    vault: Path, profile: str
) -> None:
    tool = "store_conversation"
    text = {"message": "We talked about homes."}
    if profile != "hmlr":
        memory_tool = MEMORY_TOOLS[profile]
        tool = memory_tool.name
        text = {"content": "We talked about homes.", **memory_tool.user("ann")}

    async def talk() -> None:
        async with connected(vault, MODERN, profile) as client:
            for fact, code, reason in WRONG_FACTS:
                error = await error_of(client, tool, **text, facts=[fact])
                assert error["code"] == code and reason in error["message"], (fact, error)
            too_long = await error_of(client, tool, **text, constraints=["never " * 100])
            assert too_long["code"] == "too_long"
            empty = await error_of(client, tool, **text, preferences=["…"])
            assert empty["code"] == "invalid" and "preference" in empty["message"]

    run(talk)
    assert not [path for path in vault.rglob("*.md") if ".simplemem" not in path.parts]


@pytest.mark.parametrize("profile", MEMORY_TOOLS)
def test_a_fact_of_another_user_is_not_found(vault: Path, profile: str) -> None:
    tool = MEMORY_TOOLS[profile]

    async def talk() -> None:
        async with connected(vault, MODERN, profile) as client:
            stored = await call(
                client,
                tool.name,
                content="I drive to work.",
                facts=[{"key": "commute", "value": "drive"}],
                **tool.user("bob"),
            )
            id_ = stored[tool.events_field][0]["id"]
            fact = {"key": "commute", "value": "bike", "replaces": id_}
            error = await error_of(
                client, tool.name, content="I go by bike.", facts=[fact], **tool.user("ann")
            )
            unknown = await error_of(
                client,
                tool.name,
                content="I go by bike.",
                facts=[{**fact, "replaces": "atom_0"}],
                **tool.user("ann"),
            )
            assert error["code"] == unknown["code"] == "not_found"
            assert error["message"].replace(id_, "atom_0") == unknown["message"]

    run(talk)
    assert not list(vault.glob("atoms/ann/*.md"))
