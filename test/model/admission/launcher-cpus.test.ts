import assert from 'node:assert/strict';
import type { Settings } from '../../../model/admission/facts.ts';
import { cpusOfLauncher } from '../../../model/admission/launcher-cpus.ts';
import { podResourcesOf } from '../../../model/launcher/containers.ts';
import { EVEN_PARITY_ANNOTATION } from '../../../model/launcher/cpus.ts';
import { FULL_PCPUS_ANNOTATION } from '../../../model/names.ts';
import type { GuestCpu, PodShape, VmiShape } from '../../../model/shapes.ts';
import { type AlignmentRequest, ANNOTATED, alignmentOf, CPU, cluster, container, kind, launcher } from './fixture.ts';

/** Nodes whose kubelets do not require whole cores. */
const anyCores = [{ ...kind(2), fullPcpusOnly: false }];
const kinds = (...threads: number[]) => threads.map((count) => kind(count));
const parity = { [EVEN_PARITY_ANNOTATION]: '' };
const auto = 'auto' as const;
function vmi(cpu: GuestCpu = {}, ioThreads = 0, annotations: Record<string, string> = {}): VmiShape {
  const pool = { ioThreadsPolicy: 'supplementalPool', ioThreads: { supplementalPoolThreadCount: ioThreads } };
  return {
    metadata: { annotations },
    spec: {
      domain: { cpu: { dedicatedCpuPlacement: true, isolateEmulatorThread: true, ...cpu }, ...(ioThreads > 0 && pool) },
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
  const withAnnotations = (annotations: Record<string, string>) => podOf('9', '9', { annotations });
  const bare = withAnnotations({});
  const unknown = withAnnotations({ [FULL_PCPUS_ANNOTATION]: 'full' });
  const migrating = podOf('9', '9', { labels: { 'kubevirt.io/migrationJobUID': 'm' } });
  const podLevel = podOf('9', '9', { resources: { limits: { cpu: '10' } } });
  const withSidecar = podOf('9', '9', { containers: [container('side', '1')] });
  const behind = launcher({ containers: [container('mesh', '100m', '200m'), container('compute', '9')] }).pod;
  const of = (...parts: Parameters<typeof vmi>) => ({ vmi: vmi(...parts) });
  const noSmt = { candidates: kinds(1), policy: auto };
  const cases: [what: string, pod: PodShape, request: Partial<AlignmentRequest>, ...outcome: string[]][] = [
    ['W1: 4c2t isolated, SMT2', podOf(), {}, '10'],
    ['W2: 3 vCPUs', podOf('4'), {}, 'aligned'],
    ['W2: SMT4', podOf(), { candidates: kinds(4) }, '12'],
    ['W2: no SMT under auto', podOf(), noSmt, 'aligned'],
    ['auto, and no kubelet requires whole cores', bare, { candidates: anyCores, policy: auto }, 'aligned'],
    ['no node has reported', podOf(), { candidates: [] }, '10'],
    ['no node has reported, auto, annotated', podOf(), { candidates: [], policy: auto }, '10'],
    ['W12: mixed candidates take the largest', podOf(), { candidates: kinds(2, 1, 4, 2) }, '12', 'mixed-candidates'],
    ['W3: no annotation', bare, {}, 'not-annotated'],
    ['W3: not dedicated', podOf(), of({ dedicatedCpuPlacement: false }), 'not-dedicated', 'no-effect-not-dedicated'],
    ['CPUs of a claim', podOf(), of({ dra: {} }), 'cpus-from-claim', 'no-effect-claim'],
    ['W3: not isolated', podOf(), of({ isolateEmulatorThread: false }), 'not-isolated', 'no-effect-not-isolated'],
    ['W12: gate off', podOf(), { gate: false }, 'gate-off', 'gate-off'],
    ['an unknown value', unknown, {}, 'not-annotated', 'unknown-annotation-value'],
    ['W5: migration target', migrating, {}, '10'],
    ['W11: not a whole number', podOf('9500m'), {}, 'no-exclusive-cpus'],
    ['W11: request below limit', podOf('9', '10'), {}, 'no-exclusive-cpus', 'not-guaranteed'],
    ['W11: pod-level resources', podLevel, {}, 'pod-level-resources', 'pod-level-resources'],
    ['W9: an integral sidecar', withSidecar, {}, '10', 'misaligned-container'],
    ['an injected container before it that prevents Guaranteed', behind, {}, '10', 'not-guaranteed'],
    ['W4: even parity, one vCPU, pool of 1', podOf('3'), of({ cores: 1 }, 1, parity), '4'],
    ['W4: even parity, five vCPUs, no pool', podOf('6'), of({ cores: 5 }, 0, parity), 'aligned'],
    // Only the CPU that KubeVirt leaves out is added.
    ['W4: even parity, SMT off', podOf('3'), { ...noSmt, ...of({ cores: 1 }, 1, parity) }, '4'],
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
