"""The JSON Schema documents in schemas/json: up to date, and of one mind with the models and the loader."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML

from schemas import export
from schemas.contracts import ContractDocument, ContractRegistry, builtin_contracts
from schemas.envelope import Envelope
from schemas.errors import ContractError
from schemas.handoff import Handoff
from schemas.messages import BODIES
from schemas.plan import Plan
from schemas.recipe_file import parse_recipe
from schemas.task import TaskProgress, TaskRequest
from schemas.validation import Checker

EXAMPLES = Path(__file__).parent / "examples"
DOCUMENTS = export.documents()
MODELS: dict[str, type[BaseModel]] = {
    "envelope": Envelope,
    "handoff": Handoff,
    "plan": Plan,
    "task-request": TaskRequest,
    "task-progress": TaskProgress,
    "contract": ContractDocument,
    **{f"messages/{kind}": body for kind, body in BODIES.items()},
}


def examples(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((EXAMPLES / f"{name}.json").read_text("utf-8"))
    return loaded


def name_of(path: str) -> str:
    return path.removesuffix(".v1.json")


@pytest.mark.parametrize("path", DOCUMENTS)
def test_the_document_in_the_folder_is_what_the_models_say(path: str) -> None:
    written = (export.FOLDER / path).read_text("utf-8")

    assert written == export.as_text(DOCUMENTS[path]), "run `python -m schemas.export`"


def test_there_are_no_documents_of_kinds_that_are_gone() -> None:
    there = {f"messages/{file.name}" for file in (export.FOLDER / "messages").glob("*.json")}

    assert there == {path for path in DOCUMENTS if path.startswith("messages/")}


def test_writing_again_changes_nothing(tmp_path: Path) -> None:
    assert sorted(export.write(tmp_path)) == sorted(DOCUMENTS)
    (tmp_path / "messages" / "old.kind.v1.json").write_text("{}")

    assert export.write(tmp_path) == ["messages/old.kind.v1.json"]


@pytest.mark.parametrize("path", DOCUMENTS)
def test_a_document_is_a_valid_schema(path: str) -> None:
    jsonschema.Draft202012Validator.check_schema(DOCUMENTS[path])


@pytest.mark.parametrize("path", DOCUMENTS)
def test_a_document_takes_the_valid_examples_and_no_invalid_one(path: str) -> None:
    checker, cases = Checker(DOCUMENTS[path]), examples(name_of(path))

    assert cases["valid"]
    assert cases["invalid"]
    assert [value for value in cases["valid"] if not checker.accepts(value)] == []
    assert [case["why"] for case in cases["invalid"] if checker.accepts(case["value"])] == []


@pytest.mark.parametrize("path", DOCUMENTS)
def test_both_deciders_give_one_answer(path: str) -> None:
    checker, cases = Checker(DOCUMENTS[path]), examples(name_of(path))
    slow = jsonschema.Draft202012Validator(DOCUMENTS[path])

    for value in [*cases["valid"], *(case["value"] for case in cases["invalid"])]:
        assert checker.accepts(value) == slow.is_valid(value)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_takes_the_valid_examples_and_no_invalid_one(name: str) -> None:
    cases = examples(name)

    for value in cases["valid"]:
        MODELS[name].model_validate_json(json.dumps(value))
    for case in cases["invalid"]:
        with pytest.raises(ValidationError):
            MODELS[name].model_validate_json(json.dumps(case["value"]))


def test_the_loader_takes_the_valid_recipes_and_no_invalid_one() -> None:
    contracts, cases = ContractRegistry.builtin(), examples("recipe")
    contracts.add(own_contract())

    for value in cases["valid"]:
        parse_recipe(as_yaml(value), origin="r.yaml", contracts=contracts)
    for case in cases["invalid"]:
        with pytest.raises(ContractError):
            parse_recipe(as_yaml(case["value"]), origin="r.yaml", contracts=contracts)


@pytest.mark.parametrize("contract", builtin_contracts(), ids=lambda one: one.name)
def test_a_contract_is_sound(contract: ContractDocument) -> None:
    for schema in (contract.input, contract.output):
        jsonschema.Draft202012Validator.check_schema(schema)
    for example in contract.examples:
        Checker(contract.input).check(example.input, contract.ref)
    assert set(contract.injected) <= set(contract.input["properties"])
    assert contract.time_limit_s.default <= contract.time_limit_s.longest
    assert contract.side_effects


def own_contract() -> ContractDocument:
    valid: dict[str, Any] = examples("contract")["valid"][0]
    return ContractDocument.model_validate(valid | {"version": 2})


def as_yaml(value: Any) -> bytes:
    from io import BytesIO

    stream = BytesIO()
    YAML(typ="safe", pure=True).dump(value, stream)
    return stream.getvalue()
