import type { NodeRequirement } from '../launcher/node-selection.ts';
import type { PodShape } from '../launcher/shapes.ts';
import { beforeSmtAffinity } from '../launcher/smt-affinity.ts';
import type { PodCpus } from './cpus.ts';
import type { Done, Place } from './decision.ts';
import type { AdmittedPod } from './facts.ts';
import { inWords } from './texts.ts';

/** The changes to a launcher's CPUs, devices and nodes; empty on a pass that finds them already made. */
export function doneTo(
  pod: AdmittedPod,
  { done, bearer }: Pick<PodCpus, 'done' | 'bearer'>,
  resources: readonly string[],
  nodes: readonly NodeRequirement[] | undefined,
): readonly Done[] {
  const held = beforeSmtAffinity(pod.spec) === pod.spec ? nodesDone(nodes) : [];
  return [...done, ...devicesDone(pod, bearer, resources), ...held];
}

function devicesDone(pod: PodShape, bearer: Place | undefined, resources: readonly string[]): readonly Done[] {
  const has = (bearer && pod.spec[bearer.list]?.[bearer.index]?.resources?.limits) ?? {};
  const added = resources.filter((resource) => has[resource] === undefined);
  if (added.length === 0) return [];
  const message = `The launcher asks for CPUs on the NUMA nodes of its networks: ${added.join(', ')}`;
  return [{ reason: 'HeldToItsNetworks', message }];
}

function nodesDone(nodes: readonly NodeRequirement[] | undefined): readonly Done[] {
  if (nodes === undefined) return [];
  const message = `The launcher avoids nodes that would reject its CPUs: ${nodes.map(inWords).join(', or ')}`;
  return [{ reason: 'HeldToItsCores', message }];
}
