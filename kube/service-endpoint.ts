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
  /** The pod that has the address, in the Service's namespace: the API server proxies to pods alone. */
  readonly podName?: string | undefined;
}

export interface EndpointPublisherOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly service: string;
  readonly log: Logger;
}

/** One of the two objects that say where a Service leads, of the Service's own name. */
interface Published {
  readonly collection: string;
  object(endpoint: Endpoint): { readonly metadata: object };
  /** What an object that was read says, as text to compare. @throws ZodError */
  said(object: unknown): string;
}

const holder = z.object({ metadata: objectMeta });
const targetRef = z.object({ name: z.string().nullish() }).nullish();
const slice = z.object({
  addressType: z.string(),
  endpoints: z.array(z.object({ addresses: z.array(z.string()), targetRef })).nullish(),
  ports: z.array(z.object({ port: z.number().nullish() })).nullish(),
});
const endpoints = z.object({
  subsets: z
    .array(
      z.object({
        addresses: z.array(z.object({ ip: z.string(), targetRef })).nullish(),
        ports: z.array(z.object({ port: z.number() })).nullish(),
      }),
    )
    .nullish(),
});

/**
 * Has a Service lead to one endpoint alone: by an EndpointSlice, which proxies go by, and by Endpoints, which kube-apiserver
 * itself still goes by (1.36) where it proxies a request to a Service.
 */
export function createEndpointPublisher({ client, namespace, service, log }: EndpointPublisherOptions) {
  const forProxies = endpointSliceOf(namespace, service);
  const forApiServer = endpointsOf(namespace, service);
  /** Whether it is known that Endpoints cannot be written: it is said once, and tried on. */
  let without = false;

  /** @throws KubeError */
  const put = async ({ collection, object, said }: Published, endpoint: Endpoint): Promise<boolean> => {
    const path = `${collection}/${service}`;
    const wanted = object(endpoint);
    const before = await read(path);
    if (before === undefined) {
      await client.create(collection, wanted);
      return true;
    }
    if (said(before) === text([[endpoint.address, endpoint.podName]], [endpoint.port])) return false;
    if (familyOf(before) === undefined || familyOf(before) === familyOf(wanted)) {
      const { resourceVersion } = holder.parse(before).metadata;
      await client.replace(path, { ...wanted, metadata: { ...wanted.metadata, resourceVersion } });
    } else {
      // The address family of a slice cannot change.
      await client.delete(path);
      await client.create(collection, wanted);
    }
    return true;
  };

  return {
    /** Makes it so if it is not. Never rejects; returns whether it is so, as far as callers of the Service go. */
    async publish(endpoint: Endpoint): Promise<boolean> {
      try {
        if (await put(forProxies, endpoint)) log.info({ service, ...endpoint }, 'the service leads here');
      } catch (err) {
        if (!isConflict(err)) log.warn({ err, service }, 'could not publish the endpoint of the service');
        return false;
      }
      try {
        await put(forApiServer, endpoint);
        without = false;
      } catch (err) {
        if (isConflict(err)) return true;
        if (!without) log.warn({ err, service }, 'the API server cannot proxy to the service');
        without = true;
      }
      return true;
    },
  };

  async function read(path: string): Promise<unknown> {
    try {
      return await client.get(path);
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }
}

function endpointSliceOf(namespace: string, service: string): Published {
  const labels = {
    'kubernetes.io/service-name': service,
    'endpointslice.kubernetes.io/managed-by': 'plumbline-scheduler-plugin',
  };
  return {
    collection: `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`,
    object: ({ address, port, portName, ...of }) => ({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: service, namespace, labels },
      addressType: isIPv6(address) ? 'IPv6' : 'IPv4',
      endpoints: [{ addresses: [address], conditions: { ready: true }, ...whose(namespace, of) }],
      ports: [{ name: portName, port, protocol: 'TCP' }],
    }),
    said(object) {
      const { endpoints: list, ports } = slice.parse(object);
      const addresses = (list ?? []).flatMap((one) => one.addresses.map((ip) => [ip, one.targetRef?.name] as const));
      return text(
        addresses,
        (ports ?? []).map(({ port }) => port),
      );
    },
  };
}

function endpointsOf(namespace: string, service: string): Published {
  // What is mirrored would be a second slice that says the same.
  const labels = { 'endpointslice.kubernetes.io/skip-mirror': 'true' };
  return {
    collection: `/api/v1/namespaces/${namespace}/endpoints`,
    object: ({ address, port, portName, ...of }) => ({
      apiVersion: 'v1',
      kind: 'Endpoints',
      metadata: { name: service, namespace, labels },
      subsets: [
        {
          addresses: [{ ip: address, ...whose(namespace, of) }],
          ports: [{ name: portName, port, protocol: 'TCP' }],
        },
      ],
    }),
    said(object) {
      const subsets = endpoints.parse(object).subsets ?? [];
      const addresses = subsets.flatMap((one) =>
        (one.addresses ?? []).map((each) => [each.ip, each.targetRef?.name] as const),
      );
      return text(
        addresses,
        subsets.flatMap((one) => (one.ports ?? []).map(({ port }) => port)),
      );
    },
  };
}

/** Whose address it is, in the form that both objects have for it. */
const whose = (namespace: string, { nodeName, podName }: Pick<Endpoint, 'nodeName' | 'podName'>) => ({
  ...(nodeName !== undefined && { nodeName }),
  ...(podName !== undefined && { targetRef: { kind: 'Pod', namespace, name: podName } }),
});

/** @param addresses each with its pod's name */
const text = (
  addresses: readonly (readonly [string, string | null | undefined])[],
  ports: readonly (number | null | undefined)[],
) => `${addresses.map(([address, pod]) => `${address} of ${pod ?? 'nobody'}`).join()} port ${ports.join()}`;

/** Of an EndpointSlice; Endpoints have none. */
function familyOf(object: unknown): string | undefined {
  return z.object({ addressType: z.string().optional() }).parse(object).addressType;
}
