"""`A2A-Version` on every operation and every answer (§3.6)."""

from __future__ import annotations

import pytest

from harness.errors import refused
from harness.http_wire import HttpWire
from harness.wire import OPERATIONS, Wire, text_message

PARAMS = {
    'SendMessage': {'message': text_message('x', task_id='unknown')},
    'SendStreamingMessage': {'message': text_message('x', task_id='unknown')},
    'GetTask': {'id': 'unknown'},
    'ListTasks': {'pageToken': 'nonsense'},
    'CancelTask': {'id': 'unknown'},
    'SubscribeToTask': {'id': 'unknown'},
    'CreateTaskPushNotificationConfig': {'taskId': 'unknown', 'url': 'https://example.com/'},
    'GetTaskPushNotificationConfig': {'taskId': 'unknown', 'id': 'one'},
    'ListTaskPushNotificationConfigs': {'taskId': 'unknown'},
    'DeleteTaskPushNotificationConfig': {'taskId': 'unknown', 'id': 'one'},
    'GetExtendedAgentCard': {},
}
# What each of these calls is told once its version is accepted.
ANSWERS = {
    'SendMessage': 'TASK_NOT_FOUND',
    'SendStreamingMessage': 'TASK_NOT_FOUND',
    'GetTask': 'TASK_NOT_FOUND',
    'ListTasks': 'INVALID_PARAMS',
    'CancelTask': 'TASK_NOT_FOUND',
    'SubscribeToTask': 'TASK_NOT_FOUND',
    'CreateTaskPushNotificationConfig': 'TASK_NOT_FOUND',
    'GetTaskPushNotificationConfig': 'TASK_NOT_FOUND',
    'ListTaskPushNotificationConfigs': 'TASK_NOT_FOUND',
    'DeleteTaskPushNotificationConfig': 'TASK_NOT_FOUND',
    'GetExtendedAgentCard': 'UNSUPPORTED_OPERATION',
}


async def attempt(wire: Wire, operation: str, version: str | None) -> object:
    """One call of the operation, a stream read to its end."""
    params = PARAMS[operation]
    if not OPERATIONS[operation].stream:
        return await wire.call(operation, params, version=version)
    async with wire.open(operation, params, version=version) as events:
        return [event async for event in events]


def test_every_operation_is_tried() -> None:
    assert PARAMS.keys() == ANSWERS.keys() == OPERATIONS.keys()


@pytest.mark.row(97)
@pytest.mark.parametrize('operation', OPERATIONS)
@pytest.mark.parametrize('version', ['1.0', '1.0.0', '1.0.1', '1.0.99'])
async def test_version_and_its_patches_are_accepted(
    wire: Wire, operation: str, version: str
) -> None:
    await refused(attempt(wire, operation, version), ANSWERS[operation])


@pytest.mark.row(97)
@pytest.mark.parametrize('operation', OPERATIONS)
@pytest.mark.parametrize('version', ['2.0', '1.1', '9.9', 'abc', '1', '0.3', '', None])
async def test_other_versions_are_refused_and_the_supported_one_is_named(
    wire: Wire, operation: str, version: str | None
) -> None:
    error = await refused(attempt(wire, operation, version), 'VERSION_NOT_SUPPORTED')
    assert '1.0' in error.message
    assert '1.0' in str(error.info.get('metadata'))


@pytest.mark.row(97)
async def test_answers_carry_the_version(wire: Wire) -> None:
    reply = await wire.ask('SendMessage', {'message': text_message('hello')})
    assert reply.headers['a2a-version'] == '1.0'


@pytest.mark.row(97)
@pytest.mark.bindings('JSONRPC', 'HTTP+JSON')
@pytest.mark.parametrize('version', ['1.0', '9.9'])
async def test_refusals_and_streams_carry_the_version(wire: HttpWire, version: str) -> None:
    for operation in ('GetTask', 'SubscribeToTask'):
        request = wire.request(operation, {'id': 'unknown'}, {'A2A-Version': version}, 10)
        answer = await wire.http.send(request)
        assert answer.headers['a2a-version'] == '1.0'
    message = {'message': text_message('hello')}
    request = wire.request('SendStreamingMessage', message, {'A2A-Version': '1.0'}, 10)
    answer = await wire.http.send(request)
    assert answer.headers['content-type'].startswith('text/event-stream')
    assert answer.headers['a2a-version'] == '1.0'


@pytest.mark.row(97)
@pytest.mark.bindings('JSONRPC', 'HTTP+JSON')
@pytest.mark.parametrize(
    ('query', 'reason'),
    [('1.0', 'TASK_NOT_FOUND'), ('9.9', 'VERSION_NOT_SUPPORTED')],
)
async def test_version_in_the_query_is_honoured(wire: HttpWire, query: str, reason: str) -> None:
    async def call() -> object:
        request = wire.request('GetTask', {'id': 'unknown'}, {}, 10)
        request.url = request.url.copy_merge_params({'A2A-Version': query})
        answer = await wire.http.send(request)
        return wire.result(answer, answer.content)

    await refused(call(), reason)
