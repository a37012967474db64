"""`python -m supervisor`: the one stateful process; owns journal, hub, grants and the head of every task."""

import asyncio
import sys
from pathlib import Path

from bus.program import Program, run_program
from bus.settings import role_settings
from schemas.envelope import Sender
from schemas.errors import RolecallError
from schemas.version import VERSION
from supervisor.house import opened_house
from supervisor.hub_work import HubWork
from supervisor.loop import Supervisor
from supervisor.minting import Mint
from workspace.hub import Hub


async def supervise(program: Program) -> None:
    """Run a supervisor inside a process's frame until it is told to stop."""
    settings = program.settings
    with opened_house(settings.state_dir, settings.hub) as house, Hub.open(house.hub) as hub:
        if settings.public_key_file is not None:
            publish_key(house.key.public_key, settings.public_key_file)
        sender = Sender(role="supervisor", instance=program.instance, version=VERSION)
        supervisor = Supervisor(
            bus=program.bus,
            journal=house.journal,
            hub=HubWork(hub),
            mint=Mint(settings.environment, sender, house.key),
            epoch=house.epoch,
            metrics=program.metrics,
        )
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            working = tasks.create_task(supervisor.run(stop))
            await program.stop.wait_draining()
            stop.set()
            await asyncio.wait({working})


def publish_key(key: bytes, path: Path) -> None:
    """Put the public key where roles read it (ROLECALL_PUBLIC_KEY_FILE); readers see the old one or the new one."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(key.hex() + "\n", "ascii")
    fresh.chmod(0o644)
    fresh.replace(path)


def main(argv: list[str] | None = None) -> int:
    """The process; returns its exit code."""
    try:
        settings = role_settings("supervisor", argv)
    except RolecallError as error:
        sys.stderr.write(f"supervisor: {error}\n")
        return error.exit_code
    return run_program(settings, supervise)


if __name__ == "__main__":
    sys.exit(main())
