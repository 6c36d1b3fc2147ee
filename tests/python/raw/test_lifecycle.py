"""What may become of a task, and what must not."""

from __future__ import annotations

import asyncio

import pytest

from harness.errors import ApiError, refused
from harness.jsonish import state_of
from harness.wire import Wire, data_of, next_event, rest_of

pytestmark = pytest.mark.each_store

# The engine writes CANCELED after this much of an agent's silence; design section 3.
CANCEL_GRACE_SECONDS = 3.0


@pytest.mark.row(1)
async def test_event_written_after_the_end_changes_nothing(wire: Wire) -> None:
    task = await wire.run('late')
    assert task['status']['state'] == 'TASK_STATE_COMPLETED'
    await wire.stays(task['id'], 1.0)


@pytest.mark.row(1, 10)
async def test_parallel_cancels_make_one_change(wire: Wire) -> None:
    task = await wire.begin('slow 60')
    await wire.until(task['id'], 'WORKING')
    async with wire.subscribe(task['id']) as events:
        await next_event(events)
        answers = await asyncio.gather(
            *(wire.cancel(task['id']) for _ in range(20)), return_exceptions=True
        )
        rest = data_of(await rest_of(events))
    assert [state_of(event) for event in rest] == ['TASK_STATE_CANCELED']
    for answer in answers:
        if isinstance(answer, ApiError):
            answer.check('TASK_NOT_CANCELABLE')
        else:
            assert answer['status']['state'] == 'TASK_STATE_CANCELED', answer


@pytest.mark.row(2)
@pytest.mark.parametrize('state', ['COMPLETED', 'FAILED', 'CANCELED', 'REJECTED'])
async def test_message_to_an_ended_task_is_refused(wire: Wire, state: str) -> None:
    task = await wire.task_in(state)
    before = await wire.get(task['id'])
    await refused(wire.send('more', task_id=task['id']), 'UNSUPPORTED_OPERATION')
    await refused(wire.collect('more', task_id=task['id']), 'UNSUPPORTED_OPERATION')
    assert await wire.get(task['id']) == before


@pytest.mark.row(4)
async def test_context_of_another_is_refused_and_the_tasks_own_is_inferred(wire: Wire) -> None:
    task = await wire.task_in('INPUT_REQUIRED')
    before = await wire.get(task['id'])
    error = await refused(
        wire.send('more', task_id=task['id'], context_id='other'), 'INVALID_PARAMS'
    )
    assert 'message.contextId' in error.fields
    assert await wire.get(task['id']) == before
    after = await wire.run('more', task_id=task['id'])
    assert after['contextId'] == task['contextId']
    assert after['id'] == task['id']


@pytest.mark.row(5, 158)
async def test_cancel_of_a_stubborn_agent_stays_canceled(wire: Wire) -> None:
    task = await wire.begin('stubborn slow 5')
    await wire.until(task['id'], 'WORKING')
    canceled = await wire.cancel(task['id'])
    assert canceled['status']['state'] == 'TASK_STATE_CANCELED'
    # The agent comes to its end two seconds after the grace, and must not be heard.
    await wire.stays(task['id'], 5 - CANCEL_GRACE_SECONDS + 1)


@pytest.mark.row(7)
async def test_second_cancel_is_refused_and_writes_no_event(wire: Wire) -> None:
    task = await wire.task_in('CANCELED')
    log = await wire.collect_task(task['id'], last_event_id=1)
    await refused(wire.cancel(task['id']), 'TASK_NOT_CANCELABLE')
    assert await wire.collect_task(task['id'], last_event_id=1) == log


@pytest.mark.row(7)
@pytest.mark.parametrize('state', ['COMPLETED', 'FAILED', 'REJECTED'])
async def test_cancel_of_an_ended_task_is_refused(wire: Wire, state: str) -> None:
    task = await wire.task_in(state)
    await refused(wire.cancel(task['id']), 'TASK_NOT_CANCELABLE')


@pytest.mark.row(8)
async def test_cancel_answers_with_the_new_state_and_time(wire: Wire) -> None:
    task = await wire.begin('slow 60')
    working = await wire.until(task['id'], 'WORKING')
    canceled = await wire.cancel(task['id'])
    assert canceled['status']['state'] == 'TASK_STATE_CANCELED'
    assert canceled['status']['timestamp'] >= working['status']['timestamp']
    assert await wire.get(task['id']) == canceled


@pytest.mark.row(8)
@pytest.mark.parametrize('state', ['INPUT_REQUIRED', 'AUTH_REQUIRED'])
async def test_cancel_of_a_waiting_task_is_immediate(wire: Wire, state: str) -> None:
    task = await wire.task_in(state)
    canceled = await wire.cancel(task['id'])
    assert canceled['status']['state'] == 'TASK_STATE_CANCELED'


@pytest.mark.row(11)
async def test_failure_after_an_event_is_the_last_word(wire: Wire) -> None:
    events = data_of(await wire.collect('fail late'))
    assert state_of(events[-1]) == 'TASK_STATE_FAILED'
    task = await wire.stays(events[0]['task']['id'], 0.5)
    assert task['status']['state'] == 'TASK_STATE_FAILED'


@pytest.mark.row(13, 14)
@pytest.mark.parametrize('text', ['fail', 'fail late'])
async def test_failed_send_returns_a_task_that_can_be_fetched(wire: Wire, text: str) -> None:
    task = await wire.run(text)
    assert task['status']['state'] == 'TASK_STATE_FAILED'
    assert await wire.get(task['id']) == task


@pytest.mark.row(163)
async def test_text_of_an_exception_reaches_nobody(wire: Wire) -> None:
    """The demo agent raises with the words of its message; a caller sees a reason of ours."""
    secret = 'hunter2-is-the-password'
    events = data_of(await wire.collect(f'fail late {secret}'))
    for event in events[1:]:
        assert secret not in str(event), event
    task = await wire.get(events[0]['task']['id'])
    status = str(task['status'])
    for leak in (secret, 'panicked', '.rs:', 'Error {', 'src/'):
        assert leak not in status, status


@pytest.mark.row(20)
async def test_task_that_asks_for_authorization_goes_on_by_itself(wire: Wire) -> None:
    task = await wire.run('auth')
    assert task['status']['state'] == 'TASK_STATE_AUTH_REQUIRED'
    assert task['status']['message']['parts']
    async with wire.subscribe(task['id']) as events:
        first = (await next_event(events)).data['task']
        assert first['status']['state'] == 'TASK_STATE_AUTH_REQUIRED'
        states = [state_of(event) for event in data_of(await rest_of(events))]
    assert states[-1] == 'TASK_STATE_COMPLETED'
    assert (await wire.get(task['id']))['status']['state'] == 'TASK_STATE_COMPLETED'


@pytest.mark.row(20)
async def test_own_stream_stays_open_through_authorization(wire: Wire) -> None:
    states = [state_of(event) for event in data_of(await wire.collect('auth'))]
    assert 'TASK_STATE_AUTH_REQUIRED' in states
    assert states[-1] == 'TASK_STATE_COMPLETED'


@pytest.mark.row(22)
async def test_stream_ends_where_input_is_asked_for_and_can_be_opened_again(wire: Wire) -> None:
    events = data_of(await wire.collect('input'))
    assert state_of(events[-1]) == 'TASK_STATE_INPUT_REQUIRED'
    task_id = events[0]['task']['id']
    async with wire.subscribe(task_id) as again:
        first = (await next_event(again)).data['task']
    assert first['id'] == task_id
    assert first['status']['state'] == 'TASK_STATE_INPUT_REQUIRED'


@pytest.mark.row(23, 178)
async def test_subscribers_of_a_waiting_task_see_the_next_turn(wire: Wire) -> None:
    task = await wire.task_in('INPUT_REQUIRED')
    async with wire.subscribe(task['id']) as one, wire.subscribe(task['id']) as other:
        await next_event(one)
        await next_event(other)
        done = await wire.run('more', task_id=task['id'])
        assert done['status']['state'] == 'TASK_STATE_COMPLETED'
        seen = data_of(await rest_of(one))
        assert data_of(await rest_of(other)) == seen
    states = [state_of(event) for event in seen]
    assert states[0] == 'TASK_STATE_WORKING'
    assert states[-1] == 'TASK_STATE_COMPLETED'
    assert any('artifactUpdate' in event for event in seen)


@pytest.mark.row(127)
async def test_subscription_to_an_ended_task_is_refused(wire: Wire) -> None:
    task = await wire.run('hello')
    await refused(wire.collect_task(task['id']), 'UNSUPPORTED_OPERATION')
