import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { build } from 'esbuild';
import { shippedNodeOptions } from '../support/shipped.ts';
import { hostileApi } from './hostile-api.ts';
import { VICTIMS } from './victims.ts';

const MIB = 1024 * 1024;
/** The limits of the manifests. */
const LIMIT_MIB = { webhook: 256, 'scheduler-plugin': 256, 'node-agent': 160, console: 256 } as const;
/** Seconds of processor time until all lists are read. */
const MAX_READY_SECONDS = 10;

export interface Outcome {
  readonly cpuSeconds: number;
  readonly isServed: boolean;
  readonly unreadable: number;
  readonly residentBytes: number;
}

/** Starts each daemon's caches with so many hostile objects of all its kinds, bundled as it is shipped and with its manifest's settings. */
export function describeRestarts(objects: number): void {
  let directory = '';
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'plumbline-victims-'));
  });
  after(() => rmSync(directory, { recursive: true }));

  for (const [name, { schemas }] of Object.entries(VICTIMS)) {
    it(`${name}: starts with ${objects} hostile objects, and serves an innocent tenant`, async function () {
      this.timeout(600_000);
      const daemon = name as keyof typeof LIMIT_MIB;
      const api = hostileApi(schemas, Math.ceil(objects / Object.keys(schemas).length)).listen(0, '127.0.0.1');
      await once(api, 'listening');
      const url = `http://127.0.0.1:${(api.address() as AddressInfo).port}`;
      const program = join(directory, `${daemon}.cjs`);
      await bundle(daemon, program);
      const env = { PATH: process.env['PATH'], ...shippedNodeOptions(daemon) };
      const child = spawn(process.execPath, [program, url], { env, stdio: ['ignore', 'pipe', 'inherit'] });
      const printed = await text(child.stdout);
      api.close();
      api.closeAllConnections();
      const outcome = JSON.parse(printed) as Outcome;
      const resident = outcome.residentBytes / MIB;
      console.log(
        `      ${name}: ${outcome.cpuSeconds.toFixed(1)} s of processor time, ${resident.toFixed(0)} MiB, ${outcome.unreadable} unreadable`,
      );
      assert.ok(outcome.isServed, 'the innocent tenant is served');
      assert.ok(outcome.unreadable > objects / 4, 'objects were attacked');
      assert.ok(outcome.cpuSeconds < MAX_READY_SECONDS, `${outcome.cpuSeconds} s of processor time`);
      assert.ok(resident < LIMIT_MIB[daemon], `${resident} MiB`);
    });
  }
}

async function bundle(daemon: string, outfile: string): Promise<void> {
  const contents = `
    import { runVictim } from './victim.ts';
    import { victim } from './victims/${daemon}.ts';
    void runVictim(victim, process.argv[2]);`;
  // The vectors that a victim reads, from where their reader is.
  const define = { 'import.meta.dirname': JSON.stringify(join(import.meta.dirname, '../support')) };
  const stdin = { contents, resolveDir: import.meta.dirname, loader: 'ts' as const };
  await build({ stdin, outfile, define, bundle: true, platform: 'node', format: 'cjs', logLevel: 'error' });
}
