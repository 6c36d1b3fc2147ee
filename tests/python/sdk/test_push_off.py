"""Without push notifications the official client gets the exception that it has for it (§3.3.4)."""

from __future__ import annotations

import pytest
from a2a.client import Client
from a2a.types.a2a_pb2 import (
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest,
    SendMessageConfiguration,
    TaskPushNotificationConfig,
)
from a2a.utils.errors import PushNotificationNotSupportedError

from harness.sdk import run
from harness.server import Server


@pytest.fixture
def server(silent: Server) -> Server:
    return silent


async def test_push_configurations_are_not_supported(client: Client) -> None:
    task = await run(client, 'hello')
    config = TaskPushNotificationConfig(task_id=task.id, url='https://example.com/hook')
    with pytest.raises(PushNotificationNotSupportedError):
        await client.create_task_push_notification_config(config)
    with pytest.raises(PushNotificationNotSupportedError):
        await client.get_task_push_notification_config(
            GetTaskPushNotificationConfigRequest(task_id=task.id, id='one')
        )
    with pytest.raises(PushNotificationNotSupportedError):
        await client.list_task_push_notification_configs(
            ListTaskPushNotificationConfigsRequest(task_id=task.id)
        )
    with pytest.raises(PushNotificationNotSupportedError):
        await client.delete_task_push_notification_config(
            DeleteTaskPushNotificationConfigRequest(task_id=task.id, id='one')
        )


async def test_push_configuration_in_a_send_is_not_supported(client: Client) -> None:
    config = TaskPushNotificationConfig(url='https://example.com/hook')
    configuration = SendMessageConfiguration(task_push_notification_config=config)
    with pytest.raises(PushNotificationNotSupportedError):
        await run(client, 'hello', configuration=configuration)


def test_card_says_so(server: Server) -> None:
    assert not server.card['capabilities'].get('pushNotifications')
