"""The gRPC binding (§10), on grpcio and the protocol's generated messages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
from a2a.types import a2a_pb2, a2a_pb2_grpc
from google.protobuf.json_format import MessageToDict, ParseDict
from google.rpc import error_details_pb2, status_pb2

from harness.errors import ApiError
from harness.wire import CALL_TIMEOUT_SECONDS, VERSION, Event, Reply, Wire

STATUS_DETAILS = 'grpc-status-details-bin'
DETAIL_TYPES = {
    kind.DESCRIPTOR.full_name: kind
    for kind in (
        error_details_pb2.ErrorInfo,
        error_details_pb2.BadRequest,
        error_details_pb2.RetryInfo,
    )
}
# Members that the JSON bindings always print, so that one test reads all three alike.
ALWAYS = {'ListTasks': {'tasks': [], 'nextPageToken': '', 'pageSize': 0, 'totalSize': 0}}


def error_of(error: grpc.aio.AioRpcError) -> ApiError:
    """A failed call with its status details unpacked."""
    details = []
    for key, value in error.trailing_metadata() or ():
        if key == STATUS_DETAILS:
            status = status_pb2.Status.FromString(value)
            assert status.code == error.code().value[0], (status, error)
            for detail in status.details:
                kind = DETAIL_TYPES[detail.type_url.rpartition('/')[2]].FromString(detail.value)
                details.append({'@type': detail.type_url, **MessageToDict(kind)})
    return ApiError(
        'GRPC', error.details() or '', details, grpc=error.code().name, body=repr(error)
    )


class Grpc(Wire):
    """One channel to one server."""

    name = 'GRPC'

    def __init__(self, target: str) -> None:
        self.channel = grpc.aio.insecure_channel(target)
        self.stub = a2a_pb2_grpc.A2AServiceStub(self.channel)
        self.service = a2a_pb2.DESCRIPTOR.services_by_name['A2AService']

    async def close(self) -> None:
        await self.channel.close()

    def message(self, operation: str, params: dict):
        """The request as protobuf. Members that the proto lacks are dropped, as JSON's are."""
        kind = self.service.methods_by_name[operation].input_type.name
        return ParseDict(params, getattr(a2a_pb2, kind)(), ignore_unknown_fields=True)

    @staticmethod
    def _metadata(version, last_event_id=None):
        metadata = [] if version is None else [('a2a-version', version)]
        if last_event_id is not None:
            metadata.append(('last-event-id', str(last_event_id)))
        return metadata

    async def ask(
        self,
        operation,
        params,
        *,
        version=VERSION,
        extensions=None,
        timeout=CALL_TIMEOUT_SECONDS,
    ):
        metadata = self._metadata(version)
        if extensions is not None:
            metadata.append(('a2a-extensions', extensions))
        call = getattr(self.stub, operation)(
            self.message(operation, params),
            metadata=metadata,
            timeout=timeout,
            wait_for_ready=True,
        )
        try:
            answer = await call
            headers = {key: value for key, value in await call.initial_metadata()}
        except grpc.aio.AioRpcError as error:
            raise error_of(error) from error
        data = {**ALWAYS.get(operation, {}), **MessageToDict(answer)}
        return Reply(data, answer.SerializeToString(), headers)

    @asynccontextmanager
    async def open(
        self,
        operation,
        params,
        *,
        version=VERSION,
        last_event_id=None,
        timeout=CALL_TIMEOUT_SECONDS,
    ):
        call = getattr(self.stub, operation)(
            self.message(operation, params),
            metadata=self._metadata(version, last_event_id),
            timeout=timeout,
            wait_for_ready=True,
        )
        try:
            # As with HTTP, a refusal shows when the stream is opened. gRPC tells it in place of
            # the first item, and each stream has a first item at once.
            try:
                first = await call.read()
                headers = {key: value for key, value in await call.initial_metadata()}
            except grpc.aio.AioRpcError as error:
                raise error_of(error) from error
            yield self._events(call, first, headers)
        finally:
            call.cancel()

    async def _events(self, call, item, headers: dict[str, str]) -> AsyncIterator[Event]:
        # The first item's sequence is in the answer's metadata; sequences have no gaps.
        sequence = int(headers['last-event-id']) if 'last-event-id' in headers else None
        try:
            while item is not grpc.aio.EOF:
                yield Event(MessageToDict(item), sequence)
                sequence = None if sequence is None else sequence + 1
                item = await call.read()
        except grpc.aio.AioRpcError as error:
            raise error_of(error) from error
