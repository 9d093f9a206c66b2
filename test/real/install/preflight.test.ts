import assert from 'node:assert/strict';
import { buildCli, plumbline } from '../../cli/run.ts';
import { needs } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import { type ControlPlane, startControlPlane } from '../control-plane.ts';
import { DEFINITIONS } from './foreign-definitions.ts';

interface Output {
  readonly findings: readonly {
    readonly severity: string;
    readonly what: string;
    readonly fix: { readonly text: string };
  }[];
  readonly areas: readonly { readonly seen: readonly string[]; readonly unseen: readonly string[] }[];
}

describe('plumbline doctor preflight on a real API server', function () {
  needs('controlPlane');
  this.timeout(600_000);
  let plane: ControlPlane;
  let user: string;

  before(async () => {
    buildCli();
    plane = await startControlPlane();
    await plane.create(
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'user', namespace: 'default' } },
      { apiVersion: 'v1', kind: 'Node', metadata: { name: 'worker-1', labels: { 'k8s.ovn.org/dpu-host': '' } } },
    );
    user = await plane.kubeconfig('user', await plane.serviceAccountToken('default', 'user'));
  });
  after(() => plane?.stop());

  const preflight = async (kubeconfig = plane.adminKubeconfig) => {
    const { status, stdout, stderr } = await plumbline(['doctor', 'preflight', '-o', 'json'], { kubeconfig });
    assert.equal(stderr, '');
    const { findings, areas } = JSON.parse(stdout) as Output;
    return { status, found: findings.map(({ severity, what }) => `${severity}: ${what}`), findings, areas };
  };

  it('names each missing product and what to do, on an empty cluster', async () => {
    const { status, found, findings, areas } = await preflight();
    assert.equal(status, 1);
    assert.deepEqual(found, [
      'error: cert-manager is not installed: the API server does not serve cert-manager.io',
      'error: nodes have a DPU, and the namespace ovn-kubernetes does not exist',
      'warning: KubeVirt is not installed: the API server does not serve kubevirt.io',
      'warning: multus is not installed: the API server does not serve k8s.cni.cncf.io',
      'warning: the Prometheus operator is not installed: the API server does not serve monitoring.coreos.com',
    ]);
    for (const { fix } of findings) assert.match(fix.text, /install|leave/);
    const [area] = areas;
    assert.match(area?.seen.join() ?? '', /Kubernetes v1\.\d+.*you may create every object of the manifests/);
    assert.match(area?.unseen.join() ?? '', /settings of worker-1 \(the kubelet does not answer\)/);
  });

  it('reports what the caller may not do and may not read', async () => {
    const { status, found, areas } = await preflight(user);
    assert.equal(status, 1);
    const denied = found.find((one) => one.includes('you may not'));
    assert.match(denied ?? '', /^error: you may not create namespaces, patch namespaces, .* and \d+ more$/);
    assert.match(areas[0]?.unseen.join() ?? '', /nodes \(you may not read them\)/);
  });

  it('does not report products that are installed', async () => {
    await plane.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'ovn-kubernetes' } }, ...DEFINITIONS);
    const group = async () => (await preflight()).found.filter((one) => one.includes('not served'));
    await until('the products’ kinds to be served', async () => (await group()).length === 0);
    assert.deepEqual((await preflight()).found, ['warning: no replica of cert-manager’s cainjector is ready']);
  });

  it('prints one line and ends with status 3 if the API server does not answer', async () => {
    await plane.apiServer.stop();
    const { status, stderr } = await plumbline(['doctor', 'preflight'], { kubeconfig: plane.adminKubeconfig });
    assert.equal(status, 3);
    assert.match(stderr, /^plumbline: .+\n$/);
  });
});
