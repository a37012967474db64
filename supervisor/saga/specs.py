"""What each action is asked to do, made from the state: ids are derived, inputs complete."""

from hashlib import sha256
from typing import Any

from wcmatch import glob

from schemas.contracts import canonical_json
from schemas.scope import Reach, Scope, Shard
from supervisor.saga.attempts import derived_id
from supervisor.saga.commit_words import commit_words
from supervisor.saga.state import (
    ActionKind,
    ActionSpec,
    ContractFacts,
    RuleState,
    StepState,
    TaskState,
    needed,
)

# A test run may be followed by two runs of its new failures (on head and candidate), each as long as the first.
TEST_RUNS_AT_MOST = 3


def plan_spec(state: TaskState, revision: int) -> ActionSpec:
    """`plan.draft` over all rules, with what is known so far."""
    request, contract = state.asked, needed(state.plan_contract)
    rules = [
        {
            "rule": rule.request.rule,
            "contract": rule.request.contract.ref,
            "input": rule.request.input,
            "scope": _merged_scope(state, rule).model_dump(mode="json"),
            "shardable": "file" if rule.request.contract.file_shardable else "whole",
        }
        for rule in state.rules
    ]
    known = [one.model_dump(mode="json", exclude_none=True) for one in state.known]
    return _spec(
        state,
        contract,
        ActionKind.PLAN,
        step=f"plan.r{revision}",
        base=request.base,
        input={"rules": rules, "revision": revision, "known": known},
        reach=Reach(scopes=_task_scopes(state)),
        # A revision that came to nothing may be asked for again, with more known: that is another action.
        salt=str(len(state.known)),
    )


def baseline_spec(state: TaskState) -> ActionSpec:
    """`test.run` on the base, without anything to compare with."""
    base = state.asked.base
    return _test_spec(state, ActionKind.BASELINE, step="baseline", commit=base, head=None)


def test_spec(state: TaskState, commit: str) -> ActionSpec:
    """`test.run` on a candidate, against the baseline."""
    return _test_spec(state, ActionKind.TEST, step=f"test.{commit[:12]}", commit=commit, head=state.head)


def canary_test_spec(state: TaskState, commit: str) -> ActionSpec:
    """`test.run` on the end of the throwaway chain."""
    return _test_spec(state, ActionKind.CANARY_TEST, step="test.canary", commit=commit, head=state.head)


def step_name(rule: RuleState, shard: int, *, canary: bool) -> str:
    """The step's name: usable in a git ref, and telling which run of the rule it belongs to."""
    if canary:
        return f"{rule.request.rule}.canary"
    again = f".g{rule.generation}" if rule.generation > 1 else ""
    return f"{rule.request.rule}{again}.s{shard}"


def change_spec(state: TaskState, step: StepState, kind: ActionKind) -> ActionSpec:
    """The change of one step; its twin differs in nothing but the id."""
    rule = state.rules[step.rule]
    contract = rule.request.contract
    filled = {"touched": state.asked.base} if "touched" in contract.injected else {}
    return _spec(
        state,
        contract,
        kind,
        step=step.step,
        rule=step.rule,
        base=step.base,
        input={**rule.request.input, **filled}
        if rule.request.input.get("touched_only")
        else rule.request.input,
        reach=step_reach(state, step),
        salt=str(step.rounds),
    )


def review_spec(state: TaskState, step: StepState, result: str | None) -> ActionSpec:
    """`review.change` of what a step returned."""
    rule, contract = state.rules[step.rule], needed(state.review_contract)
    change = change_spec(state, step, ActionKind.CHANGE)
    return _spec(
        state,
        contract,
        ActionKind.REVIEW,
        step=step.step,
        rule=step.rule,
        base=step.base,
        input={
            "contract": change.contract,
            "input": change.input,
            "reach": change.reach.model_dump(mode="json"),
            "result": result,
            "proof": str(rule.request.contract.proof),
            "allow": list(state.asked.allow),
        },
        reach=change.reach,
        salt=f"{step.rounds}:{result}",
        # Judging takes about as long as doing: the rule is applied again.
        time_limit_s=min(contract.longest_s, contract.time_limit_s + change.time_limit_s),
    )


def step_reach(state: TaskState, step: StepState) -> Reach:
    """What the step may touch: the task's scope, the rule's, not what a review refused, and its shard."""
    rule = state.rules[step.rule]
    narrowed = (
        (Scope(exclude=tuple(glob.escape(path, unix=True) for path in step.excluded)),)
        if step.excluded
        else ()
    )
    own = (rule.request.scope,) if rule.request.scope is not None else ()
    shard = rule.planned.shards[step.shard] if rule.planned else Shard()
    return Reach(scopes=(*_task_scopes(state), *own, *narrowed), shard=shard)


def memory_key(state: TaskState, step: StepState) -> str:
    """Under which a step's reviewed result can be found again: everything that the result depends on."""
    spec = change_spec(state, step, ActionKind.CHANGE)
    return _digest([spec.contract, spec.input, spec.base, spec.reach.model_dump(mode="json")])


def commit_message(state: TaskState, index: int) -> str:
    """The message of a rule's commit. Nothing in it depends on the task, so the same refactor gives the same id."""
    rule, request = state.rules[index], state.asked
    digest = _digest(
        {
            "base": request.base,
            "recipe": request.recipe,
            "scope": request.scope.model_dump(mode="json"),
            "engines": list(rule.engines),
        }
    )
    subject, body = commit_words(rule.request)
    sites = f"{rule.sites} site{'s' * (rule.sites != 1)} in " if rule.sites else ""
    files = f"{rule.files} file{'s' * (rule.files != 1)}"
    return (
        f"{subject}\n\n{body}{body and chr(10) * 2}{sites}{files}\n\n"
        f"Rolecall-Rule: {rule.request.rule}\n"
        f"Rolecall-Contract: {rule.request.contract.ref}\n"
        f"Rolecall-Engine: {', '.join(rule.engines) or 'none'}\n"
        f"Rolecall-Digest: {digest}\n"
    )


def _test_spec(state: TaskState, kind: ActionKind, *, step: str, commit: str, head: str | None) -> ActionSpec:
    test, contract = needed(state.asked.test), needed(state.test_contract)
    baseline = state.baseline.results if state.baseline and kind is not ActionKind.BASELINE else None
    return _spec(
        state,
        contract,
        kind,
        step=step,
        base=commit,
        input={
            "command": list(test.command),
            "timeout_s": test.timeout_s,
            "env": test.env,
            "environment": test.environment,
            "checkout": test.checkout,
            "baseline": baseline,
            "head": head if baseline else None,
        },
        reach=Reach(),
        time_limit_s=min(contract.longest_s, test.timeout_s * TEST_RUNS_AT_MOST + contract.time_limit_s),
    )


def _spec(
    state: TaskState,
    contract: ContractFacts,
    kind: ActionKind,
    *,
    step: str,
    base: str,
    input: dict[str, Any],
    reach: Reach,
    rule: int | None = None,
    salt: str = "",
    time_limit_s: float | None = None,
) -> ActionSpec:
    rule_id = state.rules[rule].request.rule if rule is not None else None
    return ActionSpec(
        # The rule too: the steps of a rule "a.g2" may be called as those of the second run of "a".
        action_id=derived_id(state.task, kind, rule_id or "", step, base, salt),
        kind=kind,
        step=step,
        rule=rule,
        rule_id=rule_id,
        contract=contract.ref,
        pool=contract.pool,
        pure=contract.pure,
        changes_tree=contract.changes_tree,
        input=input,
        base=base,
        reach=reach,
        time_limit_s=time_limit_s or contract.time_limit_s,
    )


def _digest(value: Any) -> str:
    return sha256(canonical_json(value).encode("utf-8", "surrogateescape")).hexdigest()


def _task_scopes(state: TaskState) -> tuple[Scope, ...]:
    request = state.asked
    recipe = request.recipe.get("scope")
    own = (Scope.model_validate(recipe),) if recipe else ()
    return (request.scope, *own)


def _merged_scope(state: TaskState, rule: RuleState) -> Scope:
    return rule.request.scope or Scope()
