"""`python -m schemas.export`: writes the JSON Schema documents (2020-12) that are generated from the models.

The hand-written contract documents in `json/actions` are not touched. A test compares what lies there with what
this would write, so a model and its document cannot drift apart.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from schemas.contracts import ContractDocument, ContractRegistry
from schemas.envelope import Envelope
from schemas.handoff import Handoff
from schemas.messages import BODIES
from schemas.plan import Plan
from schemas.recipe import MAX_RULES, NAME_PATTERN, RecipeTest, RuleExample
from schemas.recipe_file import author_schema
from schemas.scope import Scope
from schemas.task import TaskProgress, TaskRequest

DIALECT = "https://json-schema.org/draft/2020-12/schema"
FOLDER = Path(__file__).parent / "json"

_MODELS: Mapping[str, type[BaseModel]] = {
    "envelope.v1.json": Envelope,
    "handoff.v1.json": Handoff,
    "plan.v1.json": Plan,
    "task-request.v1.json": TaskRequest,
    "task-progress.v1.json": TaskProgress,
    "contract.v1.json": ContractDocument,
    **{f"messages/{kind}.v1.json": body for kind, body in BODIES.items()},
}


def documents() -> dict[str, dict[str, Any]]:
    """Every generated document by its path below `schemas/json`."""
    generated = {path: _model_document(path, model) for path, model in _MODELS.items()}
    return generated | {"recipe.v1.json": recipe_document(ContractRegistry.builtin())}


def recipe_document(contracts: ContractRegistry) -> dict[str, Any]:
    """The schema of a recipe file for editors: the given contracts as keys with their inputs, others by pattern."""
    changing = sorted((one for one in contracts if one.changes == "tree"), key=lambda one: one.name)
    rule_properties: dict[str, Any] = {
        "id": {
            "type": "string",
            "pattern": NAME_PATTERN,
            "description": "Names the rule in reports and commits; the contract and a number if not given.",
        },
        "description": {"type": "string", "description": "What the rule does, for the report."},
        "scope": _scope("Narrows the recipe's scope; paths as they are when the rule runs."),
        "examples": {
            "type": "array",
            "items": _inlined(RuleExample),
            "description": "The rule is tried on these before anything else happens.",
        },
    }
    for contract in changing:
        rule_properties[contract.name] = {"description": contract.description} | author_schema(contract)
    named = [{"required": [contract.name]} for contract in changing]
    own = {"not": {"propertyNames": {"enum": list(rule_properties)}}}
    return {
        "$schema": DIALECT,
        "$id": _id_of("recipe.v1.json"),
        "title": "Recipe",
        "description": "A refactor as an ordered list of rules; each rule has exactly one contract as a key.",
        "type": "object",
        "required": ["rules"],
        "additionalProperties": False,
        "properties": {
            "recipe": {
                "type": "string",
                "pattern": NAME_PATTERN,
                "description": "Its name; the file's if not given.",
            },
            "description": {"type": "string"},
            "scope": _scope("Which paths the recipe may touch."),
            "rules": {
                "type": "array",
                "minItems": 1,
                "maxItems": MAX_RULES,
                "items": {
                    "type": "object",
                    "properties": rule_properties,
                    "patternProperties": {
                        r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+(@[0-9]+)?$": {"type": "object"}
                    },
                    "additionalProperties": False,
                    "oneOf": [*named, own],
                },
            },
            "test": _inlined(RecipeTest)
            | {"description": "The command that says whether the repository still works."},
        },
    }


def write(folder: Path) -> list[str]:
    """Write what differs; returns those paths. Message documents of kinds that are gone are deleted."""
    changed = []
    wanted = documents()
    for path, document in wanted.items():
        target = folder / path
        text = as_text(document)
        if not target.exists() or target.read_text("utf-8") != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, "utf-8")
            changed.append(path)
    for stale in (folder / "messages").glob("*.json"):
        if f"messages/{stale.name}" not in wanted:
            stale.unlink()
            changed.append(f"messages/{stale.name}")
    return changed


def as_text(document: Mapping[str, Any]) -> str:
    """A document as it lies in the folder."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _model_document(path: str, model: type[BaseModel]) -> dict[str, Any]:
    body: dict[str, Any] = _without_bytes(model.model_json_schema())
    return {"$schema": DIALECT, "$id": _id_of(path)} | body


def _id_of(path: str) -> str:
    return "urn:rolecall:" + path.removesuffix(".json").replace("/", ":")


def _scope(description: str) -> dict[str, Any]:
    globs: dict[str, Any] = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
    full = _inlined(Scope)
    full["properties"] = dict.fromkeys(full["properties"], globs)
    return {"description": description, "anyOf": [full, *globs["anyOf"]]}


def _inlined(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema()
    schema.pop("title", None)
    for one in schema["properties"].values():
        one.pop("title", None)
    return schema


def _without_bytes(value: Any) -> Any:
    """Bytes are native MessagePack; a JSON Schema has no word for them, so it does not look into those fields."""
    if isinstance(value, dict):
        if value.get("format") == "binary":
            return {"title": value.get("title", ""), "description": "Bytes (MessagePack bin)."}
        return {key: _without_bytes(one) for key, one in value.items()}
    return [_without_bytes(one) for one in value] if isinstance(value, list) else value


if __name__ == "__main__":
    names = write(FOLDER)
    sys.stdout.write(
        "".join(f"{name}\n" for name in names) or "Nothing to write: every document is up to date.\n"
    )
