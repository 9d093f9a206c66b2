import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { endsWithUs } from '../../support/children.ts';
import { placesOf } from './places.ts';
import { readRunning } from './running.ts';

describe('a second run of the lab', () => {
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-running-'));
  const places = placesOf({ XDG_CACHE_HOME: directory });
  mkdirSync(places.run, { recursive: true });
  /** A process that looks like a run of the lab. */
  let run: ChildProcess;
  before(() => {
    run = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', 'test/lab/run.ts'], { stdio: 'ignore' });
    endsWithUs(run);
  });
  after(() => {
    run.kill();
    rmSync(directory, { recursive: true });
  });
  const kept = { layout: 'two-nodes', qemu: 1, sshPort: 2, kubeconfig: 'k', nodeLayer: {} };

  it('finds no machine if no run has one, or if its run has ended', async () => {
    rmSync(places.running, { force: true });
    assert.equal(await readRunning(places), undefined);
    writeFileSync(places.running, JSON.stringify({ pid: 2 ** 22 + 1, ...kept }));
    assert.equal(await readRunning(places), undefined);
  });

  it('finds the machine that the first run keeps', async () => {
    writeFileSync(places.running, JSON.stringify({ pid: run.pid, ...kept }));
    assert.deepEqual(await readRunning(places), { pid: run.pid, ...kept });
  });

  it('is refused while the first run starts or uses its machine, which would end during the second', async () => {
    writeFileSync(places.running, JSON.stringify({ pid: run.pid }));
    await assert.rejects(readRunning(places), /another run \(process \d+\) has the lab's machine/);
  });
});
