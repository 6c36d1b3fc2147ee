// The official client of v0.3 for one transport, set up as its documentation says, and words to use it.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';

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

/** A client that speaks that transport alone. */
export async function connect(url, binding, path) {
  return new ClientFactory({ transports: [TRANSPORTS[binding]()] }).createFromUrl(url, path);
}

/** Parameters with a new message; `configuration` stands beside it, the rest is the message's. */
export function params(text, { configuration, parts, ...members } = {}) {
  const message = {
    kind: 'message',
    messageId: randomUUID(),
    role: 'user',
    parts: parts ?? [{ kind: 'text', text }],
    ...members,
  };
  return configuration ? { message, configuration } : { message };
}

/** A blocking send that has to be answered with a task. */
export async function run(client, text, members) {
  const answer = await client.sendMessage(params(text, members));
  assert.equal(answer.kind, 'task', JSON.stringify(answer));
  return answer;
}

/** A send that does not wait. */
export async function begin(client, text, members) {
  return run(client, text, { ...members, configuration: { blocking: false } });
}

/** A whole stream. */
export async function collect(stream) {
  const items = [];
  for await (const item of stream) items.push(item);
  return items;
}

/** The state that a stream's item tells, if it tells one. */
export function stateOf({ status }) {
  return status?.state;
}

/** Asks until the task is in that state. */
export async function until(client, id, state) {
  const deadline = Date.now() + WAIT_MS;
  for (;;) {
    const task = await client.getTask({ id });
    if (stateOf(task) === state) return task;
    assert.ok(Date.now() < deadline, `never ${state}: ${JSON.stringify(task)}`);
    await delay(POLL_MS);
  }
}

export function textOf(task) {
  return task.artifacts.flatMap((artifact) => artifact.parts).map((part) => part.text ?? '').join('');
}
