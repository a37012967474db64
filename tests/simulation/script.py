"""What a simulated task is about: its rules, what they would change, and where they are wrong.

Everything here is decided before the schedule begins and depends on nothing that happens, as in a real repository:
the same work on the same commit gives the same result, wherever and however often it runs.
"""

from dataclasses import dataclass, field
from hashlib import sha1

from hypothesis import strategies as st

from schemas.task import Limits, TaskRequest, TestCommand
from schemas.words import Verdict
from supervisor.saga.state import Proof, RuleRequest
from tests.unit.saga_world import BASE, request, rule

PATHS = tuple(f"{number:04d}" for number in range(6))
Site = tuple[str, str]  # rule, path


@dataclass(frozen=True)
class RuleScript:
    """One rule: which paths it changes, and what is wrong with it.

    `red`: tests fail on every commit that holds it. `refused`: no review lets it pass. `refused_path`: a review refuses
    this one. `slow`: a shard with more than one path of it runs out of time. `oversized`: its work fits no message.
    """

    name: str
    touches: tuple[str, ...]
    cut: bool = True
    proof: Proof = Proof.RERUN
    red: bool = False
    refused: bool = False
    refused_path: str | None = None
    slow: bool = False
    oversized: bool = False

    @property
    def pure(self) -> bool:
        return self.proof is not Proof.GATES

    def as_request(self) -> RuleRequest:
        return rule(self.name, file_shardable=self.cut, proof=self.proof, pure=self.pure)


@dataclass(frozen=True)
class Script:
    """One task and the fleet that works on it. After `calm` quiet rounds the disturbances begin."""

    rules: tuple[RuleScript, ...]
    shard_count: int = 3
    baseline: Verdict = Verdict.PASS
    slow_suite: bool = False
    allow_untested: bool = False
    run_ahead: bool = True
    most_actions: int = 1_000
    attempts: int = 4
    workers: int = 2
    slots: int = 2
    calm: int = 0

    def request(self) -> TaskRequest:
        return request(
            test=TestCommand(command=("pytest",)),
            allow_untested=self.allow_untested,
            limits=Limits(actions=self.most_actions, attempts_per_step=self.attempts, plan_revisions=8),
        )

    def rule(self, name: str) -> RuleScript:
        return next(one for one in self.rules if one.name == name)


@dataclass
class Repository:
    """Commits as the sites that were changed in them; ids depend on parent, changes and message alone."""

    commits: dict[str, frozenset[Site]] = field(default_factory=lambda: {BASE: frozenset()})

    def commit(self, base: str, sites: frozenset[Site], message: str) -> str:
        name = sha1(repr((base, sorted(sites), message)).encode()).hexdigest()
        self.commits[name] = self.commits[base] | sites
        return name

    def delta(self, base: str, result: str) -> frozenset[Site]:
        return self.commits[result] - self.commits[base]

    def compose(self, base: str, results: tuple[tuple[str, str], ...], message: str) -> str:
        deltas = [self.delta(*pair) for pair in results]
        joined = frozenset[Site]().union(*deltas)
        assert sum(map(len, deltas)) == len(joined), "two results of one rule change the same path"
        return self.commit(base, joined, message)


def rule_scripts(name: str) -> st.SearchStrategy[RuleScript]:
    """Rules, most of them sound."""
    rarely = st.integers(0, 15).map(lambda number: number == 15)
    subsets = st.integers(0, 2 ** len(PATHS) - 1)
    return st.builds(
        RuleScript,
        name=st.just(name),
        touches=subsets.map(lambda bits: tuple(path for at, path in enumerate(PATHS) if bits >> at & 1)),
        cut=st.sampled_from((True, True, False)),
        proof=st.sampled_from((Proof.RERUN, Proof.RERUN, Proof.TWICE, Proof.GATES)),
        red=rarely,
        refused=rarely,
        refused_path=st.sampled_from((None, None, None, *PATHS)),
        slow=rarely,
        oversized=rarely,
    )


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    """Tasks of up to four rules."""
    count = draw(st.integers(1, 4))
    return Script(
        rules=tuple(draw(rule_scripts(f"r{number}")) for number in range(count)),
        shard_count=draw(st.integers(1, 3)),
        baseline=draw(st.sampled_from((Verdict.PASS,) * 5 + (Verdict.COULD_NOT_RUN,))),
        slow_suite=draw(st.booleans()),
        allow_untested=draw(st.booleans()),
        run_ahead=draw(st.sampled_from((True, True, False))),
        most_actions=draw(st.sampled_from((1_000, 1_000, 1_000, 1_000, 1_000, 12, 30))),
        attempts=draw(st.sampled_from((4, 4, 4, 2, 1))),
        workers=draw(st.integers(1, 3)),
        slots=draw(st.integers(1, 3)),
        calm=draw(st.sampled_from((0, 20, 50, 100, 200))),
    )
