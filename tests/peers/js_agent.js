// An agent on the server of the JavaScript SDK, unchanged, for Longhaul's client to be tested against.
//
// It offers JSON-RPC, HTTP+JSON and gRPC on free ports of 127.0.0.1, says where in one line of JSON on stdout, and ends when
// its stdin does. The words of a message choose what it does: those of `longhaul demo-server`, and `data`, `file` and `raise`.
//
//     js_agent.js [--http-as HOST:PORT] [--grpc-as HOST:PORT]     what the card names, when something stands between

'use strict';

const { createServer } = require('node:http');
const { createRequire } = require('node:module');
const { randomUUID } = require('node:crypto');
const { join } = require('node:path');
const { setTimeout: delay } = require('node:timers/promises');
const { parseArgs } = require('node:util');

// The packages are those of tests/js.
const need = createRequire(join(__dirname, '../js/package.json'));
const express = need('express');
const grpc = need('@grpc/grpc-js');
const { Role, TaskState } = need('@a2a-js/sdk');
const { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } = need('@a2a-js/sdk/server');
const { UserBuilder, agentCardHandler, jsonRpcHandler, restHandler } = need('@a2a-js/sdk/server/express');
const { A2AService, grpcService } = need('@a2a-js/sdk/server/grpc');

const HOST = '127.0.0.1';
const AUTH_COMES_AFTER_MS = 2_000;
const COUNT_MAX = 1_000_000;
const SLOW_SECONDS_MAX = 86_400;
const MESSAGE_BYTES_MAX = 64 * 1024 * 1024;
// So many events are written before others get their turn.
const EVENTS_A_TURN = 32;
const FILE = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
const DATA = { nothing: null, list: [1, 2.5, 'three'], yes: true };

const FLAGS = ['echo', 'input', 'auth', 'reject', 'fail', 'msg', 'late', 'data', 'file', 'raise'];
const COUNTS = ['chunks', 'burst'];

// Reads words up to the first that means nothing; a message that begins with none of them is echoed.
function wordsOf(message) {
  const texts = message.parts.filter((part) => part.content?.$case === 'text').map((part) => part.content.value);
  const rest = texts.join(' ').split(/\s+/).filter(Boolean);
  const words = { slow: 0, chunks: 0, burst: 0 };
  let known = 0;
  while (rest.length > 0 && !words.echo) {
    const word = rest.shift();
    if (FLAGS.includes(word)) {
      words[word] = true;
    } else if (COUNTS.includes(word) && /^\d+$/.test(rest[0] ?? '')) {
      words[word] = Math.min(Number(rest.shift()), COUNT_MAX);
    } else if (word === 'slow' && /^\d/.test(rest[0] ?? '') && Number.isFinite(Number(rest[0]))) {
      words.slow = Math.min(Number(rest.shift()), SLOW_SECONDS_MAX);
    } else {
      break;
    }
    known += 1;
  }
  if (known === 0) words.echo = true;
  return words;
}

function part(content, mediaType = '', filename = '') {
  return { content, mediaType, filename, metadata: undefined };
}

function text(value) {
  return part({ $case: 'text', value });
}

// One turn of one task, and what it writes.
class Turn {
  constructor(taskId, contextId, bus, canceled) {
    Object.assign(this, { taskId, contextId, bus, canceled });
  }

  message(words) {
    return {
      messageId: randomUUID(),
      role: Role.ROLE_AGENT,
      taskId: this.taskId,
      contextId: this.contextId,
      parts: [text(words)],
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
    };
  }

  status(state, words) {
    const message = words === undefined ? undefined : this.message(words);
    return { state, message, timestamp: new Date().toISOString() };
  }

  update(state, words) {
    const { taskId, contextId } = this;
    const status = this.status(state, words);
    this.bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status, metadata: undefined }));
  }

  artifact(artifactId, parts, append = false, lastChunk = false) {
    const { taskId, contextId } = this;
    const artifact = { artifactId, name: '', description: '', parts, metadata: undefined, extensions: [] };
    this.bus.publish(
      AgentEvent.artifactUpdate({ taskId, contextId, artifact, append, lastChunk, metadata: undefined }),
    );
  }

  // Lets others have their turn, now and then; false when the task was canceled.
  async goesOn(number) {
    if (number % EVENTS_A_TURN === 0) await delay(0);
    return !this.canceled.aborted;
  }
}

class Agent {
  running = new Map();

  async execute(context, bus) {
    const words = wordsOf(context.userMessage);
    if (words.raise) throw new Error('asked to raise');
    const controller = new AbortController();
    const turn = new Turn(context.taskId, context.contextId, bus, controller.signal);
    if (!context.task && words.msg) {
      bus.publish(AgentEvent.message({ ...turn.message('a direct answer'), taskId: '' }));
      return;
    }
    bus.publish(AgentEvent.task(firstEvent(context, turn)));
    this.running.set(context.taskId, controller);
    try {
      await act(words, context.userMessage, turn);
    } finally {
      if (this.running.get(context.taskId) === controller) this.running.delete(context.taskId);
    }
  }

  cancelTask = async (taskId, bus) => {
    this.running.get(taskId)?.abort();
    new Turn(taskId, '', bus).update(TaskState.TASK_STATE_CANCELED);
  };
}

// The SDK wants a task as the first event of each turn, of a later one too.
function firstEvent(context, turn) {
  if (context.task) return { ...context.task, status: turn.status(TaskState.TASK_STATE_WORKING) };
  return {
    id: turn.taskId,
    contextId: turn.contextId,
    status: turn.status(TaskState.TASK_STATE_SUBMITTED),
    artifacts: [],
    history: [context.userMessage],
    metadata: undefined,
  };
}

// Everything after the task's first event.
async function act(words, message, turn) {
  if (words.fail && !words.late) return turn.update(TaskState.TASK_STATE_FAILED, 'the agent failed');
  if (words.reject) return turn.update(TaskState.TASK_STATE_REJECTED, 'rejected, as asked');
  if (words.auth) {
    turn.update(TaskState.TASK_STATE_AUTH_REQUIRED, 'authorization is needed; it comes by itself in 2 s');
    if (!(await slept(AUTH_COMES_AFTER_MS, turn))) return;
  }
  turn.update(TaskState.TASK_STATE_WORKING);
  if (!(await work(words, message, turn))) return;
  if (words.fail) {
    turn.update(TaskState.TASK_STATE_WORKING, 'about to fail');
    turn.update(TaskState.TASK_STATE_FAILED, 'the agent failed');
  } else if (words.input) {
    turn.update(TaskState.TASK_STATE_INPUT_REQUIRED, 'what else?');
  } else {
    turn.update(TaskState.TASK_STATE_COMPLETED);
  }
}

// Sleeps and writes; false when the task was canceled.
async function work(words, message, turn) {
  if (words.slow > 0 && !(await slept(words.slow * 1000, turn))) return false;
  for (let number = 1; number <= words.burst; number += 1) {
    turn.update(TaskState.TASK_STATE_WORKING, `${number} of ${words.burst}`);
    if (!(await turn.goesOn(number))) return false;
  }
  for (let number = 1; number <= words.chunks; number += 1) {
    turn.artifact('chunks', [text(`chunk ${number}\n`)], number > 1, number === words.chunks);
    if (!(await turn.goesOn(number))) return false;
  }
  if (words.echo) turn.artifact('echo', message.parts);
  if (words.data) turn.artifact('data', [part({ $case: 'data', value: DATA })]);
  if (words.file) turn.artifact('file', [part({ $case: 'raw', value: FILE }, 'application/octet-stream', 'bytes.bin')]);
  return true;
}

async function slept(milliseconds, turn) {
  try {
    await delay(milliseconds, undefined, { signal: turn.canceled });
    return true;
  } catch {
    return false;
  }
}

// As in the SDK's own examples, the address of gRPC has no scheme.
function card(http, grpcAddress) {
  const at = (url, protocolBinding) => ({ url, protocolBinding, tenant: '', protocolVersion: '1.0' });
  return {
    name: 'JavaScript peer',
    description: 'Does what the words of a message say',
    version: '1.0.0',
    supportedInterfaces: [
      at(`http://${http}/a2a/rpc`, 'JSONRPC'),
      at(`http://${http}/a2a/rest`, 'HTTP+JSON'),
      at(grpcAddress, 'GRPC'),
    ],
    provider: undefined,
    capabilities: { streaming: true, pushNotifications: true, extensions: [], extendedAgentCard: true },
    securitySchemes: {},
    securityRequirements: [],
    defaultInputModes: ['text/plain', 'application/json', 'application/octet-stream'],
    defaultOutputModes: ['text/plain', 'application/json', 'application/octet-stream'],
    skills: [skill('words', 'Words', 'Does what they say')],
    signatures: [],
  };
}

function skill(id, name, description) {
  const none = { examples: [], inputModes: [], outputModes: [], securityRequirements: [] };
  return { id, name, description, tags: ['test'], ...none };
}

async function main() {
  const named = { type: 'string' };
  const { values: names } = parseArgs({ options: { 'http-as': named, 'grpc-as': named } });
  const app = express();
  const server = createServer(app);
  await new Promise((resolve) => server.listen(0, HOST, resolve));
  const http = `${HOST}:${server.address().port}`;

  const size = { 'grpc.max_receive_message_length': MESSAGE_BYTES_MAX };
  const grpcServer = new grpc.Server(size);
  const plain = grpc.ServerCredentials.createInsecure();
  const grpcPort = await new Promise((resolve, reject) => {
    grpcServer.bindAsync(`${HOST}:0`, plain, (error, port) => (error ? reject(error) : resolve(port)));
  });

  const agentCard = card(names['http-as'] ?? http, names['grpc-as'] ?? `${HOST}:${grpcPort}`);
  const more = skill('more', 'More', 'Only in the extended card');
  const extended = async () => ({ ...agentCard, skills: [...agentCard.skills, more] });
  const requestHandler = new DefaultRequestHandler(
    agentCard,
    new InMemoryTaskStore(),
    new Agent(),
    undefined,
    undefined,
    undefined,
    extended,
  );
  const options = { requestHandler, userBuilder: UserBuilder.noAuthentication };
  app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
  app.use('/a2a/rpc', jsonRpcHandler(options));
  app.use('/a2a/rest', restHandler(options));
  grpcServer.addService(A2AService, grpcService(options));

  process.stdin.on('end', () => process.exit(0)).on('error', () => process.exit(0)).resume();
  console.log(JSON.stringify({ card: `http://${http}/.well-known/agent-card.json`, grpc: grpcPort }));
}

main();
