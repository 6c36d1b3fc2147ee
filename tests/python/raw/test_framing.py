"""JSON-RPC 2.0 to the letter, HTTP routes and bodies, and ids in paths."""

from __future__ import annotations

import json
import uuid

import httpx
import pytest

from harness.errors import TABLE, refused
from harness.http_wire import A2A_TYPE, HttpJson, HttpWire, JsonRpc, media_type
from harness.wire import Wire, text_message

HEADERS = {'A2A-Version': '1.0', 'Content-Type': 'application/json'}
RPC = pytest.mark.bindings('JSONRPC')
REST = pytest.mark.bindings('HTTP+JSON')


async def rpc(wire: JsonRpc, body: str | bytes) -> httpx.Response:
    return await wire.http.post(wire.url, content=body, headers=HEADERS, timeout=10)


def assert_rpc_error(answer: httpx.Response, code: int) -> dict:
    assert answer.status_code == 200
    envelope = answer.json()
    assert envelope['jsonrpc'] == '2.0'
    assert envelope['error']['code'] == code, envelope
    assert 'result' not in envelope
    return envelope


def assert_status(answer: httpx.Response, code: int, status: str | None = None) -> dict:
    """The body is a `google.rpc.Status` as JSON (§11.6)."""
    assert answer.status_code == code, answer.text
    assert media_type(answer) in (A2A_TYPE, 'application/json')
    error = answer.json()['error']
    assert error['code'] == code
    assert error['message']
    assert status is None or error['status'] == status, error
    return error


@pytest.mark.row(122)
@RPC
@pytest.mark.parametrize(
    'body', ['{', '', '{"jsonrpc":"2.0",', 'nonsense', b'\xff\xfe', '{"a":1}}']
)
async def test_malformed_json_is_a_parse_error(wire: JsonRpc, body: str | bytes) -> None:
    assert assert_rpc_error(await rpc(wire, body), -32700)['id'] is None


@pytest.mark.row(122)
@REST
@pytest.mark.parametrize('body', ['{', '[]', '"x"', 'nonsense', b'\xff\xfe'])
async def test_malformed_body_is_an_invalid_argument(wire: HttpJson, body: str | bytes) -> None:
    answer = await wire.http.post(f'{wire.url}/message:send', content=body, headers=HEADERS)
    assert_status(answer, 400, 'INVALID_ARGUMENT')


@pytest.mark.row(124)
@RPC
@pytest.mark.parametrize('identity', ['{}', 'true', '1.5', '[]', '[1]'])
async def test_id_of_a_wrong_type_is_an_invalid_request(wire: JsonRpc, identity: str) -> None:
    body = f'{{"jsonrpc":"2.0","id":{identity},"method":"GetTask","params":{{"id":"x"}}}}'
    assert assert_rpc_error(await rpc(wire, body), -32600)['id'] is None


@pytest.mark.row(124)
@RPC
@pytest.mark.parametrize(
    'identity', ['"x"', '""', '7', '0', '-7', 'null', '9007199254740993', '"ü\\u2028"']
)
async def test_id_is_echoed_with_its_type(wire: JsonRpc, identity: str) -> None:
    body = f'{{"jsonrpc":"2.0","id":{identity},"method":"GetTask","params":{{"id":"x"}}}}'
    envelope = assert_rpc_error(await rpc(wire, body), -32001)
    assert type(envelope['id']) is type(json.loads(identity))
    assert envelope['id'] == json.loads(identity)
    task = await wire.run('hello')
    body = (
        f'{{"jsonrpc":"2.0","id":{identity},"method":"GetTask","params":{{"id":"{task["id"]}"}}}}'
    )
    envelope = (await rpc(wire, body)).json()
    assert envelope['id'] == json.loads(identity)
    assert envelope['result'] == task


@pytest.mark.row(125)
@RPC
@pytest.mark.parametrize(
    'body',
    [
        '[]',
        '[{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x"}}]',
        '{"jsonrpc":"2.0","id":1,"method":1}',
        '{"jsonrpc":"2.0","id":1}',
        '{"id":1,"method":"GetTask","params":{"id":"x"}}',
        '{"jsonrpc":"1.0","id":1,"method":"GetTask","params":{"id":"x"}}',
        '{"jsonrpc":2.0,"id":1,"method":"GetTask","params":{"id":"x"}}',
        '"GetTask"',
        '7',
        'null',
    ],
)
async def test_what_is_no_request_is_an_invalid_request(wire: JsonRpc, body: str) -> None:
    assert_rpc_error(await rpc(wire, body), -32600)


@pytest.mark.row(125)
@RPC
@pytest.mark.parametrize('method', ['Nope', '', 'gettask', 'message/send', 'tasks/get'])
async def test_unknown_method_is_not_found(wire: JsonRpc, method: str) -> None:
    body = json.dumps({'jsonrpc': '2.0', 'id': 7, 'method': method, 'params': {}})
    assert assert_rpc_error(await rpc(wire, body), -32601)['id'] == 7


@pytest.mark.row(125)
@RPC
@pytest.mark.parametrize('params', ['[]', '["x"]', '{}', '{"id":7}'])
async def test_parameters_that_do_not_fit_are_invalid(wire: JsonRpc, params: str) -> None:
    body = f'{{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{params}}}'
    assert assert_rpc_error(await rpc(wire, body), -32602)['id'] == 1


@pytest.mark.row(125)
@RPC
async def test_notification_has_no_answer_and_runs_nothing(wire: JsonRpc) -> None:
    context_id = f'notified-{uuid.uuid4()}'
    for method in ('SendMessage', 'SendStreamingMessage', 'Nope'):
        body = {
            'jsonrpc': '2.0',
            'method': method,
            'params': {'message': text_message('hello', context_id=context_id)},
        }
        answer = await rpc(wire, json.dumps(body))
        assert answer.status_code == 204
        assert answer.content == b''
    assert (await wire.list(contextId=context_id))['totalSize'] == 0


@pytest.mark.row(127, 161)
@pytest.mark.parametrize(
    ('reason', 'operation', 'params'),
    [
        ('TASK_NOT_FOUND', 'GetTask', {'id': 'unknown'}),
        ('TASK_NOT_FOUND', 'CancelTask', {'id': 'unknown'}),
        ('TASK_NOT_FOUND', 'SendMessage', {'message': text_message('x', task_id='unknown')}),
        ('TASK_NOT_CANCELABLE', 'CancelTask', {'id': '{ended}'}),
        ('UNSUPPORTED_OPERATION', 'SendMessage', {'message': text_message('x', task_id='{ended}')}),
        ('UNSUPPORTED_OPERATION', 'GetExtendedAgentCard', {}),
        ('TASK_NOT_FOUND', 'GetTaskPushNotificationConfig', {'taskId': '{ended}', 'id': 'one'}),
        (
            'CONTENT_TYPE_NOT_SUPPORTED',
            'SendMessage',
            {
                'message': text_message(
                    parts=[{'raw': 'AA==', 'mediaType': 'video/x-of-a-kind-nobody-takes'}]
                )
            },
        ),
        ('INVALID_PARAMS', 'GetTask', {'id': '{ended}', 'historyLength': -1}),
    ],
)
async def test_each_error_has_its_numbers(
    wire: Wire, reason: str, operation: str, params: dict
) -> None:
    ended = (await wire.run('hello'))['id']
    params = json.loads(json.dumps(params).replace('{ended}', ended))
    assert reason in TABLE
    await refused(wire.call(operation, params), reason)


@pytest.mark.row(128)
@REST
async def test_cancel_needs_no_body_and_no_content_type(wire: HttpJson) -> None:
    for content in (None, b'', b'{}'):
        task = await wire.task_in('INPUT_REQUIRED')
        answer = await wire.http.post(
            f'{wire.url}/tasks/{task["id"]}:cancel',
            content=content,
            headers={'A2A-Version': '1.0'},
        )
        assert answer.status_code == 200, answer.text
        assert answer.json()['status']['state'] == 'TASK_STATE_CANCELED'


@pytest.mark.row(128)
@pytest.mark.bindings('JSONRPC', 'HTTP+JSON')
@pytest.mark.parametrize(
    'content_type',
    ['application/json', 'application/a2a+json', 'application/json; charset=utf-8', None],
)
async def test_send_takes_each_json_content_type(wire: HttpWire, content_type: str | None) -> None:
    params = {'message': text_message('hello')}
    request = wire.request('SendMessage', params, {'A2A-Version': '1.0'}, 10)
    headers = {k: v for k, v in request.headers.items() if k != 'content-type'}
    if content_type:
        headers['Content-Type'] = content_type
    answer = await wire.http.request(
        'POST', request.url, content=request.content, headers=headers, timeout=10
    )
    assert 'task' in wire.result(answer, answer.content)


@pytest.mark.row(130)
@REST
@pytest.mark.parametrize(
    ('verb', 'path', 'code'),
    [
        ('GET', '/nope', 404),
        ('GET', '/tasks/x/nope', 404),
        ('POST', '/message:nope', 404),
        ('PUT', '/tasks', 405),
        # Just another id, for which there is a GET.
        ('POST', '/tasks/x:nope', 405),
        ('DELETE', '/tasks/x', 405),
        ('GET', '/message:send', 405),
        ('GET', '/', 405),
    ],
)
async def test_unknown_routes_and_methods_answer_in_json(
    wire: HttpJson, verb: str, path: str, code: int
) -> None:
    answer = await wire.http.request(verb, wire.url + path, headers={'A2A-Version': '1.0'})
    assert_status(answer, code)
    if code == 405:
        assert answer.headers['allow']


@pytest.mark.row(167)
@REST
async def test_escaped_colon_is_part_of_the_id(wire: HttpJson) -> None:
    task = await wire.task_in('INPUT_REQUIRED')
    headers = {'A2A-Version': '1.0'}
    answer = await wire.http.post(f'{wire.url}/tasks/{task["id"]}%3Acancel', headers=headers)
    assert answer.status_code in (404, 405)
    assert_status(answer, answer.status_code)
    assert await wire.get(task['id']) == task
    answer = await wire.http.get(f'{wire.url}/tasks/{task["id"]}%3Asubscribe', headers=headers)
    assert assert_status(answer, 404, 'NOT_FOUND')['details'][0]['reason'] == 'TASK_NOT_FOUND'


@pytest.mark.row(167, 182)
@pytest.mark.parametrize(
    'task_id',
    ['../tasks', '..', '.', 'a/b', 'a?b', 'a#b', 'a%2Fb', 'a:b', 'a:cancel', 'ü 漢', '/', ' '],
)
async def test_odd_id_is_just_an_id_that_is_not_found(wire: Wire, task_id: str) -> None:
    await refused(wire.get(task_id), 'TASK_NOT_FOUND')
    await refused(wire.cancel(task_id), 'TASK_NOT_FOUND')
    await refused(wire.collect_task(task_id), 'TASK_NOT_FOUND')


@pytest.mark.row(103)
@REST
async def test_tenant_may_stand_before_the_path(wire: HttpJson) -> None:
    headers = {'A2A-Version': '1.0'}
    body = {'message': text_message('hello')}
    answer = await wire.http.post(f'{wire.url}/acme/message:send', json=body, headers=headers)
    task = wire.result(answer, answer.content)['task']
    answer = await wire.http.get(f'{wire.url}/acme/tasks/{task["id"]}', headers=headers)
    assert wire.result(answer, answer.content) == task
    await refused(wire.get(task['id']), 'TASK_NOT_FOUND')
