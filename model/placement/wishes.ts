import * as z from 'zod';
import { physnetOfResource, TUNNEL_RESOURCE } from '../names.ts';
import type { NetworkNeed, PlacementNeeds } from './needs.ts';

/**
 * What decides about a pod's place and is no request: networks that it would rather be near, and whether its guest sees
 * the NUMA nodes that its CPUs span. The webhook writes it as an annotation, over whatever stands there. Nothing in it
 * concerns anybody but the pod itself, so a forged one harms nobody else.
 */
export interface PlacementWishes {
  /** Device resources that stand for networks: `physnet.plumbline.dev/east`, `plumbline.dev/tunnel`. */
  readonly preferred: readonly string[];
  readonly spansCells: boolean;
}

export const NO_WISHES: PlacementWishes = Object.freeze({ preferred: [], spansCells: false });

const wishes = z.object({
  preferred: z.array(z.string()).max(64).default([]),
  spansCells: z.boolean().default(false),
});

export function formatWishes({ preferred, spansCells }: PlacementWishes): string {
  return JSON.stringify({ ...(preferred.length > 0 && { preferred }), ...(spansCells && { spansCells }) });
}

/** Text that is not of that form wishes for nothing: a wish never keeps a pod from being placed. */
export function parseWishes(text: string | undefined): PlacementWishes {
  if (text === undefined) return NO_WISHES;
  try {
    return wishes.parse(JSON.parse(text));
  } catch {
    return NO_WISHES;
  }
}

/** The network that a device resource stands for, or undefined if it stands for none. */
export function networkOfResource(resource: string, affinity: NetworkNeed['affinity']): NetworkNeed | undefined {
  if (resource === TUNNEL_RESOURCE) return { name: resource, kind: 'tunnel', affinity };
  const physnet = physnetOfResource(resource);
  return physnet === undefined ? undefined : { name: resource, kind: 'physnet', physnet, affinity };
}

/** What the wishes add to the networks that the pod's requests name; those stay required. */
export function withWishes(
  required: readonly NetworkNeed[],
  { preferred, spansCells }: PlacementWishes,
): Pick<PlacementNeeds, 'networks' | 'spansCells'> {
  const known = new Set(required.map(({ name }) => name));
  const more = preferred
    .filter((resource) => !known.has(resource))
    .map((resource) => networkOfResource(resource, 'preferred'))
    .filter((need) => need !== undefined);
  return { networks: [...required, ...more], spansCells };
}
