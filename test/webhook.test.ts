import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Agent, fetch as send } from 'undici';
import { NODE_TOPOLOGY_API } from '../kube/node-topology.ts';
import { createCertificateAuthority } from '../sandbox/certificates.ts';
import { type ApiFixture, startApi } from './kube/api-fixture.ts';
import { statusOf } from './scheduler-plugin/extender-fixture.ts';
import { type DaemonProcess, fromSource, startDaemonProcess } from './support/daemon-process.ts';
import { eventually } from './support/eventually.ts';
import { tempDirectories, writeTree } from './support/files.ts';
import { podVector, requestFor } from './webhook/launcher-fixture.ts';

describe('the webhook as a process', function () {
  this.timeout(300_000);
  const authority = createCertificateAuthority('webhook');
  const running: DaemonProcess[] = [];
  const temp = tempDirectories();
  let folder: string;
  let api: ApiFixture;
  before(async () => {
    folder = temp();
    const { cert, key } = authority.issue(['localhost', '127.0.0.1']);
    writeTree(folder, { 'tls.crt': cert, 'tls.key': key });
    api = await startApi();
  });
  after(async () => {
    for (const daemon of running) daemon.process.kill('SIGKILL');
    await api.stop();
  });

  const start = async () => {
    const flags = ['--host', '127.0.0.1', '--port', '0', '--probe-host', '127.0.0.1', '--probe-port', '0'];
    const files = [
      '--cert-file',
      join(folder, 'tls.crt'),
      '--key-file',
      join(folder, 'tls.key'),
      '--kubeconfig',
      api.kubeconfig,
    ];
    const daemon = startDaemonProcess([...fromSource('webhook/main.ts'), ...flags, ...files]);
    running.push(daemon);
    await eventually(() => daemon.line('serving') !== undefined, 'it serves');
    const probe = async (path: string) => {
      const { status, body } = await daemon.probe(path);
      return `${status} ${body.trim()}`;
    };
    return {
      ...daemon,
      probe,
      readiness: () => probe('/readyz'),
      url: `https://127.0.0.1:${daemon.line('serving')?.['port']}/mutate-pods`,
    };
  };

  const reviewOf = (pod: object) =>
    JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request: requestFor(pod) });

  it('drains on SIGTERM: it is unready at once, no review fails, and it exits with 0', async () => {
    const { process: child, readiness, stop, url } = await start();
    await eventually(async () => (await readiness()) === '200 ok', 'its caches');
    const agent = new Agent({ connect: { ca: authority.cert }, connections: 4 });
    const body = reviewOf(podVector('hp-volume-pod'));
    let answered = 0;
    const closing = new Set<string | null>();
    const load = async (signal: AbortSignal) => {
      while (!signal.aborted) {
        const answer = await send(url, { method: 'POST', body, dispatcher: agent });
        assert.equal(answer.status, 200);
        await answer.text();
        answered++;
        if (child.killed) closing.add(answer.headers.get('connection'));
      }
    };
    // Endpoints take a moment to forget a pod; until then, reviews arrive.
    const forgotten = new AbortController();
    const loads = Promise.all([1, 2, 3, 4].map(() => load(forgotten.signal)));
    while (answered < 100) await delay(10);
    const ended = stop();
    while ((await readiness()) !== '503 stopping') await delay(10);
    const before = answered;
    await eventually(() => answered > before + 100, 'reviews are answered while endpoints forget the pod');
    await eventually(() => closing.has('close'), 'kept connections are closed');
    forgotten.abort();
    await loads;
    assert.equal(await ended, 0);
    await agent.close();
  });

  it('counts and logs a report that contradicts its Node, and its end', async () => {
    const { apiVersion, kind, plural } = NODE_TOPOLOGY_API;
    const reports = `/apis/${apiVersion}/${plural}`;
    const metadata = { name: 'n1' };
    const patch = (path: string, status: object) => api.client.patch(path, 'application/merge-patch+json', { status });
    const status = { capacity: { cpu: '4' } };
    await api.client.create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata, status });
    await api.client.create(reports, { apiVersion, kind, metadata });
    await patch(`${reports}/n1/status`, { ...statusOf(), cells: [{ id: 0, cpus: '0-1023' }], cores: ['0-1023'] });
    // A decision about it needs the nodes, and no VMI.
    const pod = {
      metadata: { annotations: { 'plumbline.dev/align': 'whole-cores' } },
      spec: { containers: [{ name: 'c', resources: { limits: { cpu: '2', memory: '1Gi' } } }] },
    };
    const { stop, line, probe, url } = await start();
    const agent = new Agent({ connect: { ca: authority.cert } });
    const untilQuarantined = (count: number) =>
      eventually(async () => {
        await (await send(url, { method: 'POST', body: reviewOf(pod), dispatcher: agent })).text();
        return (await probe('/metrics')).includes(`\nplumbline_webhook_quarantined_reports ${count}\n`);
      }, `${count} reports in quarantine`);
    await untilQuarantined(1);
    assert.match(await probe('/metrics'), /^plumbline_webhook_connections [1-9]/m);
    const warning = line('implausible node reports ignored');
    assert.deepEqual([warning?.['nodes'], warning?.['reports']], ['n1', 1]);
    await api.client.delete(`${reports}/n1`);
    await untilQuarantined(0);
    await eventually(() => line('all node reports accepted') !== undefined, 'the line');
    await agent.close();
    assert.equal(await stop(), 0);
  });
});
