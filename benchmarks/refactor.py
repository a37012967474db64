"""A refactor of Django from commit to commit: real processes, a private RabbitMQ node, every change reviewed, untested.

Measured from the task's acceptance to its end, beside the ast-grep CLI with the same pattern on a checkout (which
writes files, and neither handles imports nor reviews): first with nothing remembered, then again. One executor beside
two; and a rename of a function that is used everywhere.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.endings import unwind_on_sigterm
from benchmarks.start import stack
from benchmarks.table import Line, print_table
from rolecall.demo.package import Package, fetched, made_repository
from rolecall.processes.python_tools import pip

DJANGO = Package(
    name="Django",
    version="5.2",
    sha256="1a47f7a7a3d43ce64570d350e008d2949abe8c7e21737b351b6a1611277c6d89",
    test_requirements=(),
)
RIVAL = "ast-grep-cli>=0.51,<0.60"
ROUNDS = 3
# Six hundred sites in two hundred files, and seventeen thousand in seven hundred.
PATTERNS = {
    "usual": ("super().__init__($$$A)", "super().__init__(*[$$$A])"),
    "dense": ("self.assertEqual($A, $B)", "self.assertEqual($A, $B, msg=None)"),
}
RENAME = {"symbol": "django.urls.base.reverse", "to": "reverse_url"}
COLD_RATIO, WARM_RATIO, RENAME_LIMIT_S, SPEEDUP = 2.5, 0.3, 6.0, 1.6


class Bench:
    """A running stack and the repository that it works on."""

    def __init__(self, folder: Path, home: Path, repository: Path) -> None:
        self._folder = folder
        self._repository = repository
        self._state_dir = home / "rolecall" / "bench"
        self._env = {**os.environ, "XDG_STATE_HOME": str(home), "ROLECALL_ENVIRONMENT": "bench"}

    def forget(self) -> None:
        """Begin with nothing remembered."""
        for file in self._state_dir.glob("cache/*/results.sqlite*"):
            file.unlink()

    def seconds(self, rule: dict[str, Any]) -> float:
        """From the acceptance of a task of this rule to its end; everything must land."""
        recipe = self._folder / "recipe.yaml"
        recipe.write_text(json.dumps({"recipe": "bench", "rules": [rule]}), "utf-8")  # JSON is YAML
        words = ["run", "--recipe", str(recipe), "--repo", str(self._repository), "--yes", "--json"]
        words += ["--no-deliver", "--allow-untested", "--test", "false"]
        done = subprocess.run(
            [sys.executable, "-m", "rolecall", *words], env=self._env, capture_output=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"the task did not land:\n{done.stderr.decode()[-2000:]}")
        report = json.loads(done.stdout)
        return float(report["ended_at"] - report["accepted_at"]) / 1e6


def rival_seconds(folder: Path, repository: Path, pattern: str, new: str) -> float:
    """ast-grep's command line on a fresh checkout."""
    checkout = folder / "checkout"
    shutil.rmtree(checkout, ignore_errors=True)
    subprocess.run(["git", "clone", "--quiet", str(repository), str(checkout)], check=True)
    words = ["run", "--pattern", pattern, "--rewrite", new, "--lang", "python", "--update-all", str(checkout)]
    began = time.monotonic()
    subprocess.run(
        [str(folder / "rival" / "bin" / "ast-grep"), *words], stdout=subprocess.DEVNULL, check=True
    )
    return time.monotonic() - began


def main() -> int:
    """Measure and print; 1 if a limit is not kept."""
    unwind_on_sigterm()
    with tempfile.TemporaryDirectory(prefix="rolecall-bench-") as name:
        folder = Path(name)
        archive = fetched(DJANGO, Path(os.environ.get("ROLECALL_BENCH_DOWNLOADS", name)) / "downloads")
        repository = made_repository(DJANGO, archive, folder / "django")
        pip("install", "--no-deps", "--target", str(folder / "rival"), RIVAL)
        return print_table(
            "A refactor of Django, commit to commit and reviewed", measured(folder, repository)
        )


def measured(folder: Path, repository: Path) -> list[Line]:
    """All lines of the table."""
    lines: list[Line] = []
    usual = rewrite(*PATTERNS["usual"])
    with stack(folder / "two", executors=2):
        bench = Bench(folder, folder / "two", repository)
        for title, pattern in PATTERNS.items():
            rival = statistics.median(rival_seconds(folder, repository, *pattern) for _ in range(ROUNDS))
            cold, warm = [], []
            for _ in range(ROUNDS):
                bench.forget()
                cold.append(bench.seconds(rewrite(*pattern)))
                warm.append(bench.seconds(rewrite(*pattern)))
            lines += [
                _ratio(f"{title} pattern, nothing remembered", statistics.median(cold), rival, COLD_RATIO),
                _ratio(f"{title} pattern, again", statistics.median(warm), rival, WARM_RATIO),
            ]
        rename = statistics.median(bench.seconds({"id": "r", "rename.symbol": RENAME}) for _ in range(ROUNDS))
        lines.append(
            Line(
                "rename of `reverse`", f"{rename:.1f} s", f"<= {RENAME_LIMIT_S:g} s", rename <= RENAME_LIMIT_S
            )
        )
        bench.forget()
        two = bench.seconds(usual)
    with stack(folder / "one", executors=1):
        one = Bench(folder, folder / "one", repository).seconds(usual)
    speedup = one / two
    lines.append(
        Line(
            "usual pattern, one executor beside two",
            f"{one:.1f} s, {two:.1f} s: {speedup:.2f} x",
            f">= {SPEEDUP:g} x",
            speedup >= SPEEDUP,
        )
    )
    return lines


def rewrite(pattern: str, new: str) -> dict[str, Any]:
    """A rule of a recipe."""
    return {"id": "r", "rewrite.pattern": {"language": "python", "match": pattern, "replace": new}}


def _ratio(what: str, seconds: float, rival: float, limit: float) -> Line:
    ratio = seconds / rival
    return Line(
        f"{what} (ast-grep {rival:.2f} s)",
        f"{seconds:.2f} s, {ratio:.2f} x",
        f"<= {limit:g} x",
        ratio <= limit,
    )


if __name__ == "__main__":
    sys.exit(main())
