"""ruff as a tool: how it is started, what rules it knows, and what it says about a selection of them."""

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import ruff

from schemas.errors import ContractError, WorkspaceError
from schemas.suggest import nearest
from workspace.tools import ToolResult, run_tool

RUFF_VERSION = version("ruff")


def run_ruff(arguments: Sequence[str], *, cwd: Path, stdin: bytes = b"") -> bytes:
    """What ruff writes to its output. Raises WorkspaceError if it failed rather than found something."""
    return ruff_result(arguments, cwd=cwd, stdin=stdin).stdout


def ruff_result(arguments: Sequence[str], *, cwd: Path, stdin: bytes = b"") -> ToolResult:
    """The same, with what it writes to its error output: there it tells which files it could not lint."""
    result = run_tool([_binary(), *arguments], cwd=cwd, stdin=stdin)
    if result.exit_code not in (0, 1):
        said = " ".join(result.stderr.split()) or "it said nothing"
        raise WorkspaceError(f"ruff ended with {result.exit_code}: {said[:500]}.")
    return result


@lru_cache(maxsize=32)
def check_rules(rules: tuple[str, ...]) -> None:
    """Raises ContractError if ruff does not know one of the rules, or can fix nothing by them."""
    known = _known_rules()
    for rule in rules:
        own = [one for code, one in known.items() if rule == "ALL" or code.startswith(rule)]
        if not own:
            letters = rule.rstrip("0123456789")
            hint = nearest(rule, [code for code in known if code.rstrip("0123456789") == letters])
            raise ContractError(
                f"ruff {RUFF_VERSION} knows no rule {rule!r}.",
                suggestion=f"Did you mean {hint!r}?" if hint else "`ruff rule --all` lists them.",
            )
        _check_some_work(rule, own)
    with tempfile.TemporaryDirectory(prefix="rolecall-ruff-") as folder:
        arguments = ["check", "--isolated", "--no-cache", "--exit-zero", "--stdin-filename=x.py", "-"]
        result = run_tool([_binary(), *arguments, f"--select={','.join(rules)}"], cwd=Path(folder))
    if result.exit_code:
        raise ContractError(
            f"ruff {RUFF_VERSION} refuses the rules: {' '.join(result.stderr.split())[:300]}."
        )


def _check_some_work(rule: str, own: Sequence[Mapping[str, Any]]) -> None:
    states = {_state(one) for one in own}
    if states <= {"Removed"}:
        raise ContractError(
            f"ruff {RUFF_VERSION} no longer has the rule {rule!r}.",
            suggestion=f"`ruff rule {rule}` says why.",
        )
    if states <= {"Preview", "Removed"}:
        raise ContractError(
            f"{rule!r} is a preview rule of ruff {RUFF_VERSION}: it is not stable, and not applied."
        )
    if all(one.get("fix_availability") == "None" for one in own):
        raise ContractError(
            f"ruff has no fix for {rule!r}, it only reports it.",
            suggestion="`ruff rule --all` says which rules have a fix.",
        )


def _state(rule: Mapping[str, Any]) -> str:
    status = rule.get("status")
    if isinstance(status, Mapping):
        return str(next(iter(status), "Stable"))
    return "Preview" if rule.get("preview") else str(status or "Stable")


@cache
def _known_rules() -> Mapping[str, Mapping[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="rolecall-ruff-") as folder:
        rows = json.loads(run_ruff(["rule", "--all", "--output-format=json"], cwd=Path(folder)))
    return {row["code"]: row for row in rows if re.fullmatch(r"[A-Z]+[0-9]+", str(row.get("code")))}


@cache
def _binary() -> Path:
    return Path(ruff.find_ruff_bin())
