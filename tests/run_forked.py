"""Run a script whose simplemem processes are forked: `run_forked.py SCRIPT ARGUMENTS…`.

For a script that starts so many servers that it would spend most of its time on their imports. Its
commands that begin with this Python and `-m simplemem` become each a `processes.Program`.
"""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

from processes import Program

if __name__ == "__main__":
    script = sys.argv[1]
    sys.argv = sys.argv[1:]
    sys.path[0] = str(Path(script).parent)
    subprocess.Popen = Program  # type: ignore[misc]
    runpy.run_path(script, run_name="__main__")
