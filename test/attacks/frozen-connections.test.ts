import assert from 'node:assert/strict';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { NODE_TOPOLOGY_API } from '../../kube/node-topology.ts';
import { parseConfiguredContext } from '../../model/networks/context.ts';
import type { Daemon } from '../../runtime/daemon.ts';
import type { Logger } from '../../runtime/log.ts';
import { createCertificateAuthority } from '../../sandbox/certificates.ts';
import { kubeconfig } from '../../sandbox/cluster/identities.ts';
import { parseSchedulerPluginConfig } from '../../scheduler-plugin/wiring/config.ts';
import { createSchedulerPlugin } from '../../scheduler-plugin/wiring/daemon.ts';
import { parseWebhookConfig } from '../../webhook/config.ts';
import { createWebhook } from '../../webhook/daemon.ts';
import { type ApiFixture, startApi } from '../kube/api-fixture.ts';
import { podOf, statusOf, withUid } from '../scheduler-plugin/extender-fixture.ts';
import { tempDirectories, writeTree } from '../support/files.ts';
import { httpCall } from '../support/http-call.ts';
import { recordingLogger } from '../support/logger.ts';
import { listenOnLoopback } from '../support/processes.ts';
import { startVirtualTime, type VirtualTime } from '../support/virtual-time.ts';
import { podVector, requestFor } from '../webhook/launcher-fixture.ts';

const REPORTS = `/apis/${NODE_TOPOLOGY_API.apiVersion}/${NODE_TOPOLOGY_API.plural}`;
const PORTS = ['--port', '0', '--probe-host', '127.0.0.1', '--probe-port', '0'];

/** The status and the body of an answer. */
const textOf = async (answer: ReturnType<typeof httpCall>) => {
  const { status, text } = await answer;
  return `${status} ${text}`;
};

/** A TCP proxy whose connections can freeze without an error, as behind a failed load balancer. */
async function startFreezingProxy(targetPort: number) {
  const pairs = new Set<{ readonly client: Socket; readonly server: Socket }>();
  let isFrozen = false;
  const listener = createServer((client) => {
    const server = connect(targetPort, '127.0.0.1').on('error', () => undefined);
    const pair = { client: client.on('error', () => undefined), server };
    pairs.add(pair);
    client.once('close', () => {
      server.destroy();
      pairs.delete(pair);
    });
    if (isFrozen) return void client.resume();
    client.on('data', (bytes) => frozen.has(pair) || server.write(bytes));
    server.on('data', (bytes) => frozen.has(pair) || client.write(bytes));
    server.once('close', () => frozen.has(pair) || client.destroy());
  });
  const frozen = new Set<object>();
  return {
    port: await listenOnLoopback(listener),
    /** Freezes the open connections permanently, and each new one until `thaw`. */
    freeze() {
      isFrozen = true;
      for (const pair of pairs) frozen.add(pair);
    },
    thaw() {
      isFrozen = false;
    },
    stop: () =>
      new Promise((resolve) => {
        for (const { client } of pairs) client.destroy();
        listener.close(resolve);
      }),
  };
}

/** The rules of one watch are in kube/reflector; open connections alone freeze in the faults. */
describe('frozen connections to the API server', function () {
  this.timeout(300_000);
  const authority = createCertificateAuthority('frozen');
  const temp = tempDirectories();
  let folder: string;
  let api: ApiFixture;
  let proxy: Awaited<ReturnType<typeof startFreezingProxy>>;
  let time: VirtualTime;
  const path = (file: string) => join(folder, file);

  beforeEach(async () => {
    folder = temp();
    const { cert, key } = authority.issue(['localhost', '127.0.0.1']);
    time = startVirtualTime();
    api = await startApi();
    const { apiVersion, kind } = NODE_TOPOLOGY_API;
    const metadata = { name: 'n1' };
    for (const name of ['plumbline-system', 'telco-east'])
      await api.client.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    await api.client.create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata });
    await api.client.create(REPORTS, { apiVersion, kind, metadata });
    await api.client.patch(`${REPORTS}/n1/status`, 'application/merge-patch+json', { status: statusOf() });
    proxy = await startFreezingProxy(Number(new URL(api.server.url).port));
    const server = `https://127.0.0.1:${proxy.port}`;
    const access = kubeconfig({ server, ca: api.server.ca, token: 'admin-token' });
    writeTree(folder, { kubeconfig: access, 'tls.crt': cert, 'tls.key': key });
  });
  afterEach(async () => {
    await proxy.stop();
    await api.stop();
    time.end();
  });

  const extender = (log: Logger) =>
    createSchedulerPlugin(parseSchedulerPluginConfig([...PORTS, '--kubeconfig', path('kubeconfig')]), log);
  const webhook = (log: Logger) => {
    const files = ['--cert-file', path('tls.crt'), '--key-file', path('tls.key'), '--kubeconfig', path('kubeconfig')];
    const config = parseWebhookConfig(['--host', '127.0.0.1', ...PORTS, ...files]);
    return createWebhook(config, parseConfiguredContext({}), log);
  };
  const placement = JSON.stringify({ Pod: withUid(podOf('4'), 'u'), Nodes: null, NodeNames: ['n1'] });
  const review = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request: requestFor(podVector()) };

  const cases: [
    name: string,
    create: (log: Logger) => Promise<Daemon>,
    ask: Omit<Parameters<typeof httpCall>[0], 'port'>,
    refusal: RegExp,
  ][] = [
    [
      'extender',
      extender,
      { path: '/filter', body: placement },
      /^200 .*"Error":"[^"]*no event or bookmark from the API server: /,
    ],
    [
      'webhook',
      webhook,
      { path: '/mutate-pods', body: JSON.stringify(review), trust: authority.cert },
      /"allowed":false.*"code":503.*no event or bookmark from the API server: /,
    ],
  ];
  for (const [name, create, ask, refusal] of cases)
    it(`the ${name} is not ready after 150 s in which all connections are frozen, refuses, and recovers within 75 s`, async () => {
      const { log, lines } = recordingLogger();
      const daemon = await create(log);
      await daemon.start();
      const serving = lines.find(({ msg }) => msg === 'serving') ?? assert.fail('it does not serve');
      const [port, probePort] = [Number(serving['port']), Number(serving['probePort'])];
      const readiness = () => textOf(httpCall({ port: probePort, path: '/readyz' }));
      const answer = () => time.until(textOf(httpCall({ port, ...ask })));
      const ready = async (limitSeconds: number) => {
        const begun = time.seconds;
        while (!(await readiness()).startsWith('200')) {
          assert.ok(time.seconds - begun < limitSeconds, `not ready within ${limitSeconds} s: ${await readiness()}`);
          await time.pass(1);
        }
      };
      await ready(30);
      // Until its watches are open.
      await time.pass(2, 0.25);
      proxy.freeze();
      await time.pass(145, 5);
      assert.match(await readiness(), /^200/);
      await time.pass(10, 5);
      assert.match(await readiness(), /no event or bookmark from the API server: .*\(2 min\)/);
      assert.match(await textOf(httpCall({ port: probePort, path: '/healthz' })), /^200/, 'it is alive');
      assert.match(await answer(), refusal);
      proxy.thaw();
      await ready(75);
      assert.doesNotMatch(await answer(), /no event or bookmark/);
      await time.until(daemon.stop());
    });
});
