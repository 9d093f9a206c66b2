import assert from 'node:assert/strict';
import { checkPreflight, PRODUCTS } from '../../../../cli/doctor/checks/preflight.ts';
import type { KubeletSettings, PreflightFacts } from '../../../../cli/doctor/facts/preflight.ts';
import { kubevirt } from '../../../../cli/support/objects.ts';

const GOOD_KUBELET: KubeletSettings = {
  cpuManagerPolicy: 'static',
  cpuManagerPolicyOptions: { 'full-pcpus-only': 'true' },
  topologyManagerPolicy: 'restricted',
};
const kubeVirtWith = (...featureGates: string[]) =>
  kubevirt.parse({
    metadata: { name: 'kubevirt' },
    spec: { configuration: { developerConfiguration: { featureGates } } },
  });
const GOOD: PreflightFacts = {
  version: { value: 'v1.36.2' },
  groups: new Set(PRODUCTS.map(({ group }) => group)),
  nodes: { value: [{ metadata: { name: 'a' } }] as never },
  kubelets: new Map([['a', { value: GOOD_KUBELET }]]),
  injectors: { missing: 'forbidden' },
  kubevirts: { value: [kubeVirtWith('CPUManager', 'Snapshot')] },
  dpuNamespace: undefined,
  denied: [],
};
const kubelet = (settings: Partial<KubeletSettings>) => ({
  kubelets: new Map([['a', { value: { ...GOOD_KUBELET, ...settings } }]]),
});

describe('the preflight', () => {
  it('finds nothing if all requirements are met', () => {
    const { findings, seen, unseen } = checkPreflight(GOOD);
    assert.deepEqual(findings, []);
    assert.match(seen.join(), /Kubernetes v1\.36\.2,cert-manager,KubeVirt,multus/);
    assert.deepEqual(unseen, ['cert-manager’s cainjector (you may not read them)']);
  });

  const FULL_PCPUS_OFF = kubelet({ cpuManagerPolicyOptions: {} });
  const NO_TOPOLOGY = kubelet({ topologyManagerPolicy: 'none' });
  const WITHOUT_GATE = { kubevirts: { value: [kubeVirtWith('Snapshot')] } };
  const cases: [string, Partial<PreflightFacts>, RegExp][] = [
    ['an older Kubernetes', { version: { value: 'v1.32.9' } }, /^error: Kubernetes v1\.32\.9 is older than 1\.33$/],
    ['a newer one', { version: { value: 'v1.38.0+k3s1' } }, /^warning: Kubernetes v1\.38\.0\+k3s1 is newer than 1\.37/],
    ['no static policy', kubelet({ cpuManagerPolicy: 'none' }), /^warning: CPU manager policy none on 1 node: a$/],
    ['no full-pcpus-only', FULL_PCPUS_OFF, /^warning: the option full-pcpus-only is off on 1 node/],
    ['no topology manager policy', NO_TOPOLOGY, /^warning: topology manager policy none on 1 node: a$/],
    [
      'KubeVirt without the gate for dedicated CPUs',
      WITHOUT_GATE,
      /^warning: KubeVirt’s feature gate CPUManager is off$/,
    ],
    ['a missing permission', { denied: ['create namespaces'] }, /^error: you may not create namespaces$/],
    [
      'no namespace of DPUs',
      { dpuNamespace: { missing: 'absent' } },
      /^error: nodes .* namespace ovn-kubernetes does not/,
    ],
    ...PRODUCTS.map(({ name, group, severity }): [string, Partial<PreflightFacts>, RegExp] => [
      `no ${name}`,
      { groups: new Set([...GOOD.groups].filter((one) => one !== group)) },
      new RegExp(`^${severity}: ${name} is not installed`),
    ]),
  ];
  for (const [title, facts, says] of cases) {
    it(`finds: ${title}`, () => {
      const { findings } = checkPreflight({ ...GOOD, ...facts });
      assert.deepEqual(findings.length, 1);
      assert.match(`${findings[0]?.severity}: ${findings[0]?.what}`, says);
    });
  }

  it('names the nodes that were not read', () => {
    const nodes = { value: Array.from({ length: 60 }, (_, i) => ({ metadata: { name: `n${i}` } })) as never };
    const { unseen } = checkPreflight({ ...GOOD, nodes, kubelets: new Map([['n0', { missing: 'forbidden' }]]) });
    assert.ok(unseen.includes('settings of n0 (you may not get nodes/proxy)'), unseen.join());
    assert.ok(unseen.includes('settings of 59 more nodes (a sample is enough)'), unseen.join());
  });
});
