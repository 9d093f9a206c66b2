import { formatMicroTime } from '../../model/lease/renew-time.ts';
import { LEASES, NODES } from '../api-server/built-in-types.ts';
import { apiVersionOf } from '../api-server/resource-types.ts';
import type { LocalClient } from '../clients/local-client.ts';
import type { KubeObject } from '../objects.ts';

/** A kubelet's Lease, without which the node lifecycle controller considers the node lost. */
export interface NodeLease {
  start(): Promise<void>;
  stop(): void;
}

/** The kubelet's defaults, in seconds. */
const DURATION = 40;
const INTERVAL = 10;
const NAMESPACE = 'kube-node-lease';

export function createNodeLease(
  client: LocalClient,
  node: string,
  now: () => number,
  onFault: (error: unknown) => void,
): NodeLease {
  let timer: NodeJS.Timeout | undefined;

  const renewed = () => ({
    holderIdentity: node,
    leaseDurationSeconds: DURATION,
    renewTime: formatMicroTime(BigInt(now()) * 1000n),
  });
  const renew = async () => {
    const uid = client.get(NODES, undefined, node)?.metadata.uid ?? '';
    const lease: KubeObject = {
      apiVersion: apiVersionOf(LEASES),
      kind: LEASES.kind,
      metadata: {
        name: node,
        namespace: NAMESPACE,
        ownerReferences: [{ apiVersion: 'v1', kind: NODES.kind, name: node, uid }],
      },
      spec: renewed(),
    };
    if (!client.get(LEASES, NAMESPACE, node)) await client.create(LEASES, lease);
    else
      await client.edit(LEASES, lease, (draft) => {
        draft['spec'] = renewed();
      });
  };
  return {
    async start() {
      await renew();
      timer = setInterval(() => void renew().catch(onFault), INTERVAL * 1000);
    },
    stop: () => clearInterval(timer),
  };
}
