"""Does a value fit a JSON Schema? Decided by jsonschema-rs, explained by jsonschema, after coercion.

One check takes microseconds with the Rust decider and about a tenth of a millisecond with the Python one, so the
second only runs to say what is wrong; a test holds both to one answer.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jsonschema_rs

from schemas.errors import ContractError
from schemas.suggest import nearest


class Checker:
    """One compiled schema (2020-12)."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = schema
        self._decider = jsonschema_rs.Draft202012Validator(dict(schema), retriever=_refuse)

    def accepts(self, value: Any) -> bool:
        """True if the value fits."""
        return self._decider.is_valid(value)

    def check(self, value: Any, subject: str) -> Any:
        """The value after coercion. Raises ContractError about `subject` that says where, what and the nearest name."""
        coerced = coerce(value, self.schema)
        if not self._decider.is_valid(coerced):
            raise ContractError(f"{subject}: {explain(self.schema, coerced)}")
        return coerced


def _refuse(uri: str) -> Any:
    raise ValueError("a schema may not refer to another document")


def checker(schema: Mapping[str, Any]) -> Checker:
    """The compiled checker of a schema; the same schema is compiled once."""
    return _compiled(json.dumps(schema, sort_keys=True))


def coerce(value: Any, schema: Mapping[str, Any]) -> Any:
    """The value with what is plainly meant put right: "12" for an integer is 12, one word for a list is a list of it.

    Defaults are filled in. What is not plain is left for the checker to refuse.
    """
    kinds = schema.get("type")
    kinds = (kinds,) if isinstance(kinds, str) else tuple(kinds or ())
    if isinstance(value, str) and "string" not in kinds:
        value = _from_text(value, kinds)
    if isinstance(value, bool) or value is None:
        return value
    if "array" in kinds and not isinstance(value, Sequence) and not isinstance(value, Mapping):
        value = [value]
    if isinstance(value, Mapping):
        return _coerce_object(value, schema)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        items = schema.get("items", {})
        return [coerce(item, items) for item in value]
    return value


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a value: where in it, what is wrong there in one sentence, and what to do."""

    path: tuple[str | int, ...]
    text: str


def explain(schema: Mapping[str, Any], value: Any) -> str:
    """Why the value does not fit, in one sentence that names the place, with the nearest known name."""
    fault = find_fault(schema, value)
    if fault is None:
        return "does not fit the schema."
    where = ".".join(str(part) for part in fault.path) or "the value"
    return f"{where} {fault.text}"


def find_fault(schema: Mapping[str, Any], value: Any) -> Fault | None:
    """The fault that says most, or None if the value fits; its path leads to an unknown key itself."""
    import jsonschema  # imported here: only a refusal needs it, and it costs every process 10 MB
    from jsonschema.exceptions import best_match

    error = best_match(jsonschema.Draft202012Validator(dict(schema)).iter_errors(value))
    if error is None:
        return None
    path = tuple(error.absolute_path)
    if error.validator == "additionalProperties" and isinstance(error.instance, Mapping):
        known = list(error.schema.get("properties", {}))
        unknown = [key for key in error.instance if key not in known]
        if unknown:
            return Fault((*path, unknown[0]), f"is an unknown key. {_meant(unknown[0], known)}")
    if error.validator == "required" and isinstance(error.instance, Mapping):
        missing = next(key for key in error.validator_value if key not in error.instance)
        return Fault(path, f"lacks the key {missing!r}.")
    if error.validator == "enum":
        return Fault(
            path,
            f"must be one of {_listed(error.validator_value)}, not {_short(repr(error.instance))}. "
            f"{_meant(str(error.instance), [str(one) for one in error.validator_value], also_list=False)}".rstrip(),
        )
    return Fault(path, f"is wrong: {_short(error.message)}.")


def _meant(word: object, known: Sequence[str], *, also_list: bool = True) -> str:
    hint = nearest(str(word), known)
    if hint:
        return f"Did you mean {hint!r}?"
    return f"Known are {', '.join(known) or 'none'}." if also_list else ""


def _listed(values: Iterable[object]) -> str:
    return ", ".join(repr(value) for value in values)


def _coerce_object(value: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    filled = {key: one["default"] for key, one in properties.items() if "default" in one and key not in value}
    return {key: coerce(one, properties.get(key, {})) for key, one in value.items()} | filled


def _from_text(value: str, kinds: Sequence[str]) -> Any:
    text = value.strip()
    if "integer" in kinds and text.lstrip("+-").isdecimal():
        return int(text)
    if "number" in kinds:
        try:
            return float(text)
        except ValueError:
            return value
    if "boolean" in kinds and text.lower() in _WORDS:
        return _WORDS[text.lower()]
    return [value] if "array" in kinds else value


_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def _short(message: str) -> str:
    return message if len(message) <= 300 else message[:297] + "..."


@lru_cache(maxsize=256)
def _compiled(schema_json: str) -> Checker:
    return Checker(json.loads(schema_json))
