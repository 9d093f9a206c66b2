import assert from 'node:assert/strict';
import { join } from 'node:path';
import { kubeconfig } from '../sandbox/cluster/identities.ts';
import { startApi } from './kube/api-fixture.ts';
import { type DaemonProcess, fromSource, startDaemonProcess } from './support/daemon-process.ts';
import { eventually } from './support/eventually.ts';
import { tempDirectories, writeTree } from './support/files.ts';

describe('the extender as a process', function () {
  this.timeout(300_000);
  const temp = tempDirectories();
  let extender: DaemonProcess;
  afterEach(() => extender.process.kill('SIGKILL'));

  it('is ready once it has the lists of the API server, and exits with 0 on SIGTERM', async () => {
    const { server, stop } = await startApi();
    const folder = temp();
    writeTree(folder, { kubeconfig: kubeconfig({ server: server.url, ca: server.ca, token: 'admin-token' }) });
    const flags = ['--port', '0', '--probe-host', '127.0.0.1', '--probe-port', '0'];
    const access = ['--kubeconfig', join(folder, 'kubeconfig')];
    extender = startDaemonProcess([...fromSource('scheduler-plugin/main.ts'), ...flags, ...access]);
    await eventually(() => extender.line('serving') !== undefined, 'it serves');
    await eventually(async () => (await extender.probe('/readyz')).status === 200, 'ready');
    assert.equal(await extender.stop(), 0);
    await stop();
  });
});
