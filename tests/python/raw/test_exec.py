"""A command as the agent: `longhaul serve --exec` (design section 8)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.jsonish import state_of, texts
from harness.server import Server
from harness.wire import Wire, data_of, next_event

Connect = Callable[[Server, str], Wire]
pytestmark = pytest.mark.bindings('JSONRPC')


@pytest.fixture
def serve(
    own_server: Callable[..., Server], connect: Connect, binding: str
) -> Callable[[str], Wire]:
    """Starts a server for a command."""

    def start(command: str) -> Wire:
        return connect(own_server('sqlite', '--exec', command, command='serve'), binding)

    return start


async def test_output_of_the_command_is_the_artifact(serve: Callable[[str], Wire]) -> None:
    wire = serve('tr a-z A-Z')
    task = await wire.run('hello\nthere')
    assert task['status']['state'] == 'TASK_STATE_COMPLETED'
    assert texts(task) == {'output': 'HELLO\nTHERE'}


async def test_each_line_is_one_chunk(serve: Callable[[str], Wire]) -> None:
    wire = serve('seq 3')
    events = data_of(await wire.collect('x'))
    updates = [event['artifactUpdate'] for event in events if 'artifactUpdate' in event]
    assert [u['artifact']['parts'] for u in updates] == [[{'text': f'{n}\n'}] for n in (1, 2, 3)]
    assert [u.get('append', False) for u in updates] == [False, True, True]
    assert not any(u.get('lastChunk') for u in updates)
    assert state_of(events[-1]) == 'TASK_STATE_COMPLETED'


async def test_command_without_output_makes_no_artifact(serve: Callable[[str], Wire]) -> None:
    task = await serve('true').run('x')
    assert task['status']['state'] == 'TASK_STATE_COMPLETED'
    assert 'artifacts' not in task


async def test_exit_code_fails_the_task_with_the_end_of_stderr(
    serve: Callable[[str], Wire],
) -> None:
    task = await serve('echo done; echo what went wrong >&2; exit 3').run('x')
    assert task['status']['state'] == 'TASK_STATE_FAILED'
    assert 'what went wrong' in task['status']['message']['parts'][0]['text']
    assert texts(task) == {'output': 'done\n'}


async def test_cancel_ends_the_command(serve: Callable[[str], Wire], tmp_path) -> None:
    mark = tmp_path / 'terminated'
    wire = serve(f'trap "touch {mark}; exit 1" TERM; echo started; while :; do sleep 0.1; done')
    async with wire.stream('x') as events:
        task_id = (await next_event(events)).data['task']['id']
        while 'artifactUpdate' not in (await next_event(events)).data:
            pass
    canceled = await wire.cancel(task_id)
    assert canceled['status']['state'] == 'TASK_STATE_CANCELED'
    assert mark.exists()
