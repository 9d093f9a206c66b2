import * as z from 'zod';
import type { Logger } from '../runtime/log.ts';
import type { KubeClient, RequestOptions } from './client.ts';
import { type Endpoint, type EndpointObject, endpointSliceOf, endpointsOf } from './endpoint-objects.ts';
import { isConflict, isNotFound } from './errors.ts';
import { objectMeta } from './resources.ts';

export interface EndpointPublisherOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly service: string;
  readonly log: Logger;
}

export interface EndpointPublisher {
  /**
   * Makes this the Service's only endpoint and repairs changes by others: labels, readiness, ports. Never rejects.
   * Returns whether the EndpointSlice is now correct.
   */
  publish(endpoint: Endpoint): Promise<boolean>;
  /** Removes this endpoint from the Service, unless the Service has another one by now. Never rejects. */
  withdraw(endpoint: Endpoint): Promise<void>;
}

/** Two seconds for each request of a withdrawal, because the process is about to exit. */
const IN_WITHDRAWAL: RequestOptions = { timeout: 2 };

const versioned = z.object({ metadata: objectMeta });

/**
 * Creates a publisher of the only endpoint of a Service. It writes an EndpointSlice, which proxies read, and Endpoints,
 * which kube-apiserver (1.36) reads when it proxies a request to a Service.
 */
export function createEndpointPublisher(options: EndpointPublisherOptions): EndpointPublisher {
  const { client, namespace, service, log } = options;
  const forProxies = endpointSliceOf(namespace, service);
  const forApiServer = endpointsOf(namespace, service);
  /** Whether the last write of Endpoints failed. The failure is logged once and the write retried each time. */
  let without = false;

  /** @throws KubeError */
  const put = async (target: EndpointObject, endpoint: Endpoint): Promise<boolean> => {
    const path = `${target.collection}/${service}`;
    const wanted = target.object(endpoint);
    const before = await read(path);
    if (before === undefined) {
      await client.create(target.collection, wanted);
      return true;
    }
    if (target.isAs(before, wanted)) return false;
    if (familyOf(before) === familyOf(wanted)) await client.replace(path, after(before, wanted));
    else {
      // The address family of a slice cannot change.
      await client.delete(path);
      await client.create(target.collection, wanted);
    }
    return true;
  };

  /** @throws KubeError */
  const clear = async (target: EndpointObject, endpoint: Endpoint): Promise<void> => {
    const path = `${target.collection}/${service}`;
    const before = await read(path, IN_WITHDRAWAL);
    if (before === undefined || !target.names(before, endpoint)) return;
    const family = familyOf(before);
    const wanted = { ...target.object(undefined), ...(family !== undefined && { addressType: family }) };
    await client.replace(path, after(before, wanted), IN_WITHDRAWAL);
  };

  return {
    async publish(endpoint) {
      try {
        if (await put(forProxies, endpoint)) log.info({ service, ...endpoint }, 'service endpoint published');
      } catch (err) {
        if (!isConflict(err)) log.warn({ err, service }, 'publishing the service endpoint failed');
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

    async withdraw(endpoint) {
      const withdrawn = await Promise.allSettled([clear(forProxies, endpoint), clear(forApiServer, endpoint)]);
      // After a conflict the Service has the endpoint of another replica.
      for (const one of withdrawn) {
        if (one.status === 'rejected' && !isConflict(one.reason))
          log.warn({ err: one.reason, service }, 'withdrawing the service endpoint failed');
      }
    },
  };

  async function read(path: string, options: RequestOptions = {}): Promise<unknown> {
    try {
      return await client.get(path, options);
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }
}

/** The wanted object as a replacement of the one that was read; it conflicts if that one has changed since. */
function after(read: unknown, wanted: { readonly metadata: object }): object {
  const { resourceVersion } = versioned.parse(read).metadata;
  return { ...wanted, metadata: { ...wanted.metadata, resourceVersion } };
}

/** The address family of an EndpointSlice; Endpoints have none. */
function familyOf(object: unknown): string | undefined {
  return z.object({ addressType: z.string().optional() }).parse(object).addressType;
}
