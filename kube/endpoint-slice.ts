import { isIPv6 } from 'node:net';
import * as z from 'zod';
import type { Logger } from '../runtime/log.ts';
import type { KubeClient } from './client.ts';
import { isConflict, isNotFound } from './errors.ts';
import { objectMeta } from './resources.ts';

/** Whom a Service without a selector leads to. */
export interface Endpoint {
  readonly address: string;
  readonly port: number;
  /** The port's name in the Service. */
  readonly portName: string;
  readonly nodeName?: string | undefined;
}

export interface EndpointPublisherOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly service: string;
  readonly log: Logger;
}

const endpointSlice = z.object({
  metadata: objectMeta,
  addressType: z.string(),
  endpoints: z.array(z.object({ addresses: z.array(z.string()) })).nullish(),
  ports: z.array(z.object({ port: z.number().nullish() })).nullish(),
});

/** Has a Service lead to one endpoint alone, by an EndpointSlice of the Service's own name. */
export function createEndpointPublisher({ client, namespace, service, log }: EndpointPublisherOptions) {
  const collection = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`;
  const path = `${collection}/${service}`;

  return {
    /** Makes it so if it is not. Never rejects; returns whether it is so. */
    async publish(endpoint: Endpoint): Promise<boolean> {
      try {
        const wanted = sliceOf(namespace, service, endpoint);
        const before = await read();
        if (before === undefined) await client.create(collection, wanted);
        else if (isSame(before, endpoint)) return true;
        else if (before.addressType !== wanted.addressType) {
          // The address family of a slice cannot change.
          await client.delete(path);
          await client.create(collection, wanted);
        } else {
          const { resourceVersion } = before.metadata;
          await client.replace(path, { ...wanted, metadata: { ...wanted.metadata, resourceVersion } });
        }
        log.info({ service, ...endpoint }, 'the service leads here');
        return true;
      } catch (err) {
        if (!isConflict(err)) log.warn({ err, service }, 'could not publish the endpoint of the service');
        return false;
      }
    },
  };

  async function read() {
    try {
      return endpointSlice.parse(await client.get(path));
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }
}

function isSame({ endpoints, ports }: z.infer<typeof endpointSlice>, { address, port }: Endpoint): boolean {
  const addresses = (endpoints ?? []).flatMap((one) => one.addresses);
  return addresses.length === 1 && addresses[0] === address && ports?.length === 1 && ports[0]?.port === port;
}

function sliceOf(namespace: string, service: string, { address, port, portName, nodeName }: Endpoint) {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: service,
      namespace,
      labels: {
        'kubernetes.io/service-name': service,
        'endpointslice.kubernetes.io/managed-by': 'plumbline-scheduler-plugin',
      },
    },
    addressType: isIPv6(address) ? 'IPv6' : 'IPv4',
    endpoints: [{ addresses: [address], conditions: { ready: true }, ...(nodeName !== undefined && { nodeName }) }],
    ports: [{ name: portName, port, protocol: 'TCP' }],
  };
}
