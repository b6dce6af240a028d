"""Build what is published, in dist/: the wheel, the source, and the bundle for Claude Desktop.

    python bundles/build.py [links]

With `links`, print the deep links that Cursor and VS Code open.
"""

import base64
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from simplemem import __version__
from simplemem.profiles.registry import built_in_profiles, choose_tools

ROOT: Final = Path(__file__).resolve().parent.parent
DIST: Final = ROOT / "dist"

_ENTRY: Final = {
    "command": "uvx",
    "args": ["--from", "simplemem-vault", "simplemem", "serve"],
}
_CURSOR: Final = "cursor://anysphere.cursor-deeplink/mcp/install"


def main() -> None:
    """Build everything and print the path of the bundle, or print the links."""
    if sys.argv[1:] == ["links"]:
        for name, link in links().items():
            print(f"- {name}: `{link}`")
        return

    command = [sys.executable, "-m", "build", "--outdir", str(DIST), str(ROOT)]
    subprocess.run(command, check=True)
    print(bundle(DIST))


def manifest() -> dict[str, Any]:
    """Return the manifest of the bundle, with the tools of the default profile."""
    template = (ROOT / "bundles" / "manifest.json").read_text(encoding="utf-8")
    result: dict[str, Any] = json.loads(template)
    result["version"] = __version__
    result["tools"] = [
        {"name": tool.name, "description": tool.description}
        for tool in choose_tools(built_in_profiles()["default"])
    ]
    return result


def bundle(folder: Path) -> Path:
    """Write the .mcpb file to a folder: the manifest, and the package as uv installs it.

    Returns its path. The folder is made if it is missing.
    """
    file = folder / f"simplemem-{__version__}.mcpb"
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        manifest_text = json.dumps(manifest(), indent=2, ensure_ascii=False)
        archive.writestr("manifest.json", f"{manifest_text}\n")
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            archive.write(ROOT / name, name)
        for path in sorted((ROOT / "simplemem").rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                archive.write(path, path.relative_to(ROOT).as_posix())
    return file


def links() -> dict[str, str]:
    """Return the link that installs the server in an editor, by the name of the editor."""
    cursor_config = base64.b64encode(json.dumps(_ENTRY).encode()).decode()
    server = {"name": "simplemem", "type": "stdio", **_ENTRY}
    vscode_config = quote(json.dumps(server))
    return {
        "Cursor": f"{_CURSOR}?name=simplemem&config={quote(cursor_config)}",
        "VS Code": f"vscode:mcp/install?{vscode_config}",
        "VS Code Insiders": f"vscode-insiders:mcp/install?{vscode_config}",
    }


if __name__ == "__main__":
    main()
