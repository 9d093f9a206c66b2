import assert from 'node:assert/strict';
import { startApi } from './kube/api-fixture.ts';
import { type DaemonProcess, fromSource, startDaemonProcess } from './support/daemon-process.ts';
import { eventually } from './support/eventually.ts';

describe('the extender as a process', function () {
  this.timeout(300_000);
  let extender: DaemonProcess;
  afterEach(() => extender.process.kill('SIGKILL'));

  it('is ready once it has the lists of the API server, and exits with 0 on SIGTERM', async () => {
    const { kubeconfig, stop } = await startApi();
    const flags = ['--port', '0', '--probe-host', '127.0.0.1', '--probe-port', '0'];
    extender = startDaemonProcess([...fromSource('scheduler-plugin/main.ts'), ...flags, '--kubeconfig', kubeconfig]);
    await eventually(() => extender.line('serving') !== undefined, 'it serves');
    await eventually(async () => (await extender.probe('/readyz')).status === 200, 'ready');
    assert.equal(await extender.stop(), 0);
    await stop();
  });
});
