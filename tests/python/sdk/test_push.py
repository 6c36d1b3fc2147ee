"""Push configs by the official client, over each binding, and what its receiver is sent."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from a2a.client import Client
from a2a.types.a2a_pb2 import (
    AuthenticationInfo,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest,
    SendMessageConfiguration,
    StreamResponse,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import InvalidParamsError, TaskNotFoundError

from harness.hook import Hook
from harness.sdk import begin, pushed, run, state_of
from harness.server import Server

COMPLETED = TaskState.TASK_STATE_COMPLETED
SECRETS = ('hunter1', 'hunter2')


@pytest.fixture(scope='module')
def pushing(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that may send to this machine."""
    flags = ('--push-allow', '127.0.0.0/8', '--push-allow-http')
    server = Server(binary, tmp_path_factory.mktemp('pushing'), 'sqlite', flags).start()
    yield server
    server.assert_healthy()
    server.kill()


@pytest.fixture
def server(pushing: Server) -> Server:
    return pushing


@pytest.fixture
async def hook() -> AsyncIterator[Hook]:
    async with Hook(pushed) as hook:
        yield hook


def config(hook: Hook, name: str, **members: object) -> TaskPushNotificationConfig:
    return TaskPushNotificationConfig(
        id=name,
        url=hook.url(name),
        token=SECRETS[0],
        authentication=AuthenticationInfo(scheme='Bearer', credentials=SECRETS[1]),
        **members,
    )


def assert_without_secrets(*shown: object) -> None:
    for text in map(str, shown):
        assert not any(secret in text for secret in SECRETS), text


def test_card_says_that_it_pushes(server: Server) -> None:
    assert server.card['capabilities']['pushNotifications'] is True


async def test_configuration_in_a_send_is_sent_all_events(client: Client, hook: Hook) -> None:
    configuration = SendMessageConfiguration(task_push_notification_config=config(hook, 'all'))
    task = await run(client, 'chunks 5', configuration=configuration)
    await hook.until(lambda: hook.received and state_of(hook.received[-1].event) == COMPLETED)
    received = hook.of('all')
    events = [one.event for one in received]
    assert len(events) == 8, events
    assert events[0].task.id == task.id
    assert [event.WhichOneof('payload') for event in events[1:]] == [
        'status_update',
        *['artifact_update'] * 5,
        'status_update',
    ]
    for one in received:
        assert one.headers['authorization'] == f'Bearer {SECRETS[1]}'
        assert one.headers['x-a2a-notification-token'] == SECRETS[0]
        assert one.headers['content-type'] == 'application/a2a+json'
        assert one.headers['a2a-version'] == '1.0'
    assert len({one.headers['webhook-id'] for one in received}) == len(received)
    assert_without_secrets(task)


async def test_what_is_pushed_is_what_is_streamed(
    client: Client, streamer: Client, hook: Hook
) -> None:
    task = await run(client, 'input')
    await client.create_task_push_notification_config(config(hook, 'same', task_id=task.id))
    streamed: list[StreamResponse] = []
    stream = streamer.subscribe(SubscribeToTaskRequest(id=task.id))
    streamed.append(await anext(stream))
    await begin(client, 'echo', task_id=task.id)
    async for event in stream:
        streamed.append(event)
    await hook.until(lambda: len(hook.of('same')) >= len(streamed) - 1)
    assert [one.event for one in hook.of('same')] == streamed[1:]


async def test_configs_are_made_read_listed_and_removed(client: Client, hook: Hook) -> None:
    task = await run(client, 'input')
    made = await client.create_task_push_notification_config(config(hook, 'b', task_id=task.id))
    assert (made.id, made.task_id, made.url) == ('b', task.id, hook.url('b'))
    assert made.authentication.scheme == 'Bearer'
    nameless = config(hook, '', task_id=task.id)
    given = await client.create_task_push_notification_config(nameless)
    assert uuid.UUID(given.id).version == 7
    read = await client.get_task_push_notification_config(
        GetTaskPushNotificationConfigRequest(task_id=task.id, id='b')
    )
    assert read == made
    listing = ListTaskPushNotificationConfigsRequest(task_id=task.id)
    page = await client.list_task_push_notification_configs(listing)
    assert [one.id for one in page.configs] == sorted(['b', given.id])
    assert_without_secrets(made, given, read, page)
    for _ in range(2):
        await client.delete_task_push_notification_config(
            DeleteTaskPushNotificationConfigRequest(task_id=task.id, id='b')
        )
    page = await client.list_task_push_notification_configs(listing)
    assert [one.id for one in page.configs] == [given.id]
    with pytest.raises(TaskNotFoundError):
        await client.get_task_push_notification_config(
            GetTaskPushNotificationConfigRequest(task_id=task.id, id='b')
        )


async def test_receiver_that_is_down_for_a_while_misses_nothing(client: Client, hook: Hook) -> None:
    hook.status = 503
    configuration = SendMessageConfiguration(task_push_notification_config=config(hook, 'down'))
    await run(client, 'echo', configuration=configuration)
    await hook.until(lambda: len(hook.of('down')) >= 2)
    assert len({one.headers['webhook-id'] for one in hook.of('down')}) == 1, 'one by one'
    hook.status = 204
    await hook.until(lambda: state_of(hook.received[-1].event) == COMPLETED)
    ids = list(dict.fromkeys(one.headers['webhook-id'] for one in hook.of('down')))
    assert len(ids) == 4


async def test_address_inside_and_odd_addresses_are_refused(client: Client, hook: Hook) -> None:
    task = await run(client, 'input')
    for url in ('http://10.0.0.1/', 'ftp://127.0.0.1/', 'http://a:b@127.0.0.1/', 'nowhere'):
        with pytest.raises(InvalidParamsError):
            await client.create_task_push_notification_config(
                TaskPushNotificationConfig(task_id=task.id, url=url)
            )
