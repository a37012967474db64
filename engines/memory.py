"""What came of a file by a rule, remembered: (rule, engine version, surroundings, path, blob) → result.

One SQLite file per role and machine, shared by its slots; a reviewer has its own and never reads an executor's. It is
a cache: what cannot be read is worked out again, a damaged file is begun anew, and a full disk only ends the writing.
"""

import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgpack
import structlog

from engines.api import Engine, EngineResult, FileEngine, FileResult, gather
from schemas.handoff import Residue, RiskNote
from workspace.view import TreeView

log = structlog.get_logger()

# About the changed files of a hundred rules on a repository of ten thousand files.
LIMIT_BYTES = 1024 * 1024 * 1024
# Part of every key: raise it when results are written in another way.
_FORMAT = 1
_KEY_BYTES = 20
# SQLite's own limit for the values of one question is 32,766; a thousand is as fast.
_KEYS_A_QUESTION = 1_000
# Another slot writes for some milliseconds; one that takes longer is not waited for.
_BUSY_S = 1.0
# How much of the oldest goes when the limit is reached.
_FORGOTTEN_SHARE = 4
_TABLE = """
CREATE TABLE IF NOT EXISTS results (number INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, result BLOB NOT NULL)
"""


def apply_remembering(
    engine: Engine, input: Mapping[str, Any], view: TreeView, memory: "Memory"
) -> EngineResult:
    """The same as `engine.apply`, with files that were seen before taken from the memory."""
    if not isinstance(engine, FileEngine):
        return engine.apply(input, view)
    engine.check(input)
    told = engine.remembered_as(input, view)
    if told is None:
        return engine.apply(input, view)
    paths = engine.selects(input, view)
    rule = _digest(_FORMAT, engine.contract, engine.name, engine.version, told)
    keys = {path: _digest(rule, path, _blob_of(view, path)) for path in paths}
    results = memory.recall(keys)
    unknown = [path for path in paths if path not in results]
    if unknown:
        fresh = dict(engine.each(input, view, unknown))
        memory.keep({keys[path]: result for path, result in fresh.items()})
        results |= fresh
    return gather(engine, input, view, ((path, results[path]) for path in paths))


class Memory:
    """The remembered results in one folder. Several processes may use it at once."""

    def __init__(self, folder: Path, *, limit_bytes: int = LIMIT_BYTES) -> None:
        self._file = folder / "results.sqlite"
        self._limit_bytes = limit_bytes

    def recall(self, keys: Mapping[str, bytes]) -> dict[str, FileResult]:
        """The results by path, of those that are known."""
        found: dict[bytes, bytes] = {}
        self._use(lambda database: found.update(_asked(database, list(keys.values()))))
        known = {path: _unpacked(path, found[key]) for path, key in keys.items() if key in found}
        return {path: result for path, result in known.items() if result is not None}

    def keep(self, results: Mapping[bytes, FileResult]) -> None:
        """Remember these results by key."""
        rows = [(key, _packed(result)) for key, result in results.items()]
        self._use(lambda database: self._write(database, rows))

    def _write(self, database: sqlite3.Connection, rows: Sequence[tuple[bytes, bytes]]) -> None:
        with database:
            database.execute("BEGIN IMMEDIATE")
            self._make_room(database)
            database.executemany("INSERT OR REPLACE INTO results (key, result) VALUES (?, ?)", rows)

    def _make_room(self, database: sqlite3.Connection) -> None:
        """Forget the oldest once the limit is reached."""
        pages, free, size = (
            database.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        if (pages - free) * size < self._limit_bytes:
            return
        first, last = database.execute("SELECT min(number), max(number) FROM results").fetchone()
        if first is not None:
            database.execute(
                "DELETE FROM results WHERE number <= ?", (first + (last - first) // _FORGOTTEN_SHARE,)
            )

    def _use(self, work: Callable[[sqlite3.Connection], None]) -> None:
        """Do something with the database, or nothing where it cannot be used."""
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._file, timeout=_BUSY_S, isolation_level=None)) as database:
                database.execute("PRAGMA journal_mode = WAL")
                database.execute("PRAGMA synchronous = OFF")  # damaged by a power cut, it is begun anew
                database.execute(_TABLE)
                work(database)
        except (OSError, sqlite3.OperationalError) as error:  # no folder; locked, read-only, full
            self._tell(error)
        except sqlite3.DatabaseError as error:
            self._tell(error)
            self._begin_anew()

    def _begin_anew(self) -> None:
        for ending in ("", "-wal", "-shm"):
            with suppress(OSError):
                self._file.with_name(self._file.name + ending).unlink()

    def _tell(self, error: Exception) -> None:
        log.warning(
            "The memory of results in %s is not used: %s", self._file, error, action="memory_not_used"
        )


def _asked(database: sqlite3.Connection, keys: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    for start in range(0, len(keys), _KEYS_A_QUESTION):
        some = keys[start : start + _KEYS_A_QUESTION]
        marks = ",".join("?" * len(some))
        yield from database.execute(f"SELECT key, result FROM results WHERE key IN ({marks})", some)


def _blob_of(view: TreeView, path: str) -> str:
    entry = view.entry(path)
    assert entry is not None, path  # the view itself named this path
    return entry.oid


def _digest(*parts: object) -> bytes:
    made = blake2b(digest_size=_KEY_BYTES)
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogateescape")
        made.update(b"%d:" % len(data) + data)
    return made.digest()


def _packed(result: FileResult) -> bytes:
    """Nothing for a file in which nothing was found, as are most; else with zlib's own check sum."""
    if result == FileResult():
        return b""
    residue = [(one.line, _raw(one.text), _raw(one.reason)) for one in result.residue]
    risks = [(one.severity.value, _raw(one.text), one.path is None) for one in result.risks]
    whole = (result.data, result.sites, residue, risks, dict(result.counts))
    return zlib.compress(msgpack.packb(whole), level=1)


def _unpacked(path: str, packed: bytes) -> FileResult | None:
    if not packed:
        return FileResult()
    try:
        data, sites, residue, risks, counts = msgpack.unpackb(zlib.decompress(packed))
        return FileResult(
            data,
            sites,
            tuple(
                Residue(path=path, line=line, text=_text(text), reason=_text(reason))
                for line, text, reason in residue
            ),
            tuple(
                RiskNote(severity=severity, text=_text(text), path=None if of_all else path)
                for severity, text, of_all in risks
            ),
            counts,
        )
    except (zlib.error, ValueError, TypeError):
        return None


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogatepass")
