"""How many lines each path gained and lost between two trees, as git counts them."""

from pathlib import Path

from workspace.git import git


def line_counts(repository: Path, old_tree: str, new_tree: str) -> dict[bytes, tuple[int, int]]:
    """(added, removed) by path; both are 0 for what git calls binary."""
    said = git(
        repository, "diff-tree", "-r", "-z", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv",
        old_tree, new_tree,
    )  # fmt: skip
    rows = (row.split(b"\t", 2) for row in said.split(b"\0") if row)
    return {path: (_number(added), _number(removed)) for added, removed, path in rows}


def _number(text: bytes) -> int:
    return int(text) if text.isdigit() else 0
