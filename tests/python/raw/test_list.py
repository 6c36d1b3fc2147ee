"""ListTasks (§3.1.4): filters, pages, and what is refused."""

from __future__ import annotations

import asyncio
import random
import uuid

import pytest

from harness.errors import refused
from harness.wire import Wire

pytestmark = pytest.mark.each_place


@pytest.fixture
def context_id() -> str:
    """A context that no other test uses."""
    return f'list_{uuid.uuid4()}'


@pytest.mark.row(86)
@pytest.mark.bindings('JSONRPC', 'HTTP+JSON')
async def test_empty_list_has_all_required_members(wire: Wire, context_id: str) -> None:
    assert await wire.list(contextId=context_id) == {
        'tasks': [],
        'nextPageToken': '',
        'pageSize': 50,
        'totalSize': 0,
    }


@pytest.mark.row(88)
@pytest.mark.parametrize('size', [0, -1, 101, 2**31 - 1])
async def test_page_size_out_of_range_is_refused(wire: Wire, size: int) -> None:
    error = await refused(wire.list(pageSize=size), 'INVALID_PARAMS')
    assert error.fields == ['pageSize']


@pytest.mark.row(88)
@pytest.mark.bindings('JSONRPC', 'HTTP+JSON')
@pytest.mark.parametrize('size', [2**31, 2.5, 'many'])
async def test_page_size_that_is_no_int32_is_refused(wire: Wire, size: object) -> None:
    error = await refused(wire.list(pageSize=size), 'INVALID_PARAMS')
    assert error.fields == ['pageSize']


@pytest.mark.row(88)
@pytest.mark.parametrize('length', [-1, -(2**31)])
async def test_negative_history_length_is_refused(wire: Wire, length: int) -> None:
    task = await wire.run('hello')
    for call, field in (
        (wire.list(historyLength=length), 'historyLength'),
        (wire.get(task['id'], historyLength=length), 'historyLength'),
        (
            wire.send('x', configuration={'historyLength': length}),
            'configuration.historyLength',
        ),
    ):
        assert (await refused(call, 'INVALID_PARAMS')).fields == [field]


@pytest.mark.row(88)
async def test_page_sizes_in_range_are_kept_and_the_default_is_50(
    wire: Wire, context_id: str
) -> None:
    assert (await wire.list(contextId=context_id))['pageSize'] == 50
    for size in (1, 100):
        assert (await wire.list(contextId=context_id, pageSize=size))['pageSize'] == size


@pytest.mark.row(89)
async def test_status_time_filter_includes_its_border(wire: Wire, context_id: str) -> None:
    old = await wire.run('old', context_id=context_id)
    time = old['status']['timestamp']
    new = await wire.run('new', context_id=context_id)
    while new['status']['timestamp'] == time:
        new = await wire.run('new', context_id=context_id)
    page = await wire.list(contextId=context_id, statusTimestampAfter=time)
    assert page['tasks'][-1]['id'] == old['id']
    assert page['totalSize'] == len(page['tasks']) >= 2
    later = time.removesuffix('Z') + '001Z'  # one microsecond past a whole millisecond
    page = await wire.list(contextId=context_id, statusTimestampAfter=later)
    assert old['id'] not in [task['id'] for task in page['tasks']]
    assert page['tasks'][0]['id'] == new['id']


@pytest.mark.row(89)
@pytest.mark.bindings('JSONRPC', 'HTTP+JSON')
@pytest.mark.parametrize('time', ['yesterday', '2026-01-01', '1767225600', '2026-13-01T00:00:00Z'])
async def test_status_time_that_is_no_timestamp_is_refused(wire: Wire, time: str) -> None:
    error = await refused(wire.list(statusTimestampAfter=time), 'INVALID_PARAMS')
    assert error.fields == ['statusTimestampAfter']


@pytest.mark.row(91)
async def test_state_filter_takes_and_gives_names(wire: Wire, context_id: str) -> None:
    working = await wire.begin('slow 60', context_id=context_id)
    await wire.until(working['id'], 'WORKING')
    await wire.run('hello', context_id=context_id)
    page = await wire.list(contextId=context_id, status='TASK_STATE_WORKING')
    assert [task['id'] for task in page['tasks']] == [working['id']]
    assert page['totalSize'] == 1
    assert page['tasks'][0]['status']['state'] == 'TASK_STATE_WORKING'
    states = {task['status']['state'] for task in (await wire.list(contextId=context_id))['tasks']}
    assert states == {'TASK_STATE_WORKING', 'TASK_STATE_COMPLETED'}
    await wire.cancel(working['id'])


@pytest.mark.row(91)
@pytest.mark.bindings('JSONRPC', 'HTTP+JSON', 'GRPC')
async def test_state_that_does_not_exist_is_refused(wire: Wire) -> None:
    error = await refused(wire.list(status=99), 'INVALID_PARAMS')
    assert error.fields == ['status']


@pytest.mark.row(92)
async def test_listed_task_is_a_task_without_artifacts_unless_asked(
    wire: Wire, context_id: str
) -> None:
    task = await wire.run('hello', context_id=context_id)
    for options in ({}, {'includeArtifacts': False}):
        (listed,) = (await wire.list(contextId=context_id, **options))['tasks']
        assert listed['id'] == task['id']
        assert 'artifacts' not in listed
    (listed,) = (await wire.list(contextId=context_id, includeArtifacts=True))['tasks']
    assert listed == task


@pytest.mark.row(95)
async def test_unchanged_tasks_are_seen_once_while_others_change(
    wire: Wire, context_id: str
) -> None:
    seed = 95
    dice = random.Random(seed)
    tasks = await asyncio.gather(*(wire.run('input', context_id=context_id) for _ in range(300)))
    waiting = [task['id'] for task in tasks]
    unchanged = set(waiting)
    seen: list[str] = []
    token = ''
    while True:
        page = await wire.list(contextId=context_id, pageSize=10, pageToken=token)
        seen += [task['id'] for task in page['tasks']]
        token = page['nextPageToken']
        if not token:
            break
        changed = dice.choice([task_id for task_id in waiting if task_id in unchanged])
        unchanged.discard(changed)
        await wire.run('more', task_id=changed)
        await wire.run('new', context_id=context_id)
    for task_id in unchanged:
        assert seen.count(task_id) == 1, f'seed {seed}: {seen.count(task_id)} x {task_id}'
    assert len(unchanged) >= 250


@pytest.mark.row(95)
async def test_pages_are_ordered_by_status_time_newest_first(wire: Wire, context_id: str) -> None:
    await asyncio.gather(*(wire.run(f'task {n}', context_id=context_id) for n in range(25)))
    tasks, token = [], ''
    while True:
        page = await wire.list(contextId=context_id, pageSize=10, pageToken=token)
        assert page['totalSize'] == 25
        tasks += page['tasks']
        token = page['nextPageToken']
        if not token:
            break
    assert len({task['id'] for task in tasks}) == 25
    times = [task['status']['timestamp'] for task in tasks]
    assert times == sorted(times, reverse=True)


@pytest.mark.row(95)
async def test_foreign_and_broken_page_tokens_are_refused(wire: Wire, context_id: str) -> None:
    for _ in range(2):
        await wire.run('hello', context_id=context_id)
    token = (await wire.list(contextId=context_id, pageSize=1))['nextPageToken']
    assert token
    for options in (
        {'contextId': 'another', 'pageToken': token},
        {'contextId': context_id, 'status': 'TASK_STATE_COMPLETED', 'pageToken': token},
        {'contextId': context_id, 'pageToken': token[:-1]},
        {'contextId': context_id, 'pageToken': token + 'A'},
        {'contextId': context_id, 'pageToken': 'nonsense'},
    ):
        error = await refused(wire.list(**options), 'INVALID_PARAMS')
        assert error.fields == ['pageToken']
