"""An agent on the server of the Python SDK of v0.3, unchanged, for Longhaul's client to be tested against.

As `python_agent.py`, which see: the same words and options, over JSON-RPC, HTTP+JSON and gRPC of v0.3. Its card is one of v0.3.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import logging
import os
import socket
import sys
import threading
from datetime import datetime, timezone

import grpc.aio
import httpx
import uvicorn
from a2a.grpc import a2a_pb2_grpc
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    DataPart,
    FilePart,
    FileWithBytes,
    Message,
    Part,
    Role,
    Task,
    TaskState,
    TaskStatus,
    TextPart,
    TransportProtocol,
)
from starlette.applications import Starlette
from starlette.routing import Mount
from words import DATA, FILE, Words, read

HOST = '127.0.0.1'
AUTH_COMES_AFTER_SECONDS = 2.0
MESSAGE_BYTES_MAX = 64 * 1024 * 1024


def words_of(message: Message) -> Words:
    """The words of a message."""
    return read([part.root.text for part in message.parts if isinstance(part.root, TextPart)])


def text(words: str) -> Part:
    """A part of text."""
    return Part(root=TextPart(text=words))


class Agent(AgentExecutor):
    """Does what the words say."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        words = words_of(context.message)
        if 'raise' in words:
            raise RuntimeError('asked to raise')
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        if context.current_task is None:
            if 'msg' in words:
                await event_queue.enqueue_event(direct(context, 'a direct answer'))
                return
            await event_queue.enqueue_event(new_task(context))
        await self.act(words, context, updater)

    async def act(self, words: Words, context: RequestContext, updater: TaskUpdater) -> None:
        """Everything after the task's first event."""

        def says(what: str) -> Message:
            return updater.new_agent_message([text(what)])

        if 'fail' in words and 'late' not in words:
            await updater.failed(says('the agent failed'))
            return
        if 'reject' in words:
            await updater.reject(says('rejected, as asked'))
            return
        if 'auth' in words:
            await updater.requires_auth(says('authorization is needed; it comes by itself in 2 s'))
            await asyncio.sleep(AUTH_COMES_AFTER_SECONDS)
        await updater.start_work()
        await work(words, context.message, updater)
        if 'fail' in words:
            await updater.start_work(says('about to fail'))
            await updater.failed(says('the agent failed'))
        elif 'input' in words:
            await updater.requires_input(says('what else?'), final=True)
        else:
            await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


async def work(words: Words, message: Message, updater: TaskUpdater) -> None:
    """Sleeps and writes."""
    if words.slow:
        await asyncio.sleep(words.slow)
    for number in range(1, words.burst + 1):
        await updater.start_work(updater.new_agent_message([text(f'{number} of {words.burst}')]))
    for number in range(1, words.chunks + 1):
        await updater.add_artifact(
            [text(f'chunk {number}\n')],
            artifact_id='chunks',
            append=number > 1,
            last_chunk=number == words.chunks,
        )
    if 'echo' in words:
        await updater.add_artifact(list(message.parts), artifact_id='echo')
    if 'data' in words:
        await updater.add_artifact([Part(root=DataPart(data=DATA))], artifact_id='data')
    if 'file' in words:
        file = FileWithBytes(
            bytes=base64.b64encode(FILE).decode(), mime_type='application/octet-stream', name='bytes.bin'
        )
        await updater.add_artifact([Part(root=FilePart(file=file))], artifact_id='file')


def new_task(context: RequestContext) -> Task:
    """The task's first event."""
    status = TaskStatus(state=TaskState.submitted, timestamp=datetime.now(timezone.utc).isoformat())
    return Task(id=context.task_id, context_id=context.context_id, status=status, history=[context.message])


def direct(context: RequestContext, words: str) -> Message:
    """An answer that makes no task."""
    return Message(
        message_id=f'answer-to-{context.message.message_id}',
        role=Role.agent,
        context_id=context.context_id,
        parts=[text(words)],
    )


def card(http: str, grpc_at: str) -> AgentCard:
    """The card. As in the SDK's own examples, the address of gRPC has no scheme."""
    rpc = f'http://{http}/a2a/rpc'
    return AgentCard(
        name='Python peer of v0.3',
        description='Does what the words of a message say',
        version='1.0.0',
        protocol_version='0.3.0',
        url=rpc,
        preferred_transport=TransportProtocol.jsonrpc,
        additional_interfaces=[
            AgentInterface(url=rpc, transport=TransportProtocol.jsonrpc),
            AgentInterface(url=f'http://{http}/a2a/rest', transport=TransportProtocol.http_json),
            AgentInterface(url=grpc_at, transport=TransportProtocol.grpc),
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=True),
        supports_authenticated_extended_card=True,
        default_input_modes=['text/plain', 'application/json', 'application/octet-stream'],
        default_output_modes=['text/plain', 'application/json', 'application/octet-stream'],
        skills=[AgentSkill(id='words', name='Words', description='Does what they say', tags=['test'])],
    )


def extended(public: AgentCard) -> AgentCard:
    """The same with one skill more."""
    more = AgentSkill(id='more', name='More', description='Only in the extended card', tags=['test'])
    return public.model_copy(update={'skills': [*public.skills, more]})


def end_with_stdin() -> None:
    """Ends the process at once when nobody holds the other end of stdin any more."""
    sys.stdin.buffer.read()
    os._exit(0)


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument('--http-as')
    parser.add_argument('--grpc-as')
    return parser.parse_args()


async def main(names: argparse.Namespace) -> None:
    listener = socket.socket()
    listener.bind((HOST, 0))
    http = f'{HOST}:{listener.getsockname()[1]}'

    size = [('grpc.max_receive_message_length', MESSAGE_BYTES_MAX), ('grpc.so_reuseport', 0)]
    grpc_server = grpc.aio.server(options=size)
    grpc_port = grpc_server.add_insecure_port(f'{HOST}:0')

    public = card(names.http_as or http, names.grpc_as or f'{HOST}:{grpc_port}')
    more = extended(public)
    configs = InMemoryPushNotificationConfigStore()
    # Hooks are on this machine, whatever proxy the environment names.
    sender = BasePushNotificationSender(httpx.AsyncClient(trust_env=False), configs)
    handler = DefaultRequestHandler(
        agent_executor=Agent(),
        task_store=InMemoryTaskStore(),
        push_config_store=configs,
        push_sender=sender,
    )
    # The gRPC handler of this SDK has one card only.
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(more, handler), grpc_server)
    await grpc_server.start()

    rpc = A2AStarletteApplication(public, handler, extended_agent_card=more)
    rest = A2ARESTFastAPIApplication(public, handler, extended_agent_card=more).build()
    routes = [*rpc.routes(rpc_url='/a2a/rpc'), Mount('/a2a/rest', app=rest)]
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level='warning'))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:
        if serving.done():
            await serving
            raise SystemExit('the HTTP server has ended')
        await asyncio.sleep(0.01)
    print(json.dumps({'card': f'http://{http}/.well-known/agent-card.json', 'grpc': grpc_port}), flush=True)
    threading.Thread(target=end_with_stdin, daemon=True).start()
    await serving


if __name__ == '__main__':
    logging.basicConfig(level=logging.WARNING)
    asyncio.run(main(options()))
