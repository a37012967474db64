"""Submitting an order: the base goes into the hub first, then the request onto the bus."""

import asyncio

from bus.settings import Settings
from rolecall.client.line import Line, connected
from rolecall.client.order import Order
from rolecall.client.reading import opened_hub
from schemas.envelope import MAX_INLINE_BYTES
from schemas.messages import TaskSubmitted
from workspace.hub import Hub
from workspace.refs import base_ref, blob_ref


async def submit(order: Order, line: Line, hub: Hub) -> None:
    """Hand the order in; durable once this returns, whether or not a supervisor runs."""
    await asyncio.to_thread(order.source.send_to_hub, hub, order.request.base, base_ref(order.task))
    packed = order.request.model_dump_json().encode()
    if len(packed) > MAX_INLINE_BYTES:
        blob = await asyncio.to_thread(hub.write_blob, packed)
        await asyncio.to_thread(hub.publish, blob_ref(order.task, blob), blob)
        body = TaskSubmitted(request_blob=blob)
    else:
        body = TaskSubmitted(request=order.request)
    await line.say("task.submitted", body, order.task)


async def hand_in(order: Order, settings: Settings) -> None:
    """Connect, hand the order in, leave. Raises SettingsError or BrokerUnreachableError if nobody can take it."""
    async with connected(settings) as line:
        with opened_hub(settings) as hub:
            await submit(order, line, hub)
