import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createAffinity } from '../../../native/affinity.ts';
import { OvsAffinity } from '../../../node-agent/ovs-affinity/ovs-affinity.ts';
import { createMasksFile } from '../../../node-agent/ovs-affinity/saved-masks.ts';
import { bootId, procThreads } from '../../../node-agent/processes/proc.ts';
import { needs, skipWithout } from '../../support/parts.ts';
import { createFakeKubelet, type FakeKubelet } from '../kubelet-stand-in.ts';
import { allowedLists, eventually, type StandIn, startStandIn, tempDirectories } from '../support.ts';
import { cpus, first, ovsParts, rest, settableView } from './stage.ts';

const PROGRAM = join(import.meta.dirname, 'program.ts');

describe('an agent that is killed', () => {
  needs('linux');
  const temp = tempDirectories();
  let directory: string;
  let enabler: string;
  let masksFile: string;
  let kubelet: FakeKubelet;
  let daemon: StandIn;
  let program: ChildProcess;
  let own: string[];

  const start = () => {
    program = spawn(process.execPath, ['--import', 'tsx', PROGRAM, directory, '0.2'], { stdio: 'ignore' });
  };
  const end = async (signal: NodeJS.Signals) => {
    program.kill(signal);
    await once(program, 'exit');
  };
  const masks = () => allowedLists(daemon.pid);
  const onlyFirst = () => eventually(() => new Set(masks()).size === 1 && masks()[0] === first(), 'moved');
  const asBefore = () => eventually(() => masks().join() === own.join(), `as before: ${own}`);

  before(function () {
    skipWithout('twoCpus', this);
  });
  beforeEach(async () => {
    directory = temp();
    for (const name of ['run', 'etc', 'kubelet']) mkdirSync(join(directory, name));
    enabler = join(directory, 'etc/enable');
    masksFile = join(directory, 'state/masks.json');
    writeFileSync(enabler, '1');
    daemon = await startStandIn('ovs-vswitchd', 2, join(directory, 'run/ovs-vswitchd.pid'));
    createAffinity().set(procThreads.list(daemon.pid).at(-1)!, cpus(rest()).toWords(1));
    own = masks();
    kubelet = createFakeKubelet(join(directory, 'kubelet'));
    kubelet.allocatable = rest();
    kubelet.pods = { 'ns/pod': { compute: rest() } };
    kubelet.writeCheckpoint(first(), { uid: { compute: rest() } });
    await kubelet.start();
    start();
    await onlyFirst();
  });
  afterEach(async () => {
    program.kill('SIGKILL');
    await kubelet.stop();
    await daemon.stop();
  });

  it('gives each thread its own mask back if it is killed and started again with the feature turned off', async () => {
    await end('SIGKILL');
    assert.ok(existsSync(masksFile));
    rmSync(enabler);
    start();
    await asBefore();
    await eventually(() => !existsSync(masksFile), 'nothing is remembered');
  });

  it('restores the original masks, not those of the first agent, if it is killed, started again and turned off', async () => {
    await end('SIGKILL');
    start();
    await new Promise((resolve) => setTimeout(resolve, 1500));
    await onlyFirst();
    rmSync(enabler);
    await asBefore();
  });

  it('gives each thread its own mask back if it stops and starts again with the feature turned off', async () => {
    await end('SIGTERM');
    assert.deepEqual([...new Set(masks())], [first()]);
    rmSync(enabler);
    start();
    await asBefore();
    await eventually(() => !existsSync(masksFile), 'nothing is remembered');
  });

  it('ignores masks that were saved before a reboot', async () => {
    await end('SIGKILL');
    const text = readFileSync(masksFile, 'utf8');
    assert.equal(createMasksFile(masksFile, bootId()).load().length, 1);
    writeFileSync(masksFile, text.replace(bootId(), 'another'));
    assert.deepEqual(createMasksFile(masksFile, bootId()).load(), []);
  });

  it('reports a masks file that cannot be written, and moves the threads anyway', async () => {
    rmSync(enabler);
    await asBefore();
    await end('SIGTERM');
    writeFileSync(enabler, '1');
    writeFileSync(join(directory, 'plain'), '');
    const stop = new AbortController();
    const parts = ovsParts(directory, {
      masksFile: createMasksFile(join(directory, 'plain/masks.json'), bootId()),
      assignments: settableView({ free: cpus(first()) }),
    });
    const ovs = new OvsAffinity(parts);
    const running = ovs.run(stop.signal);
    assert.match(ovs.status().problems.join(), /cannot save the threads’ original masks/);
    assert.deepEqual([...new Set(masks())], [first()]);
    rmSync(enabler);
    await asBefore();
    stop.abort();
    await running;
  });
});
