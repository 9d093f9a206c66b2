import { AGENT_READY_CONDITION, DPU_HOST_LABEL, DPU_READY_CONDITION } from '../../model/names.ts';
import { wholeOrNone } from '../../model/quantity.ts';
import type { NodeFacts } from '../../model/report/check.ts';
import type { ConditionShape } from '../../model/shapes.ts';
import type { Node } from '../resources.ts';

export const NODES_PATH = '/api/v1/nodes';

const ARCH_LABEL = 'kubernetes.io/arch';

interface LabelledNode {
  readonly metadata: Pick<Node['metadata'], 'labels'>;
}

/** A watched Node, whichever of its fields a program reads. */
export interface WatchedNode extends LabelledNode {
  readonly status?: { readonly conditions?: readonly ConditionShape[] | undefined } | undefined;
}

type MachineStatus = Pick<NonNullable<Node['status']>, 'capacity' | 'nodeInfo'> | undefined;

/** Extracts from a Node object the facts about its machine. Device plugins name their resources with a prefix. */
export function factsOfNode({ metadata, status }: LabelledNode & { readonly status?: MachineStatus }): NodeFacts {
  const devices = status?.capacity && Object.entries(status.capacity).filter(([resource]) => resource.includes('/'));
  const arch = metadata.labels?.[ARCH_LABEL] ?? status?.nodeInfo?.architecture;
  return {
    cpus: wholeOrNone(status?.capacity?.['cpu'] ?? ''),
    capacity: devices && new Map(devices.map(([resource, count]) => [resource, wholeOrNone(count) ?? 0])),
    arch,
  };
}

export const isDpuHost = ({ metadata }: LabelledNode): boolean => metadata.labels?.[DPU_HOST_LABEL] !== undefined;

export function nodeCondition(node: WatchedNode | undefined, type: string): ConditionShape | undefined {
  return node?.status?.conditions?.find((condition) => condition.type === type);
}

/** The status of the conditions that the extender, or another component, writes. */
export function writtenConditions(node: WatchedNode) {
  return {
    agentReady: nodeCondition(node, AGENT_READY_CONDITION)?.status,
    dpuReady: nodeCondition(node, DPU_READY_CONDITION)?.status,
  };
}

export const labelsOf = ({ metadata }: LabelledNode): ReadonlyMap<string, string> =>
  new Map(Object.entries(metadata.labels ?? {}));
