import assert from 'node:assert/strict';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { DaemonName } from '../../cli/demo/daemons.ts';
import { createNewFile, requireNew } from '../../cli/demo/new-file.ts';
import { kubeconfig } from '../../sandbox/cluster/identities.ts';
import { machineCpus } from '../../sandbox/qemu/guests.ts';
import { buildOnce, root } from '../support/bundles.ts';
import { readMetric } from '../support/daemon-metrics.ts';
import { eventually } from '../support/eventually.ts';
import { tempDirectories } from '../support/files.ts';
import { needs } from '../support/parts.ts';

type Step = { readonly step: string; readonly succeeded: boolean; readonly error?: string; readonly data: object };
type Outcome = { readonly status: number; readonly succeeded: boolean; readonly logs?: string; readonly steps: Step[] };

/** What the step of the CPU mask read from /proc. */
interface PinnedStep {
  readonly pinned: boolean;
  readonly mask: string;
  readonly node: string;
  readonly vcpus: readonly { readonly tid: number; readonly cpus: string }[];
}

/** The data of a step. */
const dataOf = ({ steps }: Outcome, name: string): Record<string, unknown> => ({
  ...steps.find(({ step }) => step === name)?.data,
});

const DAEMONS: readonly DaemonName[] = ['webhook', 'scheduler-plugin', 'node-agent'];
const STEPS = ['rejected', 'installed', 'placed', 'switched', 'pinned', 'dpu-dead', 'dpu-back'];

/** Of a machine's own Open vSwitch, while that runs. */
const OWN_SWITCH = '/var/run/openvswitch/ovs-vswitchd.pid';

const INSTALLATION = join(tmpdir(), 'plumbline-installation-');

const COMMAND = join(root, 'dist/plumbline.mjs');

/** Where the daemons' programs are, and what stands in for them here. */
const PROGRAMS = [join(root, 'dist/'), INSTALLATION];

/** An installation of the command with another program instead of a daemon. */
function installationWith(daemon: string, program: string): string {
  const directory = mkdtempSync(INSTALLATION);
  mkdirSync(join(directory, 'dist'));
  symlinkSync(join(root, 'manifests'), join(directory, 'manifests'));
  for (const file of readdirSync(join(root, 'dist'))) {
    if (file === 'plumbline.mjs') copyFileSync(join(root, 'dist', file), join(directory, 'dist', file));
    else symlinkSync(file === `${daemon}.cjs` ? program : join(root, 'dist', file), join(directory, 'dist', file));
  }
  return directory;
}

/** Runs the demo as its user does, and reads its JSON document. */
function run(program: string, ...args: string[]): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    execFile(program, args, (error, stdout, stderr) => {
      try {
        const document = JSON.parse(stdout) as Omit<Outcome, 'status'>;
        resolve({ ...document, status: typeof error?.code === 'number' ? error.code : 0 });
      } catch {
        reject(new Error(`no JSON document: ${stdout}${stderr}`));
      }
    });
  });
}

/** Processes that run a program of this checkout: a bundle, or what stands in for one here. */
function leftovers(): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
      } catch {
        return '';
      }
    })
    .filter((line) => PROGRAMS.some((folder) => line.includes(folder)));
}

describe('the demo', function () {
  needs('linux');
  this.timeout(300_000);
  const temp = tempDirectories();
  before(() => buildOnce());

  it('passes every step and leaves no process behind', async () => {
    const outcome = await run(process.execPath, COMMAND, 'demo', '--json');
    const { status, succeeded, steps } = outcome;
    const failed = steps.filter((step) => !step.succeeded);
    assert.deepEqual([failed, status, succeeded, steps.map(({ step }) => step)], [[], 0, true, STEPS]);
    const tooMany = /SMT Alignment Error: requested 9 cpus not multiple cpus per core = 2/;
    assert.match(String(dataOf(outcome, 'rejected')['message']), tooMany);
    const placed = dataOf(outcome, 'placed');
    assert.deepEqual([placed['node'], placed['cells']], ['numa1', [1]]);
    const { pinned, mask, node, vcpus } = dataOf(outcome, 'pinned') as unknown as PinnedStep;
    for (const { tid } of vcpus) assert.ok(!existsSync(`/proc/${tid}`), 'the guest has ended');
    assert.deepEqual([pinned, node, vcpus.map(({ cpus }) => cpus).join(':')], [true, 'smt-off', mask]);
    const reason = String(dataOf(outcome, 'dpu-dead')['reason']);
    assert.match(reason, /DPU not ready: dead, last renewal [-\d]+T[:\d]+Z/);
    // A process of another test file may be ending.
    await eventually(() => leftovers().length === 0, 'no process is left').catch(() => undefined);
    assert.deepEqual(leftovers(), []);
  });

  it('--write-kubeconfig: replaces that of a demo which was killed, and not that of one which runs', async () => {
    const listener = createServer().listen(0, '127.0.0.1');
    await once(listener, 'listening');
    const { port } = listener.address() as AddressInfo;
    const path = join(temp(), 'config');
    writeFileSync(path, kubeconfig({ server: `https://127.0.0.1:${port}`, ca: 'x', token: 't' }));
    await assert.rejects(requireNew(path), /is not overwritten/);
    listener.close();
    await once(listener, 'close');
    await requireNew(path);
    assert.ok(!existsSync(path));
  });

  it('closing its terminal ends it and all it started, and removes the kubeconfig', async () => {
    const path = join(temp(), 'config');
    const args = [COMMAND, 'demo', '--keep', '--write-kubeconfig', path];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    const ended = once(child, 'exit');
    await eventually(() => existsSync(path) || child.exitCode !== null, 'the kubeconfig', 120);
    child.stdout.destroy();
    child.stderr.destroy();
    child.kill('SIGHUP');
    await ended;
    assert.deepEqual([existsSync(path), leftovers()], [false, []]);
  });

  for (const [daemon, name] of [
    ['webhook', 'webhook'],
    // A machine's own Open vSwitch is used instead; the stand-in is one program for both daemons, and either may end first.
    ...(existsSync(OWN_SWITCH) ? [] : [['ovs-stand-in', 'ovs(?:db-server|-vswitchd)'] as const]),
  ] as const) {
    it(`shows why a process that it started has ended: ${daemon}`, () => {
      const program = join(temp(), 'broken.cjs');
      writeFileSync(program, 'throw new Error("Cannot find package \'koffi\'");\n');
      const directory = installationWith(daemon, program);
      const args = [join(directory, 'dist/plumbline.mjs'), 'demo'];
      const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
      rmSync(directory, { recursive: true });
      const [, line = ''] = /(\S+ ended with status 1: .*; its log: )/.exec(stdout + stderr) ?? [];
      assert.match(line, new RegExp(`^${name} ended with status 1: Error: Cannot find package 'koffi'; its log: $`));
      assert.equal(status, 1);
      const [, logs] = /its log: (\S+)\/[^/]+\.log/.exec(stdout + stderr) ?? [];
      if (logs !== undefined) rmSync(logs, { recursive: true, force: true });
    });
  }

  it('--write-kubeconfig: at the end it removes its own file, and not one that replaced it', async () => {
    const folder = temp();
    const own = join(folder, 'own');
    const removeOwn = await createNewFile(own, Buffer.from('demo'));
    assert.deepEqual([readFileSync(own, 'utf8'), statSync(own).mode & 0o777], ['demo', 0o600]);
    await assert.rejects(createNewFile(own, Buffer.from('other')), /own exists, and is not overwritten/);
    await removeOwn();
    const replaced = join(folder, 'replaced');
    const removeReplaced = await createNewFile(replaced, Buffer.from('demo'));
    writeFileSync(join(folder, 'mine'), 'mine');
    renameSync(join(folder, 'mine'), replaced);
    await removeReplaced();
    assert.deepEqual(readdirSync(folder), ['replaced']);
  });

  it('--keep: leaves a cluster in which doctor finds no problem', async () => {
    const child = spawn(process.execPath, [COMMAND, 'demo', '--keep'], { stdio: ['ignore', 'pipe', 'inherit'] });
    const ended = once(child, 'exit');
    let text = '';
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    try {
      const isReady = () => text.includes('Ctrl-C stops it') || child.exitCode !== null;
      await eventually(isReady, 'the cluster', 120);
      const [, kubeconfig = ''] = /^\s*export KUBECONFIG=(\S+)/m.exec(text) ?? [];
      const env = { ...process.env, KUBECONFIG: kubeconfig };
      const doctor = promisify(execFile)(process.execPath, [COMMAND, 'doctor', '--watch', '5'], { env });
      // A machine's own Open vSwitch knows none of the demo's networks, and says so.
      if (existsSync(OWN_SWITCH))
        assert.match((await doctor.catch(({ stdout }) => ({ stdout }))).stdout, /NetworkMapAgrees/);
      else assert.match((await doctor).stdout, /no problems found; 1 check skipped\n$/);
      const log = readFileSync(join(dirname(kubeconfig), 'scheduler-plugin.log'), 'utf8');
      const [, probePort] = /"probePort":(\d+)/.exec(log) ?? [];
      const predictions = (result: string) =>
        readMetric(Number(probePort), 'plumbline_extender_predictions_total', { result });
      assert.ok((await predictions('as_predicted')) > 0);
      assert.deepEqual([await predictions('other_cpus'), await predictions('rejected')], [0, 0]);
    } finally {
      child.kill('SIGTERM');
      await ended;
    }
  });

  it('pins real threads on a machine with a single CPU, too', async () => {
    const only = String((await machineCpus()).first);
    const outcome = await run('taskset', '--cpu-list', only, process.execPath, COMMAND, 'demo', '--json');
    const { pinned, mask, vcpus } = dataOf(outcome, 'pinned') as unknown as PinnedStep;
    const cpus = vcpus.map((vcpu) => vcpu.cpus);
    assert.deepEqual([outcome.succeeded, pinned, mask, cpus], [true, true, `${only}:${only}`, [only, only]]);
  });

  it('fails if any one daemon is replaced by a process that is ready and does nothing', async () => {
    const program = join(import.meta.dirname, 'daemon-stand-in.cjs');
    const installations = DAEMONS.map((daemon) => installationWith(daemon, program));
    const outcomes = await Promise.all(
      installations.map((directory) => run(process.execPath, join(directory, 'dist/plumbline.mjs'), 'demo', '--json')),
    );
    for (const directory of installations) rmSync(directory, { recursive: true });
    for (const [index, { status, succeeded, steps, logs }] of outcomes.entries()) {
      assert.ok(logs !== undefined && readdirSync(logs).includes('webhook.log'), 'keeps the logs and says where');
      rmSync(logs, { recursive: true });
      assert.deepEqual([status, succeeded], [1, false], `with ${DAEMONS[index]} replaced`);
      const isNamed = steps.some((step) => !step.succeeded && step.error);
      assert.ok(isNamed, 'names what did not hold');
    }
    assert.deepEqual(leftovers(), []);
  });
});
