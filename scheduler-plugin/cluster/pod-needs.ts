import type * as z from 'zod';
import { reducedNeedsOf } from '../../kube/cluster-view/pods.ts';
import { BoundedMap } from '../../model/bounded-map.ts';
import { isExempt } from '../../model/cni/decide.ts';
import { isReportedResource } from '../../model/kubelet/report.ts';
import { DPU_EXEMPT_NAMESPACES } from '../../model/names.ts';
import { needsKey, type PlacementNeeds } from '../../model/placement/needs.ts';
import { isExclusive } from '../../model/placement/preferences.ts';
import type { PodShape } from '../../model/shapes.ts';

/** Which pods count as needing the DPU of their node. */
export type DpuScope = 'all' | 'attached';

/** From the pod alone: the webhook added them. */
export interface PodNeeds extends PlacementNeeds {
  /** Equal for pods with equal needs: see needsKey. */
  readonly key: string;
  readonly namespace: string;
  readonly exclusive: boolean;
  /** Whether the node's DPU would provide its network. */
  readonly dpu: boolean;
  /** The names of its interfaces, which occur in the texts of verdicts: pods with equal needs may differ in them. */
  readonly interfaces: string;
}

const MAX_POD_SHAPES = 512;
/** Containers of a pod, resources in the requests and limits of all of them, and their different names. */
export const MAX_CONTAINERS = 48;
const MAX_RESOURCES = 256;
const MAX_RESOURCE_NAMES = 64;

/** Reads needs. Pods share equal parts: ten thousand launchers have only a few shapes. */
export class NeedsReader {
  readonly #dpuScope: DpuScope;
  readonly #dpuExempt: readonly string[];
  readonly #shared = new BoundedMap<string, PodNeeds>(MAX_POD_SHAPES);

  /** @param dpuExempt as in the CNI gate */
  constructor(dpuScope: DpuScope, dpuExempt = DPU_EXEMPT_NAMESPACES) {
    this.#dpuScope = dpuScope;
    this.#dpuExempt = dpuExempt;
  }

  /** @throws ParseError if an amount is not a quantity */
  read(pod: PodShape): PodNeeds {
    const needs = reducedNeedsOf(pod);
    const { namespace = '' } = pod.metadata;
    const [key, dpu] = [needsKey(needs), needsDpu(pod, this.#dpuScope, this.#dpuExempt)];
    const interfaces = JSON.stringify(needs.networks.map(({ name }) => name));
    const { uid, guaranteed } = needs.request;
    const create = () => ({ ...needs, key, namespace, exclusive: isExclusive(needs), dpu, interfaces });
    const shared = this.#shared.getOrCreate(`${key}${dpu}${guaranteed}${interfaces}`, create);
    return { ...shared, namespace, request: { ...shared.request, uid } };
  }
}

/** Refuses a pod whose amounts are too many: a prediction compares them with each other on each node. */
export function limitAmounts({ spec }: Pick<PodShape, 'spec'>, context: z.RefinementCtx): void {
  const names = resourceNamesOf(spec);
  const refuseAbove = (limit: number, count: number, what: string) => {
    if (count > limit) context.addIssue({ code: 'custom', path: ['spec'], message: `more than ${limit} ${what}` });
  };
  refuseAbove(MAX_CONTAINERS, spec.containers.length + (spec.initContainers?.length ?? 0), 'containers');
  refuseAbove(MAX_RESOURCES, names.length, 'resources in requests and limits');
  refuseAbove(MAX_RESOURCE_NAMES, new Set(names).size, 'different resources');
}

/** In requests and limits: one for each time. */
function resourceNamesOf({ containers, initContainers }: PodShape['spec']): string[] {
  return [...containers, ...(initContainers ?? [])].flatMap(({ resources }) =>
    [resources?.requests, resources?.limits].flatMap((amounts) => Object.keys(amounts ?? {})),
  );
}

/** Of a pod of which only the number of its exclusive CPUs is known. */
export function needsOfCpus(uid: string, namespace: string, cpus: number): PodNeeds {
  const container = { name: '', kind: 'app', cpus, devices: new Map(), memory: new Map() } as const;
  const needs = { request: { uid, guaranteed: true, containers: [container] }, networks: [] };
  return { ...needs, key: needsKey(needs), namespace, exclusive: true, dpu: false, interfaces: '[]' };
}

/**
 * DaemonSet pods would be stuck on a node under repair; pods of the system's namespaces are exempt as in the CNI gate.
 */
function needsDpu(pod: PodShape, dpuScope: DpuScope, dpuExempt: readonly string[]): boolean {
  const isDaemon = pod.metadata.ownerReferences?.some(
    ({ kind, controller }) => controller === true && kind === 'DaemonSet',
  );
  if (pod.spec.hostNetwork === true || isDaemon === true) return false;
  if (isExempt(pod.metadata.namespace ?? '', dpuExempt)) return false;
  return dpuScope === 'all' || hasNetworkDevice(pod);
}

/** A device that could be a virtual function of the DPU. Other extended resources (GPUs) count too: the safe side. */
export function hasNetworkDevice({ spec }: Pick<PodShape, 'spec'>): boolean {
  return resourceNamesOf(spec).some((name) => name.includes('/') && isReportedResource(name));
}
