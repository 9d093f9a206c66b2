import assert from 'node:assert/strict';
import fc from 'fast-check';
import { explain } from '../../../cli/explain/explain.ts';
import { prepare } from '../../../cli/simulate/run.ts';
import { readScene } from '../../../cli/simulate/scene.ts';
import { simulate } from '../../../cli/simulate/simulate.ts';
import type { ClusterAccess } from '../../../cli/support/cluster.ts';
import { explainedPod } from '../../../diagnosis/objects.ts';
import { leaseObject, nodeObject, topologyObject } from '../cluster-fixture.ts';
import { createObjectsApi, type Objects } from '../objects-api-stand-in.ts';

const NOW = Date.parse('2026-11-01T10:00:00Z');
const TAINT = { key: 'dedicated', value: 'x', effect: 'NoSchedule' };

const USUALLY = ['true', 'true', 'true', 'true', 'true'];
/** A node with what can exclude it from a VM. */
const nodes = fc.array(
  fc.record({
    pool: fc.constantFrom('a', 'b'),
    schedulable: fc.constantFrom(...USUALLY, 'false'),
    cpumanager: fc.constantFrom(...USUALLY, 'false'),
    tainted: fc.constantFrom(false, false, true),
    cordoned: fc.constantFrom(true, false, false),
    deadDpu: fc.constantFrom(true, false, false, false),
    agent: fc.constantFrom('reports', 'reports', 'reports', 'reports', 'reports', 'silent', 'none'),
    kubelet: fc.constantFrom({}, {}, {}, { kubeletVersion: 'v1.0.0' }, { cpuManager: { policy: 'none' } }),
    owned: fc.constantFrom('', '', '1-7,17-23', '1-15,17-31', '3'),
    /** CPUs of a pod that is bound and has not started. */
    inFlight: fc.constantFrom(0, 0, 0, 0, 4, 14),
  }),
  { minLength: 1, maxLength: 10, size: 'max' },
);
const vms = fc.record({
  cpus: fc.constantFrom(2, 2, 4, 4, 6, 8, 3, 9),
  wholeCores: fc.boolean(),
  pool: fc.option(fc.constantFrom('a', 'b'), { freq: 1 }),
  avoids: fc.boolean(),
  tolerates: fc.boolean(),
  toleratesCordon: fc.boolean(),
});
type Node = typeof nodes extends fc.Arbitrary<(infer N)[]> ? N : never;
type Vm = typeof vms extends fc.Arbitrary<infer V> ? V : never;

const ANNOTATIONS = { 'kubevirt.io/CPUManagerPolicyBetaOptions': 'full-pcpus-only' };

function specOf({ pool, avoids, tolerates, toleratesCordon }: Vm) {
  const term = { matchExpressions: [{ key: 'pool', operator: 'NotIn', values: ['b'] }] };
  return {
    ...(pool !== null && { nodeSelector: { pool } }),
    ...(avoids && {
      affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] } } },
    }),
    tolerations: [
      ...(tolerates ? [{ key: TAINT.key, operator: 'Exists' }] : []),
      ...(toleratesCordon ? [{ key: 'node.kubernetes.io/unschedulable', operator: 'Exists' }] : []),
    ],
  };
}

function clusterOf(list: readonly Node[]): Objects {
  return {
    '/api/v1/nodes': list.map(({ pool, cpumanager, schedulable, tainted, cordoned, deadDpu }, i) => {
      const dpu = deadDpu && { 'k8s.ovn.org/dpu-host': '' };
      return nodeObject(`n${i}`, {
        labels: { pool, cpumanager, 'kubevirt.io/schedulable': schedulable, ...dpu },
        spec: { unschedulable: cordoned, ...(tainted && { taints: [TAINT] }) },
        allocatable: { cpu: '1k', memory: '1Ti' },
        conditions: deadDpu ? [{ type: 'plumbline.dev/DPUReady', status: 'False', message: 'dead' }] : [],
      });
    }),
    '/apis/plumbline.dev/v1alpha1/nodetopologies': [
      ...list.flatMap((one, i) => {
        const assignments = one.owned === '' ? [] : [{ podUID: `x${i}`, container: 'c', cpus: one.owned }];
        return one.agent === 'none' ? [] : [topologyObject(`n${i}`, { ...one.kubelet, assignments })];
      }),
      // Otherwise a cluster without any report is not installed.
      topologyObject('gone'),
    ],
    '/apis/coordination.k8s.io/v1/leases': list.map(({ agent }, i) =>
      leaseObject(`plumbline-agent-n${i}`, NOW - (agent === 'silent' ? 900_000 : 5000)),
    ),
    '/api/v1/pods': list.flatMap((one, i) => {
      const amounts = { cpu: `${one.inFlight}`, memory: '1Gi' };
      const containers = [{ name: 'compute', resources: { requests: amounts, limits: amounts } }];
      const pod = {
        metadata: { name: `p${i}`, namespace: 'default', uid: `p${i}` },
        spec: { nodeName: `n${i}`, containers },
        status: { phase: 'Pending' },
      };
      return one.inFlight === 0 ? [] : [pod];
    }),
    '/api/v1/events': [],
  };
}

describe('plumbline simulate and explain', () => {
  it('give the same answer about the same VM on the same cluster', async () => {
    let placed = 0;
    await fc.assert(
      fc.asyncProperty(nodes, vms, async (list, vm) => {
        const client = createObjectsApi(clusterOf(list));
        const cpu = { cores: vm.cpus, dedicatedCpuPlacement: true, isolateEmulatorThread: vm.wholeCores };
        const annotations = vm.wholeCores ? ANNOTATIONS : {};
        const vmi = { metadata: { annotations }, spec: { ...specOf(vm), domain: { cpu } } };
        const file = { vms: [{ name: 'fw', count: 1, namespace: 'default', vmi }], nads: [], instancetypes: [] };
        const { demands, targets } = await prepare([], [file as never], await readScene(client, NOW), client);
        const simulated = simulate(targets.hosts, demands, undefined, targets.circumstances);

        const amounts = { cpu: `${demands[0]?.cpus}`, memory: '1Gi' };
        const spec = specOf(vm);
        const pod = explainedPod.parse({
          metadata: {
            name: 'virt-launcher-fw',
            namespace: 'default',
            uid: 'own',
            annotations,
            labels: { 'kubevirt.io': 'virt-launcher' },
          },
          spec: {
            ...spec,
            nodeSelector: { ...spec.nodeSelector, 'kubevirt.io/schedulable': 'true', cpumanager: 'true' },
            containers: [{ name: 'compute', resources: { requests: amounts, limits: amounts } }],
          },
          status: { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', message: 'none' }] },
        });
        const cluster = { client, namespace: 'default' } as unknown as ClusterAccess;
        const subject = {
          kind: 'pod',
          namespace: 'default',
          name: 'fw',
          vm: undefined,
          vmi: undefined,
          launchers: [pod],
          migrations: [],
        } as const;
        const explained = await explain(cluster, { ...subject, events: [], rejections: [] }, {}, NOW);
        const fitting = explained.nodes.filter(({ kind }) => kind === 'fits').flatMap((group) => group.nodes);
        const [node] = Object.keys(simulated.placements);
        assert.equal(node === undefined, fitting.length === 0, JSON.stringify({ simulated, nodes: explained.nodes }));
        assert.ok(node === undefined || fitting.includes(node), `${node} is none of ${fitting.join()}`);
        placed += node === undefined ? 0 : 1;
      }),
      { numRuns: 300 },
    );
    assert.ok(placed > 30, `only ${placed} were placed`);
  });
});
