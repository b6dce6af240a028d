"""A profile whose calls name a user shows no user's notes to a request that names none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bare_client import Inside
from waiting import eventually

NAME = {"type": "ref/resource", "uri": "memory://{+name}"}
REVIEW = {"type": "ref/prompt", "name": "review"}
SHARED_NOTE = "Harbour rules"


def served(vault: Path, profile: str, **settings: Any) -> Inside:
    """A server on what two users told and a note that is nobody's."""
    return Inside(vault, profile=profile, **{"embed__provider": "none", **settings})


@pytest.fixture(params=["remembrances", "supermemento"])
def profile(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def vault_of_users(vault: Path, write: Callable[..., Path]) -> Path:
    write(f"{SHARED_NOTE}.md", "Boats moor at the east quay.\n")
    write("graph/Quay.md", "## Observations\n- lies in the east\n")
    write(
        "graph/Dr Quill.md", "---\nscope: maria\n---\n## Observations\n- treats zinnia allergies\n"
    )
    write(
        "atoms/maria/The zinnia pot hides the key.md",
        "---\ntags: [zinnia]\n---\nThe zinnia pot hides the key.\n",
    )
    write("atoms/ann/I live in Bergen.md", "I live in Bergen.\n")
    write("documents/maria/Zinnia letter.md", "---\ntitle: Zinnia letter\n---\nThe zinnia grows.\n")
    write("profiles/maria.md", "# Zinnia lover\n")
    write("elsewhere/Zinnia.md", "---\ntype: atom\nscope: maria\n---\nThe zinnia is red.\n")
    return vault


def listed(bare: Inside) -> set[str]:
    """The resources there are, once the vault is indexed."""

    def names() -> set[str]:
        found = bare.request("resources/list", {})["result"]["resources"]
        return {resource["name"] for resource in found} - {"changes"}

    assert eventually(lambda: bool(names()))
    return names()


def asked_without_a_user(bare: Inside) -> dict[str, Any]:
    return {
        "resources/list": bare.request("resources/list", {}),
        "changes": bare.request("resources/read", {"uri": "memory://changes"}),
        **{
            f"complete {start!r}": bare.request(
                "completion/complete", {"ref": NAME, "argument": {"name": "name", "value": start}}
            )
            for start in ("", "a", "The z", "z", "doc", "Dr", "prof")
        },
        "complete a tag": bare.request(
            "completion/complete", {"ref": REVIEW, "argument": {"name": "tag", "value": "z"}}
        ),
    }


def test_resources_changes_and_completion_show_no_notes_of_users(
    vault_of_users: Path, profile: str
) -> None:
    with served(vault_of_users, profile) as bare:
        bare.initialize()
        assert listed(bare) == {SHARED_NOTE, "graph/Quay"}
        for question, answer in asked_without_a_user(bare).items():
            answer_text = json.dumps(answer)
            assert (
                "inia" not in answer_text
                and "maria" not in answer_text
                and "ann/" not in answer_text
            ), question
            assert "Quill" not in answer_text, question
        read = bare.request("resources/read", {"uri": "memory://changes"})["result"]["contents"][0][
            "text"
        ]
        assert SHARED_NOTE in read and "graph/Quay" in read
        completed = bare.request(
            "completion/complete", {"ref": NAME, "argument": {"name": "name", "value": ""}}
        )
        assert completed["result"]["completion"]["values"] == [SHARED_NOTE, "graph/Quay"]


@pytest.mark.parametrize("method", ["resources/read", "resources/subscribe"])
@pytest.mark.parametrize(
    "name",
    [
        "atoms/maria/The zinnia pot hides the key",
        "elsewhere/Zinnia",
        "graph/Dr Quill",
        "profiles/maria",
    ],
)
def test_a_note_of_a_user_is_read_and_subscribed_to_as_if_it_were_not_there(
    vault_of_users: Path, profile: str, name: str, method: str
) -> None:
    with served(vault_of_users, profile) as bare:
        bare.initialize()
        absent = name[:-1] + "0"
        answers = [
            bare.request(method, {"uri": f"memory://{uri_name.replace(' ', '%20')}"})
            for uri_name in (name, absent)
        ]
        assert all("error" in answer for answer in answers), answers
        one, other = (json.dumps(answer["error"]) for answer in answers)
        assert one.replace(name, "").replace(name.replace(" ", "%20"), "") == other.replace(
            absent, ""
        ).replace(absent.replace(" ", "%20"), "")
        shared = bare.request(method, {"uri": "memory://Harbour%20rules"})
        assert "error" not in shared
        assert method != "resources/read" or "east quay" in json.dumps(shared["result"])


def test_a_server_that_is_narrowed_to_one_user_shows_that_user_s_notes(
    vault_of_users: Path, profile: str
) -> None:
    with served(vault_of_users, profile, access__only=["atoms/ann/"]) as bare:
        bare.initialize()
        assert listed(bare) == {"atoms/ann/I live in Bergen"}


def test_a_profile_without_users_shows_every_note(vault_of_users: Path) -> None:
    with served(vault_of_users, "default") as bare:
        bare.initialize()
        all_names = listed(bare)
        assert "atoms/maria/The zinnia pot hides the key" in all_names and len(all_names) == 8
