"""Grants: the supervisor's signature that one action may run, checked by every role before it runs anything.

The bytes, for whoever writes a role in another language:

* `action` is the action's model as a MessagePack map; it travels and is hashed exactly as it was packed.
* `grant` is a MessagePack map: `v`, `task`, `action_id`, `attempt`, `pool`, `environment`, `base`, `digest`
  (SHA-256 of `action`, hexadecimal) and `start_by` (microseconds UTC).
* `signature` is Ed25519 over `grant`, 64 bytes.

Nothing is re-encoded on the way: a verifier hashes and checks what it received. Workers hold only the public key.
Text is UTF-8; a path that is not keeps its own bytes (Python: surrogateescape).
"""

from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import msgpack
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import BaseModel, ValidationError

from bus.owner_only import read_owner_only, write_owner_only
from schemas.action import Action, Grant
from schemas.errors import ContractError, SettingsError
from schemas.messages import ActionRequested

PUBLIC_KEY_BYTES = 32

Model = TypeVar("Model", bound=BaseModel)


class GrantExpiredError(ContractError):
    """The grant is genuine, but its time to start has passed; `action` is what it was for."""

    def __init__(self, action: Action, late_us: int) -> None:
        super().__init__(
            f"The grant of {action.action_id} ended {late_us // 1_000} ms ago; the action must not start."
        )
        self.action = action


class SigningKey:
    """The supervisor's private key."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key

    @classmethod
    def generate(cls) -> "SigningKey":
        """A fresh key."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def from_seed(cls, seed: bytes) -> "SigningKey":
        """The key of a 32-byte seed (RFC 8032)."""
        return cls(Ed25519PrivateKey.from_private_bytes(seed))

    @classmethod
    def load(cls, path: Path) -> "SigningKey":
        """The key in an owner-only file. Raises FileNotFoundError or SettingsError."""
        seed = read_owner_only(path)
        if len(seed) != PUBLIC_KEY_BYTES:
            raise SettingsError(
                f"{path} is not a signing key (32 bytes).",
                suggestion="Restore it, or remove it for a new one.",
            )
        return cls.from_seed(seed)

    @classmethod
    def load_or_create(cls, path: Path) -> "SigningKey":
        """The key in the file, made first if there is none. Only the holder of the state folder's lock may call it."""
        try:
            return cls.load(path)
        except FileNotFoundError:
            key = cls.generate()
            key.save(path)
            return key

    def save(self, path: Path) -> None:
        """Keep the key in an owner-only file."""
        write_owner_only(path, self._key.private_bytes_raw())

    @property
    def public_key(self) -> bytes:
        """What workers check with: 32 bytes."""
        return self._key.public_key().public_bytes_raw()

    def sign_bytes(self, data: bytes) -> bytes:
        """The 64-byte signature of the data."""
        return self._key.sign(data)


def sign(action: Action, start_by_us: int, key: SigningKey) -> ActionRequested:
    """The work message's body for an action that may start until `start_by_us`. Raises ContractError if it cannot be packed."""
    packed = _pack(action)
    grant = Grant(
        task=action.task,
        action_id=action.action_id,
        attempt=action.attempt,
        pool=action.pool,
        environment=action.environment,
        base=action.base,
        digest=sha256(packed).hexdigest(),
        start_by=start_by_us,
    )
    granted = _pack(grant)
    return ActionRequested(
        action_id=action.action_id,
        contract=action.contract,
        step=action.step,
        action=packed,
        grant=granted,
        signature=key.sign_bytes(granted),
    )


def open_granted(
    requested: ActionRequested, public_key: bytes, *, environment: str, pool: str, now_us: int
) -> Action:
    """The action, if the supervisor granted exactly it to this pool of this environment, and in time.

    Raises GrantExpiredError (which carries the action) if only the time is wrong, else ContractError that says what is.
    """
    _verify(requested, public_key)
    grant = _unpack(Grant, requested.grant, "grant")
    if sha256(requested.action).hexdigest() != grant.digest:
        raise ContractError("The action is not the one that was granted: its digest differs.")
    action = _unpack(Action, requested.action, "action")
    _check_agreement(requested, grant, action)
    if (grant.environment, grant.pool) != (environment, pool):
        raise ContractError(
            f"The grant is for pool {grant.pool!r} of environment {grant.environment!r}, not for {pool!r} of {environment!r}."
        )
    if now_us > grant.start_by:
        raise GrantExpiredError(action, now_us - grant.start_by)
    return action


def _verify(requested: ActionRequested, public_key: bytes) -> None:
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(requested.signature, requested.grant)
    except InvalidSignature as error:
        raise ContractError("The grant is not signed by this environment's supervisor.") from error


def _check_agreement(requested: ActionRequested, grant: Grant, action: Action) -> None:
    told = (requested.action_id, requested.contract, requested.step)
    if told != (action.action_id, action.contract, action.step):
        raise ContractError("What the message says about its action is not what the action says.")
    granted = (grant.task, grant.action_id, grant.attempt, grant.pool, grant.environment, grant.base)
    if granted != (
        action.task,
        action.action_id,
        action.attempt,
        action.pool,
        action.environment,
        action.base,
    ):
        raise ContractError("The grant and the action do not name the same work.")


def _pack(model: BaseModel) -> bytes:
    try:
        packed: bytes = msgpack.packb(model.model_dump(), use_bin_type=True, unicode_errors="surrogateescape")
    except (TypeError, ValueError, OverflowError) as error:
        raise ContractError(f"The {type(model).__name__.lower()} cannot be packed: {error}.") from error
    return packed


def _unpack(model: type[Model], packed: bytes, subject: str) -> Model:
    try:
        return model.model_validate(msgpack.unpackb(packed, raw=False, unicode_errors="surrogateescape"))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise ContractError(f"The {subject} does not have its form: {where}: {first['msg']}.") from error
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise ContractError(f"The {subject} is not MessagePack: {type(error).__name__}.") from error
