import type { IncomingMessage } from 'node:http';
import { json } from 'node:stream/consumers';
import { evictionDenial } from '../../sandbox/api-server/subresources.ts';
import { createCertificateAuthority } from '../../sandbox/certificates.ts';
import type { KubePod, KubeVmi } from '../../sandbox/objects.ts';
import { type JsonAnswer, serveJson } from '../support/json-server.ts';
import { until } from '../support/until.ts';
import { type ControlPlane, type KubernetesObject, namespaceOf } from './control-plane-stage.ts';

const GROUP = 'subresources.kubevirt.io';
const NAMESPACE = 'kubevirt';

interface VirtApiDeps {
  /** The result for a VMI that the extender resumes, by namespace and name. Default: no aggregated API. */
  readonly unpause?: (namespace: string, name: string) => Promise<JsonAnswer>;
  /** The reason why the eviction of a pod, by namespace and name, is denied; undefined: allowed. */
  readonly denial: (namespace: string, name: string) => Promise<string | undefined>;
}

const EVICTIONS = '/pod-eviction-validate';

/** virt-api's unpause behind the real aggregation layer, so that the API server authorizes it, and its webhook. */
export async function serveVirtApi(plane: ControlPlane, { unpause, denial }: VirtApiDeps) {
  const authority = createCertificateAuthority('virt-api');
  /** Pods whose eviction was reviewed: `namespace/name`. */
  const reviewed: string[] = [];
  const judge = async (request: IncomingMessage): Promise<JsonAnswer> => {
    const { uid, namespace, name } = ((await json(request)) as EvictionReview).request;
    reviewed.push(`${namespace}/${name}`);
    const message = await denial(namespace, name);
    const status = message === undefined ? {} : { status: { code: 429, reason: 'TooManyRequests', message } };
    const response = { uid, allowed: message === undefined, ...status };
    return { status: 200, body: { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response } };
  };
  const answerTo = async (request: IncomingMessage): Promise<JsonAnswer> => {
    const { method, url = '', headers } = request;
    if (url.startsWith(EVICTIONS)) return judge(request);
    request.resume();
    const [, namespace, name] = /\/namespaces\/([^/]+)\/virtualmachineinstances\/([^/]+)\/unpause$/.exec(url) ?? [];
    if (method !== 'PUT') return { status: 200, body: DISCOVERY };
    // The real route declares no produced type: go-restful answers 406 to a client that does not accept any type.
    if (!(headers.accept ?? '*/*').includes('*/*'))
      return { status: 406, body: failure(406, 'NotAcceptable', '406: Not Acceptable') };
    return (await unpause?.(namespace ?? '', name ?? '')) ?? { status: 404 };
  };
  const { port, stop } = await serveJson(answerTo, authority.issue(['localhost']));
  await plane.create(evictionWebhook(port, authority.cert));
  if (unpause !== undefined) {
    await plane.create(...apiService(port));
    await until('the aggregated API to be served', async () => {
      await plane.client.get(`/apis/${GROUP}/v1`);
      return true;
    });
  }
  return { reviewed, stop };
}

/** Only its webhook for evictions, as if every VM were to migrate live and none could. */
export function installInterceptor(plane: ControlPlane) {
  const vmi = (name: string) =>
    ({ metadata: { name }, spec: { evictionStrategy: 'LiveMigrate' } }) as unknown as KubeVmi;
  return serveVirtApi(plane, {
    async denial(namespace, name) {
      const pod = (await plane.client.get(`/api/v1/namespaces/${namespace}/pods/${name}`)) as KubePod;
      return evictionDenial(pod, vmi)?.why;
    },
  });
}

interface EvictionReview {
  readonly request: { readonly uid: string; readonly namespace: string; readonly name: string };
}

/** As installed: without an answer, launchers are not evicted. Source: KubeVirt, components/webhooks.go */
function evictionWebhook(port: number, ca: string): KubernetesObject {
  const rule = { apiGroups: [''], apiVersions: ['v1'], operations: ['*'], resources: ['pods/eviction'] };
  const onlyVms = { name: 'only-vms', expression: 'object.metadata.name.startsWith("virt-launcher")' };
  const webhook = {
    name: 'virt-launcher-eviction-interceptor.kubevirt.io',
    admissionReviewVersions: ['v1'],
    sideEffects: 'NoneOnDryRun',
    failurePolicy: 'Fail',
    timeoutSeconds: 10,
    rules: [rule],
    matchConditions: [onlyVms],
    clientConfig: { url: `https://localhost:${port}${EVICTIONS}`, caBundle: Buffer.from(ca).toString('base64') },
  };
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: 'virt-api-validator' },
    webhooks: [webhook],
  };
}

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
    namespaceOf(NAMESPACE),
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
