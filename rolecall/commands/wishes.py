"""From the options of `run` and `submit` to what the client understands."""

from pathlib import Path

from bus.settings import active_virtual_env
from rolecall.client.order import Wishes


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
    limits: tuple[str, ...],
    branch: str | None,
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
        env=env,
        allow=allow,
        allow_untested=allow_untested,
        limits=limits,
        branch=branch,
        virtual_env=active_virtual_env(),
    )
