"""A client for measurements: puts a base commit into the hub and submits tasks of no-op steps."""

import asyncio
from pathlib import Path

from bus.amqp import AmqpBus
from bus.api import Exchange, Outgoing
from schemas.clock import new_id, now_us
from schemas.envelope import Envelope, Sender
from schemas.messages import TaskSubmitted
from schemas.task import TaskRequest
from workspace.git import git
from workspace.hub import Hub
from workspace.refs import base_ref


class Client:
    """Submits to one environment."""

    def __init__(self, environment: str, broker_url: str, hub: Path) -> None:
        self._environment = environment
        self._broker_url = broker_url
        self._hub = hub
        self._base = _empty_commit(hub)

    def submit_noops(self, steps: int) -> str:
        """A task of one rule with so many steps; its id."""
        task = new_id()
        with Hub.open(self._hub) as hub:
            hub.set_ref(base_ref(task), self._base, None)
        request = TaskRequest(
            recipe={
                "recipe": "noops",
                "rules": [{"id": "noop", "contract": "bench.noop@1", "input": {"steps": steps}}],
            },
            recipe_name="noops",
            repository="bench",
            base=self._base,
            base_ref="main",
            branch="rolecall/noops",
            allow_untested=True,
        )
        asyncio.run(self._publish(task, request))
        return task

    async def _publish(self, task: str, request: TaskRequest) -> None:
        bus = AmqpBus(self._environment, [self._broker_url], instance="bench-client")
        await bus.start()
        envelope = Envelope(
            environment=self._environment,
            message_id=new_id(),
            correlation_id=task,
            kind="task.submitted",
            sender=Sender(role="client", instance="bench-client", version="0"),
            created_at=now_us(),
            body=TaskSubmitted(request=request).model_dump(),
        )
        await bus.publish(Outgoing(Exchange.EVENTS, "task.submitted.client", envelope))
        await bus.close()


def _empty_commit(hub: Path) -> str:
    tree = git(hub, "mktree", stdin=b"").decode().strip()
    content = f"tree {tree}\nauthor Bench <bench@localhost> 1700000000 +0000\ncommitter Bench <bench@localhost> 1700000000 +0000\n\nempty\n"
    return git(hub, "hash-object", "-t", "commit", "-w", "--stdin", stdin=content.encode()).decode().strip()
