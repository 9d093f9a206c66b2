import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createAgent } from '../../../node-agent/wiring/agent.ts';
import { parseNodeAgentConfig } from '../../../node-agent/wiring/config.ts';
import { eventually, recordingLogger, tempDirectories } from '../support.ts';
import { writeKubeconfig } from './agent-process.ts';

describe('an agent in this process without an API server', () => {
  const temp = tempDirectories();
  let stop: (() => Promise<void>) | undefined;
  afterEach(async () => {
    await stop?.();
    stop = undefined;
  });

  const start = async (...flags: string[]) => {
    const directory = temp();
    const kubeconfig = writeKubeconfig(directory);
    const places = ['kubelet-dir', 'state-dir', 'ovs-rundir', 'sysfs-root', 'cgroup-root'].flatMap((name) => {
      mkdirSync(join(directory, name));
      return [`--${name}`, join(directory, name)];
    });
    // Never the default paths, which belong to this machine.
    const gate = ['--run-dir', directory];
    const common = ['--node-name', 'n1', '--kubeconfig', kubeconfig, '--probe-port', '0', '--probe-host', '127.0.0.1'];
    const logged = recordingLogger();
    const agent = await createAgent(
      parseNodeAgentConfig([...common, ...places, ...gate, ...flags]),
      logged.log,
      'none',
    );
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
    const [, metrics] = await get('/metrics');
    assert.match(metrics, /plumbline_duty_running\{duty="networks"\} 0/);
    assert.match(metrics, /plumbline_duty_failures_total\{duty="networks"\} [1-9]/);
    assert.match(metrics, /plumbline_duty_running\{duty="heartbeat"\} 1/);
    assert.equal((await get('/vms'))[0], 404);
  });
});
