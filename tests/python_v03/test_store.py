"""One store: what a caller of v0.3 begins, one of v1.0 reads, continues, follows and cancels, and the other way round."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import aclosing

import pytest
from a2a.client import Client
from a2a.types import TaskIdParams, TaskQueryParams, TaskState

from harness.wire import Wire, next_event, rest_of
from words import begin, collect, run, state_of, text_of, until

pytestmark = pytest.mark.one_and_many


def words_of(task: dict) -> str:
    return ''.join(part['text'] for one in task['artifacts'] for part in one['parts'])


async def test_task_of_the_old_is_read_and_listed_by_the_new(
    client: Client, binding: str, newer: Wire
) -> None:
    context_id = f'context-{uuid.uuid4()}'
    task = await run(client, 'héllo', context_id=context_id)
    stored = await newer.get(task.id)
    assert stored['status']['state'] == 'TASK_STATE_COMPLETED'
    # Over the other transports this client does not read it.
    assert binding != 'JSONRPC' or stored['status']['timestamp'] == task.status.timestamp
    assert words_of(stored) == text_of(task)
    assert [one['messageId'] for one in stored['history']] == [
        one.message_id for one in task.history
    ]
    page = await newer.list(contextId=context_id)
    assert [one['id'] for one in page['tasks']] == [task.id]


async def test_task_of_the_new_is_read_by_the_old(client: Client, newer: Wire) -> None:
    task = await newer.run('héllo')
    stored = await client.get_task(TaskQueryParams(id=task['id']))
    assert (stored.id, stored.context_id) == (task['id'], task['contextId'])
    assert stored.status.state == TaskState.completed
    assert text_of(stored) == words_of(task)


async def test_question_to_one_is_answered_by_the_other(client: Client, newer: Wire) -> None:
    asked = await run(client, 'input')
    done = await newer.run('here it is', task_id=asked.id)
    assert done['status']['state'] == 'TASK_STATE_COMPLETED'
    asked = await newer.run('input')
    done = await run(client, 'here it is', task_id=asked['id'])
    assert done.status.state == TaskState.completed


async def test_task_of_one_is_canceled_by_the_other(client: Client, newer: Wire) -> None:
    task = await begin(client, 'slow 60')
    await newer.until(task.id, 'WORKING')
    canceled = await newer.cancel(task.id)
    assert canceled['status']['state'] == 'TASK_STATE_CANCELED'
    await until(client, task.id, TaskState.canceled)
    task = await newer.begin('slow 60')
    await until(client, task['id'], TaskState.working)
    canceled = await client.cancel_task(TaskIdParams(id=task['id']))
    assert canceled.status.state == TaskState.canceled
    await newer.until(task['id'], 'CANCELED')


async def test_stream_of_the_old_tells_what_the_new_does(
    streamer: Client, newer: Wire
) -> None:
    task = await newer.run('input')
    async with aclosing(streamer.resubscribe(TaskIdParams(id=task['id']))) as items:
        first, _ = await anext(items)
        assert first.status.state == TaskState.input_required
        await newer.run('here it is', task_id=task['id'])
        rest = [item async for item in items]
    assert state_of(rest[-1]) == TaskState.completed


async def test_stream_of_the_new_tells_what_the_old_does(
    client: Client, streamer: Client, newer: Wire
) -> None:
    task = await run(client, 'input')
    async with newer.subscribe(task.id) as events:
        first = await next_event(events)
        assert first.data['task']['status']['state'] == 'TASK_STATE_INPUT_REQUIRED'
        streamed = asyncio.create_task(collect(streamer, 'here it is', task_id=task.id))
        rest = await rest_of(events)
        assert state_of((await streamed)[-1]) == TaskState.completed
    assert rest[-1].data['statusUpdate']['status']['state'] == 'TASK_STATE_COMPLETED'
