"""Secrets do not get into logs, the journal or messages; words about secrets, and code, stay readable."""

import pytest

from bus.redaction import HIDDEN, redact, redact_handoff, redact_text
from schemas.handoff import Evidence, Failure, Handoff
from schemas.words import Outcome, Verdict


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("cannot reach amqp://rolecall:s3cr3t-pw@127.0.0.1:5672/", "s3cr3t-pw"),
        ("amqps://user:p@ss:w0rd@host/", "p@ss:w0rd"),
        ("postgresql+psycopg://me:hunter2@db/x and redis://:topsecret@cache", "topsecret"),
        ("DB_PASSWORD=hunter2 PATH=/bin", "hunter2"),
        ('{"api_key": "abcd1234efgh"}', "abcd1234efgh"),
        ("password = 'correct horse battery'", "correct horse"),
        ("Authorization: Bearer abcdef0123456789", "abcdef0123456789"),
        ("remote: ghp_0123456789abcdefghijABCDEFGHIJ012345", "ghp_0123456789"),
        ("key sk-proj-0123456789abcdefghij", "0123456789abcdefghij"),
        ("AKIAIOSFODNN7EXAMPLE", "IOSFODNN7"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "eyJzdWIi"),
        (
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1r\n-----END OPENSSH PRIVATE KEY-----",
            "b3BlbnNzaC1r",
        ),
        ("-----BEGIN PRIVATE KEY-----\nMIIcutoff", "MIIcutoff"),
    ],
)
def test_a_secret_is_hidden(text: str, secret: str) -> None:
    hidden = redact_text(text)

    assert secret not in hidden
    assert HIDDEN in hidden
    assert redact_text(hidden) == hidden


@pytest.mark.parametrize(
    "text",
    [
        "The token of the password reset page is a secret.",
        "token = get_token(request)",
        "login(user, password=request.form['password'])",
        "https://example.org/a:b@c",
        "ssh://git@example.org/repo.git",
        "def test_basic_auth(): ...",
        "key=value",
        "0123456789abcdef0123456789abcdef01234567",
    ],
)
def test_code_and_words_about_secrets_stay(text: str) -> None:
    assert redact_text(text) == text


def test_what_goes_under_a_secret_name_is_hidden_at_any_depth() -> None:
    record = {
        "nonce": "abc",
        "public_key": "ff",
        "tokens_in": 3,
        "headers": [{"Authorization": "x"}],
        "token": None,
        "raw": b"12",
    }

    assert redact(record) == {
        "nonce": HIDDEN,
        "public_key": "ff",
        "tokens_in": 3,
        "headers": [{"Authorization": HIDDEN}],
        "token": None,
        "raw": "<2 bytes>",
    }


def test_a_handoffs_texts_are_redacted_and_what_machines_read_is_not() -> None:
    leaking = Handoff(
        action_id="a",
        attempt=1,
        nonce="the-nonce-stays-here",
        outcome=Outcome.FAILED,
        base="0" * 40,
        output={"rule": "PASSWORD=hunter2"},
        evidence=(Evidence(claim="ran", verdict=Verdict.FAIL, tail="PASSWORD=hunter2"),),
        error=Failure(code="x", message="amqp://u:pw@h/"),
    )

    clean = redact_handoff(leaking)

    assert clean == leaking.model_copy(
        update={
            "evidence": (Evidence(claim="ran", verdict=Verdict.FAIL, tail=f"PASSWORD={HIDDEN}"),),
            "error": Failure(code="x", message=f"amqp://u:{HIDDEN}@h/"),
        }
    )
