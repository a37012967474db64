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

from schemas.errors import ContractError, WorkspaceError, at_key
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
    for number, rule in enumerate(rules):
        with at_key("rules", number):
            _check_rule(rule, known)
    with tempfile.TemporaryDirectory(prefix="rolecall-ruff-") as folder:
        arguments = ["check", "--isolated", "--no-cache", "--exit-zero", "--stdin-filename=x.py", "-"]
        result = run_tool([_binary(), *arguments, f"--select={','.join(rules)}"], cwd=Path(folder))
    if result.exit_code:
        raise ContractError(
            f"ruff {RUFF_VERSION} refuses the rules: {' '.join(result.stderr.split())[:300]}."
        )


def _check_rule(rule: str, known: Mapping[str, Mapping[str, Any]]) -> None:
    own = [one for code, one in known.items() if rule == "ALL" or code.startswith(rule)]
    if not own:
        letters = rule.rstrip("0123456789")
        hint = nearest(rule, [code for code in known if code.rstrip("0123456789") == letters])
        raise ContractError(
            f"ruff {RUFF_VERSION} knows no rule {rule!r}.",
            suggestion=f"Did you mean {hint!r}?" if hint else "`ruff rule --all` lists them.",
        )
    _check_some_work(rule, own)


def check_target(target: str) -> None:
    """Raises ContractError, with the nearest that it knows, if ruff does not know this version of Python."""
    known = _known_targets()
    if target in known:
        return
    hint = _nearest_target(target, known)
    raise ContractError(
        f"target: ruff {RUFF_VERSION} knows no {target!r}; it knows {', '.join(known)}.",
        suggestion=f"Did you mean {hint!r}?" if hint else f"For instance {known[-1]!r}.",
    )


def _nearest_target(target: str, known: Sequence[str]) -> str | None:
    """By the number where there is one: `3.10`, `>=3.10` and `python310` mean py310, 3.2 the oldest, 3.99 the newest."""
    found = re.search(r"3\.?([0-9]{1,3})", target)
    if found is None:
        return nearest(target, known)
    return min(known, key=lambda one: abs(int(one.removeprefix("py3")) - int(found[1])))


@cache
def _known_targets() -> tuple[str, ...]:
    """From ruff's own help, oldest first. Raises WorkspaceError if the help no longer tells."""
    with tempfile.TemporaryDirectory(prefix="rolecall-ruff-") as folder:
        said = run_ruff(["check", "--help"], cwd=Path(folder)).decode("utf-8", "replace")
    found = re.search(r"--target-version.*?\[possible values: ([^\]]+)\]", said, re.DOTALL)
    if found is None:
        raise WorkspaceError(f"ruff {RUFF_VERSION} does not say for which versions of Python it can work.")
    return tuple(found[1].replace(",", " ").split())


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
