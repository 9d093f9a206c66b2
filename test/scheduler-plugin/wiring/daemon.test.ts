import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, fetch as send } from 'undici';
import { NODE_TOPOLOGY_API } from '../../../kube/node-topology.ts';
import { SERVICE } from '../../../model/names.ts';
import type { Daemon } from '../../../runtime/daemon.ts';
import { kubeconfig } from '../../../sandbox/api-server/kubeconfig.ts';
import { createCertificateAuthority } from '../../../sandbox/certificates.ts';
import { parseSchedulerPluginConfig } from '../../../scheduler-plugin/wiring/config.ts';
import { createSchedulerPlugin } from '../../../scheduler-plugin/wiring/daemon.ts';
import { type ApiFixture, startApi } from '../../kube/api-fixture.ts';
import { eventually } from '../../support/eventually.ts';
import { recordingLogger } from '../../support/logger.ts';
import { podOf, statusOf, withUid } from '../extender-fixture.ts';

const NAMESPACE = 'plumbline-system';
const LEASES = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`;
const SLICE = `/apis/discovery.k8s.io/v1/namespaces/${NAMESPACE}/endpointslices/${SERVICE}`;
const REPORTS = `/apis/${NODE_TOPOLOGY_API.apiVersion}/${NODE_TOPOLOGY_API.plural}`;
const PODS = '/api/v1/namespaces/default/pods';
const TOKEN = 'admin-token';

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

interface Running {
  readonly daemon: Daemon;
  readonly port: number;
  readonly lines: readonly Record<string, unknown>[];
  probe(path: string): Promise<string>;
}

describe('the extender as a daemon', function () {
  this.timeout(300_000);
  const authority = createCertificateAuthority('extender');
  let folder: string;
  let api: ApiFixture;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'plumbline-extender-'));
    api = await startApi();
    const { cert, key } = authority.issue(['localhost', '127.0.0.1']);
    await writeFile(join(folder, 'tls.crt'), cert);
    await writeFile(join(folder, 'tls.key'), key);
    await writeFile(join(folder, 'ca.crt'), authority.cert);
    await writeFile(
      join(folder, 'kubeconfig'),
      kubeconfig({ server: api.server.url, ca: api.server.ca, token: TOKEN }),
    );
    await api.client.create('/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: NAMESPACE },
    });
    const { apiVersion, kind } = NODE_TOPOLOGY_API;
    const metadata = { name: 'n1' };
    await api.client.create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata });
    await api.client.create(REPORTS, { apiVersion, kind, metadata });
    await api.client.patch(`${REPORTS}/n1/status`, 'application/merge-patch+json', { status: statusOf() });
  });
  after(async () => {
    await api.stop();
    await rm(folder, { recursive: true });
  });

  const start = async (...flags: string[]): Promise<Running> => {
    const logged = recordingLogger();
    const own = ['--port', '0', '--probe-host', '127.0.0.1', '--probe-port', '0'];
    const files = ['--kubeconfig', join(folder, 'kubeconfig')];
    const daemon = await createSchedulerPlugin(parseSchedulerPluginConfig([...own, ...files, ...flags]), logged.log);
    await daemon.start();
    const serving = logged.lines.find(({ msg }) => msg === 'serving');
    return {
      daemon,
      lines: logged.lines,
      port: Number(serving?.['port']),
      probe: async (path) => {
        const answer = await fetch(`http://127.0.0.1:${serving?.['probePort']}${path}`);
        return `${answer.status} ${(await answer.text()).trim()}`;
      },
    };
  };
  const ready = ({ probe }: Running) =>
    eventually(async () => (await probe('/readyz')).startsWith('200'), 'it to be ready');
  const metric = async ({ probe }: Running, name: string) =>
    (await probe('/metrics')).split('\n').find((line) => line.startsWith(name) && !line.startsWith('#'));
  const callOf = (node: string, uid: string) =>
    JSON.stringify({ Pod: withUid(podOf('4'), uid), Nodes: null, NodeNames: [node] });
  const call = callOf('n2', 'waits');
  const ask = (url: string, dispatcher?: Agent, body: string | undefined = call) =>
    send(url, {
      ...(body === '' ? {} : { method: 'POST', body }),
      ...(dispatcher === undefined ? {} : { dispatcher }),
    }).then(
      async (answer) => `${answer.status} ${await answer.text()}`,
      () => 'refused',
    );

  it('in the pod of a kube-scheduler: answers over HTTP, and is active while the scheduler’s Lease names the pod', async () => {
    const one = await start('--pod-name', 'sched-1', '--namespace', 'nowhere');
    await ready(one);
    const url = `http://127.0.0.1:${one.port}`;
    assert.match(await ask(`${url}/filter`), /^200 .*"FailedAndUnresolvableNodes":\{"n2":"node is not known yet"\}/);
    assert.match(await ask(`${url}/explain`, undefined, ''), /^200 [\s\S]*"active": false/);
    assert.equal(await ask(`http://127.0.0.2:${one.port}/filter`), 'refused', 'it serves 127.0.0.1 alone');
    assert.match(await ask(`${url}/filter`, undefined, callOf('n1', 'placed')), /^200 .*"NodeNames":\["n1"\]/);
    assert.equal(await metric(one, 'plumbline_extender_active'), 'plumbline_extender_active 0');
    await api.client.create(LEASES, {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'plumbline-scheduler' },
      spec: { holderIdentity: 'sched-1_abc', leaseDurationSeconds: 60 },
    });
    await eventually(
      async () => (await metric(one, 'plumbline_extender_active')) === 'plumbline_extender_active 1',
      'it to be active',
    );
    assert.match(await ask(`${url}/explain`, undefined, ''), /"active": true/);
    // One pod waits, and one has a reservation.
    assert.equal(await metric(one, 'plumbline_extender_waiting_pods'), 'plumbline_extender_waiting_pods 1');
    for (const kind of ['unbound', 'all']) {
      const name = `plumbline_extender_reservations{kind="${kind}"}`;
      assert.equal(await metric(one, name), `${name} 1`);
    }
    assert.deepEqual(
      one.lines.filter(({ level }) => Number(level) >= 40),
      [],
    );
    await one.daemon.stop();
    assert.equal(await ask(`${url}/filter`), 'refused');
  });

  it('behind a Service: answers clients with a certificate, leads, publishes itself, explains and hands over', async () => {
    const explains = await freePort();
    const certificates = ['tls.crt', 'tls.key', 'ca.crt'].map((name) => join(folder, name));
    const [cert = '', key = '', ca = ''] = certificates;
    const one = await start(
      ...['--mode', 'service', '--host', '127.0.0.1', '--cert-file', cert, '--key-file', key, '--client-ca-file', ca],
      ...['--client-names', 'sched', '--explain-address', `127.0.0.1:${explains}`],
      ...['--pod-ip', '10.0.0.7', '--pod-name', 'ext-1', '--node-name', 'node-1'],
    );
    await ready(one);
    const known = new Agent({
      connect: { ca: authority.cert, ...authority.issue(['sched']), servername: 'localhost' },
    });
    const stranger = new Agent({ connect: { ca: authority.cert, servername: 'localhost' } });
    const other = new Agent({
      connect: { ca: authority.cert, ...authority.issue(['other']), servername: 'localhost' },
    });
    try {
      const url = `https://127.0.0.1:${one.port}`;
      await eventually(async () => !(await ask(`${url}/filter`, known)).includes('another replica'), 'it to answer');
      assert.match(await ask(`${url}/filter`, known), /^200 .*"n2":"node is not known yet"/);
      for (const agent of [stranger, other]) assert.match(await ask(`${url}/filter`, agent), /^(401|refused)/);
      assert.match(await ask(`http://127.0.0.1:${explains}/explain`, undefined, ''), /^200 [\s\S]*"active": true/);
      assert.match(await ask(`http://127.0.0.1:${explains}/filter`), /^404/);
      const addresses = async () =>
        ((await api.client.get(SLICE)) as { endpoints: { addresses: string[] }[] }).endpoints.flatMap(
          (endpoint) => endpoint.addresses,
        );
      const portOf = async () => ((await api.client.get(SLICE)) as { ports: { port: number }[] }).ports[0]?.port;
      await eventually(async () => (await addresses().catch(() => [])).length > 0, 'its endpoint');
      assert.deepEqual([await addresses(), await portOf()], [['10.0.0.7'], one.port]);
      const holder = async () =>
        ((await api.client.get(`${LEASES}/${SERVICE}`)) as { spec: { holderIdentity: string } }).spec.holderIdentity;
      assert.match(await holder(), /^ext-1_[0-9a-f]{8}$/);

      const pod = { apiVersion: 'v1', kind: 'Pod', ...podOf('4') };
      const made = await api.client.create(PODS, { ...pod, metadata: { name: 'promised', namespace: 'default' } });
      const { uid } = (made as { metadata: { uid: string } }).metadata;
      assert.match(await ask(`${url}/filter`, known, callOf('n1', uid)), /"NodeNames":\["n1"\]/);
      const stopped = one.daemon.stop();
      await eventually(async () => (await ask(`${url}/filter`, known)).includes('is stopping'), 'it to accept no pods');
      assert.match(await holder(), /^ext-1_/, 'it keeps its Lease while a pod has a reservation');
      await api.client.delete(`${PODS}/promised`);
      await stopped;
      assert.deepEqual([await holder(), await addresses()], ['', []]);
      assert.equal(await ask(`http://127.0.0.1:${explains}/explain`, undefined, ''), 'refused');
      assert.deepEqual(
        new Set(one.lines.flatMap(({ level, msg }) => (Number(level) >= 40 ? [msg] : []))),
        new Set(['connection closed: client certificate not allowed', 'extender call refused']),
      );
    } finally {
      await Promise.all([known, stranger, other].map((agent) => agent.destroy()));
    }
  });

  it('behind a Service without --client-ca-file: answers every client, and logs this at its start', async () => {
    const [cert = '', key = ''] = ['tls.crt', 'tls.key'].map((name) => join(folder, name));
    const one = await start(
      ...['--mode', 'service', '--cert-file', cert, '--key-file', key, '--client-ca-file', ''],
      ...['--explain-address', 'off', '--namespace', 'default'],
    );
    assert.ok(one.lines.some(({ msg }) => msg === 'client certificates not required: --client-ca-file is empty'));
    const anyone = new Agent({ connect: { ca: authority.cert, servername: 'localhost' } });
    try {
      await ready(one);
      const url = `https://127.0.0.1:${one.port}`;
      await eventually(async () => (await ask(`${url}/filter`, anyone)).includes('not known yet'), 'an answer');
      assert.ok(!one.lines.some(({ msg }) => msg === 'serving explanations'));
    } finally {
      await anyone.destroy();
      await one.daemon.stop();
    }
  });
});
