"""The CPU time of a job, by each witness: of all its processes, also of those that nobody outside reaps."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import workspace.sandbox
from workspace.cgroups import job_group
from workspace.job import MIB, SandboxJob, SandboxLimits, SandboxMode, SandboxResult, Stop
from workspace.sandbox import run

pytestmark = pytest.mark.skipif(
    shutil.which("bwrap") is None and not os.environ.get("CI"), reason="bubblewrap is not installed"
)
BOTH = pytest.mark.parametrize("mode", list(SandboxMode))
Run = Callable[..., SandboxResult]


@pytest.fixture
def do(tmp_path: Path) -> Run:
    """Run Python code."""

    def do(code: str, mode: SandboxMode, **env: str) -> SandboxResult:
        (tmp_path / "tree").mkdir()
        job = SandboxJob(
            ("python", "-c", code), tmp_path / "tree", tmp_path / "out/log", env=env,
            environment=Path(sys.prefix), limits=SandboxLimits(wall_s=120, output_bytes=1000),
        )  # fmt: skip
        return run(job, mode)

    return do


@pytest.fixture(params=["control group", "reaping"])
def counted_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to count CPU time."""
    if request.param == "reaping":
        monkeypatch.setattr(workspace.sandbox, "job_group", lambda *_: None)
    else:
        group = job_group(64 * MIB, 10)
        if group is None:
            pytest.skip("no control group can be made here")
        group.kill()
    return str(request.param)


_BUSY = """
import os, subprocess, sys, time
def burn(s):
    while time.process_time() < s: pass
if len(sys.argv) > 1 or os.environ.get('INNER'):
    burn(0.4); sys.exit()
subprocess.run([sys.executable, '-c', os.environ['CODE']], env={**os.environ, 'INNER': '1'})
burn(0.4)
"""


@BOTH
def test_the_cpu_time_is_of_the_command_and_its_children(do: Run, mode: SandboxMode, counted_by: str) -> None:
    result = do(_BUSY, mode, CODE=_BUSY)

    assert result.passed
    assert 800 <= result.cpu_ms < 3000
    assert result.cpu_is_whole


@BOTH
def test_the_cpu_time_of_a_job_that_was_killed_is_told_too(
    do: Run, mode: SandboxMode, counted_by: str
) -> None:
    burn = "while time.process_time() < 0.6: pass"
    code = f"import os, time\nif os.fork(): os.wait()\n{burn}\nwhile True: print('x' * 99)"

    result = do(code, mode)

    assert result.stop is Stop.OUTPUT
    assert result.cpu_ms >= 590
    assert result.cpu_is_whole == (counted_by == "control group")
