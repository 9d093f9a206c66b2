import jsonPatch from 'fast-json-patch';
import type { PatchOperation } from '../../model/admission/answer.ts';
import type { ContainerChange, PodChange } from '../../model/admission/decision.ts';
import type { NodeRequirement, NodeTerm } from '../../model/launcher/node-selection.ts';
import { withAlternatives } from '../../model/launcher/smt-affinity.ts';

type Json = Readonly<Record<string, unknown>>;

/** An object as received. It is patched in this form, so that fields outside the schemas are not lost. */
export interface RawPod {
  readonly metadata: Json;
  readonly spec: Json;
}

/**
 * The JSON patch for a change. It contains only differences, creates missing parents, and replaces nothing that
 * contains more than the change. Empty if the pod already has the change.
 */
export function patchFor(pod: RawPod, change: PodChange): readonly PatchOperation[] {
  return [
    ...change.containers.flatMap((one) => containerOperations(pod, one)),
    ...annotationOperations(pod.metadata['annotations'], change.annotations),
    ...(change.nodes === undefined ? [] : affinityOperations(pod.spec['affinity'], change.nodes)),
    ...(change.scheduler === undefined ? [] : [add('/spec/schedulerName', change.scheduler)]),
  ];
}

function containerOperations(pod: RawPod, { list, index, cpus, resources }: ContainerChange): PatchOperation[] {
  const wanted: Record<string, string> = {};
  if (cpus !== undefined) wanted['cpu'] = String(cpus);
  for (const name of resources) wanted[name] = '1';
  if (Object.keys(wanted).length === 0) return [];
  const have = (pod.spec[list] as readonly Json[])[index]?.['resources'];
  const path = `/spec/${list}/${index}/resources`;
  if (!isObject(have)) return [add(path, { requests: wanted, limits: wanted })];
  return (['requests', 'limits'] as const).flatMap((side) => {
    const amounts = have[side];
    return isObject(amounts) ? entries(`${path}/${side}`, amounts, wanted) : [add(`${path}/${side}`, wanted)];
  });
}

function annotationOperations(have: unknown, wanted: PodChange['annotations']): PatchOperation[] {
  const path = '/metadata/annotations';
  if (isObject(have)) return entries(path, have, wanted);
  const set = Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== undefined));
  return Object.keys(set).length === 0 ? [] : [add(path, set)];
}

/** Compares only the part that changes: comparing whole pods would cost more than the rest of a review. */
function entries(path: string, have: Json, wanted: Readonly<Record<string, string | undefined>>): PatchOperation[] {
  const [before, after]: [Record<string, unknown>, Record<string, unknown>] = [{}, {}];
  for (const key in wanted) {
    if (have[key] !== undefined) before[key] = have[key];
    if (wanted[key] !== undefined) after[key] = wanted[key];
  }
  const differences = jsonPatch.compare(before, after);
  for (const one of differences) one.path = path + one.path;
  return differences as PatchOperation[];
}

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';

function affinityOperations(affinity: unknown, nodes: readonly NodeRequirement[]): PatchOperation[] {
  const [path, atNode, atRequired] = ['/spec/affinity', '/nodeAffinity', `/${REQUIRED}`];
  const terms = withAlternatives(undefined, nodes);
  if (!isObject(affinity)) return [add(path, { nodeAffinity: { [REQUIRED]: { nodeSelectorTerms: terms } } })];
  const nodeAffinity = affinity['nodeAffinity'];
  if (!isObject(nodeAffinity)) return [add(path + atNode, { [REQUIRED]: { nodeSelectorTerms: terms } })];
  const required = nodeAffinity[REQUIRED];
  if (!isObject(required)) return [add(path + atNode + atRequired, { nodeSelectorTerms: terms })];
  const have = required['nodeSelectorTerms'];
  // A required affinity without terms selects no node. It must continue to select none.
  if (!Array.isArray(have)) return [];
  const value = withAlternatives(have as NodeTerm[], nodes);
  if (value.length === have.length) return [];
  return [{ op: 'replace', path: `${path}${atNode}${atRequired}/nodeSelectorTerms`, value }];
}

/** `add` also replaces, so it is correct if a parent is null. */
function add(path: string, value: unknown): PatchOperation {
  return { op: 'add', path, value };
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
