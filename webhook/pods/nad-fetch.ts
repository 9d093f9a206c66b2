import type { KubeClient } from '../../kube/client.ts';
import { isNotFound } from '../../kube/errors.ts';
import { networkAttachmentDefinition } from '../../kube/resources.ts';
import type { NetworkRef } from '../../model/networks/attachments.ts';
import { type NadFacts, nadFacts } from '../../model/networks/nad.ts';
import type { Logger } from '../../runtime/log.ts';
import { NAD_PATH } from '../cluster/nad-cache.ts';

/** Reads one definition from the API server, for one that may be newer than the watch. Undefined: not to be had. */
export type FetchNad = (ref: NetworkRef) => Promise<NadFacts | undefined>;

/** @param timeout seconds */
export function createNadFetch(client: KubeClient, timeout: number, log: Logger): FetchNad {
  return async ({ namespace, name }) => {
    if (namespace === '' || name === '') return undefined;
    const [inNamespace, called] = [encodeURIComponent(namespace), encodeURIComponent(name)];
    const path = `${NAD_PATH}/namespaces/${inNamespace}/network-attachment-definitions/${called}`;
    try {
      const { metadata, spec } = networkAttachmentDefinition.parse(await client.get(path, { timeout }));
      return nadFacts({ metadata, spec: { config: spec?.config } });
    } catch (err) {
      if (!isNotFound(err)) log.warn({ err, namespace, name }, 'could not read a network attachment definition');
      return undefined;
    }
  };
}
