import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseConsoleConfig } from '../../console/server/config.ts';
import { createConsoleDaemon } from '../../console/server/daemon.ts';
import { createKubeClient } from '../../kube/client.ts';
import { kubeconfigAccess } from '../../kube/kubeconfig.ts';
import { NODE_TOPOLOGY_API } from '../../kube/node-topology.ts';
import { cacheProblem } from '../../kube/reflector.ts';
import { parseConfiguredContext } from '../../model/networks/context.ts';
import { createHeartbeat } from '../../node-agent/report/heartbeat.ts';
import { createReport } from '../../node-agent/report/report.ts';
import { watchLaunchers } from '../../node-agent/vm-pinning/launchers.ts';
import type { Daemon } from '../../runtime/daemon.ts';
import type { Logger } from '../../runtime/log.ts';
import { monotonicSeconds } from '../../runtime/time.ts';
import { createCertificateAuthority } from '../../sandbox/certificates.ts';
import { kubeconfig } from '../../sandbox/cluster/identities.ts';
import { parseSchedulerPluginConfig } from '../../scheduler-plugin/wiring/config.ts';
import { createSchedulerPlugin } from '../../scheduler-plugin/wiring/daemon.ts';
import { parseWebhookConfig } from '../../webhook/config.ts';
import { createWebhook } from '../../webhook/daemon.ts';
import { type ApiFixture, startApi } from '../kube/api-fixture.ts';
import { inputs } from '../node-agent/report/inputs-fixture.ts';
import { testMetrics } from '../node-agent/support.ts';
import { podOf, statusOf, withUid } from '../scheduler-plugin/extender-fixture.ts';
import { type FreezingProxy, startFreezingProxy } from '../support/freezing-proxy.ts';
import { recordingLogger } from '../support/logger.ts';
import { startVirtualTime, type VirtualTime } from '../support/virtual-time.ts';
import { podVector, requestFor } from '../webhook/launcher-fixture.ts';

const TOKEN = 'admin-token';
const REPORTS = `/apis/${NODE_TOPOLOGY_API.apiVersion}/${NODE_TOPOLOGY_API.plural}`;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/plumbline-system/leases';
const PORTS = ['--port', '0', '--probe-host', '127.0.0.1', '--probe-port', '0'];

/** A daemon behind the proxy. */
interface Running {
  /** Why it is not ready, as a probe gets it; undefined if it is. */
  notReady(): Promise<string | undefined>;
  /** Its answer to a request for a placement or a review. */
  ask?(): Promise<string>;
  stop(): Promise<void>;
}

interface Call {
  readonly port: unknown;
  readonly path: string;
  readonly body?: string;
  readonly ca?: string;
}

/** A request that uses no timer of this process. @returns status and body */
function call({ port, path, body, ca }: Call): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port: Number(port), path, agent: false, ca, method: body ? 'POST' : 'GET' };
    const sent = (ca === undefined ? request : tlsRequest)(options, (response) => {
      let text = '';
      response.on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => resolve(`${response.statusCode} ${text}`));
    });
    sent.on('error', reject).end(body);
  });
}

describe('frozen connections to the API server', function () {
  this.timeout(300_000);
  const authority = createCertificateAuthority('frozen');
  let folder: string;
  let api: ApiFixture;
  let proxy: FreezingProxy;
  let time: VirtualTime;
  let file: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'plumbline-frozen-'));
    const { cert, key } = authority.issue(['localhost', '127.0.0.1']);
    await writeFile(join(folder, 'tls.crt'), cert);
    await writeFile(join(folder, 'tls.key'), key);
    file = join(folder, 'kubeconfig');
  });
  after(() => rm(folder, { recursive: true }));
  beforeEach(async () => {
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
    await writeFile(file, kubeconfig({ server, ca: api.server.ca, token: TOKEN }));
  });
  afterEach(async () => {
    await proxy.stop();
    await api.stop();
    time.end();
  });

  const startDaemon = async (create: (log: Logger) => Promise<Daemon>) => {
    const { log, lines } = recordingLogger();
    const daemon = await create(log);
    await daemon.start();
    const { port, probePort } = lines.find(({ msg }) => msg === 'serving') ?? assert.fail('it does not serve');
    const notReady = async () => {
      const answer = await call({ port: probePort, path: '/readyz' });
      assert.match(await call({ port: probePort, path: '/healthz' }), /^200/, 'it is alive');
      return answer.startsWith('200') ? undefined : answer;
    };
    return { port, notReady, stop: () => time.until(daemon.stop()) };
  };

  const extender = async (): Promise<Running> => {
    const config = parseSchedulerPluginConfig([...PORTS, '--kubeconfig', file]);
    const daemon = await startDaemon((log) => createSchedulerPlugin(config, log));
    const body = JSON.stringify({ Pod: withUid(podOf('4'), 'u'), Nodes: null, NodeNames: ['n1'] });
    return { ...daemon, ask: () => call({ port: daemon.port, path: '/filter', body }) };
  };
  const webhook = async (): Promise<Running> => {
    const files = ['--cert-file', join(folder, 'tls.crt'), '--key-file', join(folder, 'tls.key'), '--kubeconfig', file];
    const config = parseWebhookConfig(['--host', '127.0.0.1', ...PORTS, ...files]);
    const daemon = await startDaemon((log) => createWebhook(config, parseConfiguredContext({}), log));
    const review = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request: requestFor(podVector()) };
    const options = { port: daemon.port, path: '/mutate-pods', body: JSON.stringify(review), ca: authority.cert };
    return { ...daemon, ask: () => call(options) };
  };
  const consoleDaemon = (): Promise<Running> => {
    const probes = ['--address', '127.0.0.1:0', '--probe-host', '127.0.0.1', '--probe-port', '0'];
    const config = parseConsoleConfig([...probes, '--kubeconfig', file]);
    return startDaemon((log) => createConsoleDaemon(config, log));
  };
  /** The duties of an agent that use the API server. */
  const agent = async (): Promise<Running> => {
    const { log } = recordingLogger();
    const client = createKubeClient(kubeconfigAccess(file), 'agent', 4);
    const stop = new AbortController();
    const common = { client, nodeName: 'n1', log, metrics: testMetrics() };
    const launchers = watchLaunchers({ ...common, onChange: () => undefined });
    const subscribe = () => () => undefined;
    const duties = [
      launchers,
      createHeartbeat({ ...common, wallClock: Date.now }),
      createReport({ ...common, inputs: async () => inputs, subscribe }),
    ].map((duty) => duty.run(stop.signal));
    return {
      notReady: async () => cacheProblem({ launchers }, monotonicSeconds()),
      async stop() {
        stop.abort();
        await Promise.all(duties);
        await client.close();
      },
    };
  };

  const ready = async (daemon: Running, limitSeconds: number) => {
    const begun = time.seconds;
    while ((await daemon.notReady()) !== undefined) {
      assert.ok(time.seconds - begun < limitSeconds, `not ready within ${limitSeconds} s: ${await daemon.notReady()}`);
      await time.pass(1);
    }
  };

  for (const [name, start, watches, refusal] of [
    ['extender', extender, 7, /^200 .*"Error":"[^"]*no event or bookmark from the API server: /],
    ['webhook', webhook, 8, /"allowed":false.*"code":503.*no event or bookmark from the API server: /],
    ['console', consoleDaemon, 6, undefined],
    ['agent', agent, 1, undefined],
  ] as const) {
    describe(name, () => {
      let daemon: Running;
      beforeEach(async () => {
        daemon = await start();
        await ready(daemon, 30);
        // Until its watches are open.
        await time.pass(2, 0.25);
      });
      afterEach(() => daemon.stop());

      it('is ready all the time if open connections freeze while new ones work, and opens its watches again', async () => {
        const { connections } = proxy;
        proxy.freezeOpen();
        await time.pass(120, 5);
        for (let seconds = 120; seconds < 170; seconds += 2) {
          await time.pass(2);
          assert.equal(await daemon.notReady(), undefined, `after ${seconds} s`);
        }
        assert.ok(proxy.connections - connections >= watches, `${proxy.connections - connections} new connections`);
      });

      it('is not ready after 150 s in which all connections are frozen, refuses, and recovers within 75 s', async () => {
        proxy.freezeAll();
        await time.pass(145, 5);
        assert.equal(await daemon.notReady(), undefined);
        await time.pass(10, 5);
        assert.match(String(await daemon.notReady()), /no event or bookmark from the API server: .*\(2 min\)/);
        if (daemon.ask && refusal) assert.match(await time.until(daemon.ask()), refusal);
        await time.pass(300, 10);
        assert.match(String(await daemon.notReady()), /\(7 min\)/);
        proxy.thaw();
        await ready(daemon, 75);
        if (daemon.ask) assert.doesNotMatch(await time.until(daemon.ask()), /no event or bookmark/);
      });
    });
  }

  it('keep an agent’s Lease alive and return its report while open connections are frozen', async () => {
    const daemon = await agent();
    await ready(daemon, 30);
    await time.pass(15);
    const renewed = async () =>
      ((await time.until(api.client.get(`${LEASES}/plumbline-agent-n1`))) as { spec: { renewTime: string } }).spec
        .renewTime;
    const before = await renewed();
    proxy.freezeOpen();
    await time.until(api.client.delete(`${REPORTS}/n1`));
    await time.pass(35);
    assert.notEqual(await renewed(), before, 'the Lease counts for 40 s');
    const report = (await time.until(api.client.get(`${REPORTS}/n1`))) as { status?: { reserved?: string } };
    assert.equal(report.status?.reserved, '0');
    await daemon.stop();
  });
});
