"""Each refusal reaches the official client of v0.3 with the numbers that v0.3 has for it."""

from __future__ import annotations

import uuid

import pytest
from a2a.client import Client
from a2a.client.errors import A2AClientHTTPError
from a2a.types import FilePart, FileWithBytes, Part, TaskIdParams, TaskQueryParams

from words import collect, refused, run

pytestmark = pytest.mark.one_and_many


@pytest.fixture
def unknown() -> str:
    return str(uuid.uuid4())


async def resubscribe(client: Client, task_id: str) -> None:
    async for _ in client.resubscribe(TaskIdParams(id=task_id)):
        pass


async def test_unknown_task_is_not_found(client: Client, unknown: str) -> None:
    with refused('TaskNotFound'):
        await client.get_task(TaskQueryParams(id=unknown))
    with refused('TaskNotFound'):
        await client.cancel_task(TaskIdParams(id=unknown))
    with refused('TaskNotFound'):
        await run(client, 'hello', task_id=unknown)


async def test_stream_on_an_unknown_task_is_not_found(streamer: Client, unknown: str) -> None:
    with refused('TaskNotFound'):
        await collect(streamer, 'hello', task_id=unknown)


@pytest.mark.bindings('JSONRPC', 'GRPC')
async def test_subscription_that_cannot_be_is_refused(
    client: Client, streamer: Client, unknown: str
) -> None:
    with refused('TaskNotFound'):
        await resubscribe(streamer, unknown)
    ended = await run(client, 'hello')
    with refused('UnsupportedOperation'):
        await resubscribe(streamer, ended.id)


# This client does not look at the status of a subscription: it takes whatever is no stream for a 400.
@pytest.mark.bindings('HTTP+JSON')
async def test_subscription_that_cannot_be_is_refused_in_some_way(
    client: Client, streamer: Client, unknown: str
) -> None:
    for task_id in (unknown, (await run(client, 'hello')).id):
        with pytest.raises(A2AClientHTTPError):
            await resubscribe(streamer, task_id)


async def test_ended_task_is_not_cancelable(client: Client) -> None:
    task = await run(client, 'hello')
    with refused('TaskNotCancelable'):
        await client.cancel_task(TaskIdParams(id=task.id))


async def test_message_to_an_ended_task_is_unsupported(client: Client, streamer: Client) -> None:
    task = await run(client, 'hello')
    with refused('UnsupportedOperation'):
        await run(client, 'more', task_id=task.id)
    with refused('UnsupportedOperation'):
        await collect(streamer, 'more', task_id=task.id)


async def test_media_type_that_no_skill_takes_is_not_supported(client: Client) -> None:
    file = FileWithBytes(bytes='AA==', mime_type='video/x-of-a-kind-nobody-takes')
    with refused('ContentTypeNotSupported'):
        await run(client, parts=[Part(root=FilePart(file=file))])


async def test_invalid_parameters_are_refused(client: Client) -> None:
    with refused('InvalidParams'):
        await run(client, parts=[])
    task = await run(client, 'input')
    with refused('InvalidParams'):
        await run(client, 'more', task_id=task.id, context_id='another')
