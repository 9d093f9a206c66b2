import assert from 'node:assert/strict';
import { get } from 'node:http';
import { NODE_TOPOLOGY_API } from '../../kube/node-topology.ts';
import { parseSchedulerPluginConfig } from '../../scheduler-plugin/wiring/config.ts';
import { createSchedulerPlugin } from '../../scheduler-plugin/wiring/daemon.ts';
import { type ApiFixture, startApi } from '../kube/api-fixture.ts';
import { eventually } from '../support/eventually.ts';
import { recordingLogger } from '../support/logger.ts';
import { podOf, statusOf, withUid } from './extender-fixture.ts';

const NAMESPACE = 'plumbline-system';
const LEASES = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`;
const REPORTS = `/apis/${NODE_TOPOLOGY_API.apiVersion}/${NODE_TOPOLOGY_API.plural}`;
/** The status of GET /explain for a host. */
function statusFor(port: number, host: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path: '/explain', headers: { host } }, (response) => {
      response.resume();
      resolve(response.statusCode);
    }).on('error', reject);
  });
}
type Probe = { readonly probe: (path: string) => Promise<string> };
describe('the extender as a daemon', function () {
  this.timeout(300_000);
  let api: ApiFixture;

  before(async () => {
    api = await startApi();
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } };
    await api.client.create('/api/v1/namespaces', namespace);
    const { apiVersion, kind } = NODE_TOPOLOGY_API;
    const metadata = { name: 'n1' };
    await api.client.create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata });
    await api.client.create(REPORTS, { apiVersion, kind, metadata });
    await api.client.patch(`${REPORTS}/n1/status`, 'application/merge-patch+json', { status: statusOf() });
  });
  after(() => api.stop());

  const start = async (...flags: string[]) => {
    const logged = recordingLogger();
    const own = ['--port', '0', '--probe-host', '127.0.0.1', '--probe-port', '0'];
    const files = ['--kubeconfig', api.kubeconfig];
    const daemon = await createSchedulerPlugin(parseSchedulerPluginConfig([...own, ...files, ...flags]), logged.log);
    await daemon.start();
    const serving = logged.lines.find(({ msg }) => msg === 'serving');
    return {
      daemon,
      lines: logged.lines,
      port: Number(serving?.['port']),
      probe: async (path: string) => {
        const answer = await fetch(`http://127.0.0.1:${serving?.['probePort']}${path}`);
        return `${answer.status} ${(await answer.text()).trim()}`;
      },
    };
  };
  const ready = ({ probe }: Probe) =>
    eventually(async () => (await probe('/readyz')).startsWith('200'), 'it to be ready');
  const metric = async ({ probe }: Probe, name: string) =>
    (await probe('/metrics')).split('\n').find((line) => line.startsWith(name) && !line.startsWith('#'));
  const callOf = (node: string, uid: string) =>
    JSON.stringify({ Pod: withUid(podOf('4'), uid), Nodes: null, NodeNames: [node] });
  const call = callOf('n2', 'waits');
  const ask = (url: string, body = call) =>
    fetch(url, body === '' ? {} : { method: 'POST', body }).then(
      async (answer) => `${answer.status} ${await answer.text()}`,
      () => 'refused',
    );

  it('in the pod of a kube-scheduler: answers over HTTP, and is active while the scheduler’s Lease names the pod', async () => {
    const one = await start('--pod-name', 'sched-1');
    await ready(one);
    const url = `http://127.0.0.1:${one.port}`;
    assert.match(await ask(`${url}/filter`), /^200 .*"FailedAndUnresolvableNodes":\{"n2":"node is not known yet"\}/);
    assert.match(await ask(`${url}/explain`, ''), /^200 [\s\S]*"active": false/);
    assert.equal(await ask(`http://127.0.0.2:${one.port}/filter`), 'refused', 'it serves 127.0.0.1 alone');
    const statuses = [await statusFor(one.port, 'other.example'), await statusFor(one.port, 'localhost:9999')];
    assert.deepEqual(statuses, [421, 200], 'by the host of the request');
    assert.match(await ask(`${url}/filter`, callOf('n1', 'placed')), /^200 .*"NodeNames":\["n1"\]/);
    assert.equal(await metric(one, 'plumbline_extender_active'), 'plumbline_extender_active 0');
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'plumbline-scheduler' } };
    const spec = { holderIdentity: 'sched-1_abc', leaseDurationSeconds: 60 };
    await api.client.create(LEASES, { ...lease, spec });
    const isActive = async () => (await metric(one, 'plumbline_extender_active')) === 'plumbline_extender_active 1';
    await eventually(isActive, 'it to be active');
    assert.match(await ask(`${url}/explain`, ''), /"active": true/);
    // One pod waits, and one has a reservation.
    assert.equal(await metric(one, 'plumbline_extender_waiting_pods'), 'plumbline_extender_waiting_pods 1');
    for (const kind of ['unbound', 'all']) {
      const name = `plumbline_extender_reservations{kind="${kind}"}`;
      assert.equal(await metric(one, name), `${name} 1`);
    }
    assert.ok(one.lines.every(({ level }) => Number(level) < 40));
    await one.daemon.stop();
    assert.equal(await ask(`${url}/filter`), 'refused');
  });
});

describe('the settings of the extender', () => {
  it('serve on loopback, follow the Lease of plumbline-scheduler, and count unpredictable nodes by default', () => {
    const { schedulerLease, host, port, unpredictable } = parseSchedulerPluginConfig([]);
    assert.deepEqual(
      [schedulerLease, host, port, unpredictable],
      ['plumbline-system/plumbline-scheduler', '127.0.0.1', 8082, 'count-check'],
    );
  });

  for (const host of ['0.0.0.0', '::', '127.0.0.1.example.org'])
    it(`refuse --host ${host}, because clients outside its pod could reach it`, () => {
      assert.throws(() => parseSchedulerPluginConfig(['--host', host]), /--host .*expected a loopback address/);
    });

  for (const [flag, least, most] of [
    ['--port', 0, 65_535],
    ['--probe-port', 0, 65_535],
    ['--answers', 1, 1000],
    ['--reservation-timeout', 1, 3600],
  ] as const)
    it(`${flag} is a number from ${least} to ${most}`, () => {
      for (const value of [least, most]) assert.doesNotThrow(() => parseSchedulerPluginConfig([flag, `${value}`]));
      for (const value of [least - 1, most + 1, 'x'])
        assert.throws(() => parseSchedulerPluginConfig([flag, `${value}`]), new RegExp(flag));
    });

  for (const [flag, texts, message] of [
    ['--dpu-exempt', ['*'], /is not a namespace, nor the beginning of names \(name\*\)/],
    ['--scheduler-lease', ['plumbline-scheduler', 'a/b/c', 'Plumbline/x'], /expected <namespace>\/<name>/],
  ] as const)
    for (const text of texts)
      it(`refuse ${flag} ${text.slice(0, 20)} and name the expected form`, () =>
        assert.throws(() => parseSchedulerPluginConfig([flag, text]), message));
});
