"""The profiles that there are, and the tools that a choice of tool groups makes.

Each package of this folder is a built-in profile: `__init__.py` declares its PROFILE. Other
packages offer profiles as entry points of the group `simplemem.profiles` (docs/plugins.md). These
are read only for a name that is not built in, and to list all profiles.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeGuard

from simplemem.errors import Invalid
from simplemem.plugins import Plugin, load_named, load_plugins, plugins_of
from simplemem.profiles.profile import Profile
from simplemem.profiles.references import resolve
from simplemem.settings.section import split_names

if TYPE_CHECKING:
    from simplemem.profiles.route import CompatibilityRoute
    from simplemem.tools.tool import Tool

DEFAULT_PROFILE: Final = "default"


def find_profile(name: str) -> Profile:
    """Return the profile of this name: a built-in one, else that of a plug-in.

    Raises:
        Invalid: There is no such profile, or the plug-in offers no profile of its name.
        Unavailable: The package that offers it cannot be loaded.
    """
    if name in _built_in_packages():
        return _built_in_profile(name)
    plugin = plugins_of("profiles").get(name)
    if plugin is not None:
        return load_profile(plugin)
    names = ", ".join(all_profiles())
    raise Invalid(f"no profile called {name!r}", hint=f"The profiles are {names}.")


@cache
def built_in_profiles() -> Mapping[str, Profile]:
    """Return the profiles of simplemem itself by name, in the order of lists."""
    profiles = [_built_in_profile(name) for name in _built_in_packages()]
    return {profile.name: profile for profile in sorted(profiles, key=_place)}


def all_profiles() -> dict[str, Profile]:
    """Return every profile by name: the built-in ones, then those of plug-ins.

    A plug-in that cannot be loaded is logged and left out.
    """
    built_in = built_in_profiles()
    plugins = load_plugins("profiles", load_profile, built_in=built_in)
    profiles = dict(built_in)
    for profile in sorted(plugins, key=_place):
        profiles[profile.name] = profile
    return profiles


def load_profile(plugin: Plugin) -> Profile:
    """Return the profile of a plug-in.

    Raises:
        Unavailable: The package cannot be loaded.
        Invalid: What it offers is not a profile of the plug-in's name.
    """
    return load_named(plugin, _is_profile, description="a Profile", noun="profile")


def _is_profile(offered: object) -> TypeGuard[Profile]:
    """Return whether a plug-in offers a profile."""
    return isinstance(offered, Profile)


def choose_tools(profile: Profile, changes: str = "") -> tuple[Tool, ...]:
    """Return the tools of a profile in their order, with tool groups added or removed.

    `changes` are names of tool groups with commas between them; a minus before a name removes the
    group: `-core,original`.

    Raises:
        Invalid: There is no such group, two groups have a tool of one name, or no tool is left.
    """
    groups = _choose_groups(profile, changes)

    tools: dict[str, Tool] = {}
    for group in groups:
        for tool in resolve(_find_group(profile, group)):
            if tools.setdefault(tool.name, tool) is not tool:
                names = ", ".join(groups)
                raise Invalid(
                    f"two tool groups have a tool {tool.name!r}: {names}",
                    hint=f"Choose one of them, or remove one with `--tools=-{groups[0]},{group}`.",
                )

    if not tools:
        hint = "--tools adds tool groups; a minus before a name removes one."
        raise Invalid("no tool is left", hint=hint)
    return tuple(tools.values())


def _choose_groups(profile: Profile, changes: str) -> list[str]:
    """Return the names of the tool groups of a profile, with some added or removed.

    `changes` are as for `choose_tools`. Raises Invalid if there is no group of a name.
    """
    groups = list(profile.default_groups)
    for change in split_names(changes):
        name = change.lstrip("+-")
        _find_group(profile, name)
        if change.startswith("-"):
            groups = [group for group in groups if group != name]
        elif name not in groups:
            groups.append(name)
    return groups


def tool_groups(profiles: Mapping[str, Profile]) -> dict[str, str]:
    """Return the tool groups of these profiles by name: "module:attribute" of their tools.

    Of several with one name, the first counts.
    """
    groups: dict[str, str] = {}
    for profile in profiles.values():
        for name, reference in profile.tool_groups.items():
            groups.setdefault(name, reference)
    return groups


def groups_of_setting(key: str) -> list[str]:
    """Return the tool groups that a setting adds to every profile if it is set.

    `key` is the dotted name of the setting. The built-in profiles declare these groups.
    """
    profiles = built_in_profiles().values()
    return [profile.setting_groups[key] for profile in profiles if key in profile.setting_groups]


def compatibility_routes(profile: Profile) -> dict[str, CompatibilityRoute]:
    """Return the routes of replaced servers by "METHOD /path".

    They are those of the built-in profiles and of this profile. Imports their tools.
    """
    routes: dict[str, CompatibilityRoute] = {}
    for owner in (*built_in_profiles().values(), profile):
        if owner.routes:
            routes |= resolve(owner.routes)
    return routes


def _find_group(profile: Profile, name: str) -> str:
    """Return where the tools of a group are, as "module:attribute".

    The profile's own groups come before those of other profiles. Raises Invalid, with all names, if
    no profile has the group.
    """
    if name in profile.tool_groups:
        return profile.tool_groups[name]

    built_in = tool_groups(built_in_profiles())
    if name in built_in:
        return built_in[name]

    groups = tool_groups({**all_profiles(), profile.name: profile})
    if name not in groups:
        names = ", ".join(groups)
        raise Invalid(f"no tool group called {name!r}", hint=f"The tool groups are {names}.")
    return groups[name]


@cache
def _built_in_packages() -> Mapping[str, str]:
    """Return the Python package of each built-in profile, by the name of the profile."""
    packages = {}
    for entry in os.scandir(Path(__file__).parent):
        if os.path.isfile(os.path.join(entry, "__init__.py")):
            name = entry.name.replace("_", "-")
            packages[name] = f"{__package__}.{entry.name}"
    return packages


def _built_in_profile(name: str) -> Profile:
    """Return a profile of simplemem itself. Raises KeyError if it has none of this name."""
    package = importlib.import_module(_built_in_packages()[name])
    profile: Profile = package.PROFILE
    return profile


def _place(profile: Profile) -> tuple[int, str]:
    """Return the key by which profiles are sorted in lists: the order, then the name."""
    return profile.order, profile.name
