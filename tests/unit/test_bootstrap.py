"""tools/bootstrap.sh on a machine that is made of fakes: what it installs, what it leaves alone, what it says."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = (
    "sh",
    "env",
    "cat",
    "cksum",
    "printf",
    "dirname",
    "rm",
    "mv",
    "chmod",
    "tee",
    "sed",
    "uname",
    "sleep",
    "mkdir",
    "true",
)


class Machine:
    """A folder with a copy of the script, and a PATH that holds only what the test puts there."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        self.bin = folder / "bin"
        self.log = folder / "log"
        self.policy = folder / "policy-rc.d"
        (self.root / "tools").mkdir(parents=True)
        self.bin.mkdir()
        self.log.touch()
        shutil.copy(ROOT / "tools" / "bootstrap.sh", self.root / "tools")
        (self.root / "pyproject.toml").write_text("[project]\n")
        for tool in TOOLS:
            found = shutil.which(tool)
            if found:
                (self.bin / tool).symlink_to(found)
        self.fake("id", 'echo "${FAKE_UID:-0}"')
        python = f'[ "$1" = -c ] && exit 0; [ "$1" = --version ] && {{ echo Python 3.12; exit 0; }}; ' \
                 f'[ "$2" = venv ] && {{ mkdir -p "$3/bin"; cp "{self.bin}/python3" "$3/bin/python"; exit 0; }}; ' \
                 'echo "python $*" >> "$FAKE_LOG"; exit ${FAKE_PIP:-0}'  # fmt: skip
        self.fake("python3", python)
        cp = shutil.which("cp")
        assert cp is not None
        (self.bin / "cp").symlink_to(cp)

    def fake(self, name: str, script: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def has(self, *names: str) -> None:
        for name in names:
            self.fake(name, "exit 0")

    def run(self, **env: str) -> subprocess.CompletedProcess[str]:
        surroundings = {
            "PATH": str(self.bin),
            "FAKE_LOG": str(self.log),
            "ROLECALL_POLICY_FILE": str(self.policy),
            **env,
        }
        return subprocess.run(
            ["/bin/sh", str(self.root / "tools" / "bootstrap.sh")],
            env=surroundings, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    @property
    def calls(self) -> list[str]:
        return self.log.read_text().splitlines()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


APT = 'echo "apt-get $* policy=$(cat "$ROLECALL_POLICY_FILE" 2>/dev/null | tr "\\n" " ")" >> "$FAKE_LOG"; exit ${FAKE_APT:-0}'


def needs_bubblewrap(machine: Machine) -> None:
    """git and RabbitMQ are there, bubblewrap is not."""
    machine.has("git", "rabbitmq-server")
    tr = shutil.which("tr")
    assert tr is not None
    (machine.bin / "tr").symlink_to(tr)
    machine.fake("apt-get", APT)


def test_a_complete_machine_gets_python_packages_once_and_nothing_the_second_time(machine: Machine) -> None:
    machine.has("git", "bwrap", "rabbitmq-server")

    first = machine.run()
    second = machine.run()

    assert (first.returncode, second.returncode) == (0, 0)
    assert machine.calls == ["python -m pip install --quiet --disable-pip-version-check -e .[dev]"]
    assert second.stdout == ""


def test_a_changed_pyproject_is_installed_again(machine: Machine) -> None:
    machine.has("git", "bwrap", "rabbitmq-server")
    machine.run()
    (machine.root / "pyproject.toml").write_text("[project]\nname = 'x'\n")

    machine.run()

    assert len(machine.calls) == 2


def test_services_are_denied_while_packages_are_installed_and_the_old_policy_comes_back(
    machine: Machine,
) -> None:
    needs_bubblewrap(machine)
    machine.policy.write_text("#!/bin/sh\nexit 0\n")

    done = machine.run()

    assert done.returncode == 0, done.stderr
    installs = [call for call in machine.calls if "install" in call and call.startswith("apt-get")]
    assert installs == [
        "apt-get install -y -qq --no-install-recommends bubblewrap policy=#!/bin/sh exit 101 "
    ]
    assert machine.policy.read_text() == "#!/bin/sh\nexit 0\n"


def test_the_policy_is_taken_back_when_the_installation_fails_and_the_way_out_is_told(
    machine: Machine,
) -> None:
    needs_bubblewrap(machine)

    done = machine.run(FAKE_APT="1")

    assert done.returncode == 0
    assert not machine.policy.exists()
    assert "apt-get failed; is this machine offline?" in done.stdout
    assert "get it with: apt-get install bubblewrap" in done.stdout


def test_without_root_nothing_is_installed_and_the_command_is_told(machine: Machine) -> None:
    needs_bubblewrap(machine)

    done = machine.run(FAKE_UID="1000")

    assert done.returncode == 0
    assert not any(call.startswith("apt-get") for call in machine.calls)
    assert "it needs root" in done.stdout
    assert "get it with: apt-get install bubblewrap" in done.stdout


def test_sudo_without_a_password_is_used(machine: Machine) -> None:
    needs_bubblewrap(machine)
    machine.fake("sudo", 'shift; [ "$1" = true ] || echo "sudo $*" >> "$FAKE_LOG"; exec "$@"')

    done = machine.run(FAKE_UID="1000")

    assert done.returncode == 0, done.stderr
    assert any(
        call.startswith("sudo env DEBIAN_FRONTEND=noninteractive apt-get install") for call in machine.calls
    )
    assert not machine.policy.exists()


def test_without_git_it_stops(machine: Machine) -> None:
    machine.has("bwrap", "rabbitmq-server")

    done = machine.run(FAKE_UID="1000")

    assert done.returncode == 1
    assert "nothing works without git" in done.stderr


def test_offline_pip_is_told_and_tried_again_the_next_time(machine: Machine) -> None:
    machine.has("git", "bwrap", "rabbitmq-server")

    offline = machine.run(FAKE_PIP="1")
    online = machine.run()

    assert (offline.returncode, online.returncode) == (1, 0)
    assert "Offline?" in offline.stderr
    assert len(machine.calls) == 2
