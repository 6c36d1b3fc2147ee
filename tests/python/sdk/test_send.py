"""SendMessage, SendStreamingMessage and the turns of a task, through the official client."""

from __future__ import annotations

import pytest
from a2a.client import Client
from a2a.types.a2a_pb2 import (
    GetTaskRequest,
    Role,
    SendMessageConfiguration,
    TaskState,
)

from harness.sdk import begin, collect, run, send, state_of, until

pytestmark = pytest.mark.each_place

COMPLETED = TaskState.TASK_STATE_COMPLETED
WORKING = TaskState.TASK_STATE_WORKING
SUBMITTED = TaskState.TASK_STATE_SUBMITTED


def text_of(task) -> str:
    return ''.join(part.text for artifact in task.artifacts for part in artifact.parts)


async def test_blocking_send_returns_the_completed_task(client: Client) -> None:
    task = await run(client, 'hello there')
    assert task.status.state == COMPLETED
    assert text_of(task) == 'hello there'
    assert task.id and task.context_id
    assert task.status.HasField('timestamp')
    assert [message.role for message in task.history][:1] == [Role.ROLE_USER]


async def test_blocking_send_waits_for_the_end(client: Client) -> None:
    task = await run(client, 'slow 1')
    assert task.status.state == COMPLETED


async def test_send_that_does_not_wait_returns_an_open_task(client: Client) -> None:
    task = await begin(client, 'slow 2')
    assert task.status.state in (SUBMITTED, WORKING)
    assert (await until(client, task.id, COMPLETED)).id == task.id


async def test_polling_client_gets_an_open_task(clients) -> None:
    client = await clients(streaming=False, polling=True)
    task = await run(client, 'slow 2')
    assert task.status.state in (SUBMITTED, WORKING)
    await until(client, task.id, COMPLETED)


async def test_stream_starts_with_the_task_and_ends_with_its_end(streamer: Client) -> None:
    items = await collect(streamer, 'hello there')
    assert items[0].WhichOneof('payload') == 'task'
    assert state_of(items[-1]) == COMPLETED
    task_id = items[0].task.id
    stored = await streamer.get_task(GetTaskRequest(id=task_id))
    assert text_of(stored) == 'hello there'


async def test_stream_delivers_every_chunk_in_order(streamer: Client) -> None:
    items = await collect(streamer, 'chunks 50')
    updates = [i.artifact_update for i in items if i.WhichOneof('payload') == 'artifact_update']
    assert len(updates) == 50
    assert [update.append for update in updates] == [False] + [True] * 49
    assert len({update.artifact.artifact_id for update in updates}) == 1
    assert state_of(items[-1]) == COMPLETED
    stored = await streamer.get_task(GetTaskRequest(id=items[0].task.id))
    streamed = [part.text for update in updates for part in update.artifact.parts]
    assert len(set(streamed)) == 50
    assert text_of(stored) == ''.join(streamed)


async def test_stream_delivers_every_status_of_a_burst(streamer: Client) -> None:
    items = await collect(streamer, 'burst 100')
    texts = [
        item.status_update.status.message.parts[0].text
        for item in items
        if item.WhichOneof('payload') == 'status_update'
        and item.status_update.status.state == WORKING
        and item.status_update.status.HasField('message')
    ]
    assert len(texts) == len(set(texts)) == 100
    assert state_of(items[-1]) == COMPLETED


async def test_input_is_asked_for_and_the_next_message_completes(client: Client) -> None:
    asked = await run(client, 'input')
    assert asked.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
    assert asked.status.message.role == Role.ROLE_AGENT
    assert asked.status.message.parts
    done = await run(client, 'here it is', task_id=asked.id, context_id=asked.context_id)
    assert (done.id, done.context_id) == (asked.id, asked.context_id)
    assert done.status.state == COMPLETED


async def test_stream_ends_when_input_is_asked_for(streamer: Client) -> None:
    items = await collect(streamer, 'input')
    assert state_of(items[-1]) == TaskState.TASK_STATE_INPUT_REQUIRED
    task_id = items[0].task.id
    more = await collect(streamer, 'here it is', task_id=task_id)
    assert more[0].task.id == task_id
    assert state_of(more[-1]) == COMPLETED


async def test_authorization_is_asked_for_and_the_task_goes_on(client: Client) -> None:
    asked = await run(client, 'auth')
    assert asked.status.state == TaskState.TASK_STATE_AUTH_REQUIRED
    assert asked.status.message.parts
    await until(client, asked.id, COMPLETED)


async def test_stream_stays_open_while_authorization_is_asked_for(streamer: Client) -> None:
    items = await collect(streamer, 'auth')
    states = [state_of(item) for item in items]
    assert TaskState.TASK_STATE_AUTH_REQUIRED in states
    assert states[-1] == COMPLETED


async def test_direct_message_is_answered_without_a_task(client: Client) -> None:
    answer = await send(client, 'msg', context_id='a-context-of-mine')
    assert answer.WhichOneof('payload') == 'message'
    assert answer.message.role == Role.ROLE_AGENT
    assert answer.message.message_id
    assert answer.message.context_id == 'a-context-of-mine'
    assert not answer.message.task_id


async def test_stream_of_a_direct_message_is_that_message_alone(streamer: Client) -> None:
    items = await collect(streamer, 'msg')
    assert [item.WhichOneof('payload') for item in items] == ['message']


async def test_refusal_is_a_rejected_task_with_a_reason(client: Client) -> None:
    task = await run(client, 'reject')
    assert task.status.state == TaskState.TASK_STATE_REJECTED
    assert task.status.message.parts[0].text


@pytest.mark.parametrize('text', ['fail', 'fail late'])
async def test_failure_of_the_agent_is_a_failed_task(client: Client, text: str) -> None:
    task = await run(client, text)
    assert task.status.state == TaskState.TASK_STATE_FAILED
    stored = await client.get_task(GetTaskRequest(id=task.id))
    assert stored.status.state == TaskState.TASK_STATE_FAILED


async def test_stream_of_a_failing_agent_ends_with_failed(streamer: Client) -> None:
    items = await collect(streamer, 'fail late')
    assert state_of(items[-1]) == TaskState.TASK_STATE_FAILED


async def test_history_length_limits_the_answer(client: Client) -> None:
    asked = await run(client, 'input')
    done = await run(
        client,
        'here it is',
        task_id=asked.id,
        configuration=SendMessageConfiguration(history_length=1),
    )
    assert len(done.history) == 1
    assert done.history[0].parts[0].text == 'here it is'
