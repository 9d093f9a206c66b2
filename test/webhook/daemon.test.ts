import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, fetch as send } from 'undici';
import { NODE_TOPOLOGY_API } from '../../kube/node-topology.ts';
import { parseConfiguredContext } from '../../model/networks/context.ts';
import type { Daemon } from '../../runtime/daemon.ts';
import { createCertificateAuthority } from '../../sandbox/certificates.ts';
import { kubeconfig } from '../../sandbox/cluster/identities.ts';
import { parseWebhookConfig } from '../../webhook/config.ts';
import { createWebhook } from '../../webhook/daemon.ts';
import { type ApiFixture, startApi } from '../kube/api-fixture.ts';
import { statusOf } from '../scheduler-plugin/extender-fixture.ts';
import { eventually } from '../support/eventually.ts';
import { recordingLogger } from '../support/logger.ts';
import { podVector, requestFor, vmiVector } from './launcher-fixture.ts';

const TOKEN = 'admin-token';
const REPORTS = `/apis/${NODE_TOPOLOGY_API.apiVersion}/${NODE_TOPOLOGY_API.plural}`;
const MERGE = 'application/merge-patch+json';

describe('the webhook as a daemon', function () {
  this.timeout(300_000);
  const authority = createCertificateAuthority('webhook');
  let folder: string;
  let api: ApiFixture;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'plumbline-webhook-'));
    api = await startApi();
    const { cert, key } = authority.issue(['localhost', '127.0.0.1']);
    await writeFile(join(folder, 'tls.crt'), cert);
    await writeFile(join(folder, 'tls.key'), key);
    await api.client.create('/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'telco-east' },
    });
    const text = kubeconfig({ server: api.server.url, ca: api.server.ca, token: TOKEN });
    await writeFile(join(folder, 'kubeconfig'), text);
  });
  after(async () => {
    await api.stop();
    await rm(folder, { recursive: true });
  });

  const start = async () => {
    const { log, lines } = recordingLogger();
    const own = ['--host', '127.0.0.1', '--port', '0', '--probe-host', '127.0.0.1', '--probe-port', '0'];
    const files = ['--cert-file', join(folder, 'tls.crt'), '--key-file', join(folder, 'tls.key')];
    const config = parseWebhookConfig([...own, ...files, '--kubeconfig', join(folder, 'kubeconfig')]);
    const daemon: Daemon = await createWebhook(config, parseConfiguredContext({}), log);
    await daemon.start();
    const serving = lines.find(({ msg }) => msg === 'serving') ?? assert.fail('it does not serve');
    const probe = async (path: string) => {
      const answer = await fetch(`http://127.0.0.1:${serving['probePort']}${path}`);
      return `${answer.status} ${await answer.text()}`;
    };
    const agent = new Agent({ connect: { ca: authority.cert } });
    const review = async (object: unknown) => {
      const body = JSON.stringify({
        apiVersion: 'admission.k8s.io/v1',
        kind: 'AdmissionReview',
        request: requestFor(object),
      });
      const url = `https://127.0.0.1:${serving['port']}/mutate-pods`;
      return (await send(url, { method: 'POST', body, dispatcher: agent })).json();
    };
    const metric = async (name: string) =>
      Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(await probe('/metrics'))?.[1] ?? Number.NaN);
    return { daemon, lines, probe, review, metric, agent };
  };

  /** A launcher that asks for whole cores, whose VMI exists. */
  const launcher = async () => {
    const path = '/apis/kubevirt.io/v1/namespaces/telco-east/virtualmachineinstances';
    const { metadata } = (await api.client
      .create(path, {
        ...vmiVector(),
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstance',
        metadata: { name: 'dpdk-fwd-01', annotations: vmiVector().metadata.annotations },
      })
      .catch(() => api.client.get(`${path}/dpdk-fwd-01`))) as { metadata: { uid: string } };
    const pod = podVector();
    for (const owner of pod.metadata.ownerReferences ?? []) owner.uid = metadata.uid;
    return pod;
  };

  it('counts and logs a report that contradicts its Node, and its end', async () => {
    const { apiVersion, kind } = NODE_TOPOLOGY_API;
    const metadata = { name: 'n1' };
    await api.client.create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata });
    await api.client.patch('/api/v1/nodes/n1/status', MERGE, { status: { capacity: { cpu: '4' } } });
    await api.client.create(REPORTS, { apiVersion, kind, metadata });
    const report = (status: object) => api.client.patch(`${REPORTS}/n1/status`, MERGE, { status });
    await report({ ...statusOf(), cells: [{ id: 0, cpus: '0-1023' }], cores: ['0-1023'] });
    const pod = await launcher();
    const { daemon, lines, metric, agent, review } = await start();
    try {
      const quarantined = () => metric('plumbline_webhook_quarantined_reports');
      await eventually(async () => {
        await review(pod);
        return (await quarantined()) === 1;
      }, 'the report to be quarantined');
      const warning = lines.find(({ msg }) => msg === 'implausible node reports ignored');
      assert.deepEqual([warning?.['nodes'], warning?.['reports']], ['n1', 1]);
      await api.client.delete(`${REPORTS}/n1`);
      await eventually(async () => {
        await review(pod);
        return (await quarantined()) === 0;
      }, 'the report to be gone');
      assert.ok(lines.some(({ msg }) => msg === 'all node reports accepted'));
    } finally {
      await agent.close();
      await daemon.stop();
    }
  });
});
