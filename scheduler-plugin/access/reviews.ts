import * as z from 'zod';
import type { KubeClient } from '../../kube/client.ts';

/** The subject of a request in terms of RBAC: the pods of a namespace, one pod, or all pods. */
export interface PodAttributes {
  readonly verb: 'get' | 'list';
  readonly namespace?: string;
  readonly name?: string;
}

export type Review = 'allowed' | 'denied' | 'unauthenticated';

const tokenReview = z.object({
  status: z.object({
    authenticated: z.boolean().nullish(),
    user: z
      .object({
        username: z.string().nullish(),
        uid: z.string().nullish(),
        groups: z.array(z.string()).nullish(),
        extra: z.record(z.string(), z.array(z.string())).nullish(),
      })
      .nullish(),
  }),
});
const accessReview = z.object({ status: z.object({ allowed: z.boolean() }) });

const TOKEN_REVIEWS = '/apis/authentication.k8s.io/v1/tokenreviews';
const ACCESS_REVIEWS = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
/** Timeout in seconds for each of the two reviews. */
const TIMEOUT = 3;

/**
 * Asks the API server who the token's user is and whether that user may read these pods.
 * @throws KubeError
 */
export async function reviewToken(
  client: Pick<KubeClient, 'create'>,
  token: string,
  attributes: PodAttributes,
): Promise<Review> {
  const options = { timeout: TIMEOUT };
  const asked = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } };
  const { status } = tokenReview.parse(await client.create(TOKEN_REVIEWS, asked, options));
  const { username, uid, groups, extra } = status.user ?? {};
  if (status.authenticated !== true || !username) return 'unauthenticated';
  const answer = await client.create(
    ACCESS_REVIEWS,
    {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: {
        user: username,
        uid: uid ?? '',
        groups: groups ?? [],
        extra: extra ?? {},
        resourceAttributes: { version: 'v1', resource: 'pods', ...attributes },
      },
    },
    options,
  );
  return accessReview.parse(answer).status.allowed ? 'allowed' : 'denied';
}
