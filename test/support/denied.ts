import { KubeError } from '../../kube/client.ts';

/**
 * Matches the error of a request that a ValidatingAdmissionPolicy denied, by the policy's name: its sentences may change.
 */
export function deniedByPolicy(policy: string): RegExp {
  return new RegExp(`ValidatingAdmissionPolicy '${policy}' with binding '[^']*' denied request`);
}

/** Matches the error of a request for which the account has no permission (RBAC). */
export const DENIED_BY_RBAC = /is forbidden: User "[^"]*" cannot /;

/**
 * Whether the API server denies a request with 403 and a text of this form; false if it accepts the request.
 * @throws any other error of the request
 */
export async function isDenied(request: () => Promise<unknown>, form: RegExp): Promise<boolean> {
  try {
    await request();
    return false;
  } catch (error) {
    if (error instanceof KubeError && error.status === 403 && form.test(error.message)) return true;
    throw error;
  }
}
