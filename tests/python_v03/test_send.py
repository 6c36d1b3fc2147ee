"""message/send, message/stream and the turns of a task, through the official client of v0.3."""

from __future__ import annotations

import pytest
from a2a.client import Client
from a2a.types import (
    Message,
    MessageSendConfiguration,
    Role,
    TaskArtifactUpdateEvent,
    TaskQueryParams,
    TaskState,
    TaskStatusUpdateEvent,
)

from words import begin, collect, run, send, state_of, text_of, until

pytestmark = pytest.mark.one_and_many


async def test_blocking_send_returns_the_completed_task(client: Client) -> None:
    task = await run(client, 'hello there')
    assert task.status.state == TaskState.completed
    assert text_of(task) == 'hello there'
    assert task.id and task.context_id
    assert [message.role for message in task.history][:1] == [Role.user]


async def test_blocking_send_waits_for_the_end(client: Client) -> None:
    assert (await run(client, 'slow 1')).status.state == TaskState.completed


async def test_send_that_does_not_wait_returns_an_open_task(client: Client) -> None:
    task = await begin(client, 'slow 2')
    assert task.status.state in (TaskState.submitted, TaskState.working)
    assert (await until(client, task.id, TaskState.completed)).id == task.id


async def test_polling_client_gets_an_open_task(clients) -> None:
    client = await clients(streaming=False, polling=True)
    task = await run(client, 'slow 2')
    assert task.status.state in (TaskState.submitted, TaskState.working)
    await until(client, task.id, TaskState.completed)


async def test_stream_starts_with_the_task_and_ends_with_its_end(streamer: Client) -> None:
    items = await collect(streamer, 'hello there')
    task, update = items[0]
    assert update is None and task.id
    last = items[-1][1]
    assert isinstance(last, TaskStatusUpdateEvent) and last.final
    assert last.status.state == TaskState.completed
    assert not any(getattr(update, 'final', False) for _, update in items[:-1])
    stored = await streamer.get_task(TaskQueryParams(id=task.id))
    assert text_of(stored) == 'hello there'


async def test_stream_delivers_every_chunk_in_order(streamer: Client) -> None:
    items = await collect(streamer, 'chunks 50')
    updates = [update for _, update in items if isinstance(update, TaskArtifactUpdateEvent)]
    assert len(updates) == 50
    assert [bool(update.append) for update in updates] == [False] + [True] * 49
    assert len({update.artifact.artifact_id for update in updates}) == 1
    assert state_of(items[-1]) == TaskState.completed
    # The client has put the artifact together by itself.
    whole = items[-1][0]
    assert len({part.root.text for part in whole.artifacts[0].parts}) == 50
    stored = await streamer.get_task(TaskQueryParams(id=whole.id))
    assert text_of(stored) == text_of(whole)


async def test_stream_delivers_every_status_of_a_burst(streamer: Client) -> None:
    items = await collect(streamer, 'burst 100')
    texts = [
        update.status.message.parts[0].root.text
        for _, update in items
        if isinstance(update, TaskStatusUpdateEvent)
        and update.status.state == TaskState.working
        and update.status.message
        and update.status.message.parts
    ]
    assert len(texts) == len(set(texts)) == 100
    assert state_of(items[-1]) == TaskState.completed


async def test_input_is_asked_for_and_the_next_message_completes(client: Client) -> None:
    asked = await run(client, 'input')
    assert asked.status.state == TaskState.input_required
    assert asked.status.message.role == Role.agent
    assert asked.status.message.parts
    done = await run(client, 'here it is', task_id=asked.id, context_id=asked.context_id)
    assert (done.id, done.context_id) == (asked.id, asked.context_id)
    assert done.status.state == TaskState.completed


async def test_stream_ends_when_input_is_asked_for(streamer: Client) -> None:
    items = await collect(streamer, 'input')
    assert state_of(items[-1]) == TaskState.input_required
    assert items[-1][1].final
    task_id = items[0][0].id
    more = await collect(streamer, 'here it is', task_id=task_id)
    assert more[0][0].id == task_id
    assert state_of(more[-1]) == TaskState.completed


async def test_authorization_is_asked_for_and_the_task_goes_on(client: Client) -> None:
    asked = await run(client, 'auth')
    assert asked.status.state == TaskState.auth_required
    assert asked.status.message.parts
    await until(client, asked.id, TaskState.completed)


async def test_stream_stays_open_while_authorization_is_asked_for(streamer: Client) -> None:
    items = await collect(streamer, 'auth')
    asked = [update for _, update in items if update and state_of((_, update)) == TaskState.auth_required]
    assert [update.final for update in asked] == [False]
    assert state_of(items[-1]) == TaskState.completed


async def test_direct_message_is_answered_without_a_task(client: Client) -> None:
    answer = await send(client, 'msg', context_id='a-context-of-mine')
    assert isinstance(answer, Message)
    assert answer.role == Role.agent
    assert answer.message_id
    assert answer.context_id == 'a-context-of-mine'
    assert not answer.task_id


async def test_stream_of_a_direct_message_is_that_message_alone(streamer: Client) -> None:
    (answer,) = await collect(streamer, 'msg')
    assert isinstance(answer, Message) and answer.parts


async def test_refusal_is_a_rejected_task_with_a_reason(client: Client) -> None:
    task = await run(client, 'reject')
    assert task.status.state == TaskState.rejected
    assert task.status.message.parts[0].root.text


@pytest.mark.parametrize('text', ['fail', 'fail late'])
async def test_failure_of_the_agent_is_a_failed_task(client: Client, text: str) -> None:
    task = await run(client, text)
    assert task.status.state == TaskState.failed
    stored = await client.get_task(TaskQueryParams(id=task.id))
    assert stored.status.state == TaskState.failed


async def test_stream_of_a_failing_agent_ends_with_failed(streamer: Client) -> None:
    items = await collect(streamer, 'fail late')
    assert state_of(items[-1]) == TaskState.failed


async def test_history_length_limits_the_answer(client: Client) -> None:
    asked = await run(client, 'input')
    done = await run(
        client,
        'here it is',
        task_id=asked.id,
        configuration=MessageSendConfiguration(history_length=1, blocking=True),
    )
    assert len(done.history) == 1
    assert done.history[0].parts[0].root.text == 'here it is'
