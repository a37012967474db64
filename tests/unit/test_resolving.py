"""From a request to what the saga accepts: contracts found, inputs checked, or a reason that names the way out."""

from typing import Any

import pytest

from schemas.contracts import ContractDocument, ContractRegistry
from schemas.messages import RoleAnnounced, ServedContract
from supervisor.fleet import Fleet
from supervisor.resolving import resolve
from supervisor.saga.messages import Submit
from supervisor.saga.state import Proof
from tests.role_builders import contract
from tests.unit.saga_world import request

SWAP = {"language": "python", "match": "one", "replace": "eins"}


def resolved(*rules: dict[str, Any], served: tuple[ContractDocument, ...] = (), **changes: Any) -> Submit:
    registry = ContractRegistry.builtin()
    fleet = Fleet(registry)
    if served:
        contracts = tuple(
            ServedContract(name=one.name, version=one.version, digest=one.digest, document=one.model_dump())
            for one in served
        )
        said = RoleAnnounced(
            role="plug-in",
            pool=contract().pool,
            host="h",
            pid=1,
            version="1",
            slots=1,
            contracts=contracts,
            digest="d",
        )
        assert fleet.announced("host-1-1", said, 0) == ""
    recipe = {"recipe": "demo", "rules": list(rules)}
    return resolve(request(recipe=recipe, **changes), registry, fleet, 7)


def one_rule(contract_ref: str = "rewrite.pattern@1", **changes: Any) -> dict[str, Any]:
    return {"id": "swap", "contract": contract_ref, "input": SWAP, **changes}


def test_a_rule_of_a_built_in_contract_is_proved_by_running_it_again() -> None:
    told = resolved(one_rule(description="Count in German."))

    (rule,) = told.rules
    facts = rule.contract
    assert (told.refused, rule.rule, rule.description, rule.input) == (
        "",
        "swap",
        "Count in German.",
        SWAP | {"imports": {"add": []}},
    )
    assert (facts.ref, facts.pool, facts.pure, facts.changes_tree, facts.file_shardable, facts.proof) == (
        "rewrite.pattern@1",
        "executor",
        True,
        True,
        True,
        Proof.RERUN,
    )
    assert told.plan_contract is not None
    assert told.plan_contract.pool == "planner"
    assert len(told.secret) == 64


def test_every_task_has_a_secret_of_its_own() -> None:
    assert resolved(one_rule()).secret != resolved(one_rule()).secret


def test_an_input_is_coerced_by_its_contract() -> None:
    told = resolved(one_rule("lint.fix@1", input={"rules": "UP006"}))

    assert told.rules[0].input["rules"] == ["UP006"]


def test_an_unknown_contract_is_refused_with_the_nearest_name_and_all_there_are() -> None:
    told = resolved(one_rule("rewrite.patern@1"))

    assert told.rules == ()
    assert "There is no contract 'rewrite.patern@1'; known are lint.fix, plan.draft," in told.refused
    assert "Did you mean 'rewrite.pattern@1'?" in told.refused


def test_a_contract_that_no_live_role_serves_is_refused_naming_those_there_are() -> None:
    document = contract()
    registry = ContractRegistry.builtin()
    registry.add(document)
    fleet = Fleet(registry)
    recipe = {"recipe": "demo", "rules": [one_rule(document.ref, input={"text": "a"})]}

    told = resolve(request(recipe=recipe), registry, fleet, 7)

    assert told.refused.startswith(
        "Rule swap: no live role serves count.words@1; known contracts are count.words, lint.fix,"
    )
    assert told.refused.endswith("Start the role (`rolecall role module:Class`) and submit again.")


@pytest.mark.parametrize(
    ("changes", "proof"),
    [
        ({"changes": "nothing"}, Proof.NONE),
        ({"changes": "tree", "pure": True}, Proof.TWICE),
        ({"changes": "tree", "pure": False}, Proof.GATES),
    ],
)
def test_a_contract_that_a_live_role_serves_is_proved_as_it_can_be(
    changes: dict[str, Any], proof: Proof
) -> None:
    document = contract().model_copy(update=changes)

    told = resolved(one_rule(document.ref, input={"text": "a"}), served=(document,))

    assert (told.refused, told.rules[0].contract.proof) == ("", proof)


def test_a_contract_of_high_risk_needs_to_be_allowed_by_name() -> None:
    document = ContractDocument.model_validate(contract().model_dump() | {"risk": "high"})
    rule = one_rule(document.ref, input={"text": "a"})

    refused = resolved(rule, served=(document,))
    allowed = resolved(rule, served=(document,), allow=("count.words",))

    assert (
        refused.refused
        == "Rule swap: count.words@1 is of high risk and was not allowed. Grant it with --allow count.words."
    )
    assert allowed.refused == ""


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (
            one_rule(input={"language": "python", "match": "a"}),
            "rule swap: the value lacks the key 'replace'.",
        ),
        (one_rule(input=SWAP | {"mach": "x"}), "rule swap: mach is an unknown key. Did you mean 'match'?"),
        (one_rule(id="Not A Name"), "String should match pattern"),
        ({"id": "swap"}, "Field required"),
    ],
)
def test_a_rule_that_its_contract_does_not_allow_is_refused_with_the_place(
    rule: dict[str, Any], text: str
) -> None:
    assert text in resolved(rule).refused


def test_what_is_filled_in_cannot_be_written_so_our_own_contracts_are_no_rules() -> None:
    touched = resolved(one_rule("lint.fix@1", input={"rules": ["F"], "touched": "0" * 40}))
    test = resolved(one_rule("test.run@1", input={"command": ["rm"], "timeout_s": 1}))

    assert touched.refused.startswith("Rule swap: touched of lint.fix@1 is filled in by Rolecall")
    assert test.refused.startswith("Rule swap: command, timeout_s of test.run@1 is filled in by Rolecall")


def test_two_rules_of_one_name_are_refused() -> None:
    assert "two rules have the id 'swap'" in resolved(one_rule(), one_rule()).refused


def test_an_author_may_say_that_a_text_rule_can_be_cut() -> None:
    text = {"find": "a", "replace": "b"}

    whole = resolved(one_rule("text.replace@1", input=text))
    cut = resolved(one_rule("text.replace@1", input=text | {"shardable": "file"}))

    assert (whole.rules[0].contract.file_shardable, cut.rules[0].contract.file_shardable) == (False, True)
