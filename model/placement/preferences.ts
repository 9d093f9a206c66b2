import * as z from 'zod';
import { ANNOTATED_THREADS_PER_CORE, isAligned } from '../alignment.ts';
import { cut, few, readableOrNone } from '../errors.ts';
import { parseJson } from '../json.ts';
import { type PodRequest, podRequestOf } from '../kubelet/pod-request.ts';
import { asksForAlignment, wantsWholeCores } from '../launcher/annotation.ts';
import { maskRequestOf } from '../launcher/mask-request.ts';
import { isLauncher } from '../launcher/recognize.ts';
import { groupBy } from '../lists.ts';
import { PLACED_RESOURCE, PLACEMENT_ANNOTATION, physnetOfResource, TUNNEL_RESOURCE } from '../names.ts';
import type { PodShape } from '../shapes.ts';
import type { NetworkNeed, PlacementNeeds } from './needs.ts';

type Fields = z.infer<typeof preferences>;

/** The webhook overwrites any existing value. It affects only its own pod, so a forged one harms no other. */
export type PlacementPreferences = { readonly [Name in keyof Fields]: Readonly<Fields[Name]> };

const NO_PREFERENCES: PlacementPreferences = Object.freeze({
  preferred: [],
  spansCells: false,
  interfaces: {},
  guestThreads: 1,
});

const MAX_PREFERENCES = 64;
const MAX_RESOURCE_CHARACTERS = 317;
const MAX_NAMES_CHARACTERS = 200;
const MAX_GUEST_THREADS = 8;

const preferences = z.object({
  /** Device resources of networks: `physnet.plumbline.dev/east`, `plumbline.dev/tunnel`. */
  preferred: z.array(z.string().max(MAX_RESOURCE_CHARACTERS)).max(MAX_PREFERENCES).catch([]),
  spansCells: z.boolean().catch(false),
  guestThreads: z.number().int().min(1).max(MAX_GUEST_THREADS).catch(1),
  /** For each such resource, the interfaces on its network, for messages. */
  interfaces: z
    .record(z.string(), z.string().max(MAX_NAMES_CHARACTERS))
    .refine((names) => Object.keys(names).length <= MAX_PREFERENCES)
    .catch({}),
});

/** JSON without fields that have their default. */
export function formatPreferences({ preferred, spansCells, interfaces, guestThreads }: PlacementPreferences): string {
  return JSON.stringify({
    ...(preferred.length > 0 && { preferred }),
    ...(spansCells && { spansCells }),
    ...(guestThreads > 1 && { guestThreads }),
    ...(Object.keys(interfaces).length > 0 && { interfaces }),
  });
}

const MAX_NAMED_INTERFACES = 4;

const MAX_NAME_CHARACTERS = 63;

/** In the form of PlacementPreferences. */
export function interfacesBy(
  resources: readonly (readonly [resource: string, name: string])[],
): Record<string, string> {
  const byResource = [...groupBy(resources, ([resource]) => resource)].slice(0, MAX_PREFERENCES);
  const some = (names: readonly string[]) =>
    cut(few(names, MAX_NAMED_INTERFACES, MAX_NAME_CHARACTERS).join(', '), MAX_NAMES_CHARACTERS - 1);
  return Object.fromEntries(byResource.map(([resource, pairs]) => [resource, some(pairs.map(([, name]) => name))]));
}

/** Malformed text has no preferences. Each field is checked separately: another version may write one differently. */
export function parsePreferences(text: string | undefined): PlacementPreferences {
  if (text === undefined) return NO_PREFERENCES;
  return preferences.safeParse(parseJson(text)).data ?? NO_PREFERENCES;
}

/** Undefined if the resource does not stand for one. */
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

/** KubeVirt 1.8 and later, and 1.7, select nodes by one of these labels, for VMs with dedicatedCpuPlacement only. */
export const DEDICATED_SELECTORS: readonly string[] = ['kubevirt.io/cpumanager', 'cpumanager'];

/** From the pod alone: the webhook has written them there. @throws ParseError */
export function placementNeedsOf(pod: PodShape): PlacementNeeds {
  const request = podRequestOf(pod);
  const devices = request.containers.flatMap((container) => [...container.devices.keys()]);
  const preferences = parsePreferences(pod.metadata.annotations?.[PLACEMENT_ANNOTATION]);
  const shared = request.containers.every(({ cpus }) => cpus === 0);
  const networks = neededNetworks(devices, preferences);
  const asks = networks.length > 0 || devices.includes(PLACED_RESOURCE) || asksForExclusiveCpus(pod);
  return {
    request,
    mask: shared && isLauncher(pod.metadata) ? maskRequestOf(pod.metadata) : undefined,
    networks,
    spansCells: preferences.spansCells,
    guestThreads: preferences.guestThreads,
    wholeCores: wantsWholeCores(pod.metadata) && isPadded(request),
    mayShare: !shared && !asks,
  };
}

/** Undefined for a malformed amount or mask: the pod's needs are then not checked. */
export const readableNeedsOf = (pod: PodShape): PlacementNeeds | undefined =>
  readableOrNone(() => placementNeedsOf(pod));

/** Any other pod with whole CPUs is Guaranteed for other reasons. */
function asksForExclusiveCpus({ metadata, spec }: PodShape): boolean {
  const dedicated = DEDICATED_SELECTORS.some((label) => spec?.nodeSelector?.[label] === 'true');
  return (isLauncher(metadata) && dedicated) || wantsWholeCores(metadata) || asksForAlignment(metadata);
}

export function isExclusive({ request }: Pick<PlacementNeeds, 'request'>): boolean {
  return request.containers.some(({ cpus }) => cpus > 0);
}

/** A launcher that the webhook did not see has an odd number of CPUs: it may run on any node that assigns threads. */
function isPadded({ containers }: PodRequest): boolean {
  return containers.every(({ kind, cpus }) => kind === 'init' || isAligned(cpus, ANNOTATED_THREADS_PER_CORE));
}
