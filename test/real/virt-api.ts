import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { EVICTION_WEBHOOK } from '../../sandbox/api-server/subresources.ts';
import { createCertificateAuthority } from '../../sandbox/certificates.ts';
import { until } from '../support/until.ts';
import type { ControlPlane, KubernetesObject } from './control-plane.ts';

const GROUP = 'subresources.kubevirt.io';
const NAMESPACE = 'kubevirt';

/** The answer of virt-api: a status, and a body if there is one. */
export interface VirtApiAnswer {
  readonly status: number;
  readonly body?: object;
}

/**
 * virt-api's unpause of VMIs behind the real aggregation layer, so that the API server itself authenticates and
 * authorizes; and its webhook for evictions.
 */
export interface VirtApi {
  stop(): Promise<void>;
}

export interface VirtApiDeps {
  /** The result for a VMI that the extender resumes, by namespace and name. */
  readonly unpause: (namespace: string, name: string) => Promise<VirtApiAnswer>;
  /**
   * The reason why the eviction of a pod, by namespace and name, is denied; undefined: allowed. Default: no webhook.
   */
  readonly evictionDenial?: (namespace: string, name: string) => string | undefined;
}

const EVICTIONS = '/pod-eviction-validate';

export async function serveVirtApi(plane: ControlPlane, { unpause, evictionDenial }: VirtApiDeps): Promise<VirtApi> {
  const authority = createCertificateAuthority('virt-api');
  const server = createServer(authority.issue(['localhost']), (request, response) => {
    const { method, url = '', headers } = request;
    const [, namespace, name] = /\/namespaces\/([^/]+)\/virtualmachineinstances\/([^/]+)\/unpause$/.exec(url) ?? [];
    // The real route declares no produced type: go-restful answers 406 to a client that does not accept any type.
    const refused = !(headers.accept ?? '*/*').includes('*/*');
    if (url.startsWith(EVICTIONS)) {
      void judgeEviction(request, evictionDenial).then((review) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(JSON.stringify(review));
      });
      return;
    }
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
  const { port } = server.address() as AddressInfo;
  await plane.create(...apiService(port));
  if (evictionDenial !== undefined) await plane.create(evictionWebhook(port, authority.cert));
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

interface EvictionReview {
  readonly request: { readonly uid: string; readonly namespace: string; readonly name: string };
}

async function judgeEviction(
  request: IncomingMessage,
  evictionDenial: VirtApiDeps['evictionDenial'] = () => undefined,
): Promise<object> {
  const { uid, namespace, name } = ((await json(request)) as EvictionReview).request;
  const message = evictionDenial(namespace, name);
  const status = message === undefined ? {} : { status: { code: 429, reason: 'TooManyRequests', message } };
  const answer = { uid, allowed: message === undefined, ...status };
  return { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: answer };
}

/**
 * As virt-operator installs it: without an answer, launchers are not evicted. Source: KubeVirt, components/webhooks.go
 */
function evictionWebhook(port: number, ca: string): KubernetesObject {
  const rule = { apiGroups: [''], apiVersions: ['v1'], operations: ['*'], resources: ['pods/eviction'] };
  const onlyVms = { name: 'only-vms', expression: 'object.metadata.name.startsWith("virt-launcher")' };
  const webhook = {
    name: EVICTION_WEBHOOK,
    ...{ admissionReviewVersions: ['v1'], sideEffects: 'NoneOnDryRun', failurePolicy: 'Fail', timeoutSeconds: 10 },
    ...{ rules: [rule], matchConditions: [onlyVms] },
    clientConfig: { url: `https://localhost:${port}${EVICTIONS}`, caBundle: Buffer.from(ca).toString('base64') },
  };
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: 'virt-api-validator' },
    webhooks: [webhook],
  };
}

/** A Status of the API for a failed request. */
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

/** A Service without a cluster address: the API server uses its external name, which is this machine's loopback. */
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
