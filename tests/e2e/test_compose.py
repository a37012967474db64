"""compose.yaml: every service's own command and environment, started as local processes against a private node."""

import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from rolecall.processes.private_node import start_node
from tests.e2e.terminals import ROOT, Terminal, branches, need_services, shop, wait

pytestmark = pytest.mark.timeout(300)
ROLES = ("planner", "executor", "reviewer", "tester")


def compose() -> dict[str, Any]:
    return dict(YAML(typ="safe").load((ROOT / "compose.yaml").read_text()))


@pytest.fixture
def here(tmp_path: Path) -> Path:
    need_services()
    tmp_path.chmod(0o700)
    (tmp_path / "shared").mkdir()
    return tmp_path


def test_the_broker_is_rabbitmq_4_with_its_management_page_and_executors_can_be_scaled() -> None:
    services = compose()["services"]

    assert services["rabbitmq"]["image"] == "rabbitmq:4-management"
    assert set(services) == {"rabbitmq", "supervisor", "client", *ROLES}
    assert {services[role]["image"] for role in (*ROLES, "supervisor")} == {"rolecall"}
    assert "container_name" not in services["executor"]
    assert "ports" not in services["executor"]


def test_only_the_supervisor_sees_the_signing_key() -> None:
    services = compose()["services"]

    mounts = {
        name: [volume.split(":")[0] for volume in one.get("volumes", ())] for name, one in services.items()
    }

    assert [name for name, volumes in mounts.items() if "state" in volumes] == ["supervisor"]


def test_every_service_starts_with_its_own_command_and_together_they_land_a_refactor(here: Path) -> None:
    services = compose()["services"]
    node = start_node(here / "rabbitmq")
    repository, recipe = shop(here)
    with ExitStack() as stack:
        stack.callback(node.stop)
        logs = {
            name: stack.enter_context((here / f"{name}.log").open("w+")) for name in ("supervisor", *ROLES)
        }
        for name in ("supervisor", *ROLES):
            env = _environment(services[name], here, node.url)
            words = [sys.executable, *_entrypoint(), *services[name]["command"]]
            process = subprocess.Popen(
                words,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=logs[name],
                stderr=logs[name],
                start_new_session=True,
            )
            stack.callback(process.wait, 60)
            stack.callback(process.terminate)
            if name == "supervisor":
                key = Path(env["ROLECALL_PUBLIC_KEY_FILE"])
                wait(lambda key=key: key.exists() and key.stat().st_size > 0)  # type: ignore[misc]
        supervisor = _environment(services["supervisor"], here, node.url)
        client = Terminal(here / "client", environment="team", more=_own(supervisor))
        reader = Terminal(Path(supervisor["XDG_STATE_HOME"]), environment="team", more=_own(supervisor))
        wait(lambda: {line["role"] for line in reader.data("ps")} >= set(ROLES), lambda: _told(logs))

        done = client.run("run", *client.order(repository, recipe), "--yes")

        assert done.returncode == 0, done.stdout + done.stderr + _told(logs)
        assert len(branches(repository)) == 1
        assert reader.data("list")[0]["status"] == "completed"


def _entrypoint() -> list[str]:
    text = (ROOT / "Dockerfile").read_text()
    line = next(line for line in text.splitlines() if line.startswith("ENTRYPOINT"))
    assert line == 'ENTRYPOINT ["python", "-m"]'
    return ["-m"]


def _environment(service: dict[str, Any], here: Path, url: str) -> dict[str, str]:
    """What the container gets, with its volumes and its broker put where this machine has them."""
    given = {
        name: value.replace("/shared", str(here / "shared")) for name, value in service["environment"].items()
    }
    assert given["ROLECALL_BROKER_URL"].startswith("amqp://rolecall:")
    own = {"ROLECALL_BROKER_URL": url, "XDG_STATE_HOME": str(here / "state"), "PYTHONPATH": str(ROOT)}
    path = os.environ["PATH"] if shutil.which("bwrap") else "/usr/bin:/bin"
    return {"PATH": path, "HOME": str(here), **given, **own}


def _own(env: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith("ROLECALL_")}


def _told(logs: dict[str, Any]) -> str:
    for log in logs.values():
        log.flush()
    return "\n".join(f"--- {name}\n{Path(log.name).read_text()[-1500:]}" for name, log in logs.items())
