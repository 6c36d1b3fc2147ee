"""ProtoJSON with A2A's additions (§5.5), and the table of field rules, seen from outside."""

from __future__ import annotations

import json
import re
import uuid

import pytest

from harness.errors import refused
from harness.http_wire import HttpWire
from harness.jsonish import same, walk
from harness.wire import Wire, data_of, text_message

JSON = pytest.mark.bindings('JSONRPC', 'HTTP+JSON')


async def post(wire: HttpWire, operation: str, params: str) -> tuple[object, bytes]:
    """A call whose parameters are given as JSON text, not as values."""
    marker = {'message': text_message('marker')}
    request = wire.request(operation, marker, {'A2A-Version': '1.0'}, 30)
    body = request.content.replace(json.dumps(marker, ensure_ascii=False).encode(), params.encode())
    assert params.encode() in body
    headers = {k: v for k, v in request.headers.items() if k != 'content-length'}
    answer = await wire.http.post(request.url, content=body, headers=headers, timeout=30)
    return wire.result(answer, answer.content), answer.content


def message_text(parts: str) -> str:
    return f'{{"message":{{"messageId":"{uuid.uuid4()}","role":"ROLE_USER","parts":{parts}}}}}'


@pytest.mark.row(106)
async def test_answers_hold_exactly_one_member_of_a_oneof(wire: Wire) -> None:
    assert list(await wire.send('hello')) == ['task']
    assert list(await wire.send('msg')) == ['message']
    kinds = {'task', 'message', 'statusUpdate', 'artifactUpdate'}
    for text in ('chunks 3', 'burst 3', 'msg'):
        for item in data_of(await wire.collect(text)):
            assert len(item) == 1 and item.keys() <= kinds


@pytest.mark.row(106)
@JSON
async def test_answers_hold_no_null_and_no_name_that_the_proto_lacks(wire: Wire) -> None:
    task = await wire.run('input')
    done = await wire.run('more', task_id=task['id'])
    answers = [task, done, await wire.get(task['id']), await wire.list(pageSize=1)]
    answers += data_of(await wire.collect('chunks 2'))
    for answer in answers:
        for path, value in walk(answer):
            name = path.rpartition('.')[2]
            assert value is not None, path
            assert '_' not in name, path
            assert name not in ('kind', 'final'), path


@pytest.mark.row(106)
@JSON
async def test_times_are_whole_milliseconds_in_utc(wire: Wire) -> None:
    task = await wire.run('hello')
    pattern = r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z'
    assert re.fullmatch(pattern, task['status']['timestamp'])


@pytest.mark.row(107)
@pytest.mark.parametrize(
    ('text', 'state'), [('reject', 'TASK_STATE_REJECTED'), ('auth', 'TASK_STATE_AUTH_REQUIRED')]
)
async def test_rare_states_keep_their_names(wire: Wire, text: str, state: str) -> None:
    task = await wire.run(text)
    assert task['status']['state'] == state
    assert (await wire.get(task['id']))['status']['state'] == state


@pytest.mark.row(109)
@JSON
async def test_html_characters_are_not_escaped(wire: HttpWire) -> None:
    text = '<a&b>\'"'
    reply = await wire.ask('SendMessage', {'message': text_message(text)})
    (artifact,) = reply.data['task']['artifacts']
    assert artifact['parts'][0]['text'] == text
    assert b"<a&b>'" in reply.raw


@pytest.mark.row(110)
async def test_absent_metadata_stays_absent(wire: Wire) -> None:
    task = await wire.run('hello')
    for path, _ in walk([task, await wire.get(task['id'])]):
        assert not path.endswith('metadata'), path


@pytest.mark.row(110, 113)
async def test_metadata_comes_back_as_it_was_sent(wire: Wire) -> None:
    metadata = {'x': 0, 'y': False, 'z': '', 'n': None, 'l': [], 'o': {}, 'd': {'k': [None, 1.5]}}
    task = await wire.run('hello', metadata=metadata)
    assert same(task['history'][0]['metadata'], metadata)
    empty = await wire.run('hello', metadata={})
    assert empty['history'][0].get('metadata', {}) == {}


DATA = [
    None,
    {'a': None},
    [None, 1],
    False,
    True,
    0,
    -1.5,
    '',
    [],
    {},
    {'': {'': ''}},
    {'deep': [[[[{'x': [None]}]]]]},
    1e300,
    'text',
]


@pytest.mark.row(112, 181)
@pytest.mark.each_store
@pytest.mark.parametrize('value', DATA, ids=json.dumps)
async def test_data_comes_back_as_it_was_sent(wire: Wire, value: object) -> None:
    task = await wire.run(parts=[{'text': 'see data'}, {'data': value}])
    (artifact,) = task['artifacts']
    stored = await wire.get(task['id'])
    for part in (
        artifact['parts'][1],
        task['history'][0]['parts'][1],
        stored['artifacts'][0]['parts'][1],
    ):
        assert list(part) == ['data']
        assert same(part['data'], value)


@pytest.mark.row(112)
@pytest.mark.each_store
@pytest.mark.parametrize(
    'part',
    [
        {'raw': 'AAEC/f7/', 'filename': 'x.bin'},
        {'url': 'https://example.com/ü?a=b#c'},
        {'text': '', 'metadata': {'k': None}},
    ],
    ids=['raw', 'url', 'empty text'],
)
async def test_part_comes_back_as_it_was_sent(wire: Wire, part: dict) -> None:
    task = await wire.run(parts=[{'text': 'see file'}, part])
    assert same(task['artifacts'][0]['parts'][1], part)
    assert same(task['history'][0]['parts'][1], part)


def broken(**changes: object) -> dict:
    message = {**text_message('x'), **changes}
    return {'message': {k: v for k, v in message.items() if v is not None}}


@pytest.mark.row(115)
@pytest.mark.parametrize(
    ('params', 'field'),
    [
        pytest.param({}, 'message', id='no message'),
        pytest.param(broken(parts=[]), 'message.parts', id='empty parts'),
        pytest.param(broken(parts=None), 'message.parts', id='no parts'),
        pytest.param(broken(parts=[{}]), 'message.parts[0]', id='empty part'),
        pytest.param(
            broken(parts=[{'text': 'x'}, {'filename': 'f'}]), 'message.parts[1]', id='second part'
        ),
        pytest.param(broken(role=None), 'message.role', id='no role'),
        pytest.param(broken(role=99), 'message.role', id='role 99'),
        pytest.param(broken(role='ROLE_AGENT'), 'message.role', id='agent role'),
        pytest.param(broken(role='ROLE_UNSPECIFIED'), 'message.role', id='role unspecified'),
        pytest.param(broken(messageId=''), 'message.messageId', id='empty messageId'),
        pytest.param(broken(messageId=None), 'message.messageId', id='no messageId'),
        pytest.param(broken(messageId='x' * 10_000), 'message.messageId', id='long messageId'),
        pytest.param(broken(contextId='a\x00b'), 'message.contextId', id='control in contextId'),
    ],
)
async def test_broken_message_is_refused_by_field(wire: Wire, params: dict, field: str) -> None:
    error = await refused(wire.call('SendMessage', params), 'INVALID_PARAMS')
    assert error.fields == [field]


@pytest.mark.row(115)
@JSON
@pytest.mark.parametrize(
    ('params', 'field'),
    [
        pytest.param(broken(parts=[{'raw': '!!!'}]), 'message.parts[0].raw', id='bad base64'),
        pytest.param(broken(parts=[{'text': 7}]), 'message.parts[0].text', id='number as text'),
        pytest.param(broken(parts={}), 'message.parts', id='object as list'),
        pytest.param(
            broken(parts=[{'text': 'x', 'data': 1}]), 'message.parts[0]', id='two contents'
        ),
        pytest.param(broken(role='nobody'), 'message.role', id='unknown role'),
        pytest.param({'message': 'x'}, 'message', id='text as message'),
    ],
)
async def test_broken_json_value_is_refused_by_field(wire: Wire, params: dict, field: str) -> None:
    error = await refused(wire.call('SendMessage', params), 'INVALID_PARAMS')
    assert any(name.startswith(field) for name in error.fields), error.fields


@pytest.mark.row(116)
@pytest.mark.each_store
@pytest.mark.parametrize('context_id', ['my-ctx 1/ü', 'x', '..', '漢字', 'c' * 256])
async def test_context_id_of_the_caller_is_kept(wire: Wire, context_id: str) -> None:
    unique = context_id if len(context_id) == 256 else f'{context_id}{uuid.uuid4()}'
    task = await wire.run('hello', context_id=unique)
    assert task['contextId'] == unique
    listed = await wire.list(contextId=unique)
    assert task['id'] in [entry['id'] for entry in listed['tasks']]


@pytest.mark.row(118)
@pytest.mark.each_store
@JSON
async def test_numbers_keep_their_digits(wire: HttpWire) -> None:
    numbers = (
        '{"n":1,"zero":0,"neg":-7,"big":9007199254740993,"half":0.5,"max":18446744073709551615}'
    )
    task, raw = await post(wire, 'SendMessage', message_text(f'[{{"data":{numbers}}}]'))
    assert numbers.encode() in raw
    stored = await wire.ask('GetTask', {'id': task['task']['id']})
    assert numbers.encode() in stored.raw


@pytest.mark.row(119)
@JSON
async def test_nesting_is_limited_without_harm(wire: HttpWire) -> None:
    def nested(depth: int) -> str:
        return message_text('[{"data":' + '[' * depth + ']' * depth + '}]')

    task, raw = await post(wire, 'SendMessage', nested(100))
    assert b'[' * 100 in raw
    for depth in (10_000, 100_000):
        error = await refused(post(wire, 'SendMessage', nested(depth)), 'INVALID_PARAMS')
        assert 'serde' not in error.message and 'line' not in error.message
    objects = message_text('[{"data":' + '{"a":' * 10_000 + '1' + '}' * 10_000 + '}]')
    await refused(post(wire, 'SendMessage', objects), 'INVALID_PARAMS')
    assert (await wire.get(task['task']['id']))['id'] == task['task']['id']


@pytest.mark.row(119)
@pytest.mark.bindings('GRPC')
async def test_nesting_is_limited_in_protobuf_too(wire) -> None:
    def field(number: int, payload: bytes) -> bytes:
        length, size = b'', len(payload)
        while size > 0x7F:
            length += bytes([size & 0x7F | 0x80])
            size >>= 7
        return bytes([number << 3 | 2]) + length + bytes([size]) + payload

    value = field(3, b'x')
    for _ in range(10_000):
        value = field(6, field(1, value))
    message = field(1, b'deep') + bytes([4 << 3, 1]) + field(5, field(4, value))
    call = wire.channel.unary_unary('/lf.a2a.v1.A2AService/SendMessage')

    async def send() -> bytes:
        import grpc

        from harness.grpc_wire import error_of

        try:
            return await call(field(2, message), metadata=[('a2a-version', '1.0')])
        except grpc.aio.AioRpcError as error:
            raise error_of(error) from error

    await refused(send(), 'INVALID_PARAMS')
    assert (await wire.run('still there'))['status']['state'] == 'TASK_STATE_COMPLETED'


@pytest.mark.row(121)
@JSON
async def test_unknown_members_are_ignored_at_every_level(wire: HttpWire) -> None:
    extra = {'unknown': {'a': [1]}, 'generation': 7}
    params = {
        'message': {
            **text_message('hello'),
            'parts': [{'text': 'hello', **extra}],
            **extra,
        },
        'configuration': {'historyLength': 5, **extra},
        **extra,
    }
    task = (await wire.call('SendMessage', params))['task']
    assert task['history'][0]['parts'] == [{'text': 'hello'}]
    assert 'unknown' not in json.dumps(task)
    assert (await wire.get(task['id'], unknown='x'))['id'] == task['id']
    assert (await wire.list(pageSize=1, unknown='x'))['pageSize'] == 1


@pytest.mark.row(121)
@JSON
async def test_both_spellings_of_a_name_are_read(wire: HttpWire) -> None:
    asked = await wire.run('input')
    message = text_message('more')
    message['message_id'] = message.pop('messageId')
    message['task_id'] = asked['id']
    params = {'message': message, 'configuration': {'history_length': 1}}
    task = (await wire.call('SendMessage', params))['task']
    assert task['id'] == asked['id']
    assert len(task['history']) == 1
    assert len((await wire.get(asked['id'], history_length=1))['history']) == 1
    page = await wire.list(context_id=asked['contextId'], page_size=1, include_artifacts=True)
    assert page['pageSize'] == 1
    assert page['tasks'][0]['artifacts']


@pytest.mark.row(121)
@JSON
async def test_null_means_absent(wire: HttpWire) -> None:
    params = {
        'message': {**text_message('hello'), 'taskId': None, 'contextId': None, 'metadata': None},
        'configuration': None,
        'metadata': None,
        'tenant': None,
    }
    task = (await wire.call('SendMessage', params))['task']
    assert task['status']['state'] == 'TASK_STATE_COMPLETED'
