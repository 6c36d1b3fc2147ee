"""Restarts, orderly and not: what was told is still there, and nothing is stuck."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable

import httpx
import pytest

from harness.errors import refused
from harness.jsonish import state_of
from harness.server import Server, environment
from harness.wire import Event, Wire, data_of, next_event, rest_of

Connect = Callable[[Server, str], Wire]

# A lease runs for 30 s; whoever died is noticed within one.
RECOVERY_SECONDS = 45.0


@pytest.mark.row(31)
@pytest.mark.parametrize('end', ['restart', 'kill'])
async def test_waiting_task_survives_with_its_question(
    own_server: Callable[..., Server], connect: Connect, binding: str, end: str
) -> None:
    server = own_server()
    wire = connect(server, binding)
    asked = await wire.run('input', context_id='kept')
    if end == 'kill':
        server.kill()
        server.start()
    else:
        server.restart()
    wire = connect(server, binding)
    assert await wire.get(asked['id']) == asked
    assert (await wire.list(contextId='kept', includeArtifacts=True))['tasks'] == [asked]
    async with wire.subscribe(asked['id']) as events:
        assert (await next_event(events)).data == {'task': asked}
        done = await wire.run('more', task_id=asked['id'])
        assert done['status']['state'] == 'TASK_STATE_COMPLETED'
        rest = data_of(await rest_of(events))
    assert state_of(rest[-1]) == 'TASK_STATE_COMPLETED'


@pytest.mark.row(142, 176)
async def test_task_that_was_working_is_run_again_after_a_kill(
    own_server: Callable[..., Server], connect: Connect, binding: str
) -> None:
    server = own_server()
    wire = connect(server, binding)
    task = await wire.begin('slow 2')
    await wire.until(task['id'], 'WORKING')
    server.kill()
    server.start()
    wire = connect(server, binding)
    done = await wire.until(task['id'], 'COMPLETED', 'FAILED', timeout=RECOVERY_SECONDS)
    if done['status']['state'] == 'TASK_STATE_FAILED':
        assert done['status']['message']['parts'][0]['text'], 'a reason that a person can read'


@pytest.mark.row(20, 142)
async def test_authorization_that_was_asked_for_still_resumes_after_a_kill(
    own_server: Callable[..., Server], connect: Connect, binding: str
) -> None:
    server = own_server()
    wire = connect(server, binding)
    task = await wire.run('auth')
    server.kill()
    server.start()
    wire = connect(server, binding)
    await wire.until(task['id'], 'COMPLETED', timeout=RECOVERY_SECONDS)


@pytest.mark.row(21, 142, 157)
async def test_events_that_were_told_are_still_in_the_log_after_a_kill(
    own_server: Callable[..., Server], connect: Connect, binding: str
) -> None:
    server = own_server()
    wire = connect(server, binding)
    seen: list[Event] = []
    async with wire.stream('chunks 3000') as events:
        while len(seen) < 500:
            seen.append(await next_event(events))
        server.kill()
        # What was under way still counts as told.
        try:
            async for event in events:
                seen.append(event)
        except Exception:
            pass
    task_id = seen[0].data['task']['id']
    server.start()
    wire = connect(server, binding)
    async with wire.subscribe(task_id, last_event_id=seen[0].sequence) as events:
        replay = [await next_event(events) for _ in seen]
    assert replay == seen
    done = await wire.until(task_id, timeout=RECOVERY_SECONDS)
    assert done['status']['state'] in ('TASK_STATE_COMPLETED', 'TASK_STATE_FAILED')


@pytest.mark.row(142)
async def test_every_acknowledged_task_is_there_after_a_kill(
    own_server: Callable[..., Server], connect: Connect, binding: str
) -> None:
    server = own_server()
    wire = connect(server, binding)
    context_id = f'acknowledged-{uuid.uuid4()}'
    acknowledged: dict[str, dict] = {}

    async def sender(number: int) -> None:
        for turn in range(1000):
            task = await wire.run(f'{number} {turn}', context_id=context_id)
            acknowledged[task['id']] = task

    senders = [asyncio.create_task(sender(number)) for number in range(8)]
    while len(acknowledged) < 100:
        await asyncio.sleep(0.01)
    server.kill()
    for task in senders:
        task.cancel()
    await asyncio.gather(*senders, return_exceptions=True)
    server.start()
    wire = connect(server, binding)
    for task_id, task in acknowledged.items():
        assert await wire.get(task_id) == task
    total = (await wire.list(contextId=context_id))['totalSize']
    assert total >= len(acknowledged)


async def test_second_server_on_the_same_data_is_refused_in_plain_words(
    own_server: Callable[..., Server], binary, tmp_path
) -> None:
    server = own_server()
    process = await asyncio.create_subprocess_exec(
        str(binary),
        'demo-server',
        '--listen',
        '127.0.0.1:0',
        '--data',
        str(server.data),
        cwd=tmp_path,
        env=environment(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), 20)
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode not in (0, None)
    assert b'panicked' not in output
    assert str(server.data).encode() in output, output


async def test_orderly_stop_ends_streams_and_exits_well(
    own_server: Callable[..., Server], connect: Connect
) -> None:
    server = own_server()
    wire = connect(server, 'JSONRPC')
    task = await wire.task_in('INPUT_REQUIRED')
    async with wire.subscribe(task['id']) as events:
        await next_event(events)
        await asyncio.to_thread(server.stop)
        assert await rest_of(events) == [], 'an orderly end, not a cut connection'
    with pytest.raises(httpx.TransportError):
        await wire.get(task['id'])


async def test_memory_store_forgets_and_says_so(
    own_server: Callable[..., Server], connect: Connect
) -> None:
    server = own_server('memory')
    wire = connect(server, 'JSONRPC')
    task = await wire.task_in('INPUT_REQUIRED')
    server.restart()
    await refused(connect(server, 'JSONRPC').get(task['id']), 'TASK_NOT_FOUND')
