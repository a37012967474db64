"""From the options of `run` and `submit` to what the client understands."""

from pathlib import Path

from bus.settings import Settings, active_virtual_env
from rolecall.client.order import Wishes
from workspace.hub_store import is_url
from workspace.job import SandboxMode


def wishes_of(
    *,
    recipe: str,
    repo: Path,
    base: str | None,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    test: str | None,
    test_timeout: float | None,
    env: str | None,
    allow: tuple[str, ...],
    allow_untested: bool,
    no_tests: bool,
    limits: tuple[str, ...],
    branch: str | None,
    settings: Settings,
) -> Wishes:
    """The wishes that these options state."""
    return Wishes(
        recipe=recipe,
        repo=repo,
        base=base,
        include=include,
        exclude=exclude,
        test=test,
        test_timeout_s=test_timeout,
        env=_environment(env),
        allow=allow,
        allow_untested=allow_untested,
        no_tests=no_tests,
        limits=limits,
        branch=branch,
        virtual_env=active_virtual_env(),
        # With a hub that is reached over a network, the testers are on other machines too.
        sandbox=SandboxMode(str(settings.sandbox)) if not (settings.hub and is_url(settings.hub)) else None,
    )


def _environment(given: str | None) -> str | None:
    """What was typed means the folder that it names from here; else, as `.venv` does, one in the repository."""
    if given is None:
        return None
    here = Path(given).expanduser()
    return str(here.absolute()) if here.exists() else given
