"""A command that speaks JSON lines as the agent: `serve --exec-jsonl` (design section 8)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.artifacts import artifact, versions
from harness.jsonish import texts
from harness.server import Server
from harness.wire import Wire

pytestmark = pytest.mark.bindings('JSONRPC')

# Says what its message holds: each line of the message's text is one line of the protocol.
AGENT = """
import json, sys
turn = json.loads(sys.stdin.readline())
for line in turn["message"]["parts"][0]["text"].splitlines():
    if line.startswith("exit"):
        sys.exit(int(line.split()[1]))
    if line == "turn":
        line = json.dumps({"type": "artifact", "artifactId": "turn", "parts": [{"data": turn}]})
    print(line, flush=True)
"""


@pytest.fixture
def wire(
    own_server: Callable[..., Server],
    connect: Callable[[Server, str], Wire],
    binding: str,
    tmp_path: Path,
) -> Wire:
    """A server whose agent does what the message's lines say."""
    script = tmp_path / 'agent.py'
    script.write_text(AGENT)
    command = f'"{sys.executable}" "{script}"'
    return connect(own_server('sqlite', '--exec-jsonl', command, command='serve'), binding)


@pytest.mark.row(16)
async def test_append_to_an_artifact_never_seen_fails_the_task(wire: Wire) -> None:
    task = await wire.run('{"type":"artifact","artifactId":"new","text":"half","append":true}')
    assert task['status']['state'] == 'TASK_STATE_FAILED'
    assert 'artifacts' not in await wire.get(task['id'])


@pytest.mark.row(16)
async def test_append_after_the_last_chunk_fails_the_task(wire: Wire) -> None:
    task = await wire.run(
        '{"type":"artifact","artifactId":"a","text":"whole","lastChunk":true}\n'
        '{"type":"artifact","artifactId":"a","text":"more","append":true}\n'
        '{"type":"complete"}'
    )
    assert task['status']['state'] == 'TASK_STATE_FAILED'
    assert texts(task) == {'a': 'whole'}


@pytest.mark.row(17)
async def test_metadata_of_chunks_is_merged(wire: Wire) -> None:
    task = await wire.run(
        '{"type":"artifact","artifactId":"a","text":"1","metadata":{"a":1}}\n'
        '{"type":"artifact","artifactId":"a","text":"2","append":true,"metadata":{"b":2}}\n'
        '{"type":"complete"}'
    )
    (stored,) = (await wire.get(task['id']))['artifacts']
    assert stored['metadata'] == {'a': 1, 'b': 2}
    assert [part['text'] for part in stored['parts']] == ['1', '2']


async def test_artifact_written_anew_is_the_next_version(wire: Wire) -> None:
    task = await wire.run(
        '{"type":"artifact","artifactId":"a","text":"old"}\n'
        '{"type":"artifact","artifactId":"b","text":"other"}\n'
        '{"type":"artifact","artifactId":"a","text":"new"}\n'
        '{"type":"artifact","artifactId":"a","text":"er","append":true}\n'
        '{"type":"complete","text":"done"}'
    )
    assert task['status']['state'] == 'TASK_STATE_COMPLETED'
    assert task['status']['message']['parts'] == [{'text': 'done'}]
    assert texts(task) == {'a': 'newer', 'b': 'other'}
    listed = (await versions(wire, task['id'], 'a'))['versions']
    assert [entry['version'] for entry in listed] == [2, 1]
    old = await artifact(wire, task['id'], 'a', 1)
    assert old['artifact']['parts'] == [{'text': 'old'}]
    page = await versions(wire, task['id'], 'a', pageSize=1)
    assert [entry['version'] for entry in page['versions']] == [2]
    page = await versions(wire, task['id'], 'a', pageSize=1, pageToken=page['nextPageToken'])
    assert [entry['version'] for entry in page['versions']] == [1]
    assert page['nextPageToken'] == ''


async def test_agent_asks_and_is_told_of_the_answer(wire: Wire) -> None:
    asked = await wire.run(
        '{"type":"progress","text":"so far"}\n{"type":"input_required","text":"?"}'
    )
    assert asked['status']['state'] == 'TASK_STATE_INPUT_REQUIRED'
    assert asked['status']['message']['parts'] == [{'text': '?'}]
    done = await wire.run(
        'turn\n{"type":"complete"}',
        task_id=asked['id'],
        configuration={'acceptedOutputModes': ['text/x-of-mine']},
    )
    assert done['status']['state'] == 'TASK_STATE_COMPLETED'
    turn = done['artifacts'][0]['parts'][0]['data']
    assert turn['taskId'] == asked['id']
    assert turn['first'] is False
    assert turn['attempt'] == 1
    assert turn['acceptedOutputModes'] == ['text/x-of-mine']
    said = [m['parts'][0]['text'] for m in turn['history'] if m['role'] == 'ROLE_AGENT']
    assert said == ['so far', '?']


@pytest.mark.parametrize('line', ['nonsense', '{"type":"nope"}', '{"type":"complete","x":1}', '{}'])
async def test_line_that_is_none_of_the_protocol_fails_the_task(wire: Wire, line: str) -> None:
    task = await wire.run(line)
    assert task['status']['state'] == 'TASK_STATE_FAILED'


@pytest.mark.parametrize(('code', 'state'), [(0, 'COMPLETED'), (3, 'FAILED')])
async def test_exit_code_stands_in_for_a_last_word(wire: Wire, code: int, state: str) -> None:
    task = await wire.run(f'{{"type":"artifact","artifactId":"a","text":"x"}}\nexit {code}')
    assert task['status']['state'] == f'TASK_STATE_{state}'
    assert texts(task) == {'a': 'x'}
