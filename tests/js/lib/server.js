// `longhaul demo-server` processes, each stopped by its own process id.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '../../..');
export const BINARY = process.env.LONGHAUL_BIN ?? join(ROOT, 'target/debug/longhaul');
const READY_MS = 30_000;
const STOP_MS = 20_000;
const POLL_MS = 20;

async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address();
  probe.close();
  await once(probe, 'close');
  return port;
}

function environment() {
  const foreign = ([name]) => name.startsWith('LONGHAUL_') || name === 'RUST_LOG';
  return Object.fromEntries(Object.entries(process.env).filter((entry) => !foreign(entry)));
}

/** Starts a server on that store and returns when it says that it is ready. */
export function startServer(store) {
  return launch(['--store', store, '--data', './data']);
}

/** Starts a server with these arguments, and these lines as its `longhaul.toml`. */
export async function launch(args, settings = '') {
  const folder = mkdtempSync(join(tmpdir(), 'longhaul-js-'));
  const log = join(folder, 'server.log');
  writeFileSync(join(folder, 'longhaul.toml'), settings);
  const port = await freePort();
  const output = openSync(log, 'a');
  const child = spawn(
    BINARY,
    ['demo-server', '--listen', `127.0.0.1:${port}`, ...args],
    // Neither somebody else's configuration file nor a variable may change the settings.
    { stdio: ['ignore', output, output], cwd: folder, env: environment() },
  );
  const ended = once(child, 'exit');
  const url = `http://127.0.0.1:${port}`;

  const deadline = Date.now() + READY_MS;
  for (;;) {
    if (child.exitCode !== null || Date.now() > deadline) {
      child.kill('SIGKILL');
      throw new Error(`the server never became ready:\n${readFileSync(log, 'utf8')}`);
    }
    const ready = await fetch(`${url}/readyz`).then((answer) => answer.ok, () => false);
    if (ready) break;
    await delay(POLL_MS);
  }

  return {
    url,
    port,
    async stop() {
      child.kill('SIGTERM');
      const stuck = AbortSignal.timeout(STOP_MS);
      stuck.addEventListener('abort', () => child.kill('SIGKILL'));
      const [code, signal] = await ended;
      const text = readFileSync(log, 'utf8');
      rmSync(folder, { recursive: true, force: true });
      if (code !== 0) throw new Error(`SIGTERM ended the server with ${code ?? signal}:\n${text}`);
      if (text.includes('panicked at')) throw new Error(`the server panicked:\n${text}`);
    },
  };
}
