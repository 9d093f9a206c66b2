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
  /** A process that looks like a run of the lab to others. */
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

  it('finds no machine where no run has one, or where the run that had one is gone', async () => {
    rmSync(places.running, { force: true });
    assert.equal(await readRunning(places), undefined);
    writeFileSync(places.running, JSON.stringify({ pid: 2 ** 22 + 1, ...kept }));
    assert.equal(await readRunning(places), undefined);
  });

  it('finds the machine that the first keeps', async () => {
    writeFileSync(places.running, JSON.stringify({ pid: run.pid, ...kept }));
    assert.deepEqual(await readRunning(places), { pid: run.pid, ...kept });
  });

  it('is refused while the first starts or uses its machine: it would end under the second', async () => {
    writeFileSync(places.running, JSON.stringify({ pid: run.pid }));
    await assert.rejects(readRunning(places), /another run \(process \d+\) has the lab's machine/);
  });
});
