"""GetTask, ListTasks, CancelTask and SubscribeToTask through the official client."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import aclosing

import pytest
from a2a.client import Client
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    SubscribeToTaskRequest,
    TaskState,
)

from harness.sdk import begin, run, state_of, until

pytestmark = pytest.mark.each_place

COMPLETED = TaskState.TASK_STATE_COMPLETED
WORKING = TaskState.TASK_STATE_WORKING
CANCELED = TaskState.TASK_STATE_CANCELED


@pytest.fixture
def context_id() -> str:
    """A context that no other test uses."""
    return f'context-{uuid.uuid4()}'


async def test_get_returns_what_the_send_returned(client: Client) -> None:
    sent = await run(client, 'hello')
    assert await client.get_task(GetTaskRequest(id=sent.id)) == sent


async def test_get_with_history_length_returns_the_latest(client: Client) -> None:
    asked = await run(client, 'input')
    await run(client, 'here it is', task_id=asked.id)
    whole = await client.get_task(GetTaskRequest(id=asked.id))
    assert len(whole.history) >= 3
    for length in (0, 1, 2, 1000):
        part = await client.get_task(GetTaskRequest(id=asked.id, history_length=length))
        expected = list(whole.history)[-length:] if length else []
        assert list(part.history) == expected


async def test_list_pages_through_a_context_once(client: Client, context_id: str) -> None:
    sent = [(await run(client, f'task {n}', context_id=context_id)).id for n in range(7)]
    seen, token, sizes = [], '', []
    while True:
        page = await client.list_tasks(
            ListTasksRequest(context_id=context_id, page_size=3, page_token=token)
        )
        assert page.total_size == 7
        seen += [task.id for task in page.tasks]
        sizes.append(len(page.tasks))
        token = page.next_page_token
        if not token:
            break
    assert sizes == [3, 3, 1]
    assert seen == sent[::-1], 'newest first, each once'


async def test_list_filters_by_state_and_context(client: Client, context_id: str) -> None:
    done = await run(client, 'hello', context_id=context_id)
    asked = await run(client, 'input', context_id=context_id)
    for state, expected in (
        (COMPLETED, [done.id]),
        (TaskState.TASK_STATE_INPUT_REQUIRED, [asked.id]),
        (TaskState.TASK_STATE_FAILED, []),
    ):
        page = await client.list_tasks(ListTasksRequest(context_id=context_id, status=state))
        assert [task.id for task in page.tasks] == expected
        assert page.total_size == len(expected)


async def test_list_leaves_artifacts_out_unless_asked(client: Client, context_id: str) -> None:
    await run(client, 'hello', context_id=context_id)
    (short,) = (await client.list_tasks(ListTasksRequest(context_id=context_id))).tasks
    assert not short.artifacts
    (whole,) = (
        await client.list_tasks(ListTasksRequest(context_id=context_id, include_artifacts=True))
    ).tasks
    assert whole.artifacts


async def test_cancel_ends_a_working_task(client: Client) -> None:
    task = await begin(client, 'slow 60')
    await until(client, task.id, WORKING)
    canceled = await client.cancel_task(CancelTaskRequest(id=task.id))
    assert canceled.status.state == CANCELED
    stored = await client.get_task(GetTaskRequest(id=task.id))
    assert stored.status.state == CANCELED


async def test_cancel_of_a_stubborn_agent_is_answered_in_time(client: Client) -> None:
    """The client gives up on a request after 5 s; the server must not take that long."""
    task = await begin(client, 'stubborn slow 60')
    await until(client, task.id, WORKING)
    canceled = await client.cancel_task(CancelTaskRequest(id=task.id))
    assert canceled.status.state == CANCELED


async def test_cancel_ends_a_task_that_asks(client: Client) -> None:
    task = await run(client, 'input')
    canceled = await client.cancel_task(CancelTaskRequest(id=task.id))
    assert canceled.status.state == CANCELED


async def test_subscription_starts_with_the_task_and_follows_it_to_its_end(
    client: Client, streamer: Client
) -> None:
    task = await run(client, 'input')

    async with aclosing(streamer.subscribe(SubscribeToTaskRequest(id=task.id))) as items:
        first = await anext(items)
        assert first.task.id == task.id
        assert first.task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        await run(client, 'here it is', task_id=task.id)
        rest = [item async for item in items]
    assert state_of(rest[-1]) == COMPLETED


async def test_two_subscribers_see_the_same_order(client: Client, clients) -> None:
    task = await run(client, 'input')
    snapshots = asyncio.Semaphore(0)

    async def follow() -> list[bytes]:
        subscriber = await clients(streaming=True)
        seen = []
        async for item in subscriber.subscribe(SubscribeToTaskRequest(id=task.id)):
            seen.append(item.SerializeToString(deterministic=True))
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
