"""Work functions for tests of child processes: what engines do, and what goes wrong in them."""

import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path

from schemas.action import Action
from schemas.errors import ContractError
from schemas.handoff import Handoff
from schemas.words import Outcome
from workspace.git import GitError
from workspace.job import SandboxJob, SandboxLimits
from workspace.sandbox import run
from workspace.work import WorkContext

_KEPT: list[bytearray] = []
_BEAT = "import sys, time\nwhile True: open(sys.argv[1], 'a').write('x'); time.sleep(.01)"
# Leaves its family and its session.
_DAEMON = "import os\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\n" + _BEAT
_JOB = "import subprocess, sys, time\nsubprocess.run([sys.executable, '-c', sys.argv[2], sys.argv[1]])\ntime.sleep(600)"


def handle(action: Action, context: WorkContext) -> Handoff:
    """Does what the input says."""
    context.note(f"doing {action.input['do']}")
    sys.stdout.write("printed by a work function\n")
    output = globals()[f"_{action.input['do']}"](action, context)
    return Handoff(
        action_id=action.action_id,
        attempt=action.attempt,
        nonce=action.nonce,
        outcome=Outcome.NO_CHANGE,
        base=action.base,
        output={"pid": os.getpid(), **(output or {})},
    )


def _nothing(action: Action, context: WorkContext) -> None:
    pass


def _surroundings(action: Action, context: WorkContext) -> dict[str, object]:
    (context.scratch / "left behind").write_text("x")
    return {
        "files": sorted(context.hub.list_tree(action.base)),
        "scratch": str(context.scratch),
        "cache": str(context.cache),
        "sandbox": context.sandbox.value,
        "options": dict(context.options),
        "settings": sorted(name for name in os.environ if name.startswith("ROLECALL_")),
    }


def _large(action: Action, context: WorkContext) -> dict[str, object]:
    return {"text": "x" * 200_000}


def _grow(action: Action, context: WorkContext) -> None:
    _KEPT.append(bytearray(b"x" * 100 * 2**20))


def _refuse(action: Action, context: WorkContext) -> None:
    raise ContractError("The rule is wrong.", suggestion="Mend it.")


def _git_fault(action: Action, context: WorkContext) -> None:
    raise GitError(("fetch",), 128, "no")


def _fault(action: Action, context: WorkContext) -> None:
    raise ZeroDivisionError("a fault of the engine")


def _exit(action: Action, context: WorkContext) -> None:
    sys.stderr.write("last words\n")
    sys.stderr.flush()
    os._exit(7)


def _segfault(action: Action, context: WorkContext) -> None:
    ctypes.string_at(0)


def _binary_noise(action: Action, context: WorkContext) -> None:
    sys.stdout.buffer.write(b"\xff\x00" * 100_000)
    sys.stdout.flush()


def _hang(action: Action, context: WorkContext) -> None:
    """Hangs in a job, with a child, and with another in a session of its own; each beats while it lives."""
    folder = Path(action.input["folder"])
    tree = folder / "tree"
    tree.mkdir()
    _start_beating(folder / "child")
    _start_beating(folder / "session", start_new_session=True)
    limits = SandboxLimits(wall_s=600)
    job = SandboxJob(
        ("python3", "-c", _JOB, str(tree / "job"), _DAEMON), tree, context.scratch / "log", limits=limits
    )
    run(job, context.sandbox)


def _start_beating(file: Path, *, start_new_session: bool = False) -> None:
    subprocess.Popen([sys.executable, "-c", _BEAT, str(file)], start_new_session=start_new_session)


def _wait_for(action: Action, context: WorkContext) -> None:
    """Meets the action that waits for us: only two at the same time can both end."""
    folder = Path(action.input["folder"])
    (folder / action.input["me"]).touch()
    while not (folder / action.input["other"]).exists():
        time.sleep(0.005)
