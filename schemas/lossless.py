"""JSON that keeps names which are not UTF-8: git's paths travel as surrogate escapes, and plain writers refuse those."""

import json
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

M = TypeVar("M", bound=BaseModel)


def dump_json(model: BaseModel) -> bytes:
    """A model as JSON; ASCII escapes only where a text is not UTF-8."""
    try:
        return model.__pydantic_serializer__.to_json(model)
    except PydanticSerializationError:
        return json.dumps(model.model_dump(mode="json"), separators=(",", ":")).encode()


def load_json(kind: type[M], data: bytes) -> M:
    """The model back. Raises ValidationError if the JSON is not one of its kind."""
    try:
        return kind.model_validate_json(data)
    except ValidationError:
        if b"\\ud" not in data:
            raise
        return kind.model_validate(json.loads(data))


def readable(text: str) -> str:
    """The text with what is not UTF-8 written out (`\\udce9`), for places that take nothing else."""
    return text.encode("utf-8", "backslashreplace").decode()
