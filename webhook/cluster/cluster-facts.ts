import { isNotFound, type KubeClient } from '../../kube/client.ts';
import { networkAttachmentDefinition } from '../../kube/resources.ts';
import type { ClusterFacts, NetworkFacts, Settings } from '../../model/admission/facts.ts';
import { doubtfulNetworks, type NetworkOwner } from '../../model/admission/networks.ts';
import { PlumblineError } from '../../model/errors.ts';
import type { SelectingSpec } from '../../model/launcher/node-selection.ts';
import { NUMA_AFFINITY_ANNOTATION } from '../../model/names.ts';
import { type NetworkRef, refText } from '../../model/networks/attachments.ts';
import { type NadFacts, nadFacts } from '../../model/networks/nad.ts';
import type { Logger } from '../../runtime/log.ts';
import { type ClusterView, NAD_PATH } from './cluster-view.ts';

/**
 * Reads one definition from the API server, for one that may be newer than the watch. Undefined if it cannot be read.
 */
export type FetchNad = (ref: NetworkRef) => Promise<NadFacts | undefined>;

/** Creates a function that reads definitions. @param timeout in seconds */
export function createNadFetch(client: KubeClient, timeout: number, log: Logger): FetchNad {
  return async ({ namespace, name }) => {
    if (namespace === '' || name === '') return undefined;
    const [inNamespace, called] = [encodeURIComponent(namespace), encodeURIComponent(name)];
    const path = `${NAD_PATH}/namespaces/${inNamespace}/network-attachment-definitions/${called}`;
    try {
      const { metadata, spec } = networkAttachmentDefinition.parse(await client.get(path, { timeout }));
      return nadFacts({ metadata, spec: { config: spec?.config } });
    } catch (err) {
      if (!isNotFound(err)) log.warn({ err, namespace, name }, 'reading a NetworkAttachmentDefinition failed');
      return undefined;
    }
  };
}

export interface ClusterFactsOptions extends Pick<Settings, 'oversized'> {
  readonly view: ClusterView;
  readonly fetchNad: FetchNad;
  /** Namespaces whose definitions pods of every namespace may use; `*` for all. */
  readonly globalNetworkNamespaces: ReadonlySet<string>;
}

/**
 * Collects the facts about the cluster for the decision about one pod or VM: from the watched copies, and doubtful
 * network definitions from the API server, each once and all in parallel. A definition that multus does not give the owner
 * does not exist for it: the decision, which its author sees, must not tell about other namespaces.
 * @param owner `exclusive` is computed here when it is needed
 * @param spec selects the nodes that the owner can run on
 */
export async function gatherCluster(
  owner: Omit<NetworkOwner, 'exclusive'>,
  isExclusive: () => boolean,
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
  const keep = (ref: NetworkRef, found: NadFacts | undefined) => {
    if (found !== undefined) definitions.set(refText(ref), found);
    return found;
  };
  try {
    const whole = { ...owner, exclusive: isExclusive() };
    const doubtful = doubtfulNetworks(whole, networks, (ref) =>
      isUsable(ref) ? keep(ref, view.findNad(ref)) : undefined,
    );
    await Promise.all(doubtful.filter(isUsable).map(async (ref) => keep(ref, await fetchNad(ref))));
  } catch (error) {
    // An annotation or amount is malformed. The decision reports which one and needs no definition.
    if (!(error instanceof PlumblineError)) throw error;
  }
  // Only a network with a definition, or one that its owner names, can be required.
  const { annotations } = (owner.vmi ?? owner.pod)?.metadata ?? {};
  const mayBeHeld = definitions.size > 0 || annotations?.[NUMA_AFFINITY_ANNOTATION] !== undefined;
  return {
    candidates: view.candidates(spec),
    allReport: oversized === 'refuse' && mayBeHeld && view.allReport(spec),
    nodeKinds: view.nodeKinds(),
    networks,
  };
}
