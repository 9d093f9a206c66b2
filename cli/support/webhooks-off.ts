import * as z from 'zod';
import { listOf } from '../../diagnosis/objects.ts';
import type { KubeClient } from '../../kube/client.ts';
import { NAMESPACE, WEBHOOK, WEBHOOK_REQUIRED } from '../../model/names.ts';
import { named, readIfAllowed, readOne, undefinedIfForbidden } from './lists.ts';

/** The match condition of the webhooks that are called only while the RoleBinding exists. */
const GATED = 'required';
const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
const ROLE_BINDING = `/apis/rbac.authorization.k8s.io/v1/namespaces/${NAMESPACE}/rolebindings/${WEBHOOK_REQUIRED}`;

const configuration = named.extend({
  webhooks: listOf(z.object({ matchConditions: listOf(z.object({ name: z.string() })) })),
});

/** Why the API server does not call the mutating webhook; undefined if it does, or that may not be read. @throws KubeError */
export async function readWebhooksOff(client: KubeClient): Promise<string | undefined> {
  const [configurations, isThere] = await Promise.all([
    readIfAllowed(client, CONFIGURATIONS, configuration),
    readOne(client, ROLE_BINDING, named).then((binding) => binding !== undefined, undefinedIfForbidden),
  ]);
  if (configurations === undefined) return undefined;
  const ourConfiguration = configurations.find(({ metadata }) => metadata.name === WEBHOOK);
  if (ourConfiguration === undefined) return 'without its MutatingWebhookConfiguration';
  const isGated = ourConfiguration.webhooks.some(({ matchConditions }) =>
    matchConditions.some(({ name }) => name === GATED),
  );
  return isGated && isThere === false
    ? `switched off: there is no RoleBinding ${WEBHOOK_REQUIRED} in ${NAMESPACE}`
    : undefined;
}
