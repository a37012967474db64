"""What a plug-in author imports: `Role`, `Contract`, `Files`, `Result`. Everything else in here is the application.

    from rolecall import Contract, Files, Result, Role

The names are loaded when they are first used, so that the command line starts quickly.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rolecall.authoring import Contract as Contract
    from rolecall.authoring import Files as Files
    from rolecall.authoring import Result as Result
    from rolecall.authoring import Role as Role

__all__ = ["Contract", "Files", "Result", "Role"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from importlib import import_module

        return getattr(import_module("rolecall.authoring"), name)
    raise AttributeError(f"module 'rolecall' has no attribute {name!r}")
