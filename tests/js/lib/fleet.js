// Several `longhaul demo-server` processes on one PostgreSQL database, which look like one server to their callers.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';

import { startBalancer } from './balancer.js';
import { BINARY, launch } from './server.js';

const INSTANCES = 3;
/** So many that each instance has had one, unless the lots are false. */
const CONNECTIONS_ENOUGH = 50;
const VARIABLE = 'LONGHAUL_TEST_POSTGRES';

/** The address of the PostgreSQL server that tests share: `./test` names it, else it is started here. */
async function postgres() {
  const address = process.env[VARIABLE];
  if (address) return { address, stop() {} };
  const program = join(dirname(BINARY), 'longhaul-pgtest');
  assert.ok(existsSync(program), `there is no ${program}: run cargo build, or set ${VARIABLE}`);
  const child = spawn(program, { stdio: ['pipe', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: child.stdout })) {
    // It ends with its input.
    return { address: line, stop: () => child.stdin.end() };
  }
  throw new Error('PostgreSQL did not start');
}

/** Starts three servers with tables of their own, and a port that sends each request to one that `seed` draws. */
export async function startFleet(seed) {
  const database = await postgres();
  const ports = [];
  const balancer = await startBalancer(ports, seed);
  const settings = `[store.postgres]\nschema = "test_${randomUUID().replaceAll('-', '')}"\n`;
  const args = ['--store', `${database.address}/postgres`, '--public-url', balancer.url];
  const servers = await Promise.all(Array.from({ length: INSTANCES }, () => launch(args, settings)));
  ports.push(...servers.map((server) => server.port));
  return {
    url: balancer.url,
    async stop() {
      await balancer.close();
      const stopped = await Promise.allSettled(servers.map((server) => server.stop()));
      database.stop();
      const failed = stopped.find((outcome) => outcome.status === 'rejected');
      if (failed) throw failed.reason;
      const all = [...balancer.taken.values()].reduce((sum, count) => sum + count, 0);
      assert.ok(all < CONNECTIONS_ENOUGH || balancer.taken.size === INSTANCES, 'not every instance was asked');
    },
  };
}
