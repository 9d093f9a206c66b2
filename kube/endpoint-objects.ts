import { isIPv6 } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod';
import { SERVICE } from '../model/names.ts';
import { objectMeta } from './resources.ts';

/** The endpoint of a Service without a selector. */
export interface Endpoint {
  readonly address: string;
  readonly port: number;
  /** Name of the port in the Service. */
  readonly portName: string;
  readonly nodeName?: string | undefined;
  /** The pod that has the address, in the Service's namespace. The API server proxies to pods only. */
  readonly podName?: string | undefined;
}

/** An EndpointSlice or Endpoints object: both publish the endpoints of a Service and have the Service's name. */
export interface EndpointObject {
  readonly collection: string;
  /** The object that publishes only this endpoint, or no endpoint. */
  object(endpoint: Endpoint | undefined): { readonly metadata: object };
  /**
   * Whether an object from the API server publishes exactly the same as `wanted`, including labels.
   * @throws ZodError
   */
  isAs(read: unknown, wanted: object): boolean;
  /** Whether an object from the API server publishes the address of this endpoint. @throws ZodError */
  names(read: unknown, endpoint: Endpoint): boolean;
}

const metadata = objectMeta.transform(({ labels }) => ({ labels }));
const targetRef = z.object({ kind: z.string().nullish(), name: z.string().nullish() }).nullish();
const ports = z
  .array(z.object({ name: z.string().nullish(), port: z.number().nullish(), protocol: z.string().nullish() }))
  .nullish();

/** The fields that kube-proxy reads; the schema ignores others. */
const slice = z.object({
  metadata,
  addressType: z.string(),
  endpoints: z
    .array(
      z.object({
        addresses: z.array(z.string()),
        conditions: z
          .object({
            ready: z.boolean().nullish(),
            serving: z.boolean().nullish(),
            terminating: z.boolean().nullish(),
          })
          .nullish(),
        hints: z.unknown().optional(),
        nodeName: z.string().nullish(),
        targetRef,
      }),
    )
    .nullish()
    .transform((list) => list ?? []),
  ports,
});

const endpoints = z.object({
  metadata,
  subsets: z
    .array(
      z.object({
        addresses: z.array(z.object({ ip: z.string(), nodeName: z.string().nullish(), targetRef })).nullish(),
        notReadyAddresses: z.array(z.unknown()).nullish(),
        ports,
      }),
    )
    .nullish()
    .transform((list) => list ?? []),
});

/** The EndpointSlice of a Service (discovery.k8s.io/v1), which kube-proxy reads. */
export function endpointSliceOf(namespace: string, service: string): EndpointObject {
  const own = {
    'kubernetes.io/service-name': service,
    'endpointslice.kubernetes.io/managed-by': SERVICE,
  };
  return {
    collection: `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`,
    object: (endpoint) => ({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: service, namespace, labels: own },
      addressType: endpoint !== undefined && isIPv6(endpoint.address) ? 'IPv6' : 'IPv4',
      endpoints: listOf(endpoint, ({ address, ...of }) => ({
        addresses: [address],
        conditions: { ready: true },
        ...whose(namespace, of),
      })),
      ports: listOf(endpoint, portOf),
    }),
    isAs: (read, wanted) => isDeepStrictEqual(slice.parse(read), slice.parse(wanted)),
    names: (read, { address }) => slice.parse(read).endpoints.some((one) => one.addresses.includes(address)),
  };
}

/** The Endpoints of a Service (core/v1), for clients that do not read EndpointSlices. */
export function endpointsOf(namespace: string, service: string): EndpointObject {
  // Without this label the control plane mirrors the object into a second slice.
  const own = { 'endpointslice.kubernetes.io/skip-mirror': 'true' };
  return {
    collection: `/api/v1/namespaces/${namespace}/endpoints`,
    object: (endpoint) => ({
      apiVersion: 'v1',
      kind: 'Endpoints',
      metadata: { name: service, namespace, labels: own },
      subsets: listOf(endpoint, (one) => ({
        addresses: [{ ip: one.address, ...whose(namespace, one) }],
        ports: [portOf(one)],
      })),
    }),
    isAs: (read, wanted) => isDeepStrictEqual(endpoints.parse(read), endpoints.parse(wanted)),
    names: (read, { address }) =>
      endpoints.parse(read).subsets.some((one) => one.addresses?.some(({ ip }) => ip === address)),
  };
}

function listOf<T>(endpoint: Endpoint | undefined, item: (endpoint: Endpoint) => T): T[] {
  return endpoint === undefined ? [] : [item(endpoint)];
}

const portOf = ({ port, portName }: Endpoint) => ({ name: portName, port, protocol: 'TCP' });

/** The node and the pod of an address, in the form that both kinds use. */
const whose = (namespace: string, { nodeName, podName }: Pick<Endpoint, 'nodeName' | 'podName'>) => ({
  ...(nodeName !== undefined && { nodeName }),
  ...(podName !== undefined && { targetRef: { kind: 'Pod', namespace, name: podName } }),
});
