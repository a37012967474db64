"""One step: opened, run again without what was refused, ended and folded into its rule or canary."""

from schemas.words import Outcome
from supervisor.saga import attempts, specs
from supervisor.saga import events as ev
from supervisor.saga.moves import StepStatus
from supervisor.saga.state import ActionKind, Known, Proof, Refusal, StepState
from supervisor.saga.turn import Turn

# A step of which some paths are refused is run again without them this often; then the step is given up.
NARROWINGS_AT_MOST = 3


def open_step(turn: Turn, step: StepState) -> None:
    """(Re)open a step: its change, and where that is the proof, the same change a second time."""
    turn.happen(
        ev.StepOpened(
            at=turn.at, step=step.step, rule=step.rule, shard=step.shard, base=step.base, canary=step.canary
        )
    )
    step = turn.state.steps[step.step]
    attempts.open_action(turn, specs.change_spec(turn.state, step, ActionKind.CHANGE))
    if turn.state.rules[step.rule].request.contract.proof is Proof.TWICE:
        attempts.open_action(turn, specs.change_spec(turn.state, step, ActionKind.TWIN))


def narrow(turn: Turn, step: StepState, refusals: tuple[Refusal, ...]) -> bool:
    """Run the step again without the refused paths, which are named as not landed. False if it may not be cut."""
    may_narrow = turn.state.rules[step.rule].request.contract.file_shardable
    if not may_narrow or step.rounds >= NARROWINGS_AT_MOST or not all(one.path for one in refusals):
        return False
    _stop(turn, step, "some of its paths are refused")
    turn.happen(ev.StepNarrowed(at=turn.at, step=step.step, refusals=refusals))
    open_step(turn, turn.state.steps[step.step])
    return True


def end_step(turn: Turn, step: StepState, status: StepStatus, refusals: tuple[Refusal, ...] = ()) -> None:
    """The step is over: stop what still runs for it, fold it into its rule or canary."""
    _stop(turn, step, "the step is over")
    key = specs.memory_key(turn.state, step) if status is StepStatus.KEPT and step.canary else ""
    if step.canary:
        _note_canary(turn, step, status, refusals)
    turn.happen(ev.StepEnded(at=turn.at, step=step.step, status=status, refusals=refusals, remembered=key))


def _stop(turn: Turn, step: StepState, reason: str) -> None:
    for action_id, action in tuple(turn.state.actions.items()):
        if action.spec.step == step.step and action.spec.rule == step.rule:
            attempts.end_action(turn, action_id, Outcome.CANCELED, reason=reason)


def _note_canary(turn: Turn, step: StepState, status: StepStatus, refusals: tuple[Refusal, ...]) -> None:
    rule = turn.state.rules[step.rule]
    result = step.results.get(ActionKind.CHANGE)
    turn.happen(
        ev.CanaryNoted(
            at=turn.at,
            rule=step.rule,
            known=Known(
                rule=rule.request.rule,
                outcome=str(status),
                wall_ms=result.wall_ms if result else 0,
                files_seen=result.files_seen if result else 0,
                sites=result.sites if result else 0,
                reason=refusals[0].reason if refusals else "",
            ),
        )
    )
