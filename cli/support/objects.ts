import * as z from 'zod';
import { listOf } from '../../diagnosis/objects.ts';
import { objectMeta } from '../../kube/resources.ts';

/** The parts of objects of an installation. */

const text = z.string().nullish();
const conditioned = z
  .object({ conditions: z.array(z.object({ type: z.string(), status: z.string() })).nullish() })
  .nullish();
const imageContainers = z.array(z.object({ name: z.string(), image: text }));

/** On the namespace, by packaging/manifest.sh: `VERSION 1.NN REGISTRY`, its arguments. */
export const RELEASE_ANNOTATION = 'plumbline.dev/release-manifest';
/** On every object of a chart, by Helm. */
export const HELM_ANNOTATION = 'meta.helm.sh/release-name';

/** What an installation says of itself. */
const installedMeta = objectMeta.extend({
  annotations: z.object({ [RELEASE_ANNOTATION]: text, [HELM_ANNOTATION]: text }).nullish(),
});
export const installedNamespace = z.object({ metadata: installedMeta });

export const webhookConfiguration = z.object({
  metadata: installedMeta,
  webhooks: listOf(
    z.object({
      name: z.string(),
      clientConfig: z.object({
        caBundle: text,
        url: text,
        service: z.object({ name: z.string(), namespace: z.string() }).nullish(),
      }),
      failurePolicy: text,
      reinvocationPolicy: text,
      matchConditions: z.array(z.object({ name: text, expression: z.string() })).nullish(),
      rules: z
        .array(z.object({ resources: z.array(z.string()).nullish(), operations: z.array(z.string()).nullish() }))
        .nullish(),
    }),
  ),
});
export type WebhookConfiguration = z.infer<typeof webhookConfiguration>;

/** Whether the webhook is called only while its RoleBinding exists: manifests/base/webhook/required.yaml. */
export function isGated({ matchConditions }: WebhookConfiguration['webhooks'][number]): boolean {
  return matchConditions?.some(({ name }) => name === 'required') === true;
}

export const roleBinding = z.object({
  metadata: objectMeta,
  subjects: listOf(z.object({ kind: z.string(), name: z.string(), namespace: text })),
});

export const endpointSlice = z.object({
  metadata: objectMeta,
  endpoints: listOf(z.object({ conditions: z.object({ ready: z.boolean().nullish() }).nullish() })),
});

/** Only the certificates of a Secret are kept: parsing drops the key. */
export const tlsSecret = z.object({
  metadata: objectMeta,
  data: z
    .object({ 'tls.crt': z.string().optional(), 'ca.crt': z.string().optional() })
    .nullish()
    .transform((value) => value ?? {}),
});
export type TlsSecret = z.infer<typeof tlsSecret>;

export const schedulerPod = z.object({
  metadata: objectMeta,
  spec: z.object({
    nodeName: text,
    containers: z.array(z.object({ command: z.array(z.string()).nullish(), args: z.array(z.string()).nullish() })),
  }),
  status: conditioned,
});

export const deployment = z.object({
  metadata: installedMeta,
  spec: z.object({
    replicas: z.number().nullish(),
    template: z.object({ spec: z.object({ containers: imageContainers }) }),
  }),
  status: z.object({ readyReplicas: z.number().nullish() }).nullish(),
});
export type Deployment = z.infer<typeof deployment>;

export const systemPod = z.object({
  metadata: objectMeta,
  spec: z.object({ nodeName: text, initContainers: imageContainers.nullish(), containers: imageContainers }),
  status: conditioned,
});
export type SystemPod = z.infer<typeof systemPod>;

export const apiVersion = z.object({ gitVersion: z.string() });

export const extenderState = z.object({
  active: z.boolean(),
  decisions: z.array(z.object({ pod: z.string() })),
});
export type ExtenderState = z.infer<typeof extenderState>;

const developerConfiguration = z.object({ featureGates: z.array(z.string()).nullish() }).nullish();
export const kubevirt = z.object({
  metadata: objectMeta,
  spec: z.object({ configuration: z.object({ developerConfiguration, evictionStrategy: text }).nullish() }).nullish(),
  status: z.object({ observedKubeVirtVersion: text }).nullish(),
});
export type KubeVirt = z.infer<typeof kubevirt>;

export function featureGates({ spec }: KubeVirt): readonly string[] {
  return spec?.configuration?.developerConfiguration?.featureGates ?? [];
}
