// The client of v0.3 and its successor at one server: what one begins the other reads, continues, follows and cancels.
// And the successor where it is given nothing but v0.3.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import * as newer from '../js/lib/client.js';
import { launch } from '../js/lib/server.js';
import { startHook } from './lib/hook.js';
import * as old from './lib/old.js';
import { rejects } from './lib/rejects.js';

const { TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError } = newer.errors;

const FLAGS = ['--store', 'sqlite', '--data', './data', '--push-allow', '127.0.0.0/8', '--push-allow-http'];

let server;
before(async () => {
  server = await launch(FLAGS);
});
after(async () => server?.stop());

for (const binding of old.BINDINGS) {
  describe(`v0.3 over ${binding} and v1.0 beside it`, { timeout: 60_000 }, () => {
    for (const other of old.BINDINGS) {
      describe(`over ${other}`, () => together(binding, other));
    }
  });
  describe(`v0.3 over ${binding}, spoken by its successor`, { timeout: 60_000 }, () => compatible(binding));
}

function together(oldBinding, newBinding) {
  let one;
  let two;
  before(async () => {
    one = await old.connect(server.url, oldBinding);
    two = await newer.connect(server.url, newBinding);
    assert.equal(two.protocolVersion, '1.0');
  });

  it('reads the same of a task', async () => {
    const contextId = `context-${randomUUID()}`;
    const ofOld = await old.run(one, 'héllo', { contextId });
    const ofNew = await newer.run(two, 'héllo', { contextId });
    for (const { id } of [ofOld, ofNew]) {
      const [first, second] = [await one.getTask({ id }), await newer.get(two, id)];
      assert.equal(old.stateOf(first), 'completed');
      assert.equal(newer.stateOf(second), 'COMPLETED');
      assert.equal(old.textOf(first), 'héllo');
      assert.equal(newer.textOf(second), 'héllo');
      assert.equal(first.contextId, second.contextId);
      assert.deepEqual(
        first.history.map((message) => message.messageId),
        second.history.map((message) => message.messageId),
      );
    }
    const page = await two.listTasks({ tenant: '', contextId, status: 0, pageToken: '' });
    assert.deepEqual(page.tasks.map(({ id }) => id), [ofNew.id, ofOld.id]);
  });

  it('reads the same bytes', async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, n) => n));
    const file = { bytes: bytes.toString('base64'), mimeType: 'application/octet-stream' };
    const { id } = await old.run(one, '', { parts: [{ kind: 'file', file }] });
    const [part] = (await newer.get(two, id)).artifacts[0].parts;
    assert.equal(part.content.$case, 'raw');
    assert.deepEqual(Buffer.from(part.content.value), bytes);
  });

  it('answers the question that was put to the other', async () => {
    const first = await old.run(one, 'input');
    assert.equal(newer.stateOf(await newer.run(two, 'here it is', { taskId: first.id })), 'COMPLETED');
    const second = await newer.run(two, 'input');
    assert.equal(old.stateOf(await old.run(one, 'here it is', { taskId: second.id })), 'completed');
  });

  it('cancels what the other has begun', async () => {
    const first = await old.begin(one, 'slow 60');
    assert.equal(newer.stateOf(await two.cancelTask({ tenant: '', id: first.id, metadata: undefined })), 'CANCELED');
    await old.until(one, first.id, 'canceled');
    const second = await newer.begin(two, 'slow 60');
    assert.equal(old.stateOf(await one.cancelTask({ id: second.id })), 'canceled');
    await newer.until(two, second.id, 'CANCELED');
  });

  it('follows what the other does', async () => {
    const first = await newer.run(two, 'input');
    const oldStream = one.resubscribeTask({ id: first.id });
    assert.equal(old.stateOf((await oldStream.next()).value), 'input-required');
    await newer.run(two, 'here it is', { taskId: first.id });
    assert.equal(old.stateOf((await old.collect(oldStream)).at(-1)), 'completed');

    const second = await old.run(one, 'input');
    const newStream = two.resubscribeTask({ tenant: '', id: second.id });
    assert.equal(newer.stateOf((await newStream.next()).value.payload.value), 'INPUT_REQUIRED');
    await old.run(one, 'here it is', { taskId: second.id });
    assert.equal(newer.stateOf((await newer.collect(newStream)).at(-1).value), 'COMPLETED');
  });

  it('is told by each push config in its own version', async () => {
    const hook = await startHook();
    try {
      const { id } = await old.run(one, 'input');
      const pushNotificationConfig = { id: 'old', url: `${hook.url}/old` };
      await one.setTaskPushNotificationConfig({ taskId: id, pushNotificationConfig });
      const config = { tenant: '', taskId: id, id: 'new', url: `${hook.url}/new`, token: '', authentication: undefined };
      await two.createTaskPushNotificationConfig(config);
      await newer.run(two, 'here it is', { taskId: id });
      const ofOld = await hook.until('/old', (bodies) => bodies.at(-1).status?.state === 'completed');
      assert.ok(ofOld.every(({ body }) => body.kind === 'task' && body.id === id));
      const isOver = (body) => body.statusUpdate?.status.state === 'TASK_STATE_COMPLETED';
      const ofNew = await hook.until('/new', (bodies) => isOver(bodies.at(-1)));
      assert.ok(ofNew.every(({ headers }) => headers['a2a-version'] === '1.0'));
    } finally {
      await hook.stop();
    }
  });
}

function compatible(binding) {
  let client;
  before(async () => {
    client = await newer.connectByOlder(server.url, binding);
  });

  it('speaks v0.3', () => {
    assert.ok(client.protocolVersion.startsWith('0.3'), client.protocolVersion);
    assert.equal(client.transport.protocolName, binding);
  });

  it('sends, waits for the end, and reads', async () => {
    const task = await newer.run(client, 'héllo');
    assert.equal(newer.stateOf(task), 'COMPLETED');
    assert.equal(newer.textOf(await newer.get(client, task.id)), 'héllo');
  });

  it('sends without waiting, and cancels', async () => {
    const task = await newer.begin(client, 'slow 60');
    await newer.until(client, task.id, 'WORKING');
    const canceled = await client.cancelTask({ tenant: '', id: task.id, metadata: undefined });
    assert.equal(newer.stateOf(canceled), 'CANCELED');
  });

  it('streams, and subscribes', async () => {
    const items = await newer.collect(client.sendMessageStream(newer.request('chunks 50')));
    assert.equal(items[0].$case, 'task');
    assert.equal(items.filter(({ $case }) => $case === 'artifactUpdate').length, 50);
    assert.equal(newer.stateOf(items.at(-1).value), 'COMPLETED');
    const asked = await newer.run(client, 'input');
    const stream = client.resubscribeTask({ tenant: '', id: asked.id });
    assert.equal((await stream.next()).value.payload.$case, 'task');
    await newer.run(client, 'here it is', { taskId: asked.id });
    assert.equal(newer.stateOf((await newer.collect(stream)).at(-1).value), 'COMPLETED');
  });

  it('is answered with a message', async () => {
    assert.ok('messageId' in (await client.sendMessage(newer.request('msg'))));
  });

  it('makes, reads, lists and removes push configs', async () => {
    const { id: taskId } = await newer.run(client, 'input');
    const config = { tenant: '', taskId, id: 'one', url: 'http://127.0.0.1:9/', token: '', authentication: undefined };
    const made = await client.createTaskPushNotificationConfig(config);
    assert.deepEqual([made.id, made.taskId, made.url], ['one', taskId, config.url]);
    const read = await client.getTaskPushNotificationConfig({ tenant: '', taskId, id: 'one' });
    assert.equal(read.url, config.url);
    const list = { tenant: '', taskId, pageSize: 0, pageToken: '' };
    assert.equal((await client.listTaskPushNotificationConfig(list)).configs.length, 1);
    await client.deleteTaskPushNotificationConfig({ tenant: '', taskId, id: 'one' });
    assert.equal((await client.listTaskPushNotificationConfig(list)).configs.length, 0);
  });

  it('sees refusals as the errors that it has for them', async () => {
    const ended = await newer.run(client, 'hello');
    const unknown = { tenant: '', id: randomUUID() };
    const cases = [
      [TaskNotFoundError, () => newer.get(client, unknown.id)],
      [TaskNotFoundError, () => newer.collect(client.resubscribeTask(unknown))],
      [TaskNotCancelableError, () => client.cancelTask({ tenant: '', id: ended.id })],
      [UnsupportedOperationError, () => newer.run(client, 'more', { taskId: ended.id })],
    ];
    for (const [expected, attempt] of cases) await rejects(expected, attempt);
  });
}
