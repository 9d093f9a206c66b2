import type {
  ClusterFacts,
  LauncherFacts,
  OrdinaryFacts,
  OwnerFacts,
  Settings,
} from '../../../model/admission/facts.ts';
import { decideAlignment } from '../../../model/admission/launcher-cpus.ts';
import { CpuSet } from '../../../model/cpu-set.ts';
import type { Finding } from '../../../model/errors.ts';
import { podResourcesOf } from '../../../model/launcher/containers.ts';
import type { NodeKind } from '../../../model/launcher/smt-affinity.ts';
import { ALIGN_ANNOTATION, FULL_PCPUS_ANNOTATION } from '../../../model/names.ts';
import { EMPTY_CONTEXT } from '../../../model/networks/context.ts';
import { type NadFacts, nadFacts } from '../../../model/networks/nad.ts';
import { COMPUTE, type ContainerShape, type PodShape, type VmiShape } from '../../../model/shapes.ts';
import { vmiOwner } from '../../support/vmi-owner.ts';

export const ANNOTATED = { [FULL_PCPUS_ANNOTATION]: 'full-pcpus-only' };
export const ALIGNED = { [ALIGN_ANNOTATION]: 'whole-cores' };
const SETTINGS = { gate: true, policy: 'annotated', oversized: 'refuse' } as const;
const NO_SCHEDULER = { schedulerName: '', away: undefined };

/** A node that requires whole cores, with the physnet east on NUMA node 0. */
export function kind(threadsPerCore: number, room = 64): NodeKind {
  const networks = { physnets: new Map([['east', CpuSet.parse('0')]]), tunnel: undefined };
  const rooms = new Map([0, 1].map((cell) => [cell, room]));
  return { threadsPerCore, fullPcpusOnly: true, rooms, alignment: 'best-effort', networks };
}

/** The definition of a network on a physnet. */
export function localnet(physnet: string, topology = 'localnet'): NadFacts {
  const names = { name: 'n', netAttachDefName: 'ns/n', physicalNetworkName: physnet };
  const config = JSON.stringify({ type: 'ovn-k8s-cni-overlay', topology, ...names });
  return nadFacts({ metadata: {}, spec: { config } });
}

/** The definition `ns/east`, a localnet on the physnet east; every pod can run on all kinds of nodes. */
export function cluster(kinds: readonly NodeKind[] = [kind(2)], more: Partial<ClusterFacts> = {}): ClusterFacts {
  return {
    candidates: kinds,
    allReport: true,
    nodeKinds: kinds,
    networks: {
      primary: { kind: 'none' },
      reported: { physnets: new Set(['east']), tunnel: false },
      context: EMPTY_CONTEXT,
      definitions: new Map([['ns/east', localnet('east')]]),
    },
    ...more,
  };
}

export function container(name: string, cpu: string, limit = cpu, more: Record<string, string> = {}): ContainerShape {
  const memory = '1Gi';
  return { name, resources: { requests: { cpu, memory, ...more }, limits: { cpu: limit, memory, ...more } } };
}

interface Podlike {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly containers?: readonly ContainerShape[];
  readonly initContainers?: readonly ContainerShape[];
  readonly schedulerName?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** At pod level. */
  readonly resources?: ContainerShape['resources'];
}

/** A VMI of 4 cores with 2 threads and an isolated emulator thread: KubeVirt requests 9 CPUs. */
export const CPU = { cores: 4, threads: 2, dedicatedCpuPlacement: true, isolateEmulatorThread: true };

const NO_RESOURCES = podResourcesOf({ metadata: {}, spec: { containers: [] } });

export function found(facts: ClusterFacts = cluster(), cpu: object = CPU): OwnerFacts {
  return { kind: 'found', vmi: { metadata: {}, spec: { domain: { cpu } } }, cluster: facts, resources: NO_RESOURCES };
}

export function launcher(podlike: Podlike = {}, more: Partial<LauncherFacts> = {}): LauncherFacts {
  const { annotations = ANNOTATED, labels, containers = [container('compute', '9')], ...spec } = podlike;
  const ownerReferences = [vmiOwner('vm', 'u1')];
  const metadata = { labels: { 'kubevirt.io': 'virt-launcher', ...labels }, annotations, ownerReferences };
  const pod = { metadata, spec: { containers, ...spec } };
  const { owner: lookup = found() } = more;
  return {
    kind: 'launcher',
    pod,
    namespace: 'ns',
    vmi: { name: 'vm', uid: 'u1' },
    compute: containers.findIndex(({ name }) => name === 'compute'),
    purpose: 'run',
    settings: SETTINGS,
    scheduler: NO_SCHEDULER,
    ...more,
    owner: lookup.kind === 'found' ? { ...lookup, resources: podResourcesOf(more.pod ?? pod) } : lookup,
  };
}

export function ordinary(podlike: Podlike = {}, more: Partial<OrdinaryFacts> = {}): OrdinaryFacts {
  const { annotations = ALIGNED, containers = [container('dpdk', '3')], ...spec } = podlike;
  const pod = { metadata: { annotations }, spec: { containers, ...spec } };
  return {
    kind: 'ordinary',
    pod,
    resources: podResourcesOf(pod),
    namespace: 'ns',
    cluster: cluster(),
    settings: SETTINGS,
    scheduler: NO_SCHEDULER,
    ...more,
  };
}

export interface AlignmentRequest extends Partial<Pick<Settings, 'gate' | 'policy'>> {
  readonly vmi: VmiShape;
  /** Default: of a kind with two threads per core. */
  readonly candidates?: readonly NodeKind[];
}

/** The alignment of a launcher; by default with the gate on, for those that opt in. */
export function alignmentOf(pod: PodShape, { vmi, candidates, ...settings }: AlignmentRequest) {
  const compute = pod.spec.containers.findIndex(({ name }) => name === COMPUTE);
  const facts = { pod, compute, settings: { ...SETTINGS, ...settings } };
  return decideAlignment(facts, { vmi, resources: podResourcesOf(pod), cluster: cluster(candidates) });
}

/** The properties of a finding that decide its effect. */
export const brief = ({ severity, code }: Finding) => `${severity} ${code}`;
