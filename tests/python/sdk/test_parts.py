"""The four kinds of parts, there and back through the official client."""

from __future__ import annotations

import pytest
from a2a.client import Client
from a2a.types.a2a_pb2 import GetTaskRequest, Part
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import NullValue, Value

from harness.sdk import run

pytestmark = pytest.mark.each_place


def data(value: object) -> Value:
    if value is None:
        return Value(null_value=NullValue.NULL_VALUE)
    return ParseDict(value, Value())


PARTS = {
    'text': Part(text='plain words', media_type='text/plain'),
    'empty text': Part(text=''),
    'unicode': Part(text='héllo 🌍 漢字 \u2028 \u2029 \U0010ffff e\u0301 "\\'),
    'raw bytes': Part(
        raw=bytes(range(256)), filename='all.bin', media_type='application/octet-stream'
    ),
    'url': Part(url='https://example.com/a%20b?c=d', filename='ü.txt', media_type='text/plain'),
    'data object': Part(data=data({'a': [1, 2.5, 'x', None, {'b': {}}], 'c': False, 'd': ''})),
    'data list': Part(data=data([])),
    'data null': Part(data=data(None)),
    'data false': Part(data=data(False)),
    'data zero': Part(data=data(0)),
    'data text': Part(data=data('')),
    'metadata': Part(text='x', metadata={'k': None, 'n': {'deep': [0]}}),
}


@pytest.mark.parametrize('kind', PARTS)
async def test_part_comes_back_as_it_was_sent(client: Client, kind: str) -> None:
    part = PARTS[kind]
    task = await run(client, parts=[Part(text='anything'), part])
    assert task.history[0].parts[1] == part
    (artifact,) = task.artifacts
    assert artifact.parts[1] == part
    stored = await client.get_task(GetTaskRequest(id=task.id))
    assert stored.artifacts[0].parts[1] == part
    assert stored.history[0].parts[1] == part
