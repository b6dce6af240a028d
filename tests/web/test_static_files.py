"""The frame of a diagram: a document that runs its own scripts and nothing else."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable

from tests.web.conftest import Served


def test_the_frame_of_a_diagram_runs_its_own_scripts_and_reaches_nothing(
    serve: Callable[..., Served],
) -> None:
    answer = serve().ask("GET", "/static/diagram-frame.html", token=None)
    assert answer.status == 200 and answer.headers["content-type"].startswith("text/html")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts; default-src 'none'; script-src 'sha256-")
    assert "frame-ancestors 'self'" in policy and "connect-src" not in policy

    scripts = re.findall(rb"<script>(.*?)</script>", answer.body, re.DOTALL)
    assert len(scripts) == answer.body.count(b"<script") == 2
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script).digest()).decode()
        assert f"'sha256-{digest}'" in policy
