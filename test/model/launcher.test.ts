import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { type Pod, pod as podSchema } from '../../kube/resources.ts';
import { type VirtualMachineInstance, virtualMachineInstance } from '../../kube/virtual-machines.ts';
import type { AlignmentRequest } from '../../model/admission/launcher-cpus.ts';
import { podResourcesOf } from '../../model/launcher/containers.ts';
import { EVEN_PARITY_ANNOTATION, guestTopology, launcherCpus, launcherNeeds } from '../../model/launcher/cpus.ts';
import { recognizeLauncher } from '../../model/launcher/recognize.ts';
import { askedMultiples, type NodeKind } from '../../model/launcher/smt-affinity.ts';
import { FULL_PCPUS_ANNOTATION, FULL_PCPUS_ONLY } from '../../model/names.ts';
import type { ContainerShape, GuestCpu, PodShape, VmiShape } from '../../model/shapes.ts';
import { run as runCpuCases } from '../vectors/kubevirt-cpu.ts';
import { alignmentOf } from './launcher/alignment.ts';

const vectors = join(import.meta.dirname, '../vectors');
const fixture = (name: string): unknown => JSON.parse(readFileSync(join(vectors, `${name}.json`), 'utf8'));
const kindOf = (threadsPerCore: number, fullPcpusOnly = true): NodeKind => ({
  threadsPerCore,
  fullPcpusOnly,
  networks: { physnets: new Map(), tunnel: undefined },
  rooms: new Map([[0, 64]]),
  alignment: 'best-effort',
});
/** Nodes whose kubelets do not require whole cores. */
const plain = (threadsPerCore: number) => askedMultiples([kindOf(threadsPerCore, false)]);
const annotated = { [FULL_PCPUS_ANNOTATION]: FULL_PCPUS_ONLY };

interface PodOptions {
  readonly cpu?: string;
  readonly limit?: string;
  readonly annotations?: Record<string, string>;
  readonly labels?: Record<string, string>;
  readonly before?: readonly ContainerShape[];
  readonly after?: readonly ContainerShape[];
  readonly init?: readonly ContainerShape[];
  readonly podLevel?: Record<string, string>;
}

function container(name: string, cpu: string, limit = cpu): ContainerShape {
  return { name, resources: { requests: { cpu, memory: '60M' }, limits: { cpu: limit, memory: '60M' } } };
}

function launcherPod(options: PodOptions = {}): PodShape {
  const { cpu = '9', limit = cpu, annotations = annotated, before = [], after = [], init = [], podLevel } = options;
  return {
    metadata: {
      annotations,
      labels: { 'kubevirt.io': 'virt-launcher', ...options.labels },
      ownerReferences: [
        { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name: 'vm', uid: 'u1', controller: true },
      ],
    },
    spec: {
      containers: [...before, container('compute', cpu, limit), ...after],
      initContainers: init,
      resources: podLevel && { requests: podLevel, limits: podLevel },
    },
  };
}

function vmi(cpu: GuestCpu = {}, ioThreads = 0, annotations: Record<string, string> = {}): VmiShape {
  return {
    metadata: { annotations },
    spec: {
      domain: {
        cpu: { dedicatedCpuPlacement: true, isolateEmulatorThread: true, ...cpu },
        ...(ioThreads > 0 && {
          ioThreadsPolicy: 'supplementalPool',
          ioThreads: { supplementalPoolThreadCount: ioThreads },
        }),
      },
    },
  };
}

function decide(options: PodOptions = {}, request: Partial<AlignmentRequest> & { readonly pod?: PodShape } = {}) {
  const { pod = launcherPod(options), ...more } = request;
  const decision = alignmentOf(pod, { vmi: vmi({ cores: 4, threads: 2 }), ...more });
  return {
    outcome: decision.why ?? `${decision.to}`,
    codes: decision.findings.map(({ code }) => code),
    decision,
  };
}

describe('the CPU request of a launcher', () => {
  it('matches KubeVirt’s own tests and formulas', () => {
    const outcome = runCpuCases(fixture('kubevirt-cpu-cases'), () => undefined);
    assert.deepEqual(outcome.failures, []);
    assert.ok(outcome.ran >= 78);
  });

  it('counts sockets by the CPU limit or the request if the VMI has no domain.cpu or no topology', () => {
    const total = (resources?: object, cpu?: object) =>
      guestTopology({ metadata: {}, spec: { domain: { ...(cpu && { cpu }), ...(resources && { resources }) } } });
    const sockets = (number: number) => ({ sockets: number, cores: 1, threads: 1 });
    assert.deepEqual(total(), sockets(1));
    assert.deepEqual(total({ requests: { cpu: '3' } }), sockets(3));
    assert.deepEqual(total({ requests: { cpu: '3' }, limits: { cpu: '4500m' } }), sockets(5));
    assert.deepEqual(total({ requests: { cpu: '100m' } }), sockets(1));
    assert.deepEqual(total({ limits: { cpu: '4' } }, { dedicatedCpuPlacement: true }), sockets(4));
    assert.deepEqual(total({ limits: { cpu: '4' } }, { cores: 2 }), { sockets: 1, cores: 2, threads: 1 });
    assert.deepEqual(total({ limits: { cpu: '4' } }, { threads: 2, sockets: 3 }), { sockets: 3, cores: 1, threads: 2 });
  });

  it('can always be made whole cores that hold everything it pins', () => {
    const count = fc.nat(16);
    fc.assert(
      fc.property(
        count,
        count,
        fc.nat(2),
        count,
        fc.boolean(),
        fc.constantFrom(1, 2, 4, 8),
        (s, c, t, io, parity, smt) => {
          const one = vmi({ sockets: s, cores: c, threads: t }, io, parity ? { [EVEN_PARITY_ANNOTATION]: '' } : {});
          const from = launcherCpus(one).total;
          const request = { vmi: one, candidates: [smt], policy: 'auto' } as const;
          const first = decide({ cpu: `${from}` }, request).decision;
          const to = first.to ?? from;
          assert.equal(to % smt, 0);
          assert.ok(to >= launcherNeeds(one), `${to} < ${launcherNeeds(one)}`);
          assert.equal(decide({ cpu: `${to}` }, request).outcome, 'aligned');
        },
      ),
    );
  });

  for (const [what, v, s, from, to] of [
    ['W4: one vCPU, pool of 1', 1, 1, 3, '4'],
    ['W4: two vCPUs, pool of 1', 2, 1, 5, '6'],
    ['W4: five vCPUs, no pool', 5, 0, 6, 'aligned'],
  ] as const) {
    it(`${what}: KubeVirt’s even-parity pod of ${from} is repaired, not padded twice`, () => {
      const one = vmi({ cores: v }, s, { [EVEN_PARITY_ANNOTATION]: '' });
      assert.equal(launcherCpus(one).total, from);
      assert.equal(decide({ cpu: `${from}` }, { vmi: one }).outcome, to);
    });
  }

  it('W4: with SMT off, only the CPU that KubeVirt leaves out is added', () => {
    const parity = { [EVEN_PARITY_ANNOTATION]: '' };
    const auto = { candidates: [1], policy: 'auto' } as const;
    assert.equal(decide({ cpu: '3' }, { ...auto, vmi: vmi({ cores: 1 }, 1, parity) }).outcome, '4');
    assert.equal(decide({ cpu: '5' }, { ...auto, vmi: vmi({ cores: 2 }, 1, parity) }).outcome, 'aligned');
    assert.equal(decide({ cpu: '9' }, { ...auto, vmi: vmi({ cores: 1 }, 1, parity) }).outcome, 'aligned');
  });
});

describe('the padding decision', () => {
  const cases: [
    what: string,
    options: PodOptions,
    request: Partial<AlignmentRequest>,
    outcome: string,
    codes: string[],
  ][] = [
    ['W1: 4c2t isolated, SMT2', {}, {}, '10', []],
    ['W2: 3 vCPUs', { cpu: '4' }, {}, 'aligned', []],
    ['W2: SMT4', {}, { candidates: [4] }, '12', []],
    ['W2: SMT8', {}, { candidates: [8] }, '16', []],
    ['W2: no SMT under auto', {}, { candidates: [1], policy: 'auto' }, 'aligned', []],
    ['no SMT, annotated: at least an even number', {}, { candidates: [1] }, '10', []],
    [
      'auto, annotated, and no kubelet requires whole cores',
      {},
      { candidates: plain(8), policy: 'auto' },
      'aligned',
      [],
    ],
    [
      'auto, and no kubelet requires whole cores',
      { annotations: {} },
      { candidates: plain(2), policy: 'auto' },
      'aligned',
      [],
    ],
    ['a plain SMT8 node does not count', {}, { candidates: plain(8) }, '10', []],
    [
      'one among SMT2 nodes that require whole cores',
      {},
      { candidates: askedMultiples([kindOf(2), kindOf(8, false)]) },
      '10',
      [],
    ],
    ['no node has reported', {}, { candidates: [] }, '10', []],
    ['no node has reported, auto, annotated', {}, { candidates: [], policy: 'auto' }, '10', []],
    ['no node has reported, auto', { annotations: {} }, { candidates: [], policy: 'auto' }, 'aligned', []],
    ['auto needs no annotation', { annotations: {} }, { candidates: [4], policy: 'auto' }, '12', []],
    ['always needs no annotation', { annotations: {} }, { candidates: [], policy: 'always' }, '10', []],
    ['W12: mixed candidates take the largest', {}, { candidates: [2, 1, 4, 2] }, '12', ['mixed-candidates']],
    ['W3: no annotation', { annotations: {} }, {}, 'not-annotated', []],
    [
      'W3: not dedicated',
      {},
      { vmi: vmi({ dedicatedCpuPlacement: false }) },
      'not-dedicated',
      ['no-effect-not-dedicated'],
    ],
    [
      'W3: not isolated',
      {},
      { vmi: vmi({ isolateEmulatorThread: false }) },
      'not-isolated',
      ['no-effect-not-isolated'],
    ],
    ['W12: gate off', {}, { gate: false }, 'gate-off', ['gate-off']],
    ['gate off beats always', { annotations: {} }, { gate: false, policy: 'always' }, 'gate-off', []],
    [
      'unknown value',
      { annotations: { [FULL_PCPUS_ANNOTATION]: 'full' } },
      {},
      'not-annotated',
      ['unknown-annotation-value'],
    ],
    ['W5: migration target', { labels: { 'kubevirt.io/migrationJobUID': 'm' } }, {}, '10', []],
    [
      'W5: ephemeral provisioning',
      { annotations: { ...annotated, 'kubevirt.io/ephemeral-provisioning': 'true' } },
      {},
      '10',
      [],
    ],
    ['W11: 9000m', { cpu: '9000m' }, {}, '10', []],
    ['W11: 9e0', { cpu: '9e0', limit: '9' }, {}, '10', []],
    ['W11: not a whole number', { cpu: '9500m' }, {}, 'no-exclusive-cpus', []],
    ['W11: request below limit', { cpu: '9', limit: '10' }, {}, 'no-exclusive-cpus', ['not-guaranteed']],
    ['W11: pod-level resources', { podLevel: { cpu: '10' } }, {}, 'pod-level-resources', ['pod-level-resources']],
    ['W11: no resources', { cpu: '0' }, {}, 'no-exclusive-cpus', ['not-guaranteed']],
    ['more CPUs than any host has', { cpu: '1e15' }, {}, 'no-exclusive-cpus', []],
    ['W9: an integral sidecar', { after: [container('hook-sidecar-0', '1')] }, {}, '10', ['misaligned-container']],
    ['an aligned sidecar', { after: [container('hook-sidecar-0', '2')] }, {}, '10', []],
    ['an ordinary sidecar', { init: [container('guest-console-log', '15m')] }, {}, '10', []],
    ['an integral init container', { init: [container('init', '3')] }, {}, '10', ['misaligned-container']],
    [
      'a sidecar that prevents Guaranteed',
      { before: [container('mesh', '100m', '200m')] },
      {},
      '10',
      ['not-guaranteed'],
    ],
    ['a sidecar without resources', { before: [{ name: 'mesh' }] }, {}, '10', ['not-guaranteed']],
  ];
  for (const [what, options, request, outcome, codes] of cases) {
    it(`${what}: ${[outcome, ...codes].join(', ')}`, () => {
      const found = decide(options, request);
      assert.equal(found.outcome, outcome);
      assert.deepEqual(found.codes, codes);
    });
  }

  it('finds the container wherever injectors put it', () => {
    const { decision } = decide({ before: [container('mesh', '100m')] });
    assert.ok(decision.to !== undefined);
  });

  it('describes problems in at most 256 characters', () => {
    const { decision } = decide({
      before: [container('mesh', '100m', '200m')],
      after: [container('hook-sidecar-0', '1')],
      podLevel: { cpu: '1' },
    });
    assert.ok(decision.findings.length >= 2);
    for (const { message } of decision.findings) assert.ok(message.length <= 256, message);
  });

  it('accepts the API’s own objects', () => {
    const one: VirtualMachineInstance = virtualMachineInstance.parse(fixture('vmi'));
    for (const name of ['virt-launcher-pod.admission', 'virt-launcher-pod.migration-target.admission']) {
      const admitted: Pod = podSchema.parse(fixture(name));
      const decision = alignmentOf(admitted, { vmi: one });
      assert.deepEqual(decision, { to: 10, threadsPerCore: 2, findings: [] });
    }
    const hotPlug = podSchema.parse(fixture('hp-volume-pod.admission'));
    assert.deepEqual(recognizeLauncher(hotPlug), { kind: 'other', why: 'hot-plug' });
  });
});

describe('recognition of a launcher', () => {
  it('W7: takes the VMI from the controller owner, not from a label', () => {
    const pod = launcherPod({ labels: { 'vm.kubevirt.io/name': 'another-host-name' } });
    const found = recognizeLauncher(pod);
    assert.deepEqual(found, { kind: 'launcher', vmi: { name: 'vm', uid: 'u1' }, compute: 0, purpose: 'run' });
  });

  const owner = launcherPod().metadata.ownerReferences![0]!;
  const others: [what: string, owners: readonly (typeof owner)[]][] = [
    ['no owner', []],
    ['a pod for an owner', [{ ...owner, apiVersion: 'v1', kind: 'Pod' }]],
    ['an owner that is not a controller', [{ ...owner, controller: false }]],
    ['a VMI of a foreign API group', [{ ...owner, apiVersion: 'example.com/v1' }]],
  ];
  for (const [what, ownerReferences] of others) {
    it(`ignores a pod with ${what}`, () => {
      const pod = launcherPod();
      const found = recognizeLauncher({ ...pod, metadata: { ...pod.metadata, ownerReferences } });
      assert.deepEqual(found, { kind: 'other', why: 'no-vmi-owner' });
    });
  }

  it('ignores a pod without the label or without a compute container', () => {
    const pod = launcherPod();
    assert.equal(recognizeLauncher({ ...pod, metadata: {} }).kind, 'other');
    assert.equal(recognizeLauncher({ ...pod, spec: { containers: [container('other', '9')] } }).kind, 'other');
  });
});

describe('exclusive CPUs of a pod', () => {
  it('are those of integral containers, init containers first', () => {
    const pod = launcherPod({
      init: [container('init', '2'), container('log', '15m')],
      after: [container('side', '1000m')],
    });
    assert.deepEqual(
      podResourcesOf(pod).integral.map(({ list, index, name, cpus }) => `${list}[${index}] ${name} ${cpus}`),
      ['initContainers[0] init 2', 'containers[0] compute 9', 'containers[1] side 1'],
    );
  });

  it('require a Guaranteed pod; a missing request counts as the limit', () => {
    const limited = { name: 'c', resources: { limits: { cpu: '1', memory: '1Gi' } } };
    assert.deepEqual(podResourcesOf(launcherPod({ after: [limited] })).obstacles, []);
    const same = {
      name: 'c',
      resources: { requests: { cpu: '1000m', memory: '1024Mi' }, limits: { cpu: '1', memory: '1Gi' } },
    };
    assert.deepEqual(podResourcesOf(launcherPod({ after: [same] })).obstacles, []);
    const noMemory = { name: 'c', resources: { limits: { cpu: '1' } } };
    assert.deepEqual(podResourcesOf(launcherPod({ after: [noMemory] })).obstacles, [
      { container: 'c', why: 'it has no memory limit' },
    ]);
  });
});

describe('whether the kubelet assigns CPUs to a pod', () => {
  const cases: readonly [what: string, pod: PodShape, expected: boolean][] = [
    ['a whole number, requests equal to limits', launcherPod({ cpu: '4' }), true],
    ['requests below limits', launcherPod({ cpu: '4', limit: '5' }), false],
    ['a fraction', launcherPod({ cpu: '4500m' }), false],
    [
      'a fraction, with a whole number in another container',
      launcherPod({ cpu: '500m', after: [container('b', '1')] }),
      true,
    ],
    ['a whole number, with another container without limits', launcherPod({ cpu: '4', after: [{ name: 'b' }] }), false],
    ['pod-level resources', launcherPod({ cpu: '4', podLevel: { cpu: '4' } }), false],
  ];
  for (const [what, pod, expected] of cases)
    it(`${what}: ${expected}`, () => assert.equal(podResourcesOf(pod).exclusive, expected));
});
