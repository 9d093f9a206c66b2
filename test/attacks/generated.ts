import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { shippedNodeOptions } from '../support/shipped.ts';
import { hostileApi, VICTIMS } from './victims.ts';

const MIB = 1024 * 1024;
/** The memory of a test's process in addition to the bundle's: tsx, and the sources of all daemons. */
const TEST_MIB = 64;
/** The limits of the manifests. */
const LIMIT_MIB = { webhook: 256, 'scheduler-plugin': 256, 'node-agent': 160, console: 256 } as const;
/** Seconds of processor time. With the agent's small heap, V8 collects garbage for most of its time. */
const MAX_READY_SECONDS = { webhook: 10, 'scheduler-plugin': 10, 'node-agent': 20, console: 15 } as const;

export interface Outcome {
  readonly cpuSeconds: number;
  readonly isServed: boolean;
  readonly unreadable: number;
  readonly residentBytes: number;
}

/** Starts each daemon's caches with so many hostile objects of all its kinds, and the manifest's limit of its heap. */
export function describeRestarts(objects: number): void {
  for (const [name, { schemas }] of Object.entries(VICTIMS)) {
    it(`${name}: starts with ${objects} hostile objects, and serves an innocent tenant`, async function () {
      this.timeout(600_000);
      const daemon = name as keyof typeof LIMIT_MIB;
      const api = hostileApi(schemas, Math.ceil(objects / Object.keys(schemas).length)).listen(0, '127.0.0.1');
      await once(api, 'listening');
      const url = `http://127.0.0.1:${(api.address() as AddressInfo).port}`;
      const program = ['--import', 'tsx', join(import.meta.dirname, 'victim.ts'), daemon, url];
      const env = { PATH: process.env['PATH'], ...shippedNodeOptions(daemon) };
      const child = spawn(process.execPath, program, { env, stdio: ['ignore', 'pipe', 'inherit'] });
      const outcome = JSON.parse(await text(child.stdout)) as Outcome;
      api.close();
      api.closeAllConnections();
      const resident = outcome.residentBytes / MIB;
      console.log(
        `      ${name}: ${outcome.cpuSeconds.toFixed(1)} s of processor time, ${resident.toFixed(0)} MiB, ${outcome.unreadable} unreadable`,
      );
      assert.ok(outcome.isServed, 'the innocent tenant is served');
      assert.ok(outcome.unreadable > objects / 4, 'objects were attacked');
      assert.ok(outcome.cpuSeconds < MAX_READY_SECONDS[daemon], `${outcome.cpuSeconds} s of processor time`);
      assert.ok(resident < LIMIT_MIB[daemon] + TEST_MIB, `${resident} MiB`);
    });
  }
}
