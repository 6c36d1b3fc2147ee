"""Push configs by the official client of v0.3, over each transport, and what receivers of each version are sent."""

from __future__ import annotations

import json
import uuid

import pytest
from a2a.client import Client
from a2a.types import (
    GetTaskPushNotificationConfigParams,
    PushNotificationAuthenticationInfo,
    PushNotificationConfig,
    TaskPushNotificationConfig,
    TaskState,
)

from harness.hook import Hook
from harness.server import Server
from harness.wire import Wire
from words import refused, run

SECRETS = ('hunter1', 'hunter2')


@pytest.fixture
def server(pushing: Server) -> Server:
    return pushing


def config(hook: Hook, name: str | None, path: str = '') -> PushNotificationConfig:
    return PushNotificationConfig(
        id=name,
        url=hook.url(path or name),
        token=SECRETS[0],
        authentication=PushNotificationAuthenticationInfo(
            schemes=['Bearer'], credentials=SECRETS[1]
        ),
    )


def of_task(task_id: str, config: PushNotificationConfig) -> TaskPushNotificationConfig:
    return TaskPushNotificationConfig(task_id=task_id, push_notification_config=config)


def assert_without_secrets(*shown: object) -> None:
    for text in map(str, shown):
        assert not any(secret in text for secret in SECRETS), text


async def told_the_end(hook: Hook) -> None:
    def ended() -> bool:
        return hook.received and hook.received[-1].event.status.state == TaskState.completed

    await hook.until(ended)


async def test_configuration_in_a_send_is_sent_the_task_at_each_event(clients, hook: Hook) -> None:
    client = await clients(streaming=False, push_notification_configs=[config(hook, 'all')])
    task = await run(client, 'chunks 5')
    await told_the_end(hook)
    received = hook.of('all')
    assert {one.event.id for one in received} == {task.id}
    assert received[-1].event.artifacts[0].parts
    for one in received:
        assert one.headers['authorization'] == f'Bearer {SECRETS[1]}'
        assert one.headers['x-a2a-notification-token'] == SECRETS[0]
        assert one.headers['content-type'] == 'application/json'
    assert_without_secrets(task)


async def test_configs_are_made_and_read(client: Client, hook: Hook) -> None:
    task = await run(client, 'input')
    made = await client.set_task_callback(of_task(task.id, config(hook, 'b')))
    assert made.task_id == task.id
    assert made.push_notification_config.id == 'b'
    assert made.push_notification_config.url == hook.url('b')
    assert made.push_notification_config.authentication.schemes == ['Bearer']
    read = await client.get_task_callback(
        GetTaskPushNotificationConfigParams(id=task.id, push_notification_config_id='b')
    )
    assert read == made
    assert_without_secrets(made, read)
    with refused('TaskNotFound'):
        await client.get_task_callback(
            GetTaskPushNotificationConfigParams(id=task.id, push_notification_config_id='c')
        )
    with refused('TaskNotFound'):
        await client.set_task_callback(of_task(str(uuid.uuid4()), config(hook, 'b')))


async def test_nameless_config_is_given_a_name(client: Client, hook: Hook) -> None:
    task = await run(client, 'input')
    made = await client.set_task_callback(of_task(task.id, config(hook, None, 'nameless')))
    name = made.push_notification_config.id
    assert name
    read = await client.get_task_callback(
        GetTaskPushNotificationConfigParams(id=task.id, push_notification_config_id=name)
    )
    assert read == made


# Over the others this client names a config in each question.
@pytest.mark.bindings('JSONRPC')
async def test_question_without_a_name_is_answered(client: Client, hook: Hook) -> None:
    task = await run(client, 'input')
    made = await client.set_task_callback(of_task(task.id, config(hook, 'only')))
    assert await client.get_task_callback(GetTaskPushNotificationConfigParams(id=task.id)) == made


async def test_receiver_that_is_down_for_a_while_misses_nothing(clients, hook: Hook) -> None:
    client = await clients(streaming=False, push_notification_configs=[config(hook, 'down')])
    hook.status = 503
    await run(client, 'echo')
    await hook.until(lambda: len(hook.of('down')) >= 2)
    hook.status = 204
    await told_the_end(hook)


async def test_each_config_is_told_in_its_own_version(
    client: Client, newer: Wire, hook: Hook
) -> None:
    task = await run(client, 'input')
    async with Hook(json.loads) as new_hook:
        await client.set_task_callback(of_task(task.id, config(hook, 'old')))
        await newer.call(
            'CreateTaskPushNotificationConfig',
            {'taskId': task.id, 'id': 'new', 'url': new_hook.url('new')},
        )
        await run(client, 'here it is', task_id=task.id)
        await told_the_end(hook)

        def ended() -> bool:
            event = new_hook.received[-1].event if new_hook.received else {}
            status = event.get('statusUpdate', {}).get('status', {})
            return status.get('state') == 'TASK_STATE_COMPLETED'

        await new_hook.until(ended)
        assert {one.headers['a2a-version'] for one in new_hook.received} == {'1.0'}
        kinds = {kind for one in new_hook.received for kind in one.event}
        assert kinds <= {'task', 'statusUpdate', 'artifactUpdate', 'message'}
    assert {one.event.id for one in hook.received} == {task.id}


async def test_config_of_one_version_is_read_by_the_other(
    client: Client, newer: Wire, hook: Hook
) -> None:
    task = await run(client, 'input')
    await client.set_task_callback(of_task(task.id, config(hook, 'old')))
    await newer.call(
        'CreateTaskPushNotificationConfig',
        {'taskId': task.id, 'id': 'new', 'url': hook.url('new')},
    )
    read = await client.get_task_callback(
        GetTaskPushNotificationConfigParams(id=task.id, push_notification_config_id='new')
    )
    assert read.push_notification_config.url == hook.url('new')
    page = await newer.call('ListTaskPushNotificationConfigs', {'taskId': task.id})
    assert {one['id']: one['url'] for one in page['configs']} == {
        'old': hook.url('old'),
        'new': hook.url('new'),
    }
    await newer.call('DeleteTaskPushNotificationConfig', {'taskId': task.id, 'id': 'old'})
    with refused('TaskNotFound'):
        await client.get_task_callback(
            GetTaskPushNotificationConfigParams(id=task.id, push_notification_config_id='old')
        )


async def test_address_inside_and_odd_addresses_are_refused(client: Client) -> None:
    task = await run(client, 'input')
    for url in ('http://10.0.0.1/', 'ftp://127.0.0.1/', 'http://a:b@127.0.0.1/', 'nowhere'):
        with refused('InvalidParams'):
            await client.set_task_callback(of_task(task.id, PushNotificationConfig(id='x', url=url)))
