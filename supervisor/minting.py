"""From commands to messages: envelopes with fresh ids, signed grants, and the outbox rows that keep them.

Effects on the hub (composing, moving the head) are outbox rows too, under the exchange name `effect`, so that a crash
between decision and effect repeats the effect.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any, assert_never

from bus.api import Exchange, Outgoing
from bus.codec import decode, encode
from bus.grants import SigningKey, sign
from bus.topology import control_key
from schemas.action import Action
from schemas.clock import new_id
from schemas.envelope import Envelope, Sender
from schemas.messages import ActionStopped, LeaseGranted
from schemas.words import Lane
from supervisor.journal.journal import Row
from supervisor.saga.attempts import DISPATCH_TTL_S
from supervisor.saga.commands import Command, Compose, Dispatch, GrantLease, MoveHead, StopAction

EFFECT = "effect"


@dataclass(frozen=True, slots=True)
class Effect:
    """Something to do in the hub."""

    task: str
    message_id: str
    command: Compose | MoveHead


@dataclass(frozen=True, slots=True)
class Posting:
    """Something to publish, under the outbox id that counts."""

    task: str
    message_id: str
    outgoing: Outgoing


Minted = Effect | Posting


class Mint:
    """Makes messages in the supervisor's name."""

    def __init__(self, environment: str, sender: Sender, key: SigningKey) -> None:
        self._environment = environment
        self._sender = sender
        self._key = key

    def command(
        self, task: str, command: Command, *, cause: str | None, lane: Lane, traceparent: str | None, at: int
    ) -> tuple[Minted, Row]:
        """The message of a command, and its outbox row."""
        if isinstance(command, Compose | MoveHead):
            effect = Effect(task, new_id(), command)
            return effect, _effect_row(effect, at)
        kind, exchange, key, body, ttl_ms, attempt = self._body(task, command)
        envelope = self.envelope(
            kind,
            body,
            task=task,
            cause=cause,
            lane=lane,
            ttl_ms=ttl_ms,
            attempt=attempt,
            traceparent=traceparent,
            at=at,
        )
        posting = Posting(task, envelope.message_id, Outgoing(exchange, key, envelope))
        return posting, _row(posting, at)

    def envelope(
        self,
        kind: str,
        body: dict[str, Any],
        *,
        task: str,
        at: int,
        cause: str | None = None,
        lane: Lane = Lane.INTERACTIVE,
        ttl_ms: int | None = None,
        attempt: int = 0,
        traceparent: str | None = None,
    ) -> Envelope:
        """An envelope of this supervisor, born now."""
        return Envelope(
            environment=self._environment,
            message_id=new_id(),
            correlation_id=task,
            causation_id=cause,
            kind=kind,
            sender=self._sender,
            created_at=at,
            ttl_ms=ttl_ms,
            attempt=attempt,
            lane=lane,
            traceparent=traceparent,
            body=body,
        )

    def _body(
        self, task: str, command: Dispatch | GrantLease | StopAction
    ) -> tuple[str, Exchange, str, dict[str, Any], int | None, int]:
        match command:
            case Dispatch(spec=spec, attempt=attempt):
                action = Action(
                    task=task,
                    action_id=spec.action_id,
                    step=spec.step,
                    rule=spec.rule_id,
                    contract=spec.contract,
                    input=spec.input,
                    base=spec.base,
                    reach=spec.reach,
                    attempt=attempt,
                    nonce=command.nonce,
                    pool=spec.pool,
                    environment=self._environment,
                    time_limit_s=spec.time_limit_s,
                )
                body = sign(action, command.start_by, self._key).model_dump()
                return "action.requested", Exchange.WORK, spec.pool, body, DISPATCH_TTL_S * 1000, attempt
            case GrantLease():
                granted = LeaseGranted(
                    action_id=command.action_id, attempt=command.attempt, nonce=command.nonce
                )
                key = control_key(command.pool, command.instance)
                return "lease.granted", Exchange.CONTROL, key, granted.model_dump(), None, command.attempt
            case StopAction():
                stopped = ActionStopped(
                    action_id=command.action_id, attempt=command.attempt, reason=command.reason
                )
                key = control_key(command.pool, command.instance)
                return "action.stopped", Exchange.CONTROL, key, stopped.model_dump(), None, command.attempt
            case _:
                assert_never(command)


def reread(row: Row) -> Minted:
    """What an outbox row holds, for sending it (again) after a start."""
    if row["exchange"] == EFFECT:
        fields = json.loads(row["raw"])
        if row["kind"] == "effect.compose":
            fields["results"] = tuple((base, result) for base, result in fields["results"])
            return Effect(row["task"], row["message_id"], Compose(**fields))
        return Effect(row["task"], row["message_id"], MoveHead(**fields))
    outgoing = Outgoing(Exchange(row["exchange"]), row["key"], decode(row["raw"]))
    return Posting(row["task"], row["message_id"], outgoing)


def _effect_row(effect: Effect, at: int) -> Row:
    kind = "effect.compose" if isinstance(effect.command, Compose) else "effect.move_head"
    raw = json.dumps(asdict(effect.command)).encode()
    return _fields(effect.task, effect.message_id, EFFECT, "hub", kind, raw, at)


def _row(posting: Posting, at: int) -> Row:
    outgoing = posting.outgoing
    raw = encode(outgoing.envelope)
    exchange, key, kind = str(outgoing.exchange), outgoing.key, outgoing.envelope.kind
    return _fields(posting.task, posting.message_id, exchange, key, kind, raw, at)


def _fields(task: str, message_id: str, exchange: str, key: str, kind: str, raw: bytes, at: int) -> Row:
    return {
        "message_id": message_id,
        "task": task,
        "exchange": exchange,
        "key": key,
        "kind": kind,
        "created_at": at,
        "sent_at": None,
        "note": "",
        "raw": raw,
    }
