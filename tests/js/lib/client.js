// The official client for one binding, set up as its documentation says, and words to use it.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';

import { SendMessageRequest, taskStateToJSON } from '@a2a-js/sdk';
import { ClientFactory, JsonRpcTransportFactory, RestTransportFactory } from '@a2a-js/sdk/client';
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc';

const WAIT_MS = 15_000;
const POLL_MS = 20;

const TRANSPORTS = {
  JSONRPC: () => new JsonRpcTransportFactory(),
  'HTTP+JSON': () => new RestTransportFactory(),
  GRPC: () => new GrpcTransportFactory(),
};

export const BINDINGS = Object.keys(TRANSPORTS);
export const STORES = ['memory', 'sqlite', 'postgres'];

/** A client that speaks that binding alone. */
export async function connect(url, binding) {
  return new ClientFactory({ transports: [TRANSPORTS[binding]()] }).createFromUrl(url);
}

/** A request with a new message; `configuration` goes to the request, the rest to the message. */
export function request(text, { configuration, parts, ...members } = {}) {
  return SendMessageRequest.fromJSON({
    message: {
      messageId: randomUUID(),
      role: 'ROLE_USER',
      parts: parts ?? [{ text }],
      ...members,
    },
    configuration,
  });
}

/** A blocking send that has to be answered with a task. */
export async function run(client, text, members) {
  const answer = await client.sendMessage(request(text, members));
  assert.ok('status' in answer, `not a task: ${JSON.stringify(answer)}`);
  return answer;
}

/** A send that does not wait. */
export async function begin(client, text, members) {
  return run(client, text, { ...members, configuration: { returnImmediately: true } });
}

/** A whole stream. */
export async function collect(stream) {
  const items = [];
  for await (const item of stream) items.push(item.payload);
  return items;
}

export function stateOf({ status }) {
  return taskStateToJSON(status.state).replace('TASK_STATE_', '');
}

/** The state that a stream's item tells, if it tells one. */
export function stateOfItem({ $case, value }) {
  return $case === 'task' || $case === 'statusUpdate' ? stateOf(value) : undefined;
}

/** Asks until the task is in that state. */
export async function until(client, id, state) {
  const deadline = Date.now() + WAIT_MS;
  for (;;) {
    const task = await client.getTask({ tenant: '', id });
    if (stateOf(task) === state) return task;
    assert.ok(Date.now() < deadline, `never ${state}: ${JSON.stringify(task)}`);
    await delay(POLL_MS);
  }
}

export function textOf(task) {
  return task.artifacts
    .flatMap((artifact) => artifact.parts)
    .map((part) => (part.content?.$case === 'text' ? part.content.value : ''))
    .join('');
}
