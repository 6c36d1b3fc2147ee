"""What a stream shows: the task first, then everything after it, once and in order."""

from __future__ import annotations

import asyncio
import random
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import ApiError, refused
from harness.http_wire import HttpWire
from harness.jsonish import fold, state_of, texts
from harness.server import Server, environment
from harness.sse import Comment, Item, read_items
from harness.wire import TERMINAL, Event, Wire, data_of, next_event, rest_of

# A busy machine may be late.
KEEP_ALIVE_SLACK_SECONDS = 2.0


def assert_numbered(events: list[Event]) -> None:
    """Sequences go up by one from whatever the first item has."""
    numbers = [event.sequence for event in events]
    assert None not in numbers
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


@pytest.mark.row(26)
@pytest.mark.each_store
async def test_subscription_at_any_moment_has_no_gap_and_no_double(wire: Wire) -> None:
    seed = 26
    dice = random.Random(seed)
    begun = time.monotonic()
    await wire.run('chunks 200')
    duration = time.monotonic() - begun

    async def follow(task_id: str, delay: float, last_event_id: int | None) -> list[Event]:
        await asyncio.sleep(delay)
        try:
            return await wire.collect_task(task_id, last_event_id)
        except ApiError as error:
            # Without an id to go on from, an ended task cannot be subscribed to.
            assert last_event_id is None, error
            error.check('UNSUPPORTED_OPERATION')
            return []

    seen = 0
    for _ in range(20):
        task_id = (await wire.begin('chunks 200'))['id']
        streams = await asyncio.gather(
            *(
                follow(task_id, dice.random() * duration, last_event_id)
                for last_event_id in (None, None, None, 1, 3)
            )
        )
        final = await wire.until(task_id)
        for events in filter(None, streams):
            seen += 1
            assert_numbered(events)
            task = fold(data_of(events))
            assert task['artifacts'] == final['artifacts'], f'seed {seed}'
            assert task['status'] == final['status'], f'seed {seed}'
    assert seen >= 40


@pytest.mark.row(28)
@pytest.mark.each_store
async def test_many_short_streams_each_begin_and_end(wire: Wire) -> None:
    async def one(number: int) -> None:
        events = await wire.collect(f'short {number}')
        assert 'task' in events[0].data
        assert state_of(events[-1].data) == 'TASK_STATE_COMPLETED'
        assert_numbered(events)
        task = fold(data_of(events))
        assert ''.join(texts(task).values()) == f'short {number}'

    await asyncio.gather(*(one(number) for number in range(500)))


@pytest.mark.row(29, 47)
async def test_subscriber_that_leaves_takes_nobody_with_it(wire: Wire) -> None:
    task_id = (await wire.begin('slow 2'))['id']
    async with wire.subscribe(task_id) as one, wire.subscribe(task_id) as other:
        async with wire.subscribe(task_id) as leaver:
            await next_event(leaver)
        for events in (one, other):
            await next_event(events)
            rest = await rest_of(events)
            assert state_of(rest[-1].data) == 'TASK_STATE_COMPLETED'


@pytest.mark.row(32)
async def test_subscription_after_a_dropped_one_is_answered_at_once(wire: Wire) -> None:
    task_id = (await wire.task_in('INPUT_REQUIRED'))['id']
    async with wire.subscribe(task_id) as events:
        await next_event(events)
    begun = time.monotonic()
    async with wire.subscribe(task_id) as events:
        assert (await next_event(events)).data['task']['id'] == task_id
        assert time.monotonic() - begun < 1.0
        await wire.run('more', task_id=task_id)
        rest = await rest_of(events)
    assert state_of(rest[-1].data) == 'TASK_STATE_COMPLETED'


@pytest.mark.row(32)
async def test_subscription_to_a_task_that_is_ending_ends(wire: Wire) -> None:
    for number in range(50):
        task_id = (await wire.begin(f'quick {number}'))['id']
        try:
            events = await asyncio.wait_for(wire.collect_task(task_id), 10)
        except ApiError as error:
            error.check('UNSUPPORTED_OPERATION')
        else:
            assert state_of(events[-1].data) == 'TASK_STATE_COMPLETED'


@pytest.mark.row(35)
@pytest.mark.each_store
async def test_stream_resumes_after_any_event(wire: Wire) -> None:
    whole = await wire.collect('chunks 20')
    assert_numbered(whole)
    first = whole[0].sequence
    task_id = whole[0].data['task']['id']
    for cut in range(len(whole)):
        resumed = await wire.collect_task(task_id, last_event_id=first + cut)
        assert resumed[0].sequence == first + cut
        assert resumed[0].data == {'task': fold(data_of(whole[: cut + 1]))}
        assert resumed[1:] == whole[cut + 1 :]


@pytest.mark.row(35)
async def test_stream_of_an_open_task_resumes_and_goes_on(wire: Wire) -> None:
    asked = await wire.collect('input')
    task_id = asked[0].data['task']['id']
    async with wire.subscribe(task_id, last_event_id=asked[0].sequence) as events:
        seen = [await next_event(events) for _ in asked]
        assert seen == asked
        await wire.run('more', task_id=task_id)
        seen += await rest_of(events)
    assert_numbered(seen)
    assert state_of(seen[-1].data) == 'TASK_STATE_COMPLETED'


@pytest.mark.row(35)
@pytest.mark.parametrize('last_event_id', [10_000, '0', 'not-a-number', '-1', ''])
async def test_unknown_event_id_gives_the_task_as_it_is(
    wire: Wire, last_event_id: int | str
) -> None:
    task = await wire.task_in('INPUT_REQUIRED')
    async with wire.subscribe(task['id'], last_event_id=last_event_id) as events:
        first = await next_event(events)
    assert first.data == {'task': await wire.get(task['id'])}


@pytest.mark.row(35)
async def test_send_stream_takes_no_notice_of_an_event_id(wire: Wire) -> None:
    params = {'message': {'messageId': 'm', 'role': 'ROLE_USER', 'parts': [{'text': 'x'}]}}
    async with wire.open('SendStreamingMessage', params, last_event_id=7) as events:
        seen = await rest_of(events)
    assert 'task' in seen[0].data
    assert state_of(seen[-1].data) == 'TASK_STATE_COMPLETED'


@pytest.mark.row(37)
@pytest.mark.bindings('HTTP+JSON')
async def test_get_and_post_subscribe_alike(wire: HttpWire) -> None:
    task_id = (await wire.task_in('INPUT_REQUIRED'))['id']

    async def follow(verb: str) -> list[dict]:
        seen = []
        url = f'{wire.url}/tasks/{task_id}:subscribe'
        headers = {'A2A-Version': '1.0'}
        async with wire.http.stream(verb, url, headers=headers, timeout=20) as answer:
            assert answer.status_code == 200
            assert answer.headers['content-type'].startswith('text/event-stream')
            async for item in read_items(answer.aiter_bytes()):
                if not isinstance(item, Comment):
                    seen.append((item.id, wire.item(item.data)))
                    opened.release()
        return seen

    opened = asyncio.Semaphore(0)
    followers = [asyncio.create_task(follow(verb)) for verb in ('GET', 'POST')]
    for _ in followers:
        await asyncio.wait_for(opened.acquire(), 10)
    await wire.run('more', task_id=task_id)
    got, posted = await asyncio.gather(*followers)
    assert len(got) >= 3
    assert got == posted


@pytest.mark.row(40, 160)
@pytest.mark.bindings('JSONRPC', 'HTTP+JSON')
async def test_idle_stream_sends_comments(
    own_server: Callable[..., Server],
    connect: Callable[[Server, str], HttpWire],
    binding: str,
    tmp_path: Path,
) -> None:
    config = tmp_path / 'quick.toml'
    config.write_text('[server]\nkeep_alive = "1s"\n')
    wire = connect(own_server('memory', '--config', str(config)), binding)
    task_id = (await wire.task_in('INPUT_REQUIRED'))['id']
    request = wire.request('SubscribeToTask', {'id': task_id}, {'A2A-Version': '1.0'}, timeout=30)
    answer = await wire.http.send(request, stream=True)
    items = read_items(answer.aiter_bytes())
    try:
        assert isinstance(await anext(items), Item)
        for _ in range(3):
            comment = await asyncio.wait_for(anext(items), 1 + KEEP_ALIVE_SLACK_SECONDS)
            assert isinstance(comment, Comment)
        await wire.run('more', task_id=task_id)
        rest = [item async for item in items if isinstance(item, Item)]
    finally:
        await answer.aclose()
    assert state_of(wire.item(rest[-1].data)) == 'TASK_STATE_COMPLETED'


@pytest.mark.row(40, 160)
def test_comments_come_every_10_seconds_unless_configured(binary: Path, tmp_path: Path) -> None:
    command = [str(binary), 'config', '--exec', 'true']
    shown = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True
    )
    assert '\nkeep_alive = "10s"\n' in shown.stdout


@pytest.mark.row(46)
async def test_stream_refused_before_its_first_item_has_the_right_error(wire: Wire) -> None:
    await refused(wire.collect('x', task_id='unknown'), 'TASK_NOT_FOUND')
    await refused(wire.collect_task('unknown'), 'TASK_NOT_FOUND')


@pytest.mark.row(49)
@pytest.mark.each_store
@pytest.mark.parametrize(
    'text',
    [
        'emoji 🌍👩‍👩‍👧‍👦',
        'CJK 漢字かな한글',
        'separators \u2028 \u2029 \u0085 \x0b \x0c',
        'line ends \r\n \n \r and: data: x\n\nid: 7',
        'controls \x00 \x01 \x1f \x7f',
        'quotes " \' \\ / </script>',
        'beyond \U0010ffff \U00010000 e\u0301 \ufeff',
    ],
)
async def test_text_survives_unary_and_stream(wire: Wire, text: str) -> None:
    task = await wire.run(text)
    assert list(texts(task).values()) == [text]
    assert task['history'][0]['parts'] == [{'text': text}]
    assert await wire.get(task['id']) == task
    streamed = fold(data_of(await wire.collect(text)))
    assert list(texts(streamed).values()) == [text]


@pytest.mark.row(34, 50)
@pytest.mark.each_store
async def test_all_subscribers_see_one_order(
    server: Server, binding: str, connect: Callable[[Server, str], Wire]
) -> None:
    wires = [connect(server, binding) for _ in range(5)]
    task_id = (await wires[0].begin('burst 300'))['id']
    # Each starts from event 1, so that each sees everything, however late it comes.
    streams = await asyncio.gather(*(wire.collect_task(task_id, 1) for wire in wires))
    for events in streams:
        assert_numbered(events)
        assert events == streams[0]
    statuses = [event.data for event in streams[0] if 'statusUpdate' in event.data]
    assert len(statuses) >= 300
    assert state_of(statuses[-1]) in TERMINAL
