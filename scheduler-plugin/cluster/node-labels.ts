import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod';
import type { KubeClient } from '../../kube/client.ts';
import { createReflector } from '../../kube/reflector.ts';
import { objectMeta } from '../../kube/resources.ts';
import type { Logger } from '../../runtime/log.ts';

/**
 * The nodes' labels. They are watched only once needed: a cluster without VMs that have a mask and select nodes has
 * none.
 */
export interface NodeLabels {
  /** Starts watching them. */
  need(): void;
  of(node: string, key: string): string | undefined;
  /** Whether labels are not needed, or all of them have been read. */
  readonly settled: boolean;
  /** Number of changes. */
  readonly changes: number;
  run(signal: AbortSignal): Promise<void>;
}

const labelled = z.object({ metadata: objectMeta.pick({ name: true, namespace: true, labels: true }) });

export function createNodeLabels(options: {
  readonly client: KubeClient;
  readonly log: Logger;
  readonly now: () => number;
}): NodeLabels {
  let changes = 0;
  let needed = false;
  let begin: () => void = () => undefined;
  const wanted = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const nodes = createReflector({
    ...options,
    path: '/api/v1/nodes',
    schema: labelled,
    project: ({ metadata }): ReadonlyMap<string, string> => new Map(Object.entries(metadata.labels ?? {})),
    onChange: ({ before, after }) => {
      if (!before || !after || !isDeepStrictEqual(before, after)) changes++;
    },
  });
  return {
    need() {
      needed = true;
      begin();
    },
    of: (node, key) => nodes.items.get(node)?.get(key),
    get settled() {
      return !needed || nodes.synced;
    },
    get changes() {
      return changes;
    },
    async run(signal) {
      const ended = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
      await Promise.race([wanted, ended]);
      if (!signal.aborted) await nodes.run(signal);
    },
  };
}
