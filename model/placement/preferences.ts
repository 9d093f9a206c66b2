import * as z from 'zod';
import { cut, few } from '../errors.ts';
import { parseJson } from '../json.ts';
import { physnetOfResource, TUNNEL_RESOURCE } from '../names.ts';
import type { NetworkNeed } from './needs.ts';

/**
 * Data that affects a pod's placement and is not a request: preferred networks, and whether its guest sees the NUMA
 * nodes that its CPUs span. The webhook writes it as an annotation and overwrites any existing value. It only affects
 * its own pod, so a forged one harms no other pod.
 */
export interface PlacementPreferences {
  /** Device resources of networks: `physnet.plumbline.dev/east`, `plumbline.dev/tunnel`. */
  readonly preferred: readonly string[];
  readonly spansCells: boolean;
  /** For each such resource, the interfaces on its network, for messages. */
  readonly interfaces: Readonly<Record<string, string>>;
}

export const NO_PREFERENCES: PlacementPreferences = Object.freeze({ preferred: [], spansCells: false, interfaces: {} });

/** Number of networks, characters of a resource's name, and of the interface names of one network. */
const MAX_PREFERENCES = 64;
const MAX_RESOURCE_CHARACTERS = 317;
const LONGEST_NAMES = 200;

const preferences = z.object({
  preferred: z.array(z.string().max(MAX_RESOURCE_CHARACTERS)).max(MAX_PREFERENCES).catch([]),
  spansCells: z.boolean().catch(false),
  interfaces: z
    .record(z.string(), z.string().max(LONGEST_NAMES))
    .refine((names) => Object.keys(names).length <= MAX_PREFERENCES)
    .catch({}),
});

/** The preferences as the annotation's value: JSON without fields that have their default. */
export function formatPreferences({ preferred, spansCells, interfaces }: PlacementPreferences): string {
  return JSON.stringify({
    ...(preferred.length > 0 && { preferred }),
    ...(spansCells && { spansCells }),
    ...(Object.keys(interfaces).length > 0 && { interfaces }),
  });
}

/** Interface names by the resource of their network, in the form of PlacementPreferences. */
export function interfacesBy(
  resources: readonly (readonly [resource: string, name: string])[],
): Record<string, string> {
  const names = new Map<string, string[]>();
  for (const [resource, name] of resources) names.set(resource, [...(names.get(resource) ?? []), name]);
  const some = (list: readonly string[]) => cut(few(list, NAMED, LONGEST_NAME).join(', '), LONGEST_NAMES - 1);
  return Object.fromEntries([...names].slice(0, MAX_PREFERENCES).map(([resource, list]) => [resource, some(list)]));
}

/** Number of interfaces of one network in a message, and characters of a name. */
const NAMED = 4;
const LONGEST_NAME = 63;

/**
 * Parses the annotation. Malformed text has no preferences: a preference never prevents a placement. Each field is
 * checked separately, because a webhook of another version may write one differently.
 */
export function parsePreferences(text: string | undefined): PlacementPreferences {
  if (text === undefined) return NO_PREFERENCES;
  return preferences.safeParse(parseJson(text)).data ?? NO_PREFERENCES;
}

/** The network of a device resource, or undefined if the resource does not stand for one. */
export function networkOfResource(
  resource: string,
  affinity: NetworkNeed['affinity'],
  name = '',
): NetworkNeed | undefined {
  if (resource === TUNNEL_RESOURCE) return { name, kind: 'tunnel', affinity };
  const physnet = physnetOfResource(resource);
  return physnet === undefined ? undefined : { name, kind: 'physnet', physnet, affinity };
}

/** The networks whose devices a pod requests, and its preferred networks. */
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
