"""Without push notifications the official client of v0.3 gets the refusal that v0.3 has for it."""

from __future__ import annotations

import pytest
from a2a.client import Client
from a2a.types import (
    GetTaskPushNotificationConfigParams,
    PushNotificationConfig,
    TaskPushNotificationConfig,
)

from harness.server import Server
from words import refused, run

CONFIG = PushNotificationConfig(id='one', url='https://example.com/hook')


@pytest.fixture
def server(silent: Server) -> Server:
    return silent


async def test_push_configurations_are_not_supported(client: Client) -> None:
    task = await run(client, 'hello')
    with refused('PushNotificationNotSupported'):
        await client.set_task_callback(
            TaskPushNotificationConfig(task_id=task.id, push_notification_config=CONFIG)
        )
    with refused('PushNotificationNotSupported'):
        await client.get_task_callback(
            GetTaskPushNotificationConfigParams(id=task.id, push_notification_config_id='one')
        )


async def test_push_configuration_in_a_send_is_not_supported(clients) -> None:
    client = await clients(streaming=False, push_notification_configs=[CONFIG])
    with refused('PushNotificationNotSupported'):
        await run(client, 'hello')


async def test_card_says_so(client: Client) -> None:
    assert not (await client.get_card()).capabilities.push_notifications
