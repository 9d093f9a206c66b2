import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { createConnection, createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { endsWithUs } from '../../support/children.ts';
import { eventually, tempDirectories } from '../support.ts';
import { writeKubeconfig } from './kubeconfig.ts';

const MAIN = join(import.meta.dirname, '../../../node-agent/main.ts');
/** Seconds from the end of one agent to the work of the next. */
const TAKEOVER_SECONDS = 5;

type Line = Readonly<Record<string, unknown>>;

describe('two agents on one node', function () {
  this.timeout(300_000);
  const temp = tempDirectories();
  const started: ChildProcess[] = [];
  let directory: string;

  beforeEach(() => {
    directory = temp();
    writeKubeconfig(directory);
  });
  afterEach(() => {
    for (const child of started.splice(0)) child.kill('SIGKILL');
  });

  const socket = () => join(directory, 'run-dir/gate.sock');
  const start = async (port: number) => {
    const names = ['kubelet-dir', 'state-dir', 'run-dir', 'ovs-rundir', 'sysfs-root', 'cgroup-root'];
    const places = [...names, 'cni-conf-dir', 'cni-bin-dir'].flatMap((name) => {
      mkdirSync(join(directory, name), { recursive: true });
      return [`--${name}`, join(directory, name)];
    });
    const flags = ['--mode', 'dpu-host', '--node-name', 'n1', '--gate', 'on', '--probe-port', String(port)];
    const kubeconfig = ['--kubeconfig', join(directory, 'kubeconfig')];
    const command = ['--import', 'tsx', MAIN, ...flags, ...kubeconfig, ...places];
    const child = spawn(process.execPath, command, { stdio: ['ignore', 'ignore', 'pipe'] });
    endsWithUs(child);
    started.push(child);
    const lines: Line[] = [];
    createInterface({ input: child.stderr }).on('line', (line) => lines.push(JSON.parse(line)));
    await eventually(() => lines.some(({ msg }) => msg === 'agent started'), 'started');
    const line = (text: string) => lines.find(({ msg }) => msg === text);
    return { child, line, port: Number(line('agent started')?.['probePort']) };
  };
  const ready = async (port: number) =>
    (await fetch(`http://127.0.0.1:${port}/readyz`, { headers: { connection: 'close' } })).text();
  const accepts = () =>
    new Promise<boolean>((resolve) => {
      const connection = createConnection(socket());
      connection.on('connect', () => resolve(true)).on('error', () => resolve(false));
      connection.on('connect', () => connection.destroy());
    });
  const inode = () => (existsSync(socket()) ? statSync(socket()).ino : undefined);
  const freePort = async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    await new Promise((resolve) => server.close(resolve));
    return port;
  };

  const rows: [what: string, signal: NodeJS.Signals, samePort: boolean][] = [
    ['is stopped', 'SIGTERM', false],
    ['is killed and had the probes’ port', 'SIGKILL', true],
  ];
  for (const [what, signal, samePort] of rows) {
    it(`the second one waits, names the first one, and takes over when that ${what}`, async () => {
      const port = samePort ? await freePort() : 0;
      const first = await start(port);
      await eventually(accepts, 'the first one listens');
      const before = inode();
      const second = await start(port);
      await eventually(() => second.line('waiting for the other agent to end') !== undefined, 'it waits');
      const problem = `another agent runs on this node: process ${first.child.pid} has locked ${directory}/state-dir/agent.lock`;
      assert.equal(second.line('waiting for the other agent to end')?.['reason'], problem);
      if (!samePort) assert.equal(await ready(second.port), `${problem}\n`);
      assert.equal(inode(), before, 'the first one’s socket is untouched');
      const begun = performance.now();
      first.child.kill(signal);
      await once(first.child, 'exit');
      await eventually(accepts, 'the second one listens');
      assert.ok(performance.now() - begun < TAKEOVER_SECONDS * 1000);
      await eventually(async () => !(await ready(samePort ? port : second.port)).includes('another agent'), 'it works');
    });
  }

  it('the second one ends on request while it waits, and leaves the first one’s socket', async () => {
    const first = await start(0);
    await eventually(accepts, 'the first one listens');
    const second = await start(0);
    const before = inode();
    second.child.kill('SIGTERM');
    assert.deepEqual(await once(second.child, 'exit'), [0, null]);
    assert.equal(inode(), before);
    assert.equal(await accepts(), true);
    assert.equal(first.child.exitCode, null);
  });
});
