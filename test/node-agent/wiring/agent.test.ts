import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, statSync } from 'node:fs';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { createAgent } from '../../../node-agent/wiring/agent.ts';
import { parseNodeAgentConfig } from '../../../node-agent/wiring/config.ts';
import { type DaemonProcess, startDaemonProcess } from '../../support/daemon-process.ts';
import { freePort } from '../../support/processes.ts';
import { eventually, recordingLogger, tempDirectories } from '../support.ts';
import { FROM_SOURCE, placesIn, writeKubeconfig } from './agent-stage.ts';

/** Seconds from the end of one agent to the work of the next. */
const TAKEOVER_SECONDS = 5;

describe('two agents on one node', function () {
  this.timeout(300_000);
  const temp = tempDirectories();
  const started: DaemonProcess[] = [];
  let directory: string;

  beforeEach(() => {
    directory = temp();
  });
  afterEach(() => {
    for (const agent of started.splice(0)) agent.process.kill('SIGKILL');
  });

  const socket = () => join(directory, 'run/plumbline/gate.sock');
  const start = async (port: number) => {
    const flags = ['--mode', 'dpu-host', '--node-name', 'n1', '--gate', 'on', '--probe-port', String(port)];
    const kubeconfig = ['--kubeconfig', writeKubeconfig(directory)];
    const agent = startDaemonProcess([...FROM_SOURCE, ...flags, ...kubeconfig, ...placesIn(directory)]);
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
      const problem = `another agent runs on this node: process ${first.process.pid} has locked ${directory}/var/lib/plumbline/agent.lock`;
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

describe('an agent in this process without an API server', () => {
  const temp = tempDirectories();
  let stop: (() => Promise<void>) | undefined;
  afterEach(async () => {
    await stop?.();
    stop = undefined;
  });

  const start = async (...flags: string[]) => {
    const directory = temp();
    const common = ['--node-name', 'n1', '--probe-port', '0', '--probe-host', '127.0.0.1'];
    const kubeconfig = ['--kubeconfig', writeKubeconfig(directory)];
    const logged = recordingLogger();
    const config = parseNodeAgentConfig([...common, ...kubeconfig, ...placesIn(directory), ...flags]);
    const agent = await createAgent(config, logged.log, 'none');
    await agent.start();
    stop = () => agent.stop();
    const port = logged.lines.find(({ msg }) => msg === 'agent started')?.['probePort'];
    const get = async (path: string) => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { connection: 'close' } });
      return [response.status, await response.text()] as const;
    };
    return { logged, get };
  };

  it('is ready and logs that it has nothing to do', async () => {
    const { logged, get } = await start('--mode', 'dpu', '--dpu-node-lease-renew-interval', '0');
    assert.ok(logged.said('DPU health check off; nothing to do in this mode'));
    assert.deepEqual(logged.lines.at(-1)?.['duties'], []);
    assert.deepEqual(await get('/readyz'), [200, 'ok\n']);
    assert.equal((await get('/ovs'))[0], 404);
    assert.equal((await get('/vms'))[0], 404);
  });

  it('is not ready with failed duties, which it names and counts', async () => {
    const { get } = await start('--mode', 'dpu-host', '--vm-pinning', 'off');
    const failed = 'waiting to restart failed duties: assignments, networks, device-plugin\n';
    await eventually(async () => (await get('/readyz'))[1] === failed, 'not ready');
    assert.equal((await get('/readyz'))[0], 503);
    // A duty runs for a moment each time it is restarted.
    for (const metric of [
      /plumbline_duty_running\{duty="networks"\} 0/,
      /plumbline_duty_failures_total\{duty="networks"\} [1-9]/,
      /plumbline_duty_running\{duty="report"\} 1/,
    ])
      await eventually(async () => metric.test((await get('/metrics'))[1]), String(metric));
    assert.equal((await get('/vms'))[0], 404);
  });
});
