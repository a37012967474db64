"""`test.run` from end to end: real trees, the real sandbox, real pytest; small and quick suites."""

import json
import shutil
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from schemas.contracts import ContractRegistry
from schemas.handoff import Handoff
from schemas.validation import checker
from schemas.words import Outcome, Severity, Verdict
from tester.work import handle
from tests.unit.role_work import action_for, context_in, hub_in
from tests.unit.workspace_repos import root_commit
from workspace.entries import FILE_MODE, NewFile
from workspace.hub import Hub

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")

PYTEST = ("python", "-m", "pytest", "-q")
CALC = b"def add(a, b):\n    return a + b\n"
TESTS = b"""\
import pytest
from calc import add


def test_add():
    assert add(1, 2) == 3


@pytest.mark.parametrize("n", [1, 2])
def test_zero(n):
    assert add(n, 0) == n


def test_red():
    assert add(1, 1) == 3


@pytest.mark.skip
def test_skipped(): ...


@pytest.mark.xfail
def test_expected():
    assert add(1, 1) == 3
"""
PROJECT = {"calc.py": CALC, "conftest.py": b"", "tests/test_calc.py": TESTS}


@dataclass(frozen=True)
class World:
    """A hub, and an environment with pytest in it."""

    folder: Path
    hub: Hub
    environment: Path

    def base(self, files: Mapping[str, bytes]) -> str:
        return root_commit(self.hub, files)

    def edited(self, base: str, path: str, data: bytes) -> str:
        """A candidate with another content of one file."""
        return self.hub.commit(base, {path: NewFile(FILE_MODE, data)}, message="change")

    def run(
        self,
        commit: str,
        *,
        command: tuple[str, ...] = PYTEST,
        environment: Path | None = None,
        baseline: str | None = None,
        head: str | None = None,
        timeout_s: float = 30,
        checkout: Path | None = None,
    ) -> Handoff:
        given: dict[str, Any] = {
            "command": list(command),
            "timeout_s": timeout_s,
            "env": {},
            "environment": str(environment or self.environment),
            "checkout": str(checkout) if checkout else None,
            "baseline": baseline,
            "head": head,
        }
        contract = ContractRegistry.builtin().get("test.run")
        checker(contract.input).check(given, "test.run")
        handoff = handle(action_for("test.run@1", given, commit), context_in(self.folder, self.hub))
        if handoff.outcome is Outcome.DONE:
            checker(contract.output).check(handoff.output, "test.run")
        return handoff


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fake_environment(tmp_path_factory.mktemp("environment"))


@pytest.fixture
def world(tmp_path: Path, environment: Path) -> Iterator[World]:
    with hub_in(tmp_path) as hub:
        yield World(tmp_path, hub, environment)


def told(handoff: Handoff) -> str:
    return "\n".join(one.text for one in handoff.findings)


def fake_environment(folder: Path, *importable: Path) -> Path:
    """A virtual environment with nothing but pytest, that also imports from these folders (an editable install)."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    packages.mkdir(parents=True)
    (folder / "bin").mkdir(exist_ok=True)
    for name in ("python", "python3", version):
        (folder / "bin" / name).symlink_to(Path(sys.executable).resolve())
    home = Path(sys.base_prefix) / "bin"
    (folder / "pyvenv.cfg").write_text(f"home = {home}\ninclude-system-site-packages = false\n")
    copied = Path(sysconfig.get_path("purelib"))
    for name in ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments"):
        shutil.copytree(copied / name, packages / name)
    shutil.copy(copied / "py.py", packages)
    (packages / "editable.pth").write_text("".join(f"{one}\n" for one in importable))
    return folder


def test_a_baseline_remembers_every_test_and_passes_if_one_does(world: World, tmp_path: Path) -> None:
    handoff = world.run(world.base(PROJECT))

    assert (handoff.outcome, handoff.verdict) == (Outcome.DONE, Verdict.PASS)
    counts = {name: handoff.output[name] for name in ("passed", "failed", "skipped", "by")}
    assert counts == {"passed": 3, "failed": 1, "skipped": 2, "by": "junit"}
    stored = json.loads(world.hub.read(handoff.output["results"]))
    assert stored["tests"] == {
        "passed": [
            "tests/test_calc.py::test_add",
            "tests/test_calc.py::test_zero[1]",
            "tests/test_calc.py::test_zero[2]",
        ],
        "failed": ["tests/test_calc.py::test_red"],
        "skipped": ["tests/test_calc.py::test_skipped"],
        "xfailed": ["tests/test_calc.py::test_expected"],
    }
    assert [risk.severity for risk in handoff.risks] == [Severity.INFO]
    runs, loaded = handoff.evidence
    assert runs.exit_code == 1
    assert runs.log_digest
    assert "1 failed, 3 passed" in runs.head + runs.tail
    assert loaded.counts == {"loaded": 3, "not_tests": 1}
    assert (tmp_path / "cache" / "logs" / f"{runs.log_digest}.log").exists()


def test_the_tests_that_a_change_breaks_are_named_after_a_second_run(world: World) -> None:
    base = world.base(PROJECT)
    baseline = world.run(base).output["results"]
    broken = world.edited(base, "calc.py", b"def add(a, b):\n    return a + b if b else 7\n")

    handoff = world.run(broken, baseline=baseline, head=base)

    assert (handoff.outcome, handoff.verdict) == (Outcome.DONE, Verdict.FAIL)
    assert handoff.output["new_failures"] == [
        "tests/test_calc.py::test_zero[1]",
        "tests/test_calc.py::test_zero[2]",
    ]
    assert "assert 7 == 1" in told(handoff)
    assert [one.claim.split(" (")[0] for one in handoff.evidence[:3]] == [
        "The tests on the candidate",
        "The new failures again, on the candidate",
        "The new failures again, on the head",
    ]
    assert handoff.evidence[2].counts == {"passed": 2, "failed": 0, "skipped": 0}


def test_the_cost_counts_what_the_tests_took_in_the_sandbox(world: World) -> None:
    burn = b"import time\n\ndef test_burn():\n    while time.process_time() < 1.5: pass\n"

    handoff = world.run(world.base({"tests/test_burn.py": burn}))

    assert handoff.verdict is Verdict.PASS
    assert 1500 <= handoff.cost.cpu_ms < 8000
    assert handoff.cost.cpu_is_whole


def test_names_that_change_by_themselves_cost_no_whole_runs(world: World) -> None:
    moving = (
        b"import time, pytest\n\n@pytest.mark.parametrize('n', [time.time_ns()])\ndef test_now(n): pass\n"
    )
    base = world.base({"calc.py": CALC, "tests/test_calc.py": moving + b"\n\ndef test_still(): pass\n"})
    baseline = world.run(base).output["results"]
    better = world.edited(base, "calc.py", b"def add(first, second):\n    return first + second\n")

    handoff = world.run(better, baseline=baseline, head=base)

    assert handoff.verdict is Verdict.PASS
    assert [one.claim.split(" (")[0] for one in handoff.evidence[:-1]] == [
        "The tests on the candidate",
        "The new failures again, on the candidate",
        "The new failures again, on the head",
    ]


def test_a_harmless_change_passes(world: World) -> None:
    base = world.base(PROJECT)
    baseline = world.run(base).output["results"]
    better = world.edited(base, "calc.py", b"def add(first, second):\n    return first + second\n")

    handoff = world.run(better, baseline=baseline, head=base)

    assert (handoff.verdict, handoff.findings, handoff.risks) == (Verdict.PASS, (), ())


def test_a_test_that_went_missing_counts_as_failed(world: World) -> None:
    base = world.base(PROJECT)
    baseline = world.run(base).output["results"]
    without = world.edited(base, "tests/test_calc.py", TESTS.replace(b"def test_add", b"def check_add"))

    handoff = world.run(without, baseline=baseline, head=base)

    assert handoff.verdict is Verdict.FAIL
    assert "tests/test_calc.py::test_add passed before and fails with this change: did not run" in told(
        handoff
    )


def test_a_candidate_that_cannot_even_be_collected_fails(world: World) -> None:
    base = world.base(PROJECT)
    baseline = world.run(base).output["results"]
    broken = world.edited(base, "conftest.py", b"import nowhere\n")

    handoff = world.run(broken, baseline=baseline, head=base)

    assert handoff.verdict is Verdict.FAIL
    assert "No module named 'nowhere'" in told(handoff)


def test_a_baseline_without_what_the_tests_need_says_so_and_how_to_name_it(world: World) -> None:
    base = world.base({"tests/test_a.py": b"import nowhere\n\ndef test_a(): ...\n"})

    handoff = world.run(base)

    assert (handoff.outcome, handoff.verdict) == (Outcome.DONE, Verdict.COULD_NOT_RUN)
    assert "No module named 'nowhere'" in told(handoff)
    assert "--env PATH" in told(handoff)


def test_a_command_that_does_not_exist_could_not_run(world: World) -> None:
    handoff = world.run(world.base(PROJECT), command=("no-such-tool", "test"))

    assert handoff.verdict is Verdict.COULD_NOT_RUN
    assert "no-such-tool" in told(handoff)


def test_a_tree_without_tests_is_nothing_ran(world: World) -> None:
    handoff = world.run(world.base({"calc.py": CALC}))

    assert handoff.verdict is Verdict.NOTHING_RAN


@pytest.mark.parametrize("folder", ["", "src/"])
def test_a_tree_without_unittest_cases_is_nothing_ran(world: World, folder: str) -> None:
    base = world.base({f"{folder}calc.py": CALC})

    handoff = world.run(base, command=("python", "-m", "unittest", "discover"))

    assert handoff.verdict is Verdict.NOTHING_RAN


def test_the_projects_own_options_stay_and_its_tree_is_not_written_to(world: World) -> None:
    files = {
        **PROJECT,
        "pytest.ini": b"[pytest]\naddopts = --ff -x --strict-markers -p no:randomly\ntestpaths = tests\n",
        "tests/test_b.py": b"import os\n\ndef test_no_cache():\n    assert not os.path.exists('.pytest_cache')\n",
    }

    handoff = world.run(world.base(files))

    assert (handoff.output["passed"], handoff.output["failed"]) == (4, 1)


HANG = ("python", "-c", "import time\nprint('started', flush=True)\nwhile True: time.sleep(1)")
DAEMON = (
    "python",
    "-c",
    "import os, time\n"
    "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        time.sleep(1000)\n    os._exit(0)\n"
    "print('forked', flush=True)\ntime.sleep(1000)",
)
FLOOD = ("python", "-c", "import sys\nwhile True: sys.stdout.write('x' * 65536)")
MEMORY = (
    "python",
    "-c",
    "print('start', flush=True)\nx = bytearray(64 << 30)\nfor i in range(0, len(x), 4096): x[i] = 1",
)


@pytest.mark.parametrize(
    ("command", "head"), [(HANG, "started"), (DAEMON, "forked"), (FLOOD, "xxx"), (MEMORY, "start")]
)
def test_a_command_that_misbehaves_is_killed_and_never_passes(
    world: World, command: tuple[str, ...], head: str
) -> None:
    handoff = world.run(world.base(PROJECT), command=command, timeout_s=2)

    assert handoff.verdict is Verdict.COULD_NOT_RUN
    assert handoff.evidence[0].head.startswith(head)


def test_a_candidate_that_hangs_where_the_head_does_not_fails(world: World) -> None:
    base = world.base(PROJECT)
    baseline = world.run(base).output["results"]
    hanging = world.edited(base, "calc.py", b"import time\ntime.sleep(1000)\n" + CALC)

    handoff = world.run(hanging, baseline=baseline, head=base, timeout_s=8)

    assert handoff.verdict is Verdict.FAIL
    assert "did not end within 8 s" in told(handoff)


def test_any_other_command_is_judged_by_its_exit_code(world: World) -> None:
    base = world.base(PROJECT)
    command = ("python", "-c", "import calc; assert calc.add(1, 2) == 3")
    green = world.run(base, command=command)
    broken = world.edited(base, "calc.py", b"def add(a, b):\n    return 0\n")

    red = world.run(broken, command=command, baseline=green.output["results"], head=base)
    same = world.run(base, command=command, baseline=green.output["results"], head=base)

    assert (green.verdict, green.output["by"]) == (Verdict.PASS, "exit_code")
    assert (red.verdict, same.verdict) == (Verdict.FAIL, Verdict.PASS)


def test_a_command_that_is_red_before_any_change_could_not_run(world: World) -> None:
    handoff = world.run(world.base(PROJECT), command=("python", "-c", "raise SystemExit(3)"))

    assert handoff.verdict is Verdict.COULD_NOT_RUN
    assert "red before any change" in told(handoff)


def test_a_link_in_place_of_the_report_is_not_followed(world: World) -> None:
    planted = b"""\
import os, sys

def pytest_unconfigure(config):
    report = next(a.split("=", 1)[1] for a in sys.argv if a.startswith("--junitxml="))
    os.unlink(report)
    os.symlink("/etc/passwd", report)
"""
    base = world.base({**PROJECT, "conftest.py": planted})

    handoff = world.run(base)

    assert handoff.verdict is Verdict.COULD_NOT_RUN
    assert "junit.xml cannot be read" in told(handoff)


SRC_PROJECT = {
    "src/calc/__init__.py": CALC,
    "tests/test_calc.py": b"import calc\n\ndef test_add():\n    assert calc.add(1, 2) == 3\n",
}


def test_an_editable_install_loads_the_candidate_and_not_the_users_checkout(
    world: World, tmp_path: Path
) -> None:
    """The user's checkout holds other code; the candidate's tree stands in its place."""
    checkout = tmp_path / "checkout"
    (checkout / "src" / "calc").mkdir(parents=True)
    (checkout / "src" / "calc" / "__init__.py").write_text(
        "raise SystemExit('these are the files of the user')\n"
    )
    environment = fake_environment(tmp_path / "env", checkout / "src")
    base = world.base(SRC_PROJECT)

    handoff = world.run(base, environment=environment, checkout=checkout)

    assert (handoff.verdict, handoff.risks) == (Verdict.PASS, ())
    assert handoff.evidence[-1].counts["not_tests"] == 1
    assert len(handoff.evidence) == 2


def test_an_installed_copy_is_not_taken_for_the_candidate(world: World, tmp_path: Path) -> None:
    """The environment has a copy of the package; the tree's own folder is put before it, and a break is seen."""
    installed = tmp_path / "installed"
    (installed / "calc").mkdir(parents=True)
    (installed / "calc" / "__init__.py").write_bytes(CALC)
    environment = fake_environment(tmp_path / "env")
    shutil.copytree(installed / "calc", next(environment.glob("lib/*/site-packages")) / "calc")
    base = world.base(SRC_PROJECT)
    broken = world.edited(base, "src/calc/__init__.py", b"def add(a, b):\n    return 0\n")

    before = world.run(base, environment=environment)
    after = world.run(broken, environment=environment, baseline=before.output["results"], head=base)

    assert (before.verdict, before.risks) == (Verdict.PASS, ())
    assert after.verdict is Verdict.FAIL


def test_a_package_that_is_not_installed_at_all_is_loaded_from_the_tree(world: World, tmp_path: Path) -> None:
    environment = fake_environment(tmp_path / "env")

    handoff = world.run(world.base(SRC_PROJECT), environment=environment)

    assert (handoff.verdict, handoff.output["passed"]) == (Verdict.PASS, 1)


def test_a_baseline_that_is_not_one_could_not_run(world: World) -> None:
    base = world.base(PROJECT)

    handoff = world.run(base, baseline=world.hub.write_blob(b"[]"), head=base)

    assert (handoff.outcome, handoff.verdict) == (Outcome.COULD_NOT_RUN, Verdict.COULD_NOT_RUN)
    assert handoff.error is not None
    assert "baseline" in handoff.error.message
