"""What Longhaul offers beyond the protocol: artifact versions, and sends that can be repeated."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from harness.artifacts import artifact, versions
from harness.errors import refused
from harness.wire import Wire, text_message

pytestmark = pytest.mark.each_store

IDEMPOTENT_SEND = 'urn:longhaul:ext:idempotent-send:v1'


async def test_artifact_is_read_by_version(wire: Wire) -> None:
    events = await wire.collect('chunks 3')
    task = await wire.get(events[0].data['task']['id'])
    (stored,) = task['artifacts']
    newest = await artifact(wire, task['id'], stored['artifactId'])
    assert newest == {'version': 1, 'artifact': stored}
    assert await artifact(wire, task['id'], stored['artifactId'], 1) == newest
    (entry,) = (await versions(wire, task['id'], stored['artifactId']))['versions']
    chunks = [event for event in events if 'artifactUpdate' in event.data]
    assert entry['version'] == 1
    assert entry['sequence'] == chunks[-1].sequence
    assert entry['timestamp']


async def test_unknown_artifacts_and_versions_are_not_found(wire: Wire) -> None:
    task = await wire.run('hello')
    artifact_id = task['artifacts'][0]['artifactId']
    for call in (
        versions(wire, 'unknown', artifact_id),
        versions(wire, task['id'], 'unknown'),
        artifact(wire, 'unknown', artifact_id),
        artifact(wire, task['id'], 'unknown'),
        artifact(wire, task['id'], artifact_id, 2),
    ):
        await refused(call, 'TASK_NOT_FOUND')


async def test_repeated_send_gives_the_same_task_where_that_is_asked_for(wire: Wire) -> None:
    context_id = f'repeated-{uuid.uuid4()}'
    params = {'message': text_message('hello', context_id=context_id)}

    async def send() -> dict:
        return (await wire.call('SendMessage', params, extensions=IDEMPOTENT_SEND))['task']

    tasks = await asyncio.gather(*(send() for _ in range(10)))
    tasks.append(await send())
    assert len({task['id'] for task in tasks}) == 1
    assert (await wire.list(contextId=context_id))['totalSize'] == 1


async def test_repeated_message_id_with_other_content_is_refused(wire: Wire) -> None:
    message = text_message('hello')
    await wire.call('SendMessage', {'message': message}, extensions=IDEMPOTENT_SEND)
    other = {'message': {**message, 'parts': [{'text': 'something else'}]}}
    error = await refused(
        wire.call('SendMessage', other, extensions=IDEMPOTENT_SEND), 'INVALID_PARAMS'
    )
    assert error.fields


async def test_repeated_message_id_makes_two_tasks_where_nothing_is_asked_for(wire: Wire) -> None:
    params = {'message': text_message('hello')}
    one = await wire.call('SendMessage', params)
    other = await wire.call('SendMessage', params)
    assert one['task']['id'] != other['task']['id']


async def test_one_message_id_belongs_to_each_tenant_apart(wire: Wire) -> None:
    message = text_message('hello')
    ids = set()
    for tenant in ('one', 'two'):
        # HTTP+JSON has the tenant in its path, and takes the body's too.
        params = {'tenant': tenant, 'message': message}
        answer = await wire.call('SendMessage', params, extensions=IDEMPOTENT_SEND)
        ids.add(answer['task']['id'])
    assert len(ids) == 2
