"""tasks/get, tasks/cancel and tasks/resubscribe through the official client of v0.3."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest
from a2a.client import Client
from a2a.types import TaskIdParams, TaskQueryParams, TaskState

from words import begin, run, state_of, until

pytestmark = pytest.mark.one_and_many


async def test_get_returns_what_the_send_returned(client: Client) -> None:
    sent = await run(client, 'hello')
    assert await client.get_task(TaskQueryParams(id=sent.id)) == sent


async def test_get_with_history_length_returns_the_latest(client: Client) -> None:
    asked = await run(client, 'input')
    await run(client, 'here it is', task_id=asked.id)
    whole = await client.get_task(TaskQueryParams(id=asked.id))
    assert len(whole.history) >= 3
    for length in (1, 2, 1000):
        part = await client.get_task(TaskQueryParams(id=asked.id, history_length=length))
        assert part.history == whole.history[-length:]


async def test_cancel_ends_a_working_task(client: Client) -> None:
    task = await begin(client, 'slow 60')
    await until(client, task.id, TaskState.working)
    canceled = await client.cancel_task(TaskIdParams(id=task.id))
    assert canceled.status.state == TaskState.canceled
    stored = await client.get_task(TaskQueryParams(id=task.id))
    assert stored.status.state == TaskState.canceled


async def test_cancel_of_a_stubborn_agent_is_answered_in_time(client: Client) -> None:
    """The client gives up on a request after 5 s; the server must not take that long."""
    task = await begin(client, 'stubborn slow 60')
    await until(client, task.id, TaskState.working)
    canceled = await client.cancel_task(TaskIdParams(id=task.id))
    assert canceled.status.state == TaskState.canceled


async def test_cancel_ends_a_task_that_asks(client: Client) -> None:
    task = await run(client, 'input')
    canceled = await client.cancel_task(TaskIdParams(id=task.id))
    assert canceled.status.state == TaskState.canceled


async def test_subscription_starts_with_the_task_and_follows_it_to_its_end(
    client: Client, streamer: Client
) -> None:
    task = await run(client, 'input')
    async with aclosing(streamer.resubscribe(TaskIdParams(id=task.id))) as items:
        first, update = await anext(items)
        assert update is None
        assert (first.id, first.status.state) == (task.id, TaskState.input_required)
        await run(client, 'here it is', task_id=task.id)
        rest = [item async for item in items]
    assert state_of(rest[-1]) == TaskState.completed
    assert rest[-1][1].final


async def test_two_subscribers_see_the_same_order(client: Client, clients) -> None:
    task = await run(client, 'input')
    snapshots = asyncio.Semaphore(0)

    async def follow() -> list[str]:
        subscriber = await clients(streaming=True)
        seen = []
        async for whole, update in subscriber.resubscribe(TaskIdParams(id=task.id)):
            seen.append((update or whole).model_dump_json())
            if len(seen) == 1:
                snapshots.release()
        return seen

    followers = [asyncio.create_task(follow()) for _ in range(2)]
    for _ in followers:
        await snapshots.acquire()
    await run(client, 'here it is', task_id=task.id)
    one, other = await asyncio.gather(*followers)
    assert len(one) >= 3
    assert one == other
