import { isNetworkResource } from '../kubelet/report.ts';
import { type ContainerPath, isAt } from '../launcher/containers.ts';
import { DECISION_ANNOTATION, PLACED_RESOURCE, PLACEMENT_ANNOTATION } from '../names.ts';
import type { ContainerShape, PodShape } from '../shapes.ts';

const NOT_YOURS = ', which only Plumbline may set; remove it';

/**
 * The first of Plumbline's own resources that a pod requests without permission: a tenant could use up a node's.
 * @param bearer the container that may request one each of `mayHave`
 */
export function reservedRequest(
  pod: PodShape,
  bearer?: ContainerPath,
  mayHave: readonly string[] = [],
): string | undefined {
  for (const list of ['containers', 'initContainers'] as const) {
    for (const [index, container] of (pod.spec[list] ?? []).entries()) {
      const isBearer = isAt(bearer, { list, index });
      const foreign = reservedAmounts(container).find(
        ([resource, amount]) => !(isBearer && amount === '1' && mayHave.includes(resource)),
      );
      if (foreign !== undefined) return `container ${container.name} asks for ${foreign.join(': ')}${NOT_YOURS}`;
    }
  }
  return undefined;
}

function reservedAmounts({ resources }: ContainerShape): [string, string][] {
  const amounts = [...Object.entries(resources?.requests ?? {}), ...Object.entries(resources?.limits ?? {})];
  return amounts.filter(([resource]) => isNetworkResource(resource) || resource === PLACED_RESOURCE);
}

/** The same check for a pod without a decision, including its decision annotation, which Plumbline did not write. */
export function forbiddenUse(pod: PodShape): string | undefined {
  const annotations = pod.metadata.annotations ?? {};
  const used = [DECISION_ANNOTATION, PLACEMENT_ANNOTATION].find((name) => annotations[name] !== undefined);
  if (used !== undefined) return `the pod has the annotation ${used}${NOT_YOURS}`;
  return reservedRequest(pod);
}
