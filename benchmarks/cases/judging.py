"""What is compared: the trees of the parent, of the real commit and of Rolecall's branch."""

import ast
import warnings
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cases.case import Case, Count
from benchmarks.cases.scratch import run_git
from schemas.scope import Scope


@dataclass(frozen=True, slots=True)
class Counted:
    """A judge's lines at the parent, in our result, and in the real commit."""

    count: Count
    before: int
    after: int
    real: int

    @property
    def is_reached(self) -> bool:
        """True if few enough are left, and there was something to do."""
        return self.after <= self.count.at_most < self.before


@dataclass(frozen=True, slots=True)
class Judgement:
    """Paths by how they came out. `alike` are Python files of other layout or comments, but with the same syntax
    tree; `outside` are extra paths that the case does not allow."""

    equal: tuple[str, ...]
    alike: tuple[str, ...]
    differ: tuple[str, ...]
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    outside: tuple[str, ...]
    counts: tuple[Counted, ...]

    @property
    def is_passed(self) -> bool:
        """True if every count is reached and nothing outside was touched."""
        return not self.outside and all(one.is_reached for one in self.counts)

    @property
    def real(self) -> int:
        """How many files the real commit changed."""
        return len(self.equal) + len(self.alike) + len(self.differ) + len(self.missing)


def judge(case: Case, clone: Path, result: str) -> Judgement:
    """Compare a result (a commit or ref in the clone) with the real commit."""
    ours = _changed(clone, case.parent, result)
    real = _changed(clone, case.parent, case.commit)
    extra = tuple(sorted(ours.keys() - real.keys()))
    allowed = Scope(include=case.may_touch or ("**",))
    outside = tuple(path for path in extra if not case.may_touch or not allowed.admits(path))
    both = sorted(ours.keys() & real.keys())
    other = [path for path in both if ours[path] != real[path]]
    alike = {path for path in other if _is_same_code(clone, case.commit, result, path)}
    return Judgement(
        equal=tuple(path for path in both if ours[path] == real[path]),
        alike=tuple(sorted(alike)),
        differ=tuple(path for path in other if path not in alike),
        missing=tuple(sorted(real.keys() - ours.keys())),
        extra=extra,
        outside=outside,
        counts=tuple(
            Counted(one, *(_lines(clone, tree, one) for tree in (case.parent, result, case.commit)))
            for one in case.judge
        ),
    )


def hunks(case: Case, clone: Path, result: str, path: str) -> str:
    """How our file differs from theirs: what stands behind `-` is theirs."""
    return run_git(clone, "diff", "--no-color", "--no-renames", "-U1", case.commit, result, "--", path)


def _changed(clone: Path, base: str, commit: str) -> dict[str, str]:
    """path → mode and blob afterwards."""
    raw = run_git(clone, "diff-tree", "-r", "-z", "--no-renames", base, commit)
    parts = raw.split("\0")[:-1]
    return {
        path: " ".join(meta.split(" ")[1:4:2]) for meta, path in zip(parts[::2], parts[1::2], strict=True)
    }


def _lines(clone: Path, commit: str, count: Count) -> int:
    found = run_git(clone, "grep", "-I", "-e", count.grep, commit, "--", *count.paths, ok=(0, 1))
    return found.count("\n")


def _is_same_code(clone: Path, one: str, other: str, path: str) -> bool:
    """True if the file of both commits is the same Python apart from layout and comments."""
    if not path.endswith((".py", ".pyi")):
        return False
    trees = [_tree(run_git(clone, "show", f"{commit}:{path}")) for commit in (one, other)]
    return trees[0] is not None and trees[0] == trees[1]


def _tree(text: str) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about odd escapes in code of others
            return ast.dump(ast.parse(text))
    except (SyntaxError, ValueError):
        return None
