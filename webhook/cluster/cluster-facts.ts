import { isNotFound, type KubeClient, KubeError, type RequestOptions } from '../../kube/client.ts';
import { instancesPath } from '../../kube/cluster-view/vmis.ts';
import { virtualMachineInstance } from '../../kube/virtual-machines.ts';
import type { ClusterFacts, NetworkFacts, OwnerFacts, Settings } from '../../model/admission/facts.ts';
import { doubtfulNetworks, type NetworkOwner } from '../../model/admission/networks.ts';
import { issuesText, PlumblineError } from '../../model/errors.ts';
import type { SelectingSpec } from '../../model/launcher/node-selection.ts';
import type { VmiReference } from '../../model/launcher/recognize.ts';
import { NUMA_AFFINITY_ANNOTATION } from '../../model/names.ts';
import { type NetworkRef, refText } from '../../model/networks/attachments.ts';
import type { NadFacts } from '../../model/networks/nad.ts';
import type { VmiShape } from '../../model/shapes.ts';
import { sleep, underSignals } from '../../runtime/time.ts';
import type { ClusterView } from './cluster-view.ts';

/** Other namespaces whose definitions are read for one pod; further ones count as absent. */
const MAX_NAMESPACES = 8;

export interface ClusterFactsOptions extends Pick<Settings, 'oversized'> {
  readonly view: ClusterView;
  /** Reads a definition that may be newer than the watch. Undefined if it cannot be read. */
  readonly fetchNad: (ref: NetworkRef) => Promise<NadFacts | undefined>;
  /** Namespaces whose definitions pods of every namespace may use; `*` for all. */
  readonly globalNetworkNamespaces: ReadonlySet<string>;
}

/**
 * From the watched copies, and doubtful definitions from the API server. One that multus does not give the owner does
 * not exist for it: the decision must not tell about other namespaces.
 */
export async function gatherCluster(
  owner: NetworkOwner,
  spec: SelectingSpec,
  { view, fetchNad, oversized, globalNetworkNamespaces: shared }: ClusterFactsOptions,
): Promise<ClusterFacts> {
  const definitions = new Map<string, NadFacts>();
  const networks: NetworkFacts = {
    primary: view.primaryNetwork(owner.namespace),
    reported: view.reportedNetworks(),
    context: view.networkContext(),
    definitions,
  };
  const isUsable = ({ namespace }: NetworkRef) =>
    namespace === owner.namespace || shared.has(namespace) || shared.has('*');
  const keep = (ref: NetworkRef, nad: NadFacts | undefined) => {
    if (nad !== undefined) definitions.set(refText(ref), nad);
    return nad;
  };
  try {
    const doubtful = doubtfulNetworks(owner, networks, (ref) =>
      isUsable(ref) ? keep(ref, view.findNad(ref)) : undefined,
    );
    const usable = doubtful.filter(isUsable);
    const namespaces = new Set([owner.namespace, ...usable.map(({ namespace }) => namespace)]);
    const read = [...namespaces].slice(0, 1 + MAX_NAMESPACES);
    const refs = usable.filter(({ namespace }) => read.includes(namespace));
    await Promise.all(refs.map(async (ref) => keep(ref, await fetchNad(ref))));
  } catch (error) {
    // An annotation is malformed. The decision reports which one and needs no definition.
    if (!(error instanceof PlumblineError)) throw error;
  }
  // Only a network with a definition, or one that its owner names, can be required.
  const { annotations } = (owner.vmi ?? owner.pod)?.metadata ?? {};
  const mayBeRequired = definitions.size > 0 || annotations?.[NUMA_AFFINITY_ANNOTATION] !== undefined;
  return {
    candidates: view.candidates(spec),
    allReport: oversized === 'refuse' && mayBeRequired && view.allReport(spec),
    nodeKinds: view.nodeKinds(),
    networks,
  };
}

/** The result of the lookup of a launcher's VMI. Each has one documented outcome: see decide. */
type VmiLookup =
  | { readonly kind: 'found'; readonly vmi: VmiShape }
  | Extract<OwnerFacts, { kind: 'absent' | 'replaced' | 'unreadable' }>;

export type LookUpVmi = ReturnType<typeof createVmiLookup>;

interface VmiLookupOptions {
  readonly client: KubeClient;
  /** Seconds for the whole lookup. */
  readonly timeout: number;
  /** Monotonic seconds. */
  readonly nowSeconds: () => number;
  /** Finds a VMI in the watched copy. */
  readonly find: (namespace: string, name: string) => VmiShape | undefined;
}

/** Seconds between two checks of the watched copy during a request, and before a request is retried. */
const CHECK_SECONDS = 0.05;
const RETRY_SECONDS = 0.2;

/**
 * Finds VMIs in the watched copy and, if that has none that fits, in the API server; the first result counts, and
 * temporary failures are retried, because a launcher without a readable VMI is refused.
 */
export function createVmiLookup({ client, timeout, nowSeconds, find }: VmiLookupOptions) {
  /** @param fits whether KubeVirt can have rendered the launcher from a copy of the VMI */
  return async (namespace: string, reference: VmiReference, fits: (vmi: VmiShape) => boolean): Promise<VmiLookup> => {
    const { name, uid } = reference;
    const fitting = () => {
      const vmi = find(namespace, name);
      return vmi?.metadata.uid === uid && fits(vmi) ? vmi : undefined;
    };
    const watched = fitting();
    if (watched !== undefined) return { kind: 'found', vmi: watched };
    const deadline = nowSeconds() + timeout;
    return underSignals([], undefined, async (signal) => {
      const arrived = (async (): Promise<VmiLookup> => {
        for (;;) {
          await sleep(CHECK_SECONDS, signal);
          const vmi = fitting();
          if (vmi !== undefined) return { kind: 'found', vmi };
        }
      })();
      const requested = (async (): Promise<VmiLookup> => {
        for (;;) {
          const timeout = deadline - nowSeconds();
          const { answer, isPassing } = await request(client, namespace, reference, { signal, timeout });
          if (!isPassing || deadline - nowSeconds() <= RETRY_SECONDS) return answer;
          await sleep(RETRY_SECONDS, signal);
        }
      })();
      // The signal ends the one that is slower.
      for (const result of [arrived, requested]) result.catch(() => undefined);
      return Promise.race([arrived, requested]);
    });
  };
}

/** Makes one request. `isPassing`: a retry may succeed. */
async function request(
  client: KubeClient,
  namespace: string,
  { name, uid }: VmiReference,
  options: RequestOptions,
): Promise<{ readonly answer: VmiLookup; readonly isPassing?: boolean }> {
  const path = `${instancesPath(namespace)}/${encodeURIComponent(name)}`;
  let object: unknown;
  try {
    object = await client.get(path, options);
  } catch (error) {
    if (isNotFound(error)) return { answer: { kind: 'absent' } };
    const isPassing = error instanceof KubeError && (error.status === 0 || error.status === 429 || error.status >= 500);
    return { answer: { kind: 'unreadable', why: (error as Error).message }, isPassing };
  }
  const { data: vmi, error } = virtualMachineInstance.safeParse(object);
  if (error) return { answer: { kind: 'unreadable', why: `its shape is unexpected: ${issuesText(error)}` } };
  const { uid: current = '' } = vmi.metadata;
  return { answer: current === uid ? { kind: 'found', vmi } : { kind: 'replaced', uid: current } };
}
