"""Each refusal reaches the official client as the exception type that it has for it (§5.4)."""

from __future__ import annotations

import uuid

import pytest
from a2a.client import Client, ClientCallContext
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetExtendedAgentCardRequest,
    GetTaskRequest,
    ListTasksRequest,
    Part,
    SubscribeToTaskRequest,
)
from a2a.utils.errors import (
    ContentTypeNotSupportedError,
    InvalidParamsError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
    VersionNotSupportedError,
)

from harness.sdk import collect, run

pytestmark = pytest.mark.each_place


@pytest.fixture
def unknown() -> str:
    return str(uuid.uuid4())


async def test_unknown_task_is_not_found(client: Client, unknown: str) -> None:
    with pytest.raises(TaskNotFoundError):
        await client.get_task(GetTaskRequest(id=unknown))
    with pytest.raises(TaskNotFoundError):
        await client.cancel_task(CancelTaskRequest(id=unknown))
    with pytest.raises(TaskNotFoundError):
        await run(client, 'hello', task_id=unknown)


async def test_stream_on_an_unknown_task_is_not_found(streamer: Client, unknown: str) -> None:
    with pytest.raises(TaskNotFoundError):
        await collect(streamer, 'hello', task_id=unknown)
    with pytest.raises(TaskNotFoundError):
        async for _ in streamer.subscribe(SubscribeToTaskRequest(id=unknown)):
            pass


async def test_ended_task_is_not_cancelable(client: Client) -> None:
    task = await run(client, 'hello')
    with pytest.raises(TaskNotCancelableError):
        await client.cancel_task(CancelTaskRequest(id=task.id))


async def test_message_to_an_ended_task_is_unsupported(client: Client) -> None:
    task = await run(client, 'hello')
    with pytest.raises(UnsupportedOperationError):
        await run(client, 'more', task_id=task.id)


async def test_subscription_to_an_ended_task_is_unsupported(
    client: Client, streamer: Client
) -> None:
    task = await run(client, 'hello')
    with pytest.raises(UnsupportedOperationError):
        async for _ in streamer.subscribe(SubscribeToTaskRequest(id=task.id)):
            pass


async def test_media_type_that_no_skill_takes_is_not_supported(client: Client) -> None:
    part = Part(raw=b'\x00', media_type='video/x-of-a-kind-nobody-takes')
    with pytest.raises(ContentTypeNotSupportedError):
        await run(client, parts=[part])


async def test_extended_card_is_unsupported_when_not_offered(client: Client) -> None:
    # The client answers by itself while the card does not offer one; so the card is changed here.
    client._transport.agent_card.capabilities.extended_agent_card = True
    with pytest.raises(UnsupportedOperationError):
        await client.get_extended_agent_card(GetExtendedAgentCardRequest())


async def test_invalid_parameters_are_refused(client: Client) -> None:
    with pytest.raises(InvalidParamsError):
        await client.list_tasks(ListTasksRequest(page_size=101))
    with pytest.raises(InvalidParamsError):
        await client.list_tasks(ListTasksRequest(page_token='not one of ours'))
    with pytest.raises(InvalidParamsError):
        await run(client, parts=[])


async def test_context_that_is_not_the_tasks_own_is_refused(client: Client) -> None:
    task = await run(client, 'input')
    with pytest.raises(InvalidParamsError):
        await run(client, 'more', task_id=task.id, context_id='another')


# Over gRPC this client sends its own version beside the one asked for.
@pytest.mark.bindings('JSONRPC', 'HTTP+JSON')
async def test_unknown_version_is_refused(client: Client, unknown: str) -> None:
    context = ClientCallContext(service_parameters={'A2A-Version': '9.9'})
    with pytest.raises(VersionNotSupportedError):
        await client.get_task(GetTaskRequest(id=unknown), context=context)
