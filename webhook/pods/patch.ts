import jsonPatch from 'fast-json-patch';
import type { ContainerChange, PodChange } from '../../model/admission/facts.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import type { NodeRequirement, NodeTerm } from '../../model/launcher/node-selection.ts';
import { withAlternatives } from '../../model/launcher/smt-affinity.ts';
import type { PatchOperation } from '../review/admission-review.ts';

/** An object as received. It is patched in this form, so that fields outside the schemas are not lost. */
export type RawPod = Readonly<Record<'metadata' | 'spec', JsonObject>>;

/** The JSON patch from the pod as received to the pod with the change; empty if the pod already has it. */
export function patchFor(pod: RawPod, change: PodChange): readonly PatchOperation[] {
  return jsonPatch.compare(pod, desiredPod(pod, change)) as PatchOperation[];
}

/** A copy of the pod with the change. Parts that stay the same are shared, so comparing them costs nothing. */
function desiredPod(pod: RawPod, change: PodChange): RawPod {
  const spec: Record<string, unknown> = { ...pod.spec };
  for (const container of change.containers) {
    const list = [...(spec[container.list] as JsonObject[])];
    list[container.index] = desiredContainer(list[container.index]!, container);
    spec[container.list] = list;
  }
  if (change.nodes !== undefined) spec['affinity'] = desiredAffinity(spec['affinity'], change.nodes);
  if (change.scheduler !== undefined) spec['schedulerName'] = change.scheduler;
  return { ...pod, metadata: desiredMetadata(pod.metadata, change.annotations), spec };
}

function desiredContainer(container: JsonObject, { cpus, resources }: ContainerChange): JsonObject {
  if (cpus === undefined && resources.length === 0) return container;
  const before = asObject(container['resources']);
  const amounts = (side: 'requests' | 'limits'): JsonObject => {
    const after: Record<string, unknown> = { ...asObject(before[side]) };
    if (cpus !== undefined) after['cpu'] = String(cpus);
    for (const name of resources) after[name] = '1';
    return after;
  };
  return { ...container, resources: { ...before, requests: amounts('requests'), limits: amounts('limits') } };
}

function desiredMetadata(metadata: JsonObject, changes: PodChange['annotations']): JsonObject {
  const annotations: Record<string, unknown> = { ...asObject(metadata['annotations']) };
  let isChanged = false;
  for (const [name, value] of Object.entries(changes)) {
    if (annotations[name] === value) continue;
    isChanged = true;
    if (value === undefined) delete annotations[name];
    else annotations[name] = value;
  }
  return isChanged ? { ...metadata, annotations } : metadata;
}

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';

function desiredAffinity(affinity: unknown, nodes: readonly NodeRequirement[]): unknown {
  const nodeAffinity = asObject(asObject(affinity)['nodeAffinity']);
  const required = nodeAffinity[REQUIRED];
  const terms = asObject(required)['nodeSelectorTerms'];
  // A required affinity without terms selects no node. It must continue to select none.
  if (isObject(required) && !Array.isArray(terms)) return affinity;
  const nodeSelectorTerms = withAlternatives(isObject(required) ? (terms as NodeTerm[]) : undefined, nodes);
  return {
    ...asObject(affinity),
    nodeAffinity: { ...nodeAffinity, [REQUIRED]: { ...asObject(required), nodeSelectorTerms } },
  };
}

function asObject(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}
