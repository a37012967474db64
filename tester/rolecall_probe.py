"""A pytest plug-in that is put beside (never into) the tested tree and runs in the repository's own Python.

It does three things: gives every test its node id in the JUnit report, runs only the tests it is told to, and
writes down which modules were loaded from the tree, so that a green run of somebody's *installed* copy is not
taken for a green run of the candidate. Its settings lie beside it, so it needs no options and no environment
variables. It must run in old Pythons and old pytests: plain code, no imports of ours, and never an error of
its own that ends the tests.
"""

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

SETTINGS = Path(__file__).with_suffix(".json")
# Enough to prove the point; a report must not grow with the size of the project.
MAX_FILES = 5000


def pytest_configure(config: Any) -> None:
    """Read the settings once per process (pytest-xdist loads this in every worker)."""
    settings = json.loads(SETTINGS.read_text("utf-8"))
    config.pluginmanager.register(Probe(settings), "rolecall-probe")


class Probe:
    """The hooks, with their settings: `tree` and `report` are folders, `only` a list of node ids or null."""

    def __init__(self, settings: Any) -> None:
        self.tree = Path(settings["tree"]).resolve()
        self.report = Path(settings["report"])
        self.only = None if settings["only"] is None else frozenset(settings["only"])

    def pytest_collection_modifyitems(self, config: Any, items: Any) -> None:
        """Name every test, and keep only the wanted ones."""
        for item in items:
            getattr(item, "user_properties", []).append(("rolecall_nodeid", item.nodeid))
        if self.only is not None:
            config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in self.only])
            items[:] = [item for item in items if item.nodeid in self.only]

    def pytest_unconfigure(self) -> None:
        """Write down what was loaded from where."""
        inside = []
        outside = {}
        for name, module in list(sys.modules.items()):
            file = file_of(module)
            if file is None:
                continue
            try:
                inside.append(str(file.relative_to(self.tree)))
            except ValueError:
                if "." not in name:
                    outside[name] = str(file)
        report = {"inside": sorted(inside)[:MAX_FILES], "outside": outside}
        with contextlib.suppress(OSError):  # a full disk is reported by what fails for it, not by this
            (self.report / f"loaded-{os.getpid()}.json").write_text(json.dumps(report), "utf-8")


def file_of(module: Any) -> Any:
    """The file of a loaded module, or None; looked up without waking a lazy module."""
    try:
        file = object.__getattribute__(module, "__dict__").get("__file__")
        return None if file is None else Path(file).resolve()
    except Exception:  # modules can be replaced by anything; this is no reason to fail somebody's tests
        return None
