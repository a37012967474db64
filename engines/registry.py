"""The engines that are built in, by the contract that they run."""

from collections.abc import Mapping

from engines.api import Engine
from engines.lint_fix import LintFix
from engines.rename.engine import RenameSymbol
from engines.rewrite import PatternRewrite
from engines.text_replace import TextReplace

_VERSION = "1"
_ENGINES: Mapping[str, Engine] = {
    engine.contract: engine for engine in (PatternRewrite(), TextReplace(), LintFix(), RenameSymbol())
}


def engine_for(contract: str) -> Engine | None:
    """The engine of a contract, cited as `name@version` or by its name; None if it is none of ours."""
    name, _, wanted = contract.partition("@")
    return _ENGINES.get(name) if wanted in ("", _VERSION) else None


def engines() -> tuple[Engine, ...]:
    """All of them."""
    return tuple(_ENGINES.values())
