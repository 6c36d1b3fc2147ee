"""Without push notifications their operations are refused, before anything else is looked at (§3.3.4)."""

from __future__ import annotations

import pytest

from harness.errors import refused
from harness.server import Server
from harness.wire import Wire, text_message

URL = 'https://example.com/hook'


@pytest.fixture
def server(silent: Server) -> Server:
    return silent


@pytest.mark.row(127, 161)
@pytest.mark.parametrize(
    ('operation', 'params'),
    [
        ('CreateTaskPushNotificationConfig', {'taskId': '{ended}', 'url': URL}),
        ('GetTaskPushNotificationConfig', {'taskId': '{ended}', 'id': 'one'}),
        ('ListTaskPushNotificationConfigs', {'taskId': '{ended}'}),
        ('DeleteTaskPushNotificationConfig', {'taskId': '{ended}', 'id': 'one'}),
        ('ListTaskPushNotificationConfigs', {'taskId': 'unknown'}),
    ],
)
async def test_each_operation_on_push_configs_is_refused(
    wire: Wire, operation: str, params: dict
) -> None:
    ended = (await wire.run('hello'))['id']
    params = {name: ended if value == '{ended}' else value for name, value in params.items()}
    await refused(wire.call(operation, params), 'PUSH_NOTIFICATION_NOT_SUPPORTED')


async def test_a_send_that_asks_for_pushes_is_refused_and_makes_no_task(wire: Wire) -> None:
    context_id = 'nobody-is-told'
    params = {
        'message': text_message('hello', context_id=context_id),
        'configuration': {'taskPushNotificationConfig': {'url': URL}},
    }
    await refused(wire.call('SendMessage', params), 'PUSH_NOTIFICATION_NOT_SUPPORTED')
    assert (await wire.list(contextId=context_id))['totalSize'] == 0
