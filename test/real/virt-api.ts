import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createCertificateAuthority } from '../../sandbox/certificates.ts';
import type { ControlPlane, KubernetesObject } from './control-plane.ts';
import { until } from './scheduler/stage.ts';

const GROUP = 'subresources.kubevirt.io';
const NAMESPACE = 'kubevirt';

/** What virt-api answers to a request: a status, and a body where there is one. */
export interface VirtApiAnswer {
  readonly status: number;
  readonly body?: object;
}

/** virt-api's unpause of VMIs, behind the real aggregation layer: so the API server itself authenticates and authorizes. */
export interface VirtApi {
  stop(): Promise<void>;
}

/** Serves it. @param unpause what becomes of a VMI, by namespace and name */
export async function serveVirtApi(
  plane: ControlPlane,
  unpause: (namespace: string, name: string) => Promise<VirtApiAnswer>,
): Promise<VirtApi> {
  const server = createServer(createCertificateAuthority('virt-api').issue(['localhost']), (request, response) => {
    const { method, url = '', headers } = request;
    const [, namespace, name] = /\/namespaces\/([^/]+)\/virtualmachineinstances\/([^/]+)\/unpause$/.exec(url) ?? [];
    // The real route declares no produced type: go-restful answers 406 to a client that does not accept any.
    const refused = !(headers.accept ?? '*/*').includes('*/*');
    const answer =
      method === 'PUT' && refused
        ? Promise.resolve({ status: 406, body: failure(406, 'NotAcceptable', '406: Not Acceptable') })
        : method === 'PUT' && namespace !== undefined && name !== undefined
          ? unpause(namespace, name)
          : Promise.resolve({ status: 200, body: DISCOVERY });
    request.resume();
    void answer.then(({ status, body }: VirtApiAnswer) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(body === undefined ? '' : JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  await plane.create(...apiService((server.address() as AddressInfo).port));
  await until('the aggregated API to be served', async () => {
    await plane.client.get(`/apis/${GROUP}/v1`);
    return true;
  });
  return {
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A Status of the API, for a request that failed. */
export const failure = (code: number, reason: string, message: string) => ({
  kind: 'Status',
  apiVersion: 'v1',
  status: 'Failure',
  code,
  reason,
  message,
});

const DISCOVERY = {
  kind: 'APIResourceList',
  apiVersion: 'v1',
  groupVersion: `${GROUP}/v1`,
  resources: [{ name: 'virtualmachineinstances/unpause', singularName: '', namespaced: true, kind: '', verbs: [] }],
};

/** A Service without a cluster address: the API server goes to its external name, which is this machine's loopback. */
function apiService(port: number): KubernetesObject[] {
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'virt-api', namespace: NAMESPACE },
      spec: { type: 'ExternalName', externalName: 'localhost', ports: [{ port }] },
    },
    {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { name: `v1.${GROUP}` },
      spec: {
        group: GROUP,
        version: 'v1',
        service: { name: 'virt-api', namespace: NAMESPACE, port },
        insecureSkipTLSVerify: true,
        groupPriorityMinimum: 1000,
        versionPriority: 15,
      },
    },
  ];
}
