"""Blocking and not, callers that leave, and what history holds."""

from __future__ import annotations

import asyncio
import time
import uuid

import pytest

from harness.jsonish import state_of, texts
from harness.wire import Wire, data_of, next_event

pytestmark = pytest.mark.each_store

# Longer than the 5 s after which the official Python client gives up.
LONG_SECONDS = 6


@pytest.mark.row(52)
async def test_blocking_send_waits_as_long_as_it_takes(wire: Wire) -> None:
    task = await wire.run(f'slow {LONG_SECONDS}')
    assert task['status']['state'] == 'TASK_STATE_COMPLETED'


@pytest.mark.row(53)
async def test_return_immediately_decides_whether_the_send_waits(wire: Wire) -> None:
    begun = time.monotonic()
    task = await wire.begin('slow 5')
    assert time.monotonic() - begun < 1.0
    assert task['status']['state'] in ('TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING')
    for configuration in (None, {}, {'returnImmediately': False}):
        begun = time.monotonic()
        task = await wire.run('slow 1', configuration=configuration)
        assert time.monotonic() - begun >= 1.0
        assert task['status']['state'] == 'TASK_STATE_COMPLETED'


@pytest.mark.row(55)
async def test_task_whose_caller_left_is_finished(wire: Wire) -> None:
    async with wire.stream('slow 1 chunks 5') as events:
        task_id = (await next_event(events)).data['task']['id']
    task = await wire.until(task_id, 'COMPLETED')
    assert task['artifacts']
    left = asyncio.create_task(wire.run('slow 1', context_id=f'left-{task_id}'))
    await asyncio.sleep(0.2)
    left.cancel()
    await asyncio.gather(left, return_exceptions=True)
    (task,) = (await wire.list(contextId=f'left-{task_id}'))['tasks']
    await wire.until(task['id'], 'COMPLETED')


@pytest.mark.row(56)
async def test_many_background_tasks_all_finish(wire: Wire) -> None:
    context_id = f'many-{uuid.uuid4()}'
    await asyncio.gather(*(wire.begin('slow 1', context_id=context_id) for _ in range(500)))
    deadline = time.monotonic() + 10
    done = 0
    while done < 500:
        assert time.monotonic() < deadline, f'{done} of 500 are completed after 10 s'
        await asyncio.sleep(0.05)
        page = await wire.list(contextId=context_id, status='TASK_STATE_COMPLETED', pageSize=1)
        done = page['totalSize']


@pytest.mark.row(59)
async def test_follow_up_on_a_send_that_did_not_wait_is_accepted(wire: Wire) -> None:
    for _ in range(10):
        task = await wire.begin('input')
        done = await wire.run('more', task_id=task['id'])
        assert done['id'] == task['id']
        assert done['status']['state'] == 'TASK_STATE_COMPLETED'


@pytest.mark.row(61, 65)
async def test_history_holds_each_message_once(wire: Wire) -> None:
    """Callers' messages, and each status message once the next status has replaced it."""
    asked = await wire.run('input')
    question = asked['status']['message']
    done = await wire.run('more', task_id=asked['id'])
    for task in (done, await wire.get(asked['id'])):
        ids = [message['messageId'] for message in task['history']]
        if 'message' in task['status']:
            ids.append(task['status']['message']['messageId'])
        assert len(ids) == len(set(ids))
        assert question in task['history']
        words = [m['parts'][0]['text'] for m in task['history'] if m['role'] == 'ROLE_USER']
        assert words == ['input', 'more']


@pytest.mark.row(61)
async def test_history_of_a_burst_has_no_doubles(wire: Wire) -> None:
    task = await wire.run('burst 20')
    ids = [message['messageId'] for message in task['history']]
    assert len(ids) == len(set(ids))
    assert len(ids) >= 20


@pytest.mark.row(62)
@pytest.mark.parametrize('length', [0, 1, 2])
async def test_history_length_limits_send_and_the_streams_first_task(
    wire: Wire, length: int
) -> None:
    configuration = {'historyLength': length}
    asked = await wire.run('input', configuration=configuration)
    assert len(asked.get('history', [])) == min(length, 1)
    done = await wire.run('more', task_id=asked['id'], configuration=configuration)
    whole = (await wire.get(asked['id']))['history']
    assert len(whole) >= 3
    assert done.get('history', []) == whole[len(whole) - length :]

    asked = await wire.run('input')
    events = data_of(await wire.collect('more', task_id=asked['id'], configuration=configuration))
    first = events[0]['task'].get('history', [])
    assert len(first) <= length
    if length:
        assert first[-1]['parts'] == [{'text': 'more'}]
    assert state_of(events[-1]) == 'TASK_STATE_COMPLETED'


@pytest.mark.row(64)
async def test_history_length_limits_get_and_list(wire: Wire) -> None:
    context_id = f'history-{uuid.uuid4()}'
    for _ in range(2):
        asked = await wire.run('input', context_id=context_id)
        await wire.run('more', task_id=asked['id'])
    whole = (await wire.get(asked['id']))['history']
    assert (await wire.get(asked['id'], historyLength=1))['history'] == whole[-1:]
    assert 'history' not in await wire.get(asked['id'], historyLength=0)
    page = await wire.list(contextId=context_id, historyLength=1)
    assert len(page['tasks']) == 2
    for task in page['tasks']:
        assert len(task['history']) == 1
    for task in (await wire.list(contextId=context_id, historyLength=0))['tasks']:
        assert 'history' not in task


@pytest.mark.row(157)
async def test_tasks_of_one_context_keep_their_artifacts_apart(wire: Wire) -> None:
    context_id = f'shared-{uuid.uuid4()}'
    streams = await asyncio.gather(
        *(wire.collect('chunks 50', context_id=context_id) for _ in range(2))
    )
    for events in map(data_of, streams):
        task_id = events[0]['task']['id']
        for event in events[1:]:
            (body,) = event.values()
            assert (body['taskId'], body['contextId']) == (task_id, context_id)
        chunks = [e['artifactUpdate'] for e in events if 'artifactUpdate' in e]
        assert len(chunks) == 50
        streamed = ''.join(chunk['artifact']['parts'][0]['text'] for chunk in chunks)
        stored = await wire.get(task_id)
        assert list(texts(stored).values()) == [streamed]
