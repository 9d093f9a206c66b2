import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../support/bundles.ts';
import { skipFor } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import { type ControlPlane, namespaceOf, onControlPlane, startControlPlane } from '../control-plane-stage.ts';
import { DEFINITIONS } from './foreign-definitions-fixture.ts';
import { kubectlOf, objectsOf, render } from './rendered-fixture.ts';

const AGENT = 'base/node-agent/components';
const BUILDS: readonly (readonly [folder: string, ...components: string[]])[] = [
  ['base'],
  ...['gate', 'dpu', 'dpu-observe', 'network-map', 'selinux', 'openshift'].map(
    (name) => ['base', `${AGENT}/${name}`] as const,
  ),
  ['base', 'components/monitoring'],
  ['base', 'components/align-all'],
  ['base', 'components/dpu-migrate'],
  ['base', 'components/no-cert-manager'],
  ['overlays/kubevirt-ovn-kubernetes', 'components/monitoring'],
  ['overlays/dpu-host', 'components/monitoring'],
  ['base', 'components/console'],
  ['base', 'scheduler/loopback'],
  ...['k3s', 'rke2', 'k0s', 'microk8s', 'interrupts'].map(
    (name) => ['base', `base/node-agent/components/${name}`] as const,
  ),
  ...[33, 34, 35, 36, 37].map((minor) => ['base', `components/kubernetes-1.${minor}`] as const),
  ['base/policies/mutating'],
  ['overlays/kubevirt-ovn-kubernetes'],
  ['overlays/dpu-host'],
  ['overlays/dpu'],
  ['overlays/development'],
];
/** Kubernetes 1.36 has it by default; it must not be asked of older ones. */
const NEWER = ['base/policies/mutating'];

interface TypeChecking {
  readonly expressionWarnings?: readonly { readonly warning: string }[];
}

describe('the manifests and a real API server', function () {
  onControlPlane(this);
  let plane: ControlPlane;

  before(async () => {
    plane = await startControlPlane({ apiServerArgs: ['--service-cluster-ip-range=10.96.0.0/16'] });
    await plane.create(
      ...['plumbline-system', 'plumbline-dpu', 'ovn-kubernetes'].map(namespaceOf),
      ...DEFINITIONS,
      ...objectsOf(render('base/crd')),
    );
  });
  after(async () => plane?.stop());

  /** Server-side, nothing stored, an unknown or doubled field is an error. @returns what kubectl says against it */
  const refusals = (yaml: string): string => {
    const args = ['apply', '--server-side', '--dry-run=server', '--validate=strict', '--force-conflicts', '-f', '-'];
    const { status, said } = kubectlOf(plane)(args, yaml);
    return status === 0 ? '' : said;
  };

  it('every overlay and every component is covered', () => {
    const folders = (path: string) => readdirSync(join(root, 'manifests', path)).map((name) => `${path}/${name}`);
    const all = [...folders('overlays'), ...folders('components'), ...folders(AGENT)];
    assert.deepEqual(
      all.filter((path) => !BUILDS.flat().includes(path)),
      [],
    );
  });

  /** What has been validated before: components change a few objects each. */
  const accepted = new Set<string>();
  for (const [folder, ...components] of BUILDS) {
    it(`strict validation accepts ${[folder, ...components].join(' with ')}`, function () {
      const minor = Number(/v1\.(\d+)/.exec(plane.version)?.[1]);
      if (NEWER.includes(folder) && minor < 36)
        skipFor({ name: 'Kubernetes 1.36', install: 'bring a newer control plane' }, this);
      const documents = render(folder, components).split('\n---\n');
      const fresh = documents.filter((document) => !accepted.has(document));
      // A component may name what is the default.
      if (fresh.length > 0) assert.equal(refusals(fresh.join('\n---\n')), '');
      for (const document of documents) accepted.add(document);
    });
  }

  it('strict validation accepts the extender as a static pod', () => {
    const file = join(root, 'manifests/scheduler/loopback/plumbline-scheduler-plugin.yaml');
    assert.equal(refusals(readFileSync(file, 'utf8')), '');
  });

  it('webhook, scheduler and extender run with restricted pod security; the agent needs the documented privileges', async () => {
    const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
    await plane.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'restricted', labels } });
    const objects = objectsOf(render('base'));
    // The class that the pods name must be there; pods are not workloads, which are only warned about.
    await plane.create(...objects.filter(({ kind }) => kind === 'PriorityClass'));
    const podsOf = (kind: string) =>
      objects
        .filter((object) => object.kind === kind)
        .map(({ metadata, spec }) => {
          const { template } = spec as { template: { metadata: object; spec: object } };
          return {
            apiVersion: 'v1',
            kind: 'Pod',
            ...template,
            metadata: { ...template.metadata, name: metadata.name },
          };
        });
    const run = (pod: object) =>
      plane.client.create('/api/v1/namespaces/restricted/pods', pod, { query: { dryRun: 'All' } });
    const deployed = podsOf('Deployment');
    assert.equal(deployed.length, 2);
    for (const pod of deployed) await run(pod);
    const [agent] = podsOf('DaemonSet');
    // The reasons of manifests/base/namespace.yaml, in the API server's words.
    await assert.rejects(run(agent ?? {}), /host namespaces.*hostPath|hostPath.*host namespaces/s);
  });

  it('the expressions of every policy type-check', async () => {
    const objects = objectsOf(render('overlays/dpu-host'));
    const policies = objects.filter(({ kind }) => kind === 'ValidatingAdmissionPolicy');
    await plane.create(...policies);
    await plane.startControllers(['validatingadmissionpolicy-status-controller']);
    for (const { metadata } of policies) {
      const path = `/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/${metadata.name}`;
      const { expressionWarnings = [] } = await until(`${path} to be type-checked`, async () => {
        const { status } = (await plane.client.get(path)) as { status?: { typeChecking?: TypeChecking } };
        return status?.typeChecking;
      });
      // Events are looked at as events.k8s.io has them too; the policy names the core group, as which it is given them.
      const warnings = expressionWarnings.filter(({ warning }) => !warning.startsWith('events.k8s.io/v1, Kind=Event'));
      assert.deepEqual(warnings, [], metadata.name);
    }
  });
});
