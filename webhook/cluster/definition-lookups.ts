import { isNotFound, type KubeClient } from '../../kube/client.ts';
import { definitionFacts, definitionsPath } from '../../kube/cluster-view/definitions.ts';
import { pagesOf } from '../../kube/list-pages.ts';
import { networkAttachmentDefinition } from '../../kube/resources.ts';
import { BoundedMap } from '../../model/bounded-map.ts';
import type { NetworkRef } from '../../model/networks/attachments.ts';
import type { NadFacts } from '../../model/networks/nad.ts';
import type { WebhookLogger } from '../telemetry/log-messages.ts';

const MAX_AGE_SECONDS = 1;
/** Of a namespace, and namespaces. The watch has the definitions beyond. */
const MAX_DEFINITIONS = 500;
const MAX_NAMESPACES = 256;

type Definitions = { readonly requestedSeconds: number; readonly byName: Promise<ReadonlyMap<string, NadFacts>> };

interface DefinitionLookupsOptions {
  readonly client: Pick<KubeClient, 'get'>;
  readonly timeoutSeconds: number;
  readonly log: WebhookLogger;
  /** Monotonic seconds. */
  readonly nowSeconds: () => number;
}

/**
 * Reads definitions from the API server, for those that may be newer than the watch: at most one list for a namespace in
 * a second, whatever its pods name.
 *
 * Remembered: the definitions of a namespace, and so the absence of others. Owner: the namespace that has them. Age: one
 * second after the request. End: the next look-up after that, in any namespace; the oldest of MAX_NAMESPACES.
 */
export class DefinitionLookups {
  readonly #options: DefinitionLookupsOptions;
  /** In the order of their requests. */
  readonly #namespaces = new BoundedMap<string, Definitions>(MAX_NAMESPACES);

  constructor(options: DefinitionLookupsOptions) {
    this.#options = options;
  }

  /** @returns undefined if there is none, or if the namespace cannot be read */
  async find({ namespace, name }: NetworkRef): Promise<NadFacts | undefined> {
    if (namespace === '' || name === '') return undefined;
    const nowSeconds = this.#options.nowSeconds();
    for (const [oldest, { requestedSeconds }] of this.#namespaces) {
      if (nowSeconds - requestedSeconds < MAX_AGE_SECONDS) break;
      this.#namespaces.delete(oldest);
    }
    const request = () => ({ requestedSeconds: nowSeconds, byName: this.#list(namespace) });
    const { byName } = this.#namespaces.getOrCreate(namespace, request);
    return (await byName).get(name);
  }

  async #list(namespace: string): Promise<ReadonlyMap<string, NadFacts>> {
    const { client, timeoutSeconds: timeout, log } = this.#options;
    const path = definitionsPath(namespace);
    const byName = new Map<string, NadFacts>();
    try {
      for await (const { items } of pagesOf({ client, path, page: MAX_DEFINITIONS, timeout })) {
        const read = (items ?? []).flatMap((item) => networkAttachmentDefinition.safeParse(item).data ?? []);
        for (const nad of read)
          if (nad.metadata.name !== undefined) byName.set(nad.metadata.name, definitionFacts(nad));
        break;
      }
    } catch (err) {
      if (!isNotFound(err)) log.warn({ err, object: namespace }, 'reading a NetworkAttachmentDefinition failed');
    }
    return byName;
  }
}
