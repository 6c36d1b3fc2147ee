"""An agent on the server of the Python SDK, unchanged, for Longhaul's client to be tested against.

It offers JSON-RPC, HTTP+JSON and gRPC on free ports of 127.0.0.1, says where in one line of JSON on stdout, and ends when its
stdin does. The words of a message choose what it does: those of `longhaul demo-server`, and `data`, `file` and `raise`.

    python_agent.py [--http-as HOST:PORT] [--grpc-as HOST:PORT]     what the card names, when something stands between
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import socket
import sys
import threading

import grpc.aio
import httpx
import uvicorn
from a2a.helpers import new_data_part, new_raw_part, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.request_handlers.grpc_handler import GrpcHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import a2a_pb2_grpc
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Message,
    Part,
    Role,
    Task,
    TaskState,
    TaskStatus,
)
from starlette.applications import Starlette
from words import DATA, FILE, Words, read

HOST = '127.0.0.1'
AUTH_COMES_AFTER_SECONDS = 2.0
MESSAGE_BYTES_MAX = 64 * 1024 * 1024


def words_of(message: Message) -> Words:
    """The words of a message."""
    return read([part.text for part in message.parts if part.WhichOneof('content') == 'text'])


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

        def says(text: str) -> Message:
            return updater.new_agent_message([new_text_part(text)])

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
            await updater.requires_input(says('what else?'))
        else:
            await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


async def work(words: Words, message: Message, updater: TaskUpdater) -> None:
    """Sleeps and writes."""
    if words.slow:
        await asyncio.sleep(words.slow)
    for number in range(1, words.burst + 1):
        text = new_text_part(f'{number} of {words.burst}')
        await updater.start_work(updater.new_agent_message([text]))
    for number in range(1, words.chunks + 1):
        await updater.add_artifact(
            [new_text_part(f'chunk {number}\n')],
            artifact_id='chunks',
            append=number > 1,
            last_chunk=number == words.chunks,
        )
    if 'echo' in words:
        await updater.add_artifact(list(message.parts), artifact_id='echo')
    if 'data' in words:
        await updater.add_artifact([new_data_part(DATA)], artifact_id='data')
    if 'file' in words:
        file = new_raw_part(FILE, media_type='application/octet-stream', filename='bytes.bin')
        await updater.add_artifact([file], artifact_id='file')


def new_task(context: RequestContext) -> Task:
    """The task's first event."""
    status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
    status.timestamp.GetCurrentTime()
    return Task(id=context.task_id, context_id=context.context_id, status=status, history=[context.message])


def direct(context: RequestContext, text: str) -> Message:
    """An answer that makes no task."""
    return Message(
        message_id=f'answer-to-{context.message.message_id}',
        role=Role.ROLE_AGENT,
        context_id=context.context_id,
        parts=[Part(text=text)],
    )


def card(http: str, grpc: str) -> AgentCard:
    """The card. As in the SDK's own examples, the address of gRPC has no scheme."""

    def interface(url: str, binding: str) -> AgentInterface:
        return AgentInterface(url=url, protocol_binding=binding, protocol_version='1.0')

    return AgentCard(
        name='Python peer',
        description='Does what the words of a message say',
        version='1.0.0',
        supported_interfaces=[
            interface(f'http://{http}/a2a/rpc', 'JSONRPC'),
            interface(f'http://{http}/a2a/rest', 'HTTP+JSON'),
            interface(grpc, 'GRPC'),
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=True, extended_agent_card=True),
        default_input_modes=['text/plain', 'application/json', 'application/octet-stream'],
        default_output_modes=['text/plain', 'application/json', 'application/octet-stream'],
        skills=[AgentSkill(id='words', name='Words', description='Does what they say', tags=['test'])],
    )


def extended(public: AgentCard) -> AgentCard:
    """The same with one skill more."""
    more = AgentCard()
    more.CopyFrom(public)
    more.skills.append(AgentSkill(id='more', name='More', description='Only in the extended card', tags=['test']))
    return more


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
    configs = InMemoryPushNotificationConfigStore()
    # Hooks are on this machine, whatever proxy the environment names.
    sender = BasePushNotificationSender(httpx.AsyncClient(trust_env=False), configs)
    handler = DefaultRequestHandler(
        agent_executor=Agent(),
        task_store=InMemoryTaskStore(),
        agent_card=public,
        push_config_store=configs,
        push_sender=sender,
        extended_agent_card=extended(public),
    )
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(handler), grpc_server)
    await grpc_server.start()

    routes = [
        *create_agent_card_routes(public, cache_control='public, max-age=60'),
        *create_jsonrpc_routes(handler, '/a2a/rpc'),
        *create_rest_routes(handler, path_prefix='/a2a/rest'),
    ]
    config = uvicorn.Config(Starlette(routes=routes), log_level='warning')
    server = uvicorn.Server(config)
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
