import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CpuSet } from '../../../model/cpu-set.ts';
import { Irqbalance } from '../../../node-agent/interrupts/irqbalance.ts';
import { KernelFiles } from '../../../node-agent/interrupts/kernel-files.ts';
import { Originals } from '../../../node-agent/interrupts/originals.ts';
import { needs } from '../../support/parts.ts';
import { eventually, recordingLogger, set } from '../support.ts';

const run = (program: string, ...args: string[]) => execFileSync(program, args, { encoding: 'utf8', stdio: 'pipe' });

describe('the real irqbalance', function () {
  needs('root');
  needs('irqbalance');
  needs('twoCpus');
  this.timeout(60_000);
  const rundir = '/run/irqbalance';
  const children: ChildProcess[] = [];
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-'));

  /** With every interrupt banned, so that it moves none of the machine's. */
  const startIrqbalance = async (env: Readonly<Record<string, string>>) => {
    mkdirSync(rundir, { recursive: true });
    const numbers = run('ls', '/proc/irq')
      .split('\n')
      .filter((name) => /^\d+$/.test(name));
    const args = ['-f', '-t', '1', ...numbers.map((number) => `--banirq=${number}`)];
    const child = spawn('irqbalance', args, { stdio: 'ignore', env: { ...process.env, ...env } });
    children.push(child);
    await eventually(() => run('ls', rundir).includes(`irqbalance${child.pid}.sock`), 'its socket');
    return child;
  };
  const stop = async (child: ChildProcess) => {
    child.kill('SIGTERM');
    await once(child, 'exit');
    rmSync(join(rundir, `irqbalance${child.pid}.sock`), { force: true });
  };
  const banned = async (pid: number | undefined) => {
    const socket = connect(join(rundir, `irqbalance${pid}.sock`));
    socket.setEncoding('utf8').write('setup');
    const answer = (await socket.toArray()).join('');
    return String(CpuSet.fromMask(/BANNED ([\da-f,]+)/.exec(answer)?.[1] ?? ''));
  };
  after(async () => {
    for (const child of children) if (child.exitCode === null && child.signalCode === null) await stop(child);
    rmSync(directory, { recursive: true });
  });

  it('leaves out the union with its own CPUs, also after a restart, and gets its own back', async () => {
    const originals = new Originals({ path: join(directory, 'i.json'), bootId: 'b', log: recordingLogger().log });
    originals.load(new AbortController().signal);
    const client = new Irqbalance({
      files: new KernelFiles(),
      irqbalanceRundir: rundir,
      originals,
      nowSeconds: () => performance.now() / 1000,
    });
    const first = await startIrqbalance({ IRQBALANCE_BANNED_CPULIST: '0' });
    await client.reconcile(set('1'));
    assert.equal(client.problem, undefined);
    await eventually(async () => (await banned(first.pid)) === '0-1', 'the union to be left out');
    await stop(first);
    const second = await startIrqbalance({ IRQBALANCE_BANNED_CPULIST: '' });
    await client.reconcile(set('1'));
    await eventually(async () => (await banned(second.pid)) === '1', 'the restarted one to leave out the owned CPU');
    await client.reconcile(CpuSet.EMPTY);
    await eventually(async () => (await banned(second.pid)) === '', 'its own setting to be back');
    assert.equal(originals.isEmpty, true);
  });
});
