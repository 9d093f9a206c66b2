import * as z from 'zod';
import { cut, few } from '../brief.ts';
import { physnetOfResource, TUNNEL_RESOURCE } from '../names.ts';
import type { NetworkNeed } from './needs.ts';

/**
 * What decides about a pod's place and is no request: networks that it would rather be near, and whether its guest sees
 * the NUMA nodes that its CPUs span. The webhook writes it as an annotation, over whatever stands there. Nothing in it
 * concerns any pod but itself, so a forged one harms no other pod.
 */
export interface PlacementPreferences {
  /** Device resources that stand for networks: `physnet.plumbline.dev/east`, `plumbline.dev/tunnel`. */
  readonly preferred: readonly string[];
  readonly spansCells: boolean;
  /** By such a resource: the interfaces on its network, for messages. */
  readonly interfaces: Readonly<Record<string, string>>;
}

export const NO_PREFERENCES: PlacementPreferences = Object.freeze({ preferred: [], spansCells: false, interfaces: {} });

/** Networks, and characters of the names of one's interfaces. */
const MOST = 64;
const LONGEST_NAMES = 200;

const preferences = z.object({
  preferred: z.array(z.string()).max(MOST).catch([]),
  spansCells: z.boolean().catch(false),
  interfaces: z
    .record(z.string(), z.string().max(LONGEST_NAMES))
    .refine((names) => Object.keys(names).length <= MOST)
    .catch({}),
});

/** Preferences as the value of the pod's annotation: JSON without members that have their default. */
export function formatPreferences({ preferred, spansCells, interfaces }: PlacementPreferences): string {
  return JSON.stringify({
    ...(preferred.length > 0 && { preferred }),
    ...(spansCells && { spansCells }),
    ...(Object.keys(interfaces).length > 0 && { interfaces }),
  });
}

/** The names of interfaces by the resource of their network, as a placement has them. */
export function interfacesBy(
  resources: readonly (readonly [resource: string, name: string])[],
): Record<string, string> {
  const names = new Map<string, string[]>();
  for (const [resource, name] of resources) names.set(resource, [...(names.get(resource) ?? []), name]);
  const some = (list: readonly string[]) => cut(few(list, NAMED, LONGEST_NAME).join(', '), LONGEST_NAMES - 1);
  return Object.fromEntries([...names].slice(0, MOST).map(([resource, list]) => [resource, some(list)]));
}

/** Interfaces of one network that are named, and characters of a name. */
const NAMED = 4;
const LONGEST_NAME = 63;

/**
 * What is not of that form expresses no preference: a preference never keeps a pod from being placed. Each field stands for
 * itself, since a webhook of another version may have written one differently.
 */
export function parsePreferences(text: string | undefined): PlacementPreferences {
  if (text === undefined) return NO_PREFERENCES;
  try {
    return preferences.parse(JSON.parse(text));
  } catch {
    return NO_PREFERENCES;
  }
}

/** The network that a device resource stands for, or undefined if it stands for none. */
export function networkOfResource(
  resource: string,
  affinity: NetworkNeed['affinity'],
  name = '',
): NetworkNeed | undefined {
  if (resource === TUNNEL_RESOURCE) return { name, kind: 'tunnel', affinity };
  const physnet = physnetOfResource(resource);
  return physnet === undefined ? undefined : { name, kind: 'physnet', physnet, affinity };
}

/** The networks whose devices a pod requests, and those that it would rather be near. */
export function neededNetworks(
  devices: Iterable<string>,
  { preferred, interfaces }: PlacementPreferences,
): readonly NetworkNeed[] {
  const required = new Set(devices);
  const networks = (resources: Iterable<string>, affinity: NetworkNeed['affinity']) =>
    [...resources]
      .map((resource) => networkOfResource(resource, affinity, interfaces[resource]))
      .filter((need) => need !== undefined);
  const others = new Set(preferred.filter((resource) => !required.has(resource)));
  return [...networks(required, 'required'), ...networks(others, 'preferred')];
}
