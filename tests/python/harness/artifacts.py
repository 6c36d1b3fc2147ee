"""The artifact-versions extension in each binding: its own methods, paths and gRPC service."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.json_format import MessageToDict, ParseDict
from grpc_tools import protoc

from harness.grpc_wire import Grpc, error_of
from harness.http_wire import HttpJson, JsonRpc, path_segment
from harness.wire import Wire

PROTO = Path(__file__).resolve().parents[3] / 'crates' / 'protobuf' / 'proto'
SERVICE = 'longhaul.v1.ArtifactService'
HEADERS = {'A2A-Version': '1.0'}


@cache
def service():
    """The service's descriptor, from the proto file, in a pool of its own."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / 'set'
        include = Path(protoc.__file__).parent / '_proto'
        code = protoc.main(
            [
                'protoc',
                f'-I{PROTO}',
                f'-I{include}',
                f'-I{include.parents[1]}',
                '--include_imports',
                f'--descriptor_set_out={out}',
                'longhaul/v1/artifact.proto',
            ]
        )
        assert code == 0, f'protoc ended with {code}'
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return pool.FindServiceByName(SERVICE)


async def _grpc(wire: Grpc, method: str, params: dict) -> dict:
    described = service().methods_by_name[method]
    request = message_factory.GetMessageClass(described.input_type)
    answer = message_factory.GetMessageClass(described.output_type)
    call = wire.channel.unary_unary(
        f'/{SERVICE}/{method}',
        request_serializer=request.SerializeToString,
        response_deserializer=answer.FromString,
    )
    try:
        reply = await call(
            ParseDict(params, request()), metadata=[('a2a-version', '1.0')], timeout=10
        )
    except grpc.aio.AioRpcError as error:
        raise error_of(error) from error
    return _plain(MessageToDict(reply))


def _plain(reply: dict) -> dict:
    """ProtoJSON writes int64 as text; the JSON bindings write these two as numbers."""
    for entry in [reply, *reply.get('versions', [])]:
        for member in ('version', 'sequence'):
            if member in entry:
                entry[member] = int(entry[member])
    return reply


async def _rpc(wire: JsonRpc, method: str, params: dict) -> dict:
    request = wire.request(method, params, HEADERS, 10)
    answer = await wire.http.send(request)
    return wire.result(answer, answer.content)


async def _http(wire: HttpJson, path: str, query: dict) -> dict:
    answer = await wire.http.get(wire.url + path, params=query, headers=HEADERS)
    return wire.result(answer, answer.content)


async def versions(wire: Wire, task_id: str, artifact_id: str, **page: object) -> dict:
    """`ListArtifactVersions`."""
    if isinstance(wire, HttpJson):
        path = f'/tasks/{path_segment(task_id)}/artifacts/{path_segment(artifact_id)}/versions'
        return await _http(wire, path, page)
    call = _rpc if isinstance(wire, JsonRpc) else _grpc
    params = {'taskId': task_id, 'artifactId': artifact_id, **page}
    return await call(wire, 'ListArtifactVersions', params)


async def artifact(wire: Wire, task_id: str, artifact_id: str, version: int | None = None) -> dict:
    """`GetArtifact`."""
    if isinstance(wire, HttpJson):
        path = f'/tasks/{path_segment(task_id)}/artifacts/{path_segment(artifact_id)}'
        return await _http(wire, path if version is None else f'{path}/versions/{version}', {})
    call = _rpc if isinstance(wire, JsonRpc) else _grpc
    params: dict = {'taskId': task_id, 'artifactId': artifact_id}
    if version is not None:
        params['version'] = version
    return await call(wire, 'GetArtifact', params)
