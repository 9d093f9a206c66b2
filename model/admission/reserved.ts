import {
  DECISION_ANNOTATION,
  PHYSNET_RESOURCE_PREFIX,
  PLACED_RESOURCE,
  PLACEMENT_ANNOTATION,
  TUNNEL_RESOURCE,
} from '../names.ts';
import type { ContainerShape, PodShape } from '../shapes.ts';
import type { Place } from './facts.ts';

const NOT_YOURS = ', which only Plumbline may set; remove it';

/**
 * Describes the first of Plumbline's own resources that a pod requests without permission; undefined if there is none.
 * Every node has a limited number of each: without this check a tenant could use them up.
 * @param bearer the container that may request resources
 * @param mayHave resources of which that container may request one each
 */
export function reservedRequest(pod: PodShape, bearer?: Place, mayHave: readonly string[] = []): string | undefined {
  for (const list of ['containers', 'initContainers'] as const) {
    for (const [index, container] of (pod.spec[list] ?? []).entries()) {
      const isBearer = list === bearer?.list && index === bearer.index;
      const found = reservedAmounts(container).find(
        ([resource, amount]) => !(isBearer && amount === '1' && mayHave.includes(resource)),
      );
      if (found === undefined) continue;
      return `container ${container.name} asks for ${found.join(': ')}${NOT_YOURS}`;
    }
  }
  return undefined;
}

function reservedAmounts({ resources }: ContainerShape): [string, string][] {
  const found: [string, string][] = [];
  for (const amounts of [resources?.requests, resources?.limits]) {
    for (const resource in amounts) if (isReserved(resource)) found.push([resource, amounts[resource]!]);
  }
  return found;
}

/** The same check for a pod without a decision, including its decision annotation, which Plumbline did not write. */
export function forbiddenUse(pod: PodShape): string | undefined {
  const annotations = pod.metadata.annotations ?? {};
  const used = [DECISION_ANNOTATION, PLACEMENT_ANNOTATION].find((name) => annotations[name] !== undefined);
  if (used !== undefined) return `the pod has the annotation ${used}${NOT_YOURS}`;
  return reservedRequest(pod);
}

function isReserved(resource: string): boolean {
  if (resource === TUNNEL_RESOURCE || resource === PLACED_RESOURCE) return true;
  return resource.startsWith(PHYSNET_RESOURCE_PREFIX);
}
