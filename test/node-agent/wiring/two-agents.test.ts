import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { freePort } from '../../real/processes.ts';
import { eventually, tempDirectories } from '../support.ts';
import { type AgentProcess, FROM_SOURCE, startAgentProcess, writeKubeconfig } from './agent-process.ts';

/** Seconds from the end of one agent to the work of the next. */
const TAKEOVER_SECONDS = 5;

describe('two agents on one node', function () {
  this.timeout(300_000);
  const temp = tempDirectories();
  const started: AgentProcess[] = [];
  let directory: string;

  beforeEach(() => {
    directory = temp();
    writeKubeconfig(directory);
  });
  afterEach(() => {
    for (const agent of started.splice(0)) agent.process.kill('SIGKILL');
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
    const agent = startAgentProcess([...FROM_SOURCE, ...flags, ...kubeconfig, ...places]);
    started.push(agent);
    await eventually(() => agent.line('agent started') !== undefined, 'started');
    return agent;
  };
  const accepts = () =>
    new Promise<boolean>((resolve) => {
      const connection = createConnection(socket());
      connection.on('connect', () => resolve(true)).on('error', () => resolve(false));
      connection.on('connect', () => connection.destroy());
    });
  const inode = () => (existsSync(socket()) ? statSync(socket()).ino : undefined);

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
      const problem = `another agent runs on this node: process ${first.process.pid} has locked ${directory}/state-dir/agent.lock`;
      assert.equal(second.line('waiting for the other agent to end')?.['reason'], problem);
      if (!samePort) assert.equal((await second.probe('/readyz')).body, `${problem}\n`);
      assert.equal(inode(), before, 'the first one’s socket is untouched');
      const begun = performance.now();
      first.process.kill(signal);
      await once(first.process, 'exit');
      await eventually(accepts, 'the second one listens');
      assert.ok(performance.now() - begun < TAKEOVER_SECONDS * 1000);
      const readiness = () => second.probe('/readyz', samePort ? port : undefined);
      await eventually(async () => !(await readiness()).body.includes('another agent'), 'it works');
    });
  }

  it('the second one ends on request while it waits, and leaves the first one’s socket', async () => {
    const first = await start(0);
    await eventually(accepts, 'the first one listens');
    const second = await start(0);
    const before = inode();
    assert.equal(await second.stop(), 0);
    assert.equal(inode(), before);
    assert.equal(await accepts(), true);
    assert.equal(first.process.exitCode, null);
  });
});
