import { until } from '../../support/until.ts';
import type { ControlPlane, KubernetesObject } from '../control-plane-stage.ts';

interface WebhookConfiguration extends KubernetesObject {
  readonly webhooks: readonly { readonly clientConfig: { readonly service: { readonly path: string } } }[];
}

export function isWebhookConfiguration(object: KubernetesObject): object is WebhookConfiguration {
  return object.kind.endsWith('WebhookConfiguration');
}

/** The shipped configuration, with the webhook as a process next to the API server instead of its Service. */
export function callOf({ webhooks, ...rest }: WebhookConfiguration, port: number, ca: string): KubernetesObject {
  const caBundle = Buffer.from(ca).toString('base64');
  const called = webhooks.map(({ clientConfig, ...webhook }) => ({
    ...webhook,
    clientConfig: { url: `https://127.0.0.1:${port}${clientConfig.service.path}`, caBundle },
  }));
  return { ...rest, webhooks: called };
}

/** The API server applies configurations a moment after they are stored: waits until a pod is padded. */
export async function untilCalled({ client }: Pick<ControlPlane, 'client'>): Promise<void> {
  const resources = { limits: { cpu: '3', memory: '1Gi' } };
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { generateName: 'asks-', annotations: { 'plumbline.dev/align': 'whole-cores' } },
    spec: { containers: [{ name: 'c', image: 'none', resources }] },
  };
  await until('the webhook to be called', async () => {
    const answer = (await client.create('/api/v1/namespaces/default/pods', pod, {
      query: { dryRun: 'All' },
    })) as {
      spec: { containers: { resources: { limits: { cpu: string } } }[] };
    };
    return answer.spec.containers[0]?.resources.limits.cpu === '4';
  });
}
