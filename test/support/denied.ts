import { KubeError } from '../../kube/client.ts';

/** Matches a denial by a ValidatingAdmissionPolicy, by the policy's name: its sentences may change. */
export function deniedByPolicy(policy: string): RegExp {
  return new RegExp(`ValidatingAdmissionPolicy '${policy}' with binding '[^']*' denied request`);
}

export const DENIED_BY_RBAC = /is forbidden: User "[^"]*" cannot /;

/** Whether the API server denies it with 403 and such a text; false: accepted. @throws any other error */
export async function isDenied(request: () => Promise<unknown>, form: RegExp): Promise<boolean> {
  try {
    await request();
    return false;
  } catch (error) {
    if (error instanceof KubeError && error.status === 403 && form.test(error.message)) return true;
    throw error;
  }
}
