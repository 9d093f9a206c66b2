import * as z from 'zod';
import { list, name, text, word } from '../../kube/bounds.ts';
import { isNotFound, type KubeClient, KubeError } from '../../kube/client.ts';
import { NAMESPACE, WEBHOOK, WEBHOOK_REQUIRED } from '../../model/names.ts';
import type { Readiness } from '../../runtime/probes.ts';
import { Durations } from '../../runtime/problem-log.ts';
import { sleep } from '../../runtime/time.ts';
import { type Review, refused } from '../review/admission-review.ts';
import type { WebhookLogger } from '../telemetry/log-messages.ts';

const BINDING = `/apis/rbac.authorization.k8s.io/v1/namespaces/${NAMESPACE}/rolebindings/${WEBHOOK_REQUIRED}`;
const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
/** The API server needs the CA in each of these. */
const CONFIGURATIONS: readonly string[] = [
  `mutatingwebhookconfigurations/${WEBHOOK}`,
  'mutatingwebhookconfigurations/plumbline-opt-in',
  `validatingwebhookconfigurations/${WEBHOOK}`,
];
const ACCOUNT = { kind: 'ServiceAccount', name: WEBHOOK, namespace: NAMESPACE } as const;
const ACCOUNT_FIELDS = ['kind', 'name', 'namespace'] as const;

const MAX_BUNDLE_CHARACTERS = 1024 * 1024;

const binding = z.object({
  subjects: list(z.looseObject({ kind: word, name, namespace: word.optional() }), 256).default([]),
});
const configuration = z.object({
  webhooks: list(z.object({ name, clientConfig: z.object({ caBundle: text(MAX_BUNDLE_CHARACTERS).optional() }) }), 256),
});

/** Seconds between two checks: before the subject is present, and afterwards, because an installer may remove it. */
const RETRY_SECONDS = 2;
const CHECK_INTERVAL_SECONDS = 30;
/** Attempts with the same outcome after which it is logged: certificates and services need seconds after an installation. */
const WARN_ATTEMPTS = 5;

interface RequirementOptions {
  readonly client: KubeClient;
  readonly notReady: Readiness;
  readonly onChange: (required: boolean) => void;
  readonly log: WebhookLogger;
}

/**
 * Makes the API server call this webhook once it works (manifests/base/webhook/required.yaml): all entries ask whether
 * its account may `require` admissions. The write of that RoleBinding is itself sent to the webhook, with failurePolicy
 * Fail. No replica removes it.
 */
export function createRequirement({ client, notReady, onChange, log }: RequirementOptions) {
  let last: string | undefined = '';
  let attempts = 0;
  const durations = new Durations();
  const attempt = async (): Promise<string | undefined> => {
    try {
      const { subjects } = binding.parse(await client.get(BINDING));
      if (subjects.some((subject) => ACCOUNT_FIELDS.every((field) => subject[field] === ACCOUNT[field])))
        return undefined;
      const why = notReady() ?? (await faultOf(client));
      if (why !== undefined) return why;
      await client.patch(BINDING, 'application/merge-patch+json', { subjects: [...subjects, ACCOUNT] });
      return undefined;
    } catch (error) {
      if (isNotFound(error))
        return `there is no RoleBinding ${WEBHOOK_REQUIRED} in ${NAMESPACE}, which lets the API server call this webhook`;
      if (error instanceof KubeError) return error.message;
      throw error;
    }
  };
  return {
    /** Checks, and adds the subject if possible. @returns why the subject is absent; undefined if it is present */
    attempt,
    async run(signal: AbortSignal) {
      while (!signal.aborted) {
        const why = await attempt().catch((error: Error) => error.message);
        onChange(why === undefined);
        attempts = why === last ? attempts + 1 : 1;
        last = why;
        if (why !== undefined) durations.begin('');
        if (why === undefined && attempts === 1)
          log.info(durations.end(''), 'webhook active: the API server is set to call it');
        if (why !== undefined && attempts === WARN_ATTEMPTS) log.warn({ reason: why }, 'webhook not active');
        await sleep(why === undefined ? CHECK_INTERVAL_SECONDS : RETRY_SECONDS, signal).catch(() => undefined);
      }
    },
  };
}

export function createRequirementReview(notReady: Readiness): Review {
  return async () => {
    const why = notReady();
    return why === undefined ? { allowed: true } : refused(503, why);
  };
}

/** Why the configurations are not complete. The write uses one of them, and all others must have the same CA. */
async function faultOf(client: KubeClient): Promise<string | undefined> {
  const bundles = new Set<string>();
  for (const path of CONFIGURATIONS) {
    const object = await client.get(`${ADMISSION}/${path}`).catch((error) => {
      if (!isNotFound(error)) throw error;
    });
    if (object === undefined) return `${path} does not exist`;
    for (const { name, clientConfig } of configuration.parse(object).webhooks) {
      if (!clientConfig.caBundle) return `${name} of ${path} has no CA bundle`;
      bundles.add(clientConfig.caBundle);
    }
  }
  return bundles.size > 1 ? 'the webhook configurations have different CA bundles' : undefined;
}
