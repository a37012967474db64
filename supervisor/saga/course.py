"""The course of a task: what comes next, asked again after every message until nothing more follows.

Level-triggered: `advance` looks at where things stand, so no order of messages can make it miss a turn. It costs a
look at the rules, never at the steps.
"""

from schemas.words import Outcome, TaskStatus, Verdict
from supervisor.saga import attempts, specs
from supervisor.saga import events as ev
from supervisor.saga.canary import advance_canary, wants_canary
from supervisor.saga.commands import Compose, MoveHead
from supervisor.saga.landing import Blame, Land, TestThese, choose
from supervisor.saga.moves import Phase, RuleStatus
from supervisor.saga.state import ActionKind, Candidate, RuleState, TaskState, needed
from supervisor.saga.turn import Turn


def advance(turn: Turn) -> None:
    """Take every step that is open now."""
    while turn.state.is_open and _one_step(turn):
        pass


def end_task(turn: Turn, reason: str, status: TaskStatus) -> None:
    """End the task: stop what runs, name what does not land; what is landing just now is waited for."""
    for action_id in tuple(turn.state.actions):
        attempts.end_action(turn, action_id, Outcome.CANCELED, reason=reason)
    if turn.state.moving_to is not None:
        turn.happen(ev.TaskEnding(at=turn.at, status=status, reason=reason))
    else:
        _end(turn, reason, status)


def head_stands(turn: Turn, reason: str, status: TaskStatus) -> None:
    """The move of the head is decided (`head_moved` came first if it moved), and with it the task ends."""
    for action_id in tuple(turn.state.actions):
        attempts.end_action(turn, action_id, Outcome.CANCELED, reason=reason)
    _end(turn, reason, status)


def _end(turn: Turn, reason: str, status: TaskStatus) -> None:
    for index, rule in enumerate(turn.state.rules):
        if not rule.is_final:
            turn.happen(ev.RuleUnlanded(at=turn.at, rule=index, reason=reason))
    turn.happen(ev.TaskEnded(at=turn.at, status=status, reason=reason))


def composed(turn: Turn, rule: int, commit: str, base: str) -> None:
    """A rule's candidate is there."""
    turn.happen(ev.RuleComposed(at=turn.at, rule=rule, commit=commit, base=base))


def head_moved(turn: Turn, commit: str) -> None:
    """The head stands at `commit`: everything up to it has landed."""
    for candidate in turn.state.chain:
        if candidate.verdict is None:
            _stop_test(turn, candidate.commit)
        turn.happen(
            ev.RuleLanded(at=turn.at, rule=candidate.rule, commit=candidate.commit, tested=candidate.verdict)
        )
        if candidate.commit == commit:
            break
    turn.happen(ev.HeadMoved(at=turn.at, commit=commit))


def drop_rule(turn: Turn, index: int, reason: str) -> None:
    """The rule will not land; what was built on it starts again without it."""
    _cancel_from(turn, index, reason)
    turn.happen(ev.RuleUnlanded(at=turn.at, rule=index, reason=reason))
    later = turn.state.rules[index + 1 :]
    if any(rule.status is not RuleStatus.WAITING and not rule.is_final for rule in later) or any(
        rule.status is RuleStatus.UNCHANGED for rule in later
    ):
        why = f"{turn.state.rules[index].request.rule} did not land"
        turn.happen(ev.RulesReset(at=turn.at, first=index + 1, reason=why))


def _one_step(turn: Turn) -> bool:
    match turn.state.phase:
        case Phase.PLANNING:
            return _plan(turn)
        case Phase.CANARY:
            return advance_canary(turn)
        case Phase.REVISING:
            return _revise(turn)
        case Phase.LANDING:
            return _land(turn)
        case Phase.DONE:
            return False


def _plan(turn: Turn) -> bool:
    state = turn.state
    if state.plan_asked == 0:
        turn.happen(ev.PlanAsked(at=turn.at, revision=1))
        attempts.open_action(turn, specs.plan_spec(turn.state, 1))
        if state.asked.test is not None:
            attempts.open_action(turn, specs.baseline_spec(turn.state))
        else:
            unwanted = "tests were switched off with --no-tests"
            reason = unwanted if state.asked.no_tests else "no test command was given or found"
            turn.happen(ev.BaselineKnown(at=turn.at, verdict=Verdict.NOTHING_RAN, reason=reason))
        return True
    if state.plan is None:
        if state.plan_failed:
            end_task(turn, f"no plan could be made: {state.plan_failed}", TaskStatus.FAILED)
        return False
    phase = Phase.CANARY if wants_canary(state) else Phase.LANDING
    turn.happen(ev.PhaseEntered(at=turn.at, phase=phase))
    return True


def _revise(turn: Turn) -> bool:
    if needed(turn.state.plan).revision < turn.state.plan_asked:
        return False
    turn.happen(ev.PhaseEntered(at=turn.at, phase=Phase.LANDING))
    return True


def _land(turn: Turn) -> bool:
    state = turn.state
    baseline = state.baseline
    if baseline is None or state.moving_to is not None:
        return False
    changes = any(rule.request.contract.changes_tree for rule in state.rules)
    if changes and baseline.verdict is not Verdict.PASS and not state.asked.allow_untested:
        end_task(turn, untestable_reason(state), TaskStatus.FAILED)
        return False
    return _chain(turn) or _frontier(turn) or _finish(turn)


def untestable_reason(state: TaskState) -> str:
    """Why nothing may land without a test, and what to do."""
    baseline = needed(state.baseline)
    if baseline.verdict is Verdict.NOTHING_RAN:
        return (
            f"there are no tests to run ({baseline.reason}), and nothing lands untested: "
            "give a command with --test, or allow it with --allow-untested"
        )
    return (
        f"the tests do not run on the unchanged repository ({baseline.reason}): name the environment that has the "
        "tests' dependencies with --env, or the command with --test; --allow-untested lands without"
    )


def _chain(turn: Turn) -> bool:
    choice = choose(turn.state)
    match choice:
        case Land(candidate):
            turn.happen(ev.HeadMoving(at=turn.at, commit=candidate.commit))
            turn.order(MoveHead(old=turn.state.head, new=candidate.commit))
            return True
        case Blame(candidate):
            drop_rule(turn, candidate.rule, _blame(candidate))
            return True
        case TestThese(commits):
            specs_ = [specs.test_spec(turn.state, commit) for commit in commits]
            wanted = [spec for spec in specs_ if spec.action_id not in turn.state.actions]
            for spec in wanted:
                attempts.open_action(turn, spec)
            return bool(wanted)
        case None:
            return False


def _stop_test(turn: Turn, commit: str) -> None:
    """End the test of a commit that the test of a later one covers."""
    if turn.state.asked.test is not None:
        action_id = specs.test_spec(turn.state, commit).action_id
        if action_id in turn.state.actions:
            attempts.end_action(turn, action_id, Outcome.CANCELED, reason="a later commit passed")


def _blame(candidate: Candidate) -> str:
    how = {
        Verdict.FAIL: "its tests fail",
        Verdict.COULD_NOT_RUN: "its tests could not run",
        Verdict.NOTHING_RAN: "no test ran on it",
    }.get(candidate.verdict or Verdict.FAIL, "its tests fail")
    return f"{how}: {candidate.reason}" if candidate.reason else how


def _frontier(turn: Turn) -> bool:
    state = turn.state
    index = state.frontier
    if index is None:
        return False
    rule = state.rules[index]
    match rule.status:
        case RuleStatus.WAITING:
            if any(not needed(state.rules[one.rule].planned).run_ahead for one in state.chain):
                return False
            turn.happen(ev.RuleStarted(at=turn.at, rule=index, base=state.tip))
            return True
        case RuleStatus.RUNNING if rule.cursor >= rule.shards and rule.open_steps == 0:
            _gather(turn, index, rule)
            return True
        case _:
            return False


def _gather(turn: Turn, index: int, rule: RuleState) -> None:
    if rule.kept:
        turn.happen(ev.RuleGathered(at=turn.at, rule=index))
        results = tuple((rule.base, rule.kept[shard]) for shard in sorted(rule.kept))
        message = specs.commit_message(turn.state, index)
        turn.order(Compose(index, rule.generation, rule.base, results, message))
    elif rule.refusals:
        first = rule.refusals[0]
        more = f" (and {len(rule.refusals) - 1} more)" if len(rule.refusals) > 1 else ""
        where = f"{first.path}: " if first.path else ""
        turn.happen(ev.RuleUnlanded(at=turn.at, rule=index, reason=f"{where}{first.reason}{more}"))
    elif rule.request.contract.changes_tree:
        turn.happen(ev.RuleUnchanged(at=turn.at, rule=index, reason="nothing in scope matches it"))
    else:
        turn.happen(ev.RuleUnchanged(at=turn.at, rule=index, reason="it changes nothing in the repository"))


def _finish(turn: Turn) -> bool:
    state = turn.state
    if state.chain or state.frontier is not None:
        return False
    landed = [rule for rule in state.rules if rule.status is RuleStatus.LANDED]
    unlanded = [rule for rule in state.rules if rule.status is RuleStatus.UNLANDED]
    refused = sum(len(rule.refusals) for rule in landed)
    wanted_change = any(rule.request.contract.changes_tree for rule in state.rules)
    if landed and (unlanded or refused):
        count = f"{len(landed)} of {len(landed) + len(unlanded)} rules landed"
        parts = f", {refused} part{'s' * (refused != 1)} of them did not" if refused else ""
        end_task(turn, count + parts, TaskStatus.COMPLETED)
    elif landed or not (unlanded or wanted_change):
        end_task(turn, "everything landed" if landed else "everything ran", TaskStatus.COMPLETED)
    elif unlanded:
        end_task(turn, f"nothing landed: {unlanded[0].reason}", TaskStatus.FAILED)
    else:
        end_task(turn, "no rule found anything to change", TaskStatus.FAILED)
    return True


def _cancel_from(turn: Turn, first: int, reason: str) -> None:
    """End the actions of rules first.., and the tests of candidates that stand on them."""
    doomed = {candidate.commit for candidate in turn.state.chain if candidate.rule >= first}
    for action_id, action in tuple(turn.state.actions.items()):
        spec = action.spec
        of_rule = spec.rule is not None and spec.rule >= first
        if of_rule or (spec.kind is ActionKind.TEST and spec.base in doomed):
            attempts.end_action(turn, action_id, Outcome.CANCELED, reason=f"overtaken: {reason}")
