"""From a submitted request to what the saga accepts: contracts found, inputs checked, or the reason to refuse."""

import secrets

from schemas.contracts import ContractDocument, ContractRegistry
from schemas.errors import ContractError
from schemas.recipe import Recipe, Rule
from schemas.task import TaskRequest
from schemas.validation import checker
from schemas.words import Risk, Shardable
from supervisor.fleet import Fleet
from supervisor.saga.messages import Submit
from supervisor.saga.state import ContractFacts, Proof, RuleRequest

# Keys the nonces of a task: as long as a SHA-256 digest.
NONCE_SECRET_BYTES = 32


def resolve(request: TaskRequest, registry: ContractRegistry, fleet: Fleet, at: int) -> Submit:
    """The message for the saga; `refused` names what is wrong with the request."""
    try:
        recipe = Recipe.model_validate(request.recipe)
        rules = tuple(_rule(rule, registry, fleet, request) for rule in recipe.rules)
    except (ContractError, ValueError) as error:
        return Submit(at, request, refused=str(error))
    return Submit(
        at,
        request,
        rules,
        plan_contract=_facts(registry.get("plan.draft"), registry),
        review_contract=_facts(registry.get("review.change"), registry),
        test_contract=_facts(registry.get("test.run"), registry),
        secret=secrets.token_hex(NONCE_SECRET_BYTES),
    )


def _rule(rule: Rule, registry: ContractRegistry, fleet: Fleet, request: TaskRequest) -> RuleRequest:
    document = registry.get(rule.contract)
    if not registry.is_builtin(document.name) and not fleet.serves(document.ref):
        served = ", ".join(registry.names())
        raise ContractError(
            f"Rule {rule.id}: no live role serves {document.ref}; known contracts are {served}.",
            suggestion="Start the role (`rolecall role module:Class`) and submit again.",
        )
    if document.risk is Risk.HIGH and document.name not in request.allow:
        raise ContractError(
            f"Rule {rule.id}: {document.ref} is of high risk and was not allowed.",
            suggestion=f"Grant it with --allow {document.name}.",
        )
    written = sorted(set(rule.input) & set(document.injected))
    if written:
        raise ContractError(
            f"Rule {rule.id}: {', '.join(written)} of {document.ref} is filled in by Rolecall and cannot be written.",
            suggestion=f"`rolecall contracts {document.name}` shows what a rule may say.",
        )
    checked = checker(document.input).check(rule.input, f"rule {rule.id}")
    facts = _facts(document, registry)
    if document.author_may_shard and checked.get("shardable") == Shardable.FILE:
        facts = facts.model_copy(update={"file_shardable": True})
    return RuleRequest(
        rule=rule.id, description=rule.description, contract=facts, input=checked, scope=rule.scope
    )


def _facts(document: ContractDocument, registry: ContractRegistry) -> ContractFacts:
    return ContractFacts(
        ref=document.ref,
        title=document.title,
        pool=document.pool,
        pure=document.pure,
        changes_tree=document.changes == "tree",
        file_shardable=document.shardable is Shardable.FILE,
        time_limit_s=document.time_limit_s.default,
        longest_s=document.time_limit_s.longest,
        proof=_proof(document, registry),
        injected=document.injected,
    )


def _proof(document: ContractDocument, registry: ContractRegistry) -> Proof:
    if document.changes == "nothing":
        return Proof.NONE
    if registry.is_builtin(document.name):
        return Proof.RERUN
    return Proof.TWICE if document.pure else Proof.GATES
