"""The sandbox: what foreign code cannot see, reach, use up or leave behind."""

import hashlib
import os
import shutil
import socket
import sys
import venv
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psutil
import pytest

import workspace.bubblewrap
import workspace.sandbox
from schemas.errors import SettingsError, WorkspaceError
from workspace.cgroups import job_group
from workspace.job import MIB, SandboxJob, SandboxLimits, SandboxMode, SandboxResult, Stop
from workspace.killing import MARK
from workspace.sandbox import check_sandbox, run

pytestmark = pytest.mark.skipif(
    shutil.which("bwrap") is None and not os.environ.get("CI"), reason="bubblewrap is not installed"
)
BOTH = pytest.mark.parametrize("mode", list(SandboxMode))
SHUT = SandboxMode.BUBBLEWRAP
# The Python that runs these tests is reached through the virtual environment that they run in.
PYTHON = Path(sys.prefix)

Run = Callable[..., SandboxResult]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a.py").write_text("x = 1\n")
    return tree


@pytest.fixture
def do(tree: Path, tmp_path: Path) -> Run:
    """Run Python code over the tree."""

    def do(code: str, mode: SandboxMode = SHUT, **fields: object) -> SandboxResult:
        limits = fields.pop("limits", SandboxLimits(wall_s=30))
        command = ("python", "-c", code)
        return run(
            SandboxJob(command, tree, tmp_path / "out/log", environment=PYTHON, limits=limits, **fields),  # type: ignore[arg-type]
            mode,
        )

    return do


@pytest.fixture(params=["control group", "limits per process"])
def memory_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to limit memory: machines have one or the other."""
    if request.param == "limits per process":
        monkeypatch.setattr(workspace.sandbox, "job_group", lambda *_: None)
    else:
        _require_control_groups()
    return str(request.param)


def _require_control_groups() -> None:
    group = job_group(64 * MIB, 10)
    if group is None:
        pytest.skip("no control group can be made here")
    group.kill()


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    yield
    marked = [p for p in psutil.process_iter() if _mark_of(p).startswith(f"{os.getpid()}-")]
    assert marked == []


def _mark_of(process: psutil.Process) -> str:
    try:
        return str(process.environ().get(MARK, ""))
    except psutil.Error:
        return ""


# ---- ends --------------------------------------------------------------------------------------------------------


@BOTH
def test_output_exit_code_and_costs_are_told(do: Run, mode: SandboxMode) -> None:
    result = do(
        "import sys; print('out'); sys.stdout.flush(); print('err', file=sys.stderr); sys.exit(3)", mode
    )

    assert (result.stop, result.exit_code, result.signal, result.passed) == (Stop.EXITED, 3, None, False)
    assert (result.head, result.tail, result.output_bytes) == ("out\nerr\n", "", 8)
    assert result.log.read_bytes() == b"out\nerr\n"
    assert result.log_digest == hashlib.sha256(b"out\nerr\n").hexdigest()
    assert result.wall_ms > 0
    assert result.cpu_ms > 0


@BOTH
def test_only_exit_code_0_passes(do: Run, mode: SandboxMode) -> None:
    assert do("pass", mode).passed
    assert not do("raise SystemExit(1)", mode).passed


@BOTH
def test_a_death_by_signal_is_told(do: Run, mode: SandboxMode) -> None:
    result = do("import os; os.kill(os.getpid(), 11)", mode)

    assert (result.stop, result.exit_code, result.signal) == (Stop.SIGNALED, None, 11)


@BOTH
@pytest.mark.parametrize("command", ["no-such-program", "./not-there", "./a.py", "/usr/bin/no-such-program"])
def test_a_command_that_is_not_there_is_not_a_failing_test(
    tree: Path, mode: SandboxMode, command: str
) -> None:
    result = run(SandboxJob((command,), tree, tree.parent / "out/log"), mode)

    assert (result.stop, result.passed) == (Stop.NOT_FOUND, False)
    assert command in result.head


@BOTH
def test_a_hang_is_killed_at_the_limit(do: Run, mode: SandboxMode) -> None:
    result = do("print('before', flush=True)\nwhile True: pass", mode, limits=SandboxLimits(wall_s=5))

    assert (result.stop, result.timed_out, result.exit_code) == (Stop.TIMED_OUT, True, None)
    assert result.head == "before\n"


@BOTH
def test_a_hang_that_ignores_polite_signals_and_closed_its_output_is_killed(
    do: Run, mode: SandboxMode
) -> None:
    code = (
        "import os, signal, time\n"
        "for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(s, signal.SIG_IGN)\n"
        "os.close(1); os.close(2)\n"
        "time.sleep(600)"
    )

    assert do(code, mode, limits=SandboxLimits(wall_s=5)).stop is Stop.TIMED_OUT


@BOTH
def test_a_flood_is_killed_and_its_ends_are_kept(do: Run, mode: SandboxMode) -> None:
    limits = SandboxLimits(wall_s=30, output_bytes=20 * MIB, log_bytes=MIB, keep_bytes=100)

    result = do("print('first')\nwhile True: print('flood ' * 1000)", mode, limits=limits)

    assert result.stop is Stop.OUTPUT
    assert result.head.startswith("first\nflood")
    assert result.tail.endswith(("flood \n", "flood ", "flood", "flo", "fl", "f", "floo"))
    assert len(result.head) == len(result.tail) == 100
    assert result.output_bytes >= 20 * MIB
    assert result.log.stat().st_size < MIB + 100


@BOTH
def test_both_ends_of_long_output_are_kept_and_odd_bytes_shown(do: Run, mode: SandboxMode) -> None:
    limits = SandboxLimits(wall_s=30, keep_bytes=10)

    result = do(
        "import os; os.write(1, b'0123456789\\xff' + b'x' * 1000 + b'tail-9876\\n')", mode, limits=limits
    )

    assert (result.head, result.tail) == ("0123456789", "tail-9876\n")
    assert result.output_bytes == 10 + 1 + 1000 + 10
    assert do("import os; os.write(1, b'\\xff')", mode).head == "\ufffd"


# ---- limits ------------------------------------------------------------------------------------------------------


@BOTH
def test_a_memory_eater_ends_and_does_not_pass(do: Run, mode: SandboxMode, memory_by: str) -> None:
    code = "kept = []\nwhile True: kept.append(bytearray(16 * 2**20))"

    result = do(code, mode, limits=SandboxLimits(wall_s=50, memory_bytes=256 * MIB))

    if memory_by == "control group":
        assert (result.stop, result.passed) == (Stop.MEMORY, False)
    else:
        assert (result.stop, result.exit_code) == (Stop.EXITED, 1)
        assert "MemoryError" in result.head


def test_a_memory_eater_in_a_child_that_the_command_forgives_does_not_pass(do: Run) -> None:
    _require_control_groups()
    eater = "kept = []\nwhile True: kept.append(bytearray(16 * 2**20))"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {eater!r}]); print('fine')"

    result = do(code, limits=SandboxLimits(wall_s=50, memory_bytes=256 * MIB))

    assert (result.stop, result.passed) == (Stop.MEMORY, False)


@BOTH
def test_processor_time_files_and_descriptors_are_limited(do: Run, mode: SandboxMode) -> None:
    limits = SandboxLimits(wall_s=30, cpu_s=1, file_bytes=MIB, open_files=64)

    assert do("while True: pass", mode, limits=limits).stop is Stop.CPU
    large = do("open('large', 'wb').write(bytes(2 * 2**20))", mode, limits=limits)
    assert "File too large" in large.head
    many = do("kept = [open('a.py') for _ in range(100)]", mode, limits=limits)
    assert "Too many open files" in many.head


@BOTH
def test_a_fork_bomb_is_contained(do: Run, mode: SandboxMode) -> None:
    _require_control_groups()
    code = "import os\nwhile True:\n try: os.fork()\n except OSError: pass"

    result = do(code, mode, limits=SandboxLimits(wall_s=2, processes=50, memory_bytes=512 * MIB))

    assert result.stop in (Stop.TIMED_OUT, Stop.MEMORY)


# ---- nothing is left behind --------------------------------------------------------------------------------------

_DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        {extra}
        while True:
            time.sleep(0.01)
            with open({beat!r}, "a") as file:
                file.write("x")
    os._exit(0)
os.wait()
while not os.path.exists({beat!r}):
    time.sleep(0.01)
print("started", flush=True)
{then}
"""


@BOTH
@pytest.mark.parametrize(
    ("then", "stop"), [("", Stop.EXITED), ("time.sleep(600)", Stop.TIMED_OUT)], ids=["ended", "killed"]
)
@pytest.mark.parametrize(
    "extra", ["", "os.close(0); os.close(1); os.close(2)"], ids=["holds output", "closed output"]
)
def test_a_daemon_in_a_session_of_its_own_is_killed(
    do: Run, mode: SandboxMode, tree: Path, then: str, stop: Stop, extra: str
) -> None:
    code = _DAEMON.format(beat="beat", then=then, extra=extra or "pass")

    # Time enough to start on a busy machine; the case that ends by itself does not use it up.
    result = do(code, mode, limits=SandboxLimits(wall_s=8 if then else 40))

    assert (result.stop, result.head) == (stop, "started\n")
    written = (tree / "beat").stat().st_size
    assert _stays(lambda: (tree / "beat").stat().st_size == written)


def _stays(is_so: Callable[[], bool]) -> bool:
    """True if it is so over the time of another job: a daemon that lived would have written by then."""
    import subprocess

    for _ in range(5):
        subprocess.run([sys.executable, "-c", ""], check=True)
        if not is_so():
            return False
    return True


# ---- what foreign code cannot see or reach -----------------------------------------------------------------------


def test_the_tree_is_writable_and_nothing_else_is(do: Run, tree: Path, tmp_path: Path) -> None:
    (tmp_path / "beside").mkdir()
    code = (
        "import os\n"
        "open('written', 'w').write('x')\n"
        f"for path in ('/usr/x', '/etc/x', {str(tmp_path / 'beside/x')!r}):\n"
        "    try: open(path, 'w').write('x'); print('WROTE', path)\n"
        "    except OSError: pass\n"
    )

    result = do(code)

    assert (result.stop, result.exit_code, result.head) == (Stop.EXITED, 0, "")
    assert (tree / "written").read_text() == "x"
    assert list((tmp_path / "beside").iterdir()) == []


def test_settings_of_the_machine_cannot_be_changed_even_by_root(do: Run) -> None:
    code = (
        "import os\n"
        "for where, folders, files in os.walk('/proc'):\n"
        "    folders[:] = [f for f in folders if not f.isdigit() and f not in ('self', 'thread-self')]\n"
        "    for name in files:\n"
        "        path = os.path.join(where, name)\n"
        "        if os.access(path, os.W_OK) and not os.path.islink(path): print(path)\n"
        "try: open('/proc/sys/kernel/core_pattern', 'a'); print('OPENED')\n"
        "except OSError: pass"
    )

    assert do(code).head == ""


def test_the_home_is_hidden(do: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh/id_ed25519").write_text("secret")
    monkeypatch.setenv("HOME", str(home))
    real = os.path.expanduser("~root")  # noqa: PTH111
    code = (
        "import os, pathlib\n"
        f"for path in ({str(home)!r}, {real + '/.ssh'!r}, {real + '/.bashrc'!r}, os.path.expanduser('~/.ssh')):\n"
        "    print(os.path.exists(path))\n"
        "print(os.environ['HOME'], os.listdir(os.environ['HOME']))"
    )

    assert do(code).head == "False\nFalse\nFalse\nFalse\n/tmp/home []\n"


def test_secrets_of_the_system_are_covered_even_for_root(do: Run) -> None:
    code = "for f in ('/etc/shadow', '/etc/gshadow'):\n try: print(open(f).read())\n except OSError as e: print('no')"

    assert do(code).head in ("no\nno\n", "\n\n")


def test_there_is_no_network_but_a_loopback_of_its_own(do: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = (
            "import socket\n"
            f"for address in (('127.0.0.1', {port}), ('192.0.2.1', 80)):\n"
            "    try: socket.create_connection(address, timeout=2); print('CONNECTED', address)\n"
            "    except OSError as error: print(type(error).__name__)\n"
            "inside = socket.create_server(('127.0.0.1', 0))\n"
            "socket.create_connection(inside.getsockname())\n"
            "print('loopback works')"
        )

        said = do(code).head

    assert "CONNECTED" not in said
    assert said.endswith("loopback works\n")


def test_the_environment_is_built_from_nothing(do: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("ROLECALL_BROKER_URL", "amqp://user:secret@host")

    names = do("import os; print(*sorted(os.environ))", env={"MINE": "1"}).head.split()

    assert {"MINE", "HOME", "PATH", "LANG", "TMPDIR", "VIRTUAL_ENV"} <= set(names)
    assert not {"AWS_SECRET_ACCESS_KEY", "ROLECALL_BROKER_URL"} & set(names)


def test_a_job_is_somebody_with_a_home_on_a_host_that_can_be_looked_up(do: Run) -> None:
    code = (
        "import getpass, os, pwd, socket\n"
        "me = pwd.getpwuid(os.getuid())\n"
        "print(me.pw_name, me.pw_dir == os.environ['HOME'], getpass.getuser(), len(pwd.getpwall()))\n"
        "print(socket.gethostbyname(socket.gethostname()))"
    )

    assert do(code).head == "rolecall True rolecall 3\n127.0.0.1\n"


def test_other_processes_cannot_be_seen_and_namespaces_not_made(do: Run) -> None:
    code = (
        "import os, ctypes\n"
        "print(len([p for p in os.listdir('/proc') if p.isdigit()]) < 5)\n"
        "print(ctypes.CDLL(None, use_errno=True).unshare(0x10000000))\n"
        "print(open('/proc/self/status').read().split('CapEff:')[1].split()[0])"
    )

    assert do(code).head == "True\n-1\n0000000000000000\n"


def test_an_environment_behind_several_links_works(tmp_path: Path, tree: Path) -> None:
    real = tmp_path / "user/.venv-3"
    venv.create(real, symlinks=True, with_pip=False)
    (tmp_path / "user/.venv").symlink_to(".venv-3")

    result = run(
        SandboxJob(
            ("python", "-c", "import sys, json; print(sys.prefix)"),
            tree,
            tmp_path / "out/log",
            environment=tmp_path / "user/.venv",
        ),
        SHUT,
    )

    assert result.head.strip() in (str(real), str(tmp_path / "user/.venv"))
    assert result.passed


def test_an_environment_cannot_be_changed(do: Run) -> None:
    code = "import sys, os\ntry: open(sys.prefix + '/x', 'w'); print('WROTE')\nexcept OSError: print('no')"

    assert do(code).head == "no\n"


def test_an_editable_install_imports_the_tree_instead_of_the_checkout(tmp_path: Path) -> None:
    checkout, tree, other = tmp_path / "user/project", tmp_path / "tree", tmp_path / "user/sibling"
    for folder, value in ((checkout, "theirs"), (tree, "candidate"), (other, "sibling")):
        (folder / "src").mkdir(parents=True)
        name = "other" if folder is other else "mine"
        (folder / f"src/{name}.py").write_text(f"value = {value!r}\n")
    environment = checkout / ".venv"
    venv.create(environment, symlinks=True, with_pip=False)
    (site,) = environment.glob("lib/python3*/site-packages")
    (site / "editable.pth").write_text(f"{checkout}/src\n{other}/src\n")
    code = "import mine, other, os; print(mine.value, other.value, os.getcwd()); open('made', 'w')"

    result = run(
        SandboxJob(
            ("python", "-c", code), tree, tmp_path / "out/log", checkout=checkout, environment=environment
        ),
        SHUT,
    )

    assert result.head == f"candidate sibling {checkout}\n"
    assert result.tree == checkout
    assert (tree / "made").exists()
    assert not (checkout / "made").exists()
    assert (checkout / "src/mine.py").read_text() == "value = 'theirs'\n"


def test_a_link_in_the_commit_does_not_lead_a_mount_point_out_of_the_tree(tmp_path: Path) -> None:
    checkout, tree, victim = tmp_path / "user/project", tmp_path / "tree", tmp_path / "victim"
    (checkout / "sub").mkdir(parents=True)
    for folder in (tree, victim):
        folder.mkdir()
    venv.create(checkout / "sub/.venv", symlinks=True, with_pip=False)
    (tree / "sub").symlink_to(victim)

    job = SandboxJob(
        ("true",), tree, tmp_path / "out/log", checkout=checkout, environment=checkout / "sub/.venv"
    )
    with pytest.raises(WorkspaceError, match="needs a folder of its own"):
        run(job, SHUT)

    assert list(victim.iterdir()) == []


def test_folders_given_to_the_job_stand_at_their_own_paths(do: Run, tmp_path: Path) -> None:
    given: Mapping[str, Path] = {name: tmp_path / "given" / name for name in ("in", "out")}
    for folder in given.values():
        folder.mkdir(parents=True)
    (given["in"] / "settings").write_text("s")
    code = (
        f"open({str(given['out'] / 'report')!r}, 'w').write(open({str(given['in'] / 'settings')!r}).read())\n"
        f"try: open({str(given['in'] / 'x')!r}, 'w')\n"
        "except OSError: print('read-only')"
    )

    result = do(code, readable=(given["in"],), writable=(given["out"],))

    assert result.head == "read-only\n"
    assert (given["out"] / "report").read_text() == "s"


# ---- machines ----------------------------------------------------------------------------------------------------


def test_without_bubblewrap_nothing_runs_and_the_text_says_how_to_get_it(
    do: Run, tree: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    workspace.bubblewrap.bubblewrap.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(SettingsError, match=r"apt install bubblewrap.*ROLECALL_SANDBOX=none"):
        do("open('ran', 'w')")
    check_sandbox(SandboxMode.NONE)

    assert not (tree / "ran").exists()


def test_a_bubblewrap_that_cannot_work_here_is_told_apart_from_a_failing_test(
    do: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    workspace.bubblewrap.bubblewrap.cache_clear()
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    with pytest.raises(SettingsError, match=r"No permissions to create new namespace.*User namespaces"):
        do("pass")


def test_a_sandbox_that_cannot_be_set_up_is_told_apart_from_a_failing_test(do: Run, tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="could not be set up"):
        do("pass", readable=(tmp_path / "not there",))


def test_a_worker_that_dies_takes_its_job_with_it(tree: Path, tmp_path: Path) -> None:
    import subprocess

    code = (
        "import sys; from pathlib import Path; from workspace.job import *; from workspace.sandbox import run\n"
        "job = SandboxJob(('sh', '-c', 'echo up > up; while true; do echo x >> beat; sleep 0.01; done'),"
        " Path(sys.argv[1]), Path(sys.argv[2]))\n"
        "run(job, SandboxMode(sys.argv[3]))"
    )
    for mode in SandboxMode:
        worker = subprocess.Popen([sys.executable, "-c", code, str(tree), str(tmp_path / "log"), mode])
        while not (tree / "beat").exists():
            assert worker.poll() is None
        worker.kill()
        worker.wait()

        assert _dies(tree / "beat")
        (tree / "beat").unlink()


def _dies(beat: Path) -> bool:
    """True once the file stops growing; the kernel needs a moment to pass the death on."""
    for _ in range(20):
        size = beat.stat().st_size
        if _stays(lambda: beat.stat().st_size == size):  # noqa: B023
            return True
    return False
