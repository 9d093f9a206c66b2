import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { unreadableKinds } from '../../cli/console/run.ts';
import type { Explanation } from '../../cli/explain/explain.ts';
import type { Diagnosis } from '../../console/data/wire.ts';
import { KINDS } from '../../console/server/kinds.ts';
import { remedyLines } from '../../diagnosis/remedies.ts';
import { KubeError } from '../../kube/client.ts';
import { listen } from '../console/support.ts';
import { listenOnLoopback } from '../support/processes.ts';
import { useCluster } from './cluster-fixture.ts';
import { startConsole } from './console-stage.ts';
import { assertFails } from './run.ts';

describe('plumbline console', function () {
  this.timeout(300_000);
  const cluster = useCluster(async (made) => {
    await made.node('worker-1', { report: { assignments: [{ podUID: 'u', container: 'compute', cpus: '1,17' }] } });
    await made.node('worker-2');
    await made.pod('waits', {
      cpus: 40,
      status: {
        phase: 'Pending',
        conditions: [{ type: 'PodScheduled', status: 'False', message: '0/2 nodes are available: 2 too small.' }],
      },
    });
  });

  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    it(`serves the page from the cluster’s watches until ${signal}, even with an open page, and exits with 0`, async () => {
      const { url, end, stderr } = await startConsole(cluster.kubeconfig);
      const html = await fetch(url);
      assert.equal(html.status, 200);
      assert.match(await html.text(), /<title>/);
      const page = await listen(`${url}events`);
      await page.until(({ event }) => event === 'ready');
      const text = page.events.map(({ data }) => data).join('\n');
      assert.match(text, /\["n","worker-1",\{.*"owners":\[\["u","compute","1,17",0\]\]/);
      assert.match(text, /"name":"waits".*"unscheduled":"0\/2 nodes are available: 2 too small\."/);
      await cluster.node(`new-${signal.toLowerCase()}`);
      await page.until(({ data }) => data.includes(`"new-${signal.toLowerCase()}"`));
      assert.equal(await end(signal), 0);
      await page.ended;
      assert.equal(stderr(), '');
    });
  }

  it('reports why the extender does not answer if the API server reaches none', async () => {
    const { url, end } = await startConsole(cluster.kubeconfig);
    const answer = await fetch(`${url}explain?pod=default/waits`);
    assert.equal(answer.status, 502);
    assert.match(await answer.text(), /^Cannot reach the extender: /);
    await end('SIGTERM');
  });

  it('says about a VM or pod what explain says, with the same remedies', async () => {
    const { url, end } = await startConsole(cluster.kubeconfig);
    const answer = (await (await fetch(`${url}diagnosis?pod=default/waits`)).json()) as Diagnosis;
    const missing = await fetch(`${url}diagnosis?vm=default/nothing`);
    await end('SIGTERM');
    const { stdout } = await cluster.run('explain', 'pod', 'default/waits', '-o', 'json');
    const explained = JSON.parse(stdout) as Explanation;
    assert.ok(explained.remedies.length > 0);
    assert.deepEqual(answer, {
      verdict: explained.verdict,
      reason: explained.reason,
      text: explained.text,
      causes: explained.causes.map(({ text }) => text),
      remedies: explained.remedies.map(remedyLines),
      notes: explained.notes,
    });
    assert.equal(missing.status, 502);
    assert.match(await missing.text(), /^there is no VM nothing in namespace default/);
  });

  it('listens on the given port, and exits with 2 if the port is in use', async () => {
    const server = createServer();
    const port = await listenOnLoopback(server);
    const ran = await cluster.run('console', '--port', String(port));
    server.close();
    assertFails(ran, 2, new RegExp(`--port ${port}: listen EADDRINUSE.*; choose another port, or omit --port`));
    const { url, end } = await startConsole(cluster.kubeconfig, ['--port', String(port)]);
    assert.equal(url, `http://127.0.0.1:${port}/`);
    await end('SIGTERM');
  });

  for (const [flag, value, message] of [
    ['--port', '70000', /expected a number from 0 to 65535/],
    ['--extender', 'ftp://x', /--extender 'ftp:\/\/x': expected a URL that begins with http:/],
  ] as const) {
    it(`${flag} ${value}: one line and status 2`, async () => {
      assertFails(await cluster.run('console', flag, value), 2, message);
    });
  }

  describe('permissions', () => {
    const client = (answers: Readonly<Record<string, number>>) => ({
      async get(path: string) {
        const [, status = 200] = Object.entries(answers).find(([part]) => path.includes(part)) ?? [];
        if (status !== 200) throw new KubeError(status, 'x', `GET ${path}: ${status}`);
        return {};
      },
    });

    it('fails with the names of required kinds that it may not read', async () => {
      await assert.rejects(unreadableKinds(client({ 'v1/nodes': 403, 'v1/pods': 403, leases: 403 })), {
        status: 3,
        message: /^not allowed to list nodes, pods of all namespaces: ask for list and watch of each/,
      });
    });

    it('works without optional kinds', async () => {
      const without = await unreadableKinds(client({ leases: 403, virtualmachineinstances: 404, resourceslices: 404 }));
      assert.deepEqual([...without], ['leases']);
      const optional = Object.entries(KINDS).flatMap(([kind, { optional }]) => (optional ? [kind] : []));
      const vms = ['virtualmachineinstances', 'virtualmachineinstancemigrations', 'virtualmachines'];
      assert.deepEqual(optional, ['leases', ...vms, 'deployments', 'resourceslices']);
    });

    it('reports that Plumbline is not installed, and passes other failures on', async () => {
      await assert.rejects(unreadableKinds(client({ nodetopologies: 404 })), { status: 3, message: /not installed/ });
      await assert.rejects(unreadableKinds(client({ 'v1/nodes': 500 })), KubeError);
    });
  });
});
