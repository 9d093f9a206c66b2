import assert from 'node:assert/strict';
import { cpusWhileRunning } from '../../../model/admission/decide.ts';
import type { Settings } from '../../../model/admission/facts.ts';
import { type AlignmentRequest, cpusOfLauncher } from '../../../model/admission/launcher-cpus.ts';
import { cpusOfOrdinary } from '../../../model/admission/ordinary-cpus.ts';
import { resizeRefusal } from '../../../model/admission/resize.ts';
import { type AlignmentPolicy, asksForAlignment, asksForWholeCores } from '../../../model/launcher/annotation.ts';
import { podResourcesOf } from '../../../model/launcher/containers.ts';
import { EVEN_PARITY_ANNOTATION } from '../../../model/launcher/cpus.ts';
import { askedMultiples } from '../../../model/launcher/smt-affinity.ts';
import { ALIGN_ANNOTATION, DECISION_ANNOTATION, FULL_PCPUS_ANNOTATION } from '../../../model/names.ts';
import type { GuestCpu, PodShape, VmiShape } from '../../../model/shapes.ts';
import { ANNOTATED, alignmentOf, CPU, cluster, container, kind, launcher, ordinary } from './fixture.ts';

/** Nodes whose kubelets do not require whole cores. */
const anyCores = askedMultiples([{ ...kind(2), fullPcpusOnly: false }]);
const parity = { [EVEN_PARITY_ANNOTATION]: '' };
const auto = 'auto' as const;
function vmi(cpu: GuestCpu = {}, ioThreads = 0, annotations: Record<string, string> = {}): VmiShape {
  const pool = { ioThreadsPolicy: 'supplementalPool', ioThreads: { supplementalPoolThreadCount: ioThreads } };
  return {
    metadata: { annotations },
    spec: {
      domain: {
        cpu: { dedicatedCpuPlacement: true, isolateEmulatorThread: true, ...cpu },
        ...(ioThreads > 0 && pool),
      },
    },
  };
}
/** A launcher whose container `compute` has these CPUs. */
function podOf(cpu = '9', limit = cpu, more: Parameters<typeof launcher>[0] = {}): PodShape {
  return launcher({ ...more, containers: [container('compute', cpu, limit), ...(more.containers ?? [])] }).pod;
}
/** The new CPUs or the reason to keep them, and the codes of the findings. */
function outcomeOf(pod: PodShape, request: Partial<AlignmentRequest> = {}): string[] {
  const { why, to, findings } = alignmentOf(pod, { vmi: vmi({ cores: 4, threads: 2 }), ...request });
  return [why ?? `${to}`, ...findings.map(({ code }) => code)];
}
describe('the padding decision', () => {
  const bare = podOf('9', '9', { annotations: {} });
  const behind = launcher({ containers: [container('mesh', '100m', '200m'), container('compute', '9')] }).pod;
  const cases: [what: string, pod: PodShape, request: Partial<AlignmentRequest>, ...outcome: string[]][] = [
    ['W1: 4c2t isolated, SMT2', podOf(), {}, '10'],
    ['W2: 3 vCPUs', podOf('4'), {}, 'aligned'],
    ['W2: SMT4', podOf(), { candidates: [4] }, '12'],
    ['W2: no SMT under auto', podOf(), { candidates: [1], policy: auto }, 'aligned'],
    ['auto, and no kubelet requires whole cores', bare, { candidates: anyCores, policy: auto }, 'aligned'],
    ['no node has reported', podOf(), { candidates: [] }, '10'],
    ['no node has reported, auto, annotated', podOf(), { candidates: [], policy: auto }, '10'],
    ['W12: mixed candidates take the largest', podOf(), { candidates: [2, 1, 4, 2] }, '12', 'mixed-candidates'],
    ['W3: no annotation', bare, {}, 'not-annotated'],
    [
      'W3: not dedicated',
      podOf(),
      { vmi: vmi({ dedicatedCpuPlacement: false }) },
      'not-dedicated',
      'no-effect-not-dedicated',
    ],
    ['CPUs of a claim', podOf(), { vmi: vmi({ dra: {} }) }, 'cpus-from-claim', 'no-effect-claim'],
    [
      'W3: not isolated',
      podOf(),
      { vmi: vmi({ isolateEmulatorThread: false }) },
      'not-isolated',
      'no-effect-not-isolated',
    ],
    ['W12: gate off', podOf(), { gate: false }, 'gate-off', 'gate-off'],
    [
      'an unknown value',
      podOf('9', '9', { annotations: { [FULL_PCPUS_ANNOTATION]: 'full' } }),
      {},
      'not-annotated',
      'unknown-annotation-value',
    ],
    ['W5: migration target', podOf('9', '9', { labels: { 'kubevirt.io/migrationJobUID': 'm' } }), {}, '10'],
    ['W11: not a whole number', podOf('9500m'), {}, 'no-exclusive-cpus'],
    ['W11: request below limit', podOf('9', '10'), {}, 'no-exclusive-cpus', 'not-guaranteed'],
    [
      'W11: pod-level resources',
      podOf('9', '9', { resources: { limits: { cpu: '10' } } }),
      {},
      'pod-level-resources',
      'pod-level-resources',
    ],
    [
      'W9: an integral sidecar',
      podOf('9', '9', { containers: [container('side', '1')] }),
      {},
      '10',
      'misaligned-container',
    ],
    ['an injected container before it that prevents Guaranteed', behind, {}, '10', 'not-guaranteed'],
    ['W4: even parity, one vCPU, pool of 1', podOf('3'), { vmi: vmi({ cores: 1 }, 1, parity) }, '4'],
    ['W4: even parity, five vCPUs, no pool', podOf('6'), { vmi: vmi({ cores: 5 }, 0, parity) }, 'aligned'],
    [
      'W4: even parity, SMT off: only the CPU that KubeVirt leaves out is added',
      podOf('3'),
      { candidates: [1], policy: auto, vmi: vmi({ cores: 1 }, 1, parity) },
      '4',
    ],
  ];
  for (const [what, pod, request, ...outcome] of cases) {
    it(`${what}: ${outcome.join(', ')}`, () => assert.deepEqual(outcomeOf(pod, request), outcome));
  }
});
describe('the CPUs of a launcher', () => {
  const isolated = vmi(CPU);
  function cpusOf(compute: ReturnType<typeof container>, settings: Partial<Settings> = {}, annotations = ANNOTATED) {
    const { pod, compute: index } = launcher({ annotations, containers: [container('side', '2'), compute] });
    const owner = { vmi: isolated, resources: podResourcesOf(pod), cluster: cluster() };
    const all = { gate: true, policy: 'annotated', oversized: 'refuse', ...settings } as const;
    return cpusOfLauncher({ pod, compute: index, settings: all }, owner);
  }
  const compute = { list: 'containers', index: 1 } as const;

  it('are unchanged if an earlier pass made them whole cores', () => {
    const { answered, containers, stated, padding, unpadded } = cpusOf(container('compute', '10'));
    assert.deepEqual(
      [answered, containers, stated, padding, unpadded],
      [true, [{ ...compute, cpus: undefined }], { compute: 10 }, 1, undefined],
    );
  });

  it('are unchanged, with a reason if whole cores were requested', () => {
    const { answered, stated, padding, unpadded } = cpusOf(container('compute', '9'), { gate: false });
    assert.deepEqual(
      [answered, stated, padding, unpadded],
      [false, {}, 0, 'the webhook runs with --full-pcpus-only false'],
    );
    const bare = cpusOf(container('compute', '9'), {}, {} as typeof ANNOTATED);
    assert.deepEqual([bare.answered, bare.unpadded], [false, undefined]);
  });
});

const setup = container('setup', '3');
/** The CPUs of a pod with these containers that can run on nodes with these threads per core. */
function cpusOn(threads: readonly number[], policy: AlignmentPolicy, ...cpus: string[]) {
  const containers = cpus.map((cpu, i) => container(`c${i}`, ...(cpu.split('/') as [string, string?])));
  const settings = { gate: true, policy, oversized: 'refuse' } as const;
  return cpusOfOrdinary(ordinary({ containers }, { cluster: cluster(threads.map((count) => kind(count))), settings }));
}
describe('the CPUs of an ordinary pod', () => {
  it('are those of a pod with the annotation, which has one value', () => {
    const asks = (annotations?: Record<string, string>) =>
      [asksForAlignment, asksForWholeCores].map((asksFor) => asksFor({ annotations }));
    assert.deepEqual(asks(), [false, false]);
    assert.deepEqual(asks({ [ALIGN_ANNOTATION]: 'cores' }), [true, false]);
    assert.deepEqual(asks({ [ALIGN_ANNOTATION]: 'whole-cores' }), [true, true]);
    const [finding] = cpusOfOrdinary(ordinary({ annotations: {} })).findings;
    assert.equal(finding?.code, 'unknown-annotation-value');
  });

  it('are rounded up for each container', () => {
    const cpus = cpusOfOrdinary(ordinary({ containers: [container('a', '2'), container('b', '3')] }));
    assert.deepEqual(
      [cpus.exclusive, cpus.answered, cpus.threadsPerCore, cpus.stated],
      [true, true, 2, { a: 2, b: 4 }],
    );
    assert.deepEqual([cpus.bearer?.index, cpus.own], [0, ['plumbline.dev/placed']]);
  });

  for (const [what, policy, candidates, threads] of [
    ['no node has reported', 'annotated', [], 2],
    ['auto, no SMT', 'auto', [1], 1],
    ['auto, the largest of several', 'auto', [2, 8, 4], 8],
  ] as const) {
    it(`are rounded to ${threads} threads: ${what}`, () => {
      const { threadsPerCore, amounts } = cpusOn(candidates, policy, '3');
      assert.deepEqual([threadsPerCore, amounts[0]?.cpus], [threads, Math.ceil(3 / threads) * threads]);
    });
  }

  it('are rounded in every container whose request equals its limit, and lost if one is not Guaranteed', () => {
    const { amounts, findings, exclusive, answered, containers, stated } = cpusOn([2], 'annotated', '3', '2/3', '4');
    assert.deepEqual(
      amounts.map(({ cpus }) => cpus),
      [4, 4],
    );
    assert.deepEqual([exclusive, answered, containers, stated], [false, false, [], {}]);
    assert.equal(findings.map(({ code }) => code).join(), 'not-guaranteed');
  });

  for (const [what, cpus, before, padding] of [
    ['rounded now', '3', undefined, 1],
    ['rounded in an earlier pass', '4', '{"cpus":{"dpdk":4},"padding":1}', 1],
    ['written with an earlier decision about other CPUs', '4', '{"cpus":{"dpdk":6},"padding":1}', 0],
    ['written with more than a core has', '4', '{"cpus":{"dpdk":4},"padding":2}', 0],
  ] as const) {
    it(`have a padding of ${padding} if they were ${what}`, () => {
      const annotations = { [ALIGN_ANNOTATION]: 'whole-cores', [DECISION_ANNOTATION]: before };
      const facts = ordinary({ annotations: annotations as never, containers: [container('dpdk', cpus)] });
      assert.equal(cpusOfOrdinary(facts).padding, padding);
    });
  }

  it('get a note about different nodes if they were rounded', () => {
    const codes = (threads: readonly number[], ...cpus: string[]) =>
      cpusOn(threads, 'annotated', ...cpus).findings.map(({ code }) => code);
    assert.deepEqual(codes([16, 4, 2, 4], '3', '16'), ['mixed-candidates']);
    assert.deepEqual(codes([16, 4, 2, 4], '16', '32'), []);
    assert.deepEqual(codes([4, 4], '3'), []);
  });

  it('give the devices to an init container if only that one has any', () => {
    const cpus = cpusOfOrdinary(ordinary({ initContainers: [setup], containers: [container('a', '500m')] }));
    assert.deepEqual([cpus.bearer?.list, cpus.bearer?.index], ['initContainers', 0]);
    assert.equal(cpusWhileRunning(cpus), 0);
  });
});

const VM = 'this pod has whole cores, which cannot be resized in place: change the VM and restart or migrate it';
const POD = 'this pod has whole cores, which cannot be resized in place: delete and create it again';
const on = { gate: true, policy: 'annotated' } as const;
const off = { ...on, gate: false };
const all = { ...on, policy: 'auto' } as const;
const vm = launcher().pod;
const larger = launcher({ containers: [container('compute', '12')] }).pod;
const plain = launcher({ annotations: {} }).pod;
const pod = ordinary().pod;
const grown = ordinary({ containers: [container('dpdk', '5')] }).pod;
const init = (cpu: string) => ordinary({ initContainers: [container('i', cpu)] }).pod;
describe('an in-place resize', () => {
  for (const [what, before, after, settings, expected] of [
    ['a launcher with whole cores', vm, larger, on, VM],
    ['a launcher while the gate is off', vm, larger, off, undefined],
    ['a launcher without the annotation', plain, larger, on, undefined],
    ['a launcher without the annotation if all are aligned', plain, larger, all, VM],
    ['an ordinary pod with whole cores', pod, grown, on, POD],
    ['an ordinary pod, even if the gate is off', pod, grown, off, POD],
    ['an init container', init('2'), init('4'), on, POD],
  ] as const) {
    it(`${what}: ${expected === undefined ? 'allowed' : 'refused'}`, () =>
      assert.equal(resizeRefusal(before, after, settings), expected));
  }
});
