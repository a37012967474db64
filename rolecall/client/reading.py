"""Where the commands that only look read from: the journal and the hub of this environment, running or not."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from bus.owner_only import make_folder
from bus.settings import Settings
from schemas.contracts import ContractRegistry
from schemas.errors import ContractError, SettingsError
from schemas.report import Report, WorkerLine
from schemas.task import TaskProgress
from supervisor.journal.reader import JournalReader
from supervisor.journal.report import report as tell
from workspace.hub import Hub
from workspace.source import Source

HUB_FOLDER = "hub.git"


@contextmanager
def opened_journal(settings: Settings) -> Iterator[JournalReader]:
    """The journal, read-only. Raises SettingsError if this machine has none for the environment."""
    try:
        reader = JournalReader.open(settings.state_dir)
    except SettingsError as error:
        if settings.broker_url is None:
            raise
        raise SettingsError(
            f"The journal of environment {settings.environment!r} is not on this machine.",
            suggestion="Ask where its supervisor runs.",
        ) from error
    try:
        yield reader
    finally:
        reader.close()


class Glimpse:
    """Quick looks at the journal for who watches: opened when it is there, kept open, silent while it is not."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._reader: JournalReader | None = None

    def picture(self, task: str) -> TaskProgress | None:
        """The recorded picture of a task; None while journal or task are not there yet."""
        try:
            return self._open().progress(task)
        except (ContractError, SettingsError):
            return None

    def workers(self) -> Sequence[WorkerLine]:
        """The roll call, empty while there is no journal."""
        try:
            return self._open().workers()
        except SettingsError:
            return ()

    def close(self) -> None:
        """Let go of the journal."""
        if self._reader is not None:
            self._reader.close()

    def _open(self) -> JournalReader:
        if self._reader is None:
            self._reader = JournalReader.open(self._settings.state_dir)
        return self._reader


@contextmanager
def opened_hub(settings: Settings) -> Iterator[Hub]:
    """The hub: the one that is named, else the one beside the journal."""
    place = settings.hub or str(settings.state_dir / HUB_FOLDER)
    with Hub.open(place, cache_dir=settings.state_dir / "cache") as hub:
        yield hub


def make_hub_for(source: Source, settings: Settings) -> None:
    """Make this environment's hub if it has none, in the object format of the first repository that comes.

    Raises ContractError, before anything is started, if the hub that is there does not fit.
    """
    place = make_folder(settings.state_dir) / HUB_FOLDER
    with Hub.create(place, object_format=source.object_format) as hub:
        source.check_fits(hub)


def chosen(reader: JournalReader, task: str | None) -> str:
    """The full id of the task that was named, or the newest one. Raises ContractError."""
    if task is not None:
        return reader.find(task)
    lines = reader.tasks()
    if not lines:
        raise ContractError(
            "There is no task in this environment yet.", suggestion="`rolecall run` makes the first one."
        )
    return lines[0].task


def known_contracts(settings: Settings) -> ContractRegistry:
    """The built-in contracts, and those that processes in the roll call serve."""
    registry = ContractRegistry.builtin()
    try:
        with opened_journal(settings) as reader:
            announced = reader.contracts()
    except SettingsError:
        return registry
    for document in announced:
        with suppress(ContractError):  # the supervisor refused it too, and says so to its role
            registry.add(document)
    return registry


def read_report(settings: Settings, reader: JournalReader, task: str) -> Report:
    """The report of a task, with what travelled through the hub read back where the hub is at hand."""
    from workspace.spill import unspill

    try:
        with opened_hub(settings) as hub:
            return tell(reader, task, lambda handoff: unspill(handoff, hub))
    except SettingsError:
        return tell(reader, task)
