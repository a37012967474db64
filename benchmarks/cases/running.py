"""One case from its parent commit to Rolecall's branch, through the command line that users have."""

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML

from benchmarks.cases.case import Case
from benchmarks.cases.scratch import environment_of
from recipes import __file__ as _recipes
from schemas.report import Report

BRANCH = "rolecall/case"
ROOT = Path(_recipes).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Outcome:
    """How `rolecall run` ended. `result` is the branch's commit; without one, `said` tells why."""

    exit_code: int
    wall_s: float
    report: Report | None
    said: str

    @property
    def is_delivered(self) -> bool:
        """True if there is a branch to look at."""
        return self.report is not None and self.report.delivered is not None


def run_case(case: Case, clone: Path, folder: Path, *, environment: Path | None, solo: bool) -> Outcome:
    """Run the case's recipe on the clone; with tests if there is an environment for them."""
    command = [
        sys.executable,
        "-m",
        "rolecall",
        "run",
        "--recipe",
        _recipe(case, folder, environment),
        "--yes",
    ]
    command += ["--repo", str(clone), "--branch", BRANCH, "--json", *(["--solo"] if solo else [])]
    command += [word for effect in case.allow for word in ("--allow", effect)]
    # A test command that answers at once stands for no tests: the repository's own would be found and run.
    command += ["--env", str(environment)] if environment else ["--allow-untested", "--test", "false"]
    began = time.monotonic()
    done = subprocess.run(
        command, cwd=ROOT, env=environment_of(folder / "state"), capture_output=True, check=False
    )
    wall_s = time.monotonic() - began
    said = done.stderr.decode("utf-8", "replace")
    try:
        report = Report.model_validate_json(done.stdout)
    except ValidationError:
        report = None
    return Outcome(done.returncode, wall_s, report, said)


def _recipe(case: Case, folder: Path, environment: Path | None) -> str:
    """The name of a shipped recipe, or the file that the case's own one was written to."""
    if isinstance(case.recipe, str) and environment is None:
        return case.recipe
    document: dict[str, Any]
    if isinstance(case.recipe, str):
        document = YAML(typ="safe").load(ROOT / "recipes" / f"{case.recipe}.yaml")
    else:
        document = dict(case.recipe)
    if environment is not None and case.tests is not None:
        tests = case.tests
        document["test"] = {"command": list(tests.command), "timeout_s": tests.timeout_s, "env": tests.env}
    file = folder / "recipe.yaml"
    file.write_text(json.dumps(document, ensure_ascii=False), "utf-8")  # JSON is YAML
    return str(file)
