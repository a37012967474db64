"""Secrets out of text, before anything is logged, journaled or sent.

Two ways to see one: by the name it goes under (`password=…`, a mapping's key), and by its own shape (a URL's password,
a private key block, the prefixes that providers give their tokens). Both would rather hide too much than too little,
but leave words that only talk about secrets alone.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeVar

from pydantic import BaseModel

from schemas.handoff import Handoff

Model = TypeVar("Model", bound=BaseModel)

HIDDEN = "[redacted]"

# A key that ends in one of these holds a secret; `public_key`, `routing_key` and `tokens_in` do not.
_SECRET_NAME = re.compile(
    r"(?i)(?:^|[_\-. ])(?:(?:password|passwd|passphrase|secret|credential|cookie)s?|pwd|token|nonce|authorization"
    r"|(?:api|access|private|secret|signing|encryption)[_\-. ]?keys?)$"
)
_SECRET_WORD = (
    r"[a-z0-9_\-]*(?:password|passwd|passphrase|secret|token|(?:api|access|private|secret)[_-]?key)"
)

_SHAPES: tuple[tuple[re.Pattern[str], str], ...] = (
    # scheme://user:password@host — the password may hold anything but a space, a slash or a quote.
    (
        re.compile(r"(?P<keep>\b[a-zA-Z][a-zA-Z0-9+.\-]*://[^\s/:@'\"]*:)[^\s/'\"]+(?=@)"),
        rf"\g<keep>{HIDDEN}",
    ),
    (
        re.compile(
            r"-----BEGIN (?P<kind>[A-Z ]*PRIVATE KEY)-----.*?(?:-----END (?P=kind)-----|\Z)", re.DOTALL
        ),
        HIDDEN,
    ),
    (re.compile(r"(?i)(?P<keep>\b(?:bearer|basic) )[A-Za-z0-9+/._~\-]{8,}=*"), rf"\g<keep>{HIDDEN}"),
    # "password": "…" and password = '…': what is quoted, whatever it is.
    (
        re.compile(
            rf"(?i)(?P<keep>\b{_SECRET_WORD}['\"]?\s*[=:]\s*(?P<quote>['\"]))(?!\[redacted\])[^'\"\n]{{4,}}(?=(?P=quote))"
        ),
        rf"\g<keep>{HIDDEN}",
    ),
    # PASSWORD=… as environments print it. A call or an index after it is code, and so is `password = name`.
    (
        re.compile(
            rf"(?i)(?P<keep>\b{_SECRET_WORD}[=:])(?!\[redacted\])[^\s'\",;&()\[\]{{}}]{{4,}}+(?![(\[])"
        ),
        rf"\g<keep>{HIDDEN}",
    ),
    # GitHub, GitLab, Slack, Stripe and model providers, AWS, Google, PyPI, JSON web tokens.
    (
        re.compile(
            r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_\-]{16,}"
            r"|xox[abprs]-[A-Za-z0-9\-]{10,}|sk-[A-Za-z0-9_\-]{16,}|[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"
            r"|A(?:KIA|SIA)[A-Z0-9]{16}|AIza[A-Za-z0-9_\-]{30,}|pypi-[A-Za-z0-9_\-]{30,}"
            r"|eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*)"
        ),
        HIDDEN,
    ),
)

# One pass that almost every text fails: only then are the shapes tried.
_HINT = re.compile(
    r"(?i)://|private key|bearer |basic |pass(?:word|wd|phrase)|secret|token|key['\"]?\s*[=:]"
    r"|gh[pousr]_|github_pat|glpat-|xox|sk-|[rs]k_|akia|asia|aiza|pypi-|eyj"
)


def redact_text(text: str) -> str:
    """The text with every secret that it shows replaced."""
    if _HINT.search(text) is None:
        return text
    for shape, instead in _SHAPES:
        text = shape.sub(instead, text)
    return text


def redact(value: Any) -> Any:
    """The same value with secrets hidden in its texts and under its keys, at any depth."""
    if isinstance(value, str):
        return redact_text(value)
    if value is None or isinstance(value, int | float):
        return value
    match value:
        case bytes():
            return f"<{len(value)} bytes>"
        case Mapping():
            return redact_fields(value)
        case list() | tuple() | set() | frozenset():
            return [redact(one) for one in value]
        case _:
            return redact_text(str(value))


def redact_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping with the values of secret names hidden, and the others redacted."""
    return {
        key: HIDDEN if is_secret_name(key) and one is not None else redact(one) for key, one in fields.items()
    }


def redact_handoff(handoff: Handoff) -> Handoff:
    """The handoff with its free texts redacted; what machines read (ids, output, counts) stays as it is."""
    update: dict[str, Any] = {
        "findings": tuple(_hide_in(one, "text") for one in handoff.findings),
        "residue": tuple(_hide_in(one, "text", "reason") for one in handoff.residue),
        "risks": tuple(_hide_in(one, "text") for one in handoff.risks),
        "evidence": tuple(_hide_in(one, "head", "tail") for one in handoff.evidence),
        "open_questions": tuple(redact_text(one) for one in handoff.open_questions),
        "suggested_next": tuple(redact_text(one) for one in handoff.suggested_next),
        "error": None if handoff.error is None else _hide_in(handoff.error, "message", "suggestion"),
    }
    return handoff.model_copy(
        update={name: new for name, new in update.items() if new != getattr(handoff, name)}
    )


@lru_cache(maxsize=1024)
def is_secret_name(name: object) -> bool:
    """True if what goes under this name is a secret."""
    return isinstance(name, str) and _SECRET_NAME.search(name) is not None


def _hide_in(model: Model, *fields: str) -> Model:
    old = {name: getattr(model, name) for name in fields}
    new = {name: redact_text(text) for name, text in old.items()}
    return model if new == old else model.model_copy(update=new)
