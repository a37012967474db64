"""A language server of our own installation, spoken to over its standard streams (LSP 3.17, JSON-RPC).

It reads foreign files but runs no foreign code. What it asks of us is answered with nothing; what it tells unasked is
not listened to.
"""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from time import monotonic
from types import TracebackType
from typing import Any, BinaryIO, Self

from schemas.errors import WorkspaceError

# No question takes this long but to a server that hangs.
ANSWER_LIMIT_S = 300.0
_END_LIMIT_S = 5.0


class LanguageServer:
    """A running server; a context manager that ends it."""

    def __init__(
        self, command: Sequence[str | Path], *, cwd: Path, options: Mapping[str, Any] | None = None
    ) -> None:
        """Start it in a folder, which is its workspace. Raises WorkspaceError if it cannot be started."""
        self._name = Path(command[0]).name
        kept = {
            name: os.environ[name] for name in ("PATH", "TMPDIR", "LD_LIBRARY_PATH") if name in os.environ
        }
        home = cwd / ".nothing"
        try:
            self._process = subprocess.Popen(
                [str(word) for word in command],
                cwd=cwd,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=kept | {"LC_ALL": "C.UTF-8", "HOME": str(home), "XDG_CONFIG_HOME": str(home)},
            )
        except OSError as error:
            raise WorkspaceError(f"{self._name} cannot be started: {error.strerror}.") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input: BinaryIO = self._process.stdin  # type: ignore[assignment]
        self._answers: Queue[dict[str, Any] | None] = Queue()
        self._number = 0
        Thread(target=self._listen, args=(self._process.stdout,), daemon=True).start()
        self.capabilities: Mapping[str, Any] = self.ask(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": cwd.as_uri(),
                "capabilities": {},
                "initializationOptions": dict(options or {}),
                "workspaceFolders": [{"uri": cwd.as_uri(), "name": cwd.name}],
            },
        )["capabilities"]
        self.tell("initialized", {})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the server; nothing of it is wanted any more."""
        self._process.kill()
        self._process.wait(_END_LIMIT_S)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    continue

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification."""
        self._send({"method": method, "params": params})

    def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        """The result of a request."""
        return self.ask_many(method, [params])[0]

    def ask_many(self, method: str, questions: Sequence[Mapping[str, Any]]) -> list[Any]:
        """The results of requests that are under way together, in the order asked.

        Raises WorkspaceError if the server refuses one, dies or does not answer in time.
        """
        numbers = {}
        for index, params in enumerate(questions):
            self._number += 1
            numbers[self._number] = index
            self._send({"id": self._number, "method": method, "params": params})
        results: list[Any] = [None] * len(questions)
        deadline = monotonic() + ANSWER_LIMIT_S
        while numbers:
            answer = self._next(deadline - monotonic(), method)
            if "method" in answer:
                if "id" in answer:
                    self._send({"id": answer["id"], "result": _polite(answer)})
                continue
            index_of = numbers.pop(answer.get("id", 0), None)
            if index_of is None:
                continue
            if "error" in answer:
                said = answer["error"].get("message", "it said nothing")
                raise WorkspaceError(f"{self._name} refuses {method}: {said}.")
            results[index_of] = answer.get("result")
        return results

    def _next(self, limit_s: float, method: str) -> dict[str, Any]:
        try:
            answer = self._answers.get(timeout=max(limit_s, 0.01))
        except Empty:
            raise WorkspaceError(
                f"{self._name} did not answer {method} within {ANSWER_LIMIT_S:.0f} s and was killed."
            ) from None
        if answer is None:
            raise WorkspaceError(f"{self._name} ended before it answered {method}.")
        return answer

    def _send(self, message: Mapping[str, Any]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        try:
            self._input.write(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
            self._input.flush()
        except OSError as error:
            raise WorkspaceError(f"{self._name} ended unexpectedly.") from error

    def _listen(self, stream: BinaryIO) -> None:
        try:
            while (message := _message(stream)) is not None:
                self._answers.put(message)
        except (OSError, ValueError):
            pass  # closed under us, or no JSON: either way it says nothing more
        self._answers.put(None)


def _message(stream: BinaryIO) -> dict[str, Any] | None:
    length = 0
    while (line := stream.readline()).strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    if not line:
        return None
    found: dict[str, Any] = json.loads(stream.read(length))
    return found


def _polite(request: Mapping[str, Any]) -> Any:
    """An answer to what a server asks: no settings for any section."""
    if request["method"] == "workspace/configuration":
        return [None] * len(request.get("params", {}).get("items", ()))
    return None
