import { alignedCpus, isAligned } from '../../model/alignment.ts';
import { podResourcesOf } from '../../model/launcher/containers.ts';
import { EVEN_PARITY_ANNOTATION, launcherCpus, pinnedCpus } from '../../model/launcher/cpus.ts';
import type { GuestCpu, PodShape, VmiShape } from '../../model/shapes.ts';
import { alignmentOf, container, launcher } from '../model/admission/fixture.ts';
import { type Adapter, differs, type Verdict } from './outcome.ts';

interface Amounts {
  readonly request?: string;
  readonly limit?: string;
}

interface CpuCase {
  readonly name: string;
  readonly kind: string;
  readonly vmiCpu: GuestCpu;
  readonly vmiResources?: { readonly requests?: Record<string, string>; readonly limits?: Record<string, string> };
  readonly ioThreads?: { readonly policy: string; readonly count: number };
  /** KubeVirt's even-parity annotation, or null. */
  readonly annotation: string | null;
  readonly expectedPodCpu?: Amounts & { readonly cpusetSize?: string };
  readonly expectedContainerCpu?: Amounts;
  readonly launcherNeeds?: number;
  readonly alignedTo2?: boolean;
}

/** kubevirt-cpu-cases.json: what launchers request, and that all of them can be made whole cores. */
export const run: Adapter = (content) =>
  (content as readonly CpuCase[]).map((one) => ({
    name: one.name,
    check: () =>
      one.expectedContainerCpu === undefined
        ? (checkDedicated(one) ?? checkPadding(one))
        : checkSideContainer(one, one.expectedContainerCpu),
  }));

/** Only what the case states is compared. */
function checkDedicated(one: CpuCase): Verdict {
  const vmi = vmiOf(one);
  const { total, vcpus } = launcherCpus(vmi);
  const { request, limit, cpusetSize } = one.expectedPodCpu ?? {};
  const actual = {
    request: request && String(total),
    limit: limit && String(total),
    cpusetSize: cpusetSize && (total === vcpus ? 'cores' : `cores+${total - vcpus}`),
    needs: one.launcherNeeds && pinnedCpus(vmi).total,
    aligned: one.alignedTo2 === undefined ? undefined : isAligned(total, 2),
  };
  return differs(actual, { request, limit, cpusetSize, needs: one.launcherNeeds, aligned: one.alignedTo2 });
}

/** Padded, every launcher has whole cores and room for all it pins; a second pass changes nothing. */
function checkPadding(one: CpuCase): Verdict {
  const vmi = vmiOf(one);
  const from = launcherCpus(vmi).total;
  const padded = alignedCpus(from, 2);
  const decide = (cpus: number) => {
    const decision = alignmentOf(podWith(String(cpus)), { vmi });
    return decision.to ?? decision.why;
  };
  const unpadded = one.vmiCpu.isolateEmulatorThread === true ? 'aligned' : 'not-isolated';
  return differs(
    { first: decide(from), second: decide(padded), room: padded >= pinnedCpus(vmi).total },
    { first: unpadded === 'aligned' && padded > from ? padded : unpadded, second: unpadded, room: true },
  );
}

/** A side container never has exclusive CPUs of its own, and leaves the pod Guaranteed exactly if it has limits. */
function checkSideContainer(one: CpuCase, { request, limit }: Amounts): Verdict {
  const side = {
    name: one.name,
    resources: {
      requests: request === undefined ? {} : { cpu: request, memory: '80M' },
      limits: limit === undefined ? {} : { cpu: limit, memory: '80M' },
    },
  };
  const base = podWith('4');
  const pod: PodShape = { ...base, spec: { containers: [...base.spec.containers, side] } };
  const { integral, obstacles } = podResourcesOf(pod);
  return differs(
    { integral: integral.map(({ name }) => name), guaranteed: obstacles.length === 0 },
    { integral: ['compute'], guaranteed: limit !== undefined },
  );
}

function vmiOf(one: CpuCase): VmiShape {
  return {
    metadata: { annotations: one.annotation === EVEN_PARITY_ANNOTATION ? { [EVEN_PARITY_ANNOTATION]: '' } : {} },
    spec: {
      domain: {
        cpu: one.vmiCpu,
        resources: one.vmiResources,
        ioThreadsPolicy: one.ioThreads?.policy,
        ioThreads: { supplementalPoolThreadCount: one.ioThreads?.count },
      },
    },
  };
}

const podWith = (cpu: string) => launcher({ containers: [container('compute', cpu)] }).pod;
