"""One run of the test command on one commit: fresh tree, sandbox, report read back.

Whatever the command does, the outcome is a `Run`: with results, or with the reason why there are none. A run that
did not end by itself has no results, whatever its report says.
"""

import json
import re
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import tester.rolecall_probe as probe_module
from schemas.errors import WorkspaceError
from tester.budget import Budget
from tester.command import PROBE_MODULE, PytestCall, as_pytest, with_report
from tester.junit import MAX_REPORT_BYTES, parse_junit
from tester.loaded import Loaded, read_loaded
from tester.reports import read_report
from tester.results import Case, Results, Source, Status
from workspace.job import SandboxJob, SandboxLimits, SandboxResult, Stop
from workspace.sandbox import run, tree_inside
from workspace.work import WorkContext

# The one "test" of a command of which only the exit code is known.
WHOLE_COMMAND = "the whole command"
_RAN_NOTHING = re.compile(r"^Ran 0 tests in ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TestSpec:
    """What `test.run` asks for, as plain values."""

    __test__ = False  # not a test class

    command: tuple[str, ...]
    timeout_s: float
    env: Mapping[str, str]
    environment: Path | None
    checkout: Path | None
    baseline: str | None
    head: str | None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "TestSpec":
        """From an action's input, which its contract has checked."""
        return cls(
            command=tuple(given["command"]),
            timeout_s=float(given["timeout_s"]),
            env=dict(given.get("env") or {}),
            environment=Path(given["environment"]) if given.get("environment") else None,
            checkout=Path(given["checkout"]) if given.get("checkout") else None,
            baseline=given.get("baseline"),
            head=given.get("head"),
        )


@dataclass(frozen=True, slots=True)
class Run:
    """One run: `results` is None where `trouble` says why. `loaded` is what the probe saw, if it was there."""

    commit: str
    command: tuple[str, ...]
    sandbox: SandboxResult
    results: Results | None
    trouble: str = ""
    loaded: Loaded | None = None

    @property
    def output(self) -> str:
        """Both ends of what the command wrote."""
        return f"{self.sandbox.head}\n{self.sandbox.tail}"


class Runner:
    """Runs the command of one spec on any commit, each time on a tree that holds exactly that.

    `jobs` is all that ran, of use or not.
    """

    def __init__(self, spec: TestSpec, context: WorkContext, budget: Budget) -> None:
        self.spec = spec
        self.budget = budget
        self.jobs: list[SandboxResult] = []
        self._context = context
        self._pytest = as_pytest(spec.command)
        self._with_probe = self._pytest is not None and self._pytest.sees_pythonpath
        self._number = count(1)

    @property
    def can_narrow(self) -> bool:
        """True if single tests can be run."""
        return self._with_probe

    def run(
        self, commit: str, *, only: Collection[str] | None = None, import_roots: tuple[str, ...] = ()
    ) -> Run:
        """Run the tests of a commit, all or only these ids."""
        done = self._run_once(commit, only=only, import_roots=import_roots)
        if self._with_probe and done.results is None and f'"{PROBE_MODULE}"' in done.output:
            # "Error importing plugin": this Python or pytest cannot take the probe. The tests still can be run.
            self._with_probe = False
            done = self._run_once(commit, only=None, import_roots=import_roots)
        return done

    def _run_once(self, commit: str, *, only: Collection[str] | None, import_roots: tuple[str, ...]) -> Run:
        folder = self._context.scratch / f"run-{next(self._number)}"
        probe, reports = folder / "probe", folder / "reports"
        for one in (probe, reports):
            one.mkdir(parents=True)
        with self._context.trees.at(commit) as tree:
            job = SandboxJob(
                command=self._command(reports),
                tree=tree.path,
                log=folder / "log",
                checkout=self.spec.checkout,
                environment=self.spec.environment,
                readable=(probe,),
                writable=(reports,),
                limits=SandboxLimits(wall_s=self.budget.next_limit_s()),
            )
            inside = tree_inside(job, self._context.sandbox)
            if self._with_probe:
                _lay_out_probe(probe, tree=inside, reports=reports, only=only)
            variables = self._variables(probe if self._with_probe else None, inside, import_roots)
            result = run(replace(job, env=variables), self._context.sandbox)
            self.jobs.append(result)
        return self._read_back(commit, tuple(job.command), result, reports, import_roots)

    def _command(self, reports: Path) -> tuple[str, ...]:
        if self._pytest is None:
            return self.spec.command
        junit, cache = str(reports / "junit.xml"), str(reports / "cache")
        return with_report(self._pytest, junit=junit, cache=cache, probe=self._with_probe)

    def _variables(self, probe: Path | None, tree: Path, import_roots: tuple[str, ...]) -> dict[str, str]:
        """The user's variables, with PYTHONPATH led by the probe and the import roots."""
        own = self.spec.env.get("PYTHONPATH")
        folders = [
            *([str(probe)] if probe else []),
            *(str(tree / root) for root in import_roots),
            *([own] if own else []),
        ]
        return {**self.spec.env, **({"PYTHONPATH": ":".join(folders)} if folders else {})}

    def _read_back(
        self,
        commit: str,
        command: tuple[str, ...],
        result: SandboxResult,
        reports: Path,
        import_roots: tuple[str, ...],
    ) -> Run:
        loaded = read_loaded(reports) if self._with_probe else None
        trouble = _trouble(result, self.spec)
        cases: dict[str, Case] | None = None
        if not trouble:
            cases, trouble = _cases(self._pytest, result, reports)
        if cases is None:
            return Run(commit, command, result, None, trouble, loaded)
        by = Source.JUNIT if self._pytest else Source.EXIT_CODE
        results = Results(by, cases, result.exit_code, result.wall_ms, import_roots)
        return Run(commit, command, result, results, "", loaded)


def _lay_out_probe(folder: Path, *, tree: Path, reports: Path, only: Collection[str] | None) -> None:
    shutil.copyfile(str(probe_module.__file__), folder / f"{PROBE_MODULE}.py")
    settings = {"tree": str(tree), "report": str(reports), "only": None if only is None else sorted(only)}
    (folder / f"{PROBE_MODULE}.json").write_text(json.dumps(settings), "utf-8")


def _trouble(result: SandboxResult, spec: TestSpec) -> str:
    """Why this run says nothing about the tests; empty if it ended by itself."""
    match result.stop:
        case Stop.EXITED | Stop.SIGNALED:
            return ""
        case Stop.NOT_FOUND:
            return f"The command {spec.command[0]!r} was not found in the sandbox."
        case Stop.TIMED_OUT:
            return f"The tests did not end within {result.wall_ms // 1000} s and were killed."
        case Stop.CPU:
            return "The tests were killed at the limit of processor time."
        case Stop.MEMORY:
            return "The tests were killed at the limit of memory."
        case Stop.OUTPUT:
            return f"The tests were killed because they did not stop writing ({result.output_bytes} bytes)."


def _cases(
    call: PytestCall | None, result: SandboxResult, reports: Path
) -> tuple[dict[str, Case] | None, str]:
    if call is None:
        return {WHOLE_COMMAND: _case_of_exit(result)}, ""
    if result.stop is Stop.SIGNALED:
        return None, f"pytest {how_it_ended(result)}."
    try:
        data = read_report(reports / "junit.xml", limit_bytes=MAX_REPORT_BYTES)
        if data is None:
            return None, f"pytest {how_it_ended(result)} and left no report."
        return parse_junit(data), ""
    except WorkspaceError as error:
        return None, error.message


def _case_of_exit(result: SandboxResult) -> Case:
    if _RAN_NOTHING.search(result.tail or result.head):
        return Case(Status.SKIPPED, "it ran no tests")  # unittest before Python 3.12 calls this a success
    return Case(Status.PASSED) if result.passed else Case(Status.FAILED, how_it_ended(result))


def how_it_ended(result: SandboxResult) -> str:
    """The end of a command in words."""
    if result.stop is Stop.SIGNALED:
        return f"was ended by signal {result.signal}"
    return f"ended with exit code {result.exit_code}"
