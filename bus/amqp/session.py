"""The two connections of a process, one to publish and one to consume, for as long as both live.

Two, because a broker that holds back publishers (memory, disk) stops reading their connection, acknowledgements and
all. A session never heals: when either connection is lost, the next session replaces it.
"""

import asyncio
import logging
import ssl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit

import aio_pika
from aio_pika.abc import AbstractConnection
from aio_pika.exceptions import AuthenticationError, ProbableAuthenticationError
from aiormq.channel import Channel

from schemas.errors import BrokerUnreachableError, SettingsError
from schemas.version import VERSION

# A broker that froze is noticed after three times this and a bit.
HEARTBEAT_S = 10
CONNECT_LIMIT_S = 5.0
CHANNEL_LIMIT_S = 10.0
CLOSE_LIMIT_S = 5.0
# Frames that a channel holds before it stops reading; the library's default of 10 makes it stop at every breath.
FRAME_BUFFER = 512


class Session:
    """Two open connections; `lost` is set once either is gone. `user` is the broker's name for us, if known."""

    def __init__(self, publishing: AbstractConnection, consuming: AbstractConnection, user: str) -> None:
        self.user = user
        self.lost = asyncio.Event()
        self._publishing = publishing
        self._consuming = consuming
        for connection in (publishing, consuming):
            connection.close_callbacks.add(self._on_close)

    @classmethod
    async def open(cls, urls: Sequence[str], name: str) -> "Session":
        """Connect to the first of `urls` that lets us in. Raises BrokerUnreachableError about the last that did not."""
        failure: BrokerUnreachableError | None = None
        for url in urls:
            try:
                return await _open(_Address.parse(url), name)
            except BrokerUnreachableError as error:
                failure = error
        raise failure or SettingsError(
            "No broker is named.", suggestion="Give --broker or ROLECALL_BROKER_URL."
        )

    async def publishing_channel(self, *, confirms: bool) -> Channel:
        """A new channel on the publishing connection; returned messages raise where confirms are on."""
        return await _channel(self._publishing, confirms=confirms)

    async def consuming_channel(self) -> Channel:
        """A new channel on the consuming connection."""
        return await _channel(self._consuming, confirms=False)

    async def close(self) -> None:
        """Close both connections, with a limit."""
        self.lost.set()
        await asyncio.gather(_close(self._publishing), _close(self._consuming))

    def _on_close(self, *_: object) -> None:
        self.lost.set()


@dataclass(frozen=True, slots=True)
class _Address:
    """A broker's URL taken apart, so that nothing that is printed ever holds the password."""

    url: str
    shown: str
    user: str
    password: str

    @classmethod
    def parse(cls, url: str) -> "_Address":
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise _bad_url() from None  # the reason quotes the URL
        if parts.scheme not in ("amqp", "amqps") or not parts.hostname:
            raise _bad_url()
        user = unquote(parts.username or "guest")
        host = f"{parts.hostname}:{port or (5671 if parts.scheme == 'amqps' else 5672)}"
        return cls(
            _with_heartbeat(parts),
            f"{parts.scheme}://{user}@{host}{parts.path}",
            user,
            unquote(parts.password or "guest"),
        )


async def _open(address: _Address, name: str) -> Session:
    publishing: AbstractConnection | None = None
    try:
        publishing = await _connect(address, f"{name} publishing")
        return Session(publishing, await _connect(address, f"{name} consuming"), address.user)
    except BaseException:
        if publishing is not None:
            await _close(publishing)
        raise


async def _connect(address: _Address, name: str) -> AbstractConnection:
    properties: dict[str, Any] = {"connection_name": name, "product": "Rolecall", "version": VERSION}
    try:
        async with asyncio.timeout(CONNECT_LIMIT_S):
            return await aio_pika.connect(address.url, client_properties=properties)
    except TimeoutError as error:
        raise _unreachable(address, f"did not answer within {CONNECT_LIMIT_S:g} s.") from error
    except (ProbableAuthenticationError, AuthenticationError) as error:
        # Not chained: nothing of what the library holds about the login belongs into a log.
        raise _refused(address, error) from None
    except ssl.SSLError as error:
        raise _unreachable(address, f"cannot be trusted: {error.reason or error}.") from error
    except (aio_pika.exceptions.AMQPError, OSError) as error:
        raise _unreachable(address, f"does not answer: {_reason(error, address)}.") from error


async def _channel(connection: AbstractConnection, *, confirms: bool) -> Channel:
    # The library's inner channel: its outer one leaves something behind on the connection for each that was opened.
    if connection.transport is None:
        raise ConnectionError("The connection is closed.")
    async with asyncio.timeout(CHANNEL_LIMIT_S):
        channel = await connection.transport.connection.channel(
            publisher_confirms=confirms, on_return_raises=confirms, frame_buffer_size=FRAME_BUFFER
        )
    return cast(Channel, channel)


def _unreachable(address: _Address, what: str) -> BrokerUnreachableError:
    return BrokerUnreachableError(
        f"The broker at {address.shown} {what}",
        suggestion="Start it or correct ROLECALL_BROKER_URL; `rolecall doctor` checks the broker.",
    )


def _refused(address: _Address, error: Exception) -> BrokerUnreachableError:
    what = (
        "offers no login that we know"
        if isinstance(error, AuthenticationError)
        else f"does not let user {address.user!r} in with this password"
    )
    return BrokerUnreachableError(
        f"The broker at {address.shown} {what}.",
        suggestion="Correct user and password in ROLECALL_BROKER_URL (or --broker).",
    )


def _reason(error: Exception, address: _Address) -> str:
    text = " ".join(str(part) for part in error.args if part not in (None, 0)) or type(error).__name__
    return text.replace(address.password, "***")[:200]


def _bad_url() -> SettingsError:
    return SettingsError(
        "The broker's URL is not one.",
        suggestion="It looks like amqp://user:password@host:5672/ (amqps:// for TLS).",
    )


def _with_heartbeat(parts: SplitResult) -> str:
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    return parts._replace(query=urlencode({"heartbeat": str(HEARTBEAT_S)} | query)).geturl()


async def _close(connection: AbstractConnection) -> None:
    with suppress(Exception):
        async with asyncio.timeout(CLOSE_LIMIT_S):
            await connection.close()


def quiet_libraries() -> None:
    """Let the libraries log nothing: we report every lost connection and failed attempt ourselves, once."""
    for name in ("aiormq", "aio_pika"):
        logger = logging.getLogger(name)
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.CRITICAL)
