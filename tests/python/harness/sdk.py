"""Words for the official Python client: requests, and what to do with its answers."""

from __future__ import annotations

import asyncio
import uuid

from a2a.client import Client
from a2a.types.a2a_pb2 import (
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    StreamResponse,
    Task,
    TaskState,
)
from google.protobuf.json_format import Parse

POLL_SECONDS = 0.02
WAIT_SECONDS = 15.0


def request(
    text: str = '', *, parts: list[Part] | None = None, **members: object
) -> SendMessageRequest:
    """A request with a new message; `configuration` is the request's, the rest the message's."""
    configuration = members.pop('configuration', None)
    return SendMessageRequest(
        message=Message(
            message_id=str(uuid.uuid4()),
            role=Role.ROLE_USER,
            parts=parts if parts is not None else [Part(text=text)],
            **members,
        ),
        configuration=configuration,
    )


async def send(client: Client, text: str = '', **members: object) -> StreamResponse:
    """The one answer of a client that does not stream."""
    (answer,) = [item async for item in client.send_message(request(text, **members))]
    return answer


async def run(client: Client, text: str = '', **members: object) -> Task:
    answer = await send(client, text, **members)
    assert answer.HasField('task'), answer
    return answer.task


async def begin(client: Client, text: str = '', **members: object) -> Task:
    return await run(
        client,
        text,
        configuration=SendMessageConfiguration(return_immediately=True),
        **members,
    )


async def collect(client: Client, text: str = '', **members: object) -> list[StreamResponse]:
    return [item async for item in client.send_message(request(text, **members))]


async def until(client: Client, task_id: str, state: int, timeout: float = WAIT_SECONDS) -> Task:
    """Asks until the task is in that state."""
    deadline = asyncio.get_running_loop().time() + timeout
    while True:
        task = await client.get_task(GetTaskRequest(id=task_id))
        if task.status.state == state:
            return task
        late = asyncio.get_running_loop().time() > deadline
        assert not late, f'never {TaskState.Name(state)}: {task}'
        await asyncio.sleep(POLL_SECONDS)


def state_of(item: StreamResponse) -> int | None:
    kind = item.WhichOneof('payload')
    return getattr(item, kind).status.state if kind in ('task', 'status_update') else None


def pushed(body: bytes) -> StreamResponse:
    """What a push notification tells. Unknown members are refused: what is sent is what the proto says."""
    return Parse(body, StreamResponse(), ignore_unknown_fields=False)
