import * as z from 'zod';
import { FairIntake } from '../runtime/fair-intake.ts';
import { NODE_TOPOLOGY_API } from './node-topology.ts';
import { createReflector, type Reflector, type ReflectorOptions } from './reflector.ts';
import { objectMeta } from './resources.ts';

/** A report as received. It is parsed when it is used, since parsing is most of its cost. */
const rawReport = z.object({ metadata: objectMeta.pick({ name: true }), status: z.unknown().optional() });

type ReportReflectorOptions = Pick<ReflectorOptions<typeof rawReport, true>, 'client' | 'page' | 'log' | 'nowSeconds'>;

/**
 * Watches the reports of nodes and keeps none. Each node gets a limited share of the process.
 * @param take receives a node's newest report; undefined if it was deleted or has no status
 */
export function createReportReflector(
  options: ReportReflectorOptions,
  take: (node: string, raw: unknown) => void,
): Reflector<true> {
  const path = `/apis/${NODE_TOPOLOGY_API.apiVersion}/${NODE_TOPOLOGY_API.plural}`;
  const intake = new FairIntake<unknown>((node, raw) => {
    try {
      take(node, raw);
    } catch (err) {
      options.log.error({ err, path, object: node }, 'processing an object failed');
    }
  });
  return createReflector({
    ...options,
    path,
    schema: rawReport,
    project: ({ metadata, status }): true => {
      intake.offer(metadata.name ?? '', status);
      return true;
    },
    onChange: ({ key, after }) => {
      if (after === undefined) intake.offer(key, undefined);
    },
  });
}
