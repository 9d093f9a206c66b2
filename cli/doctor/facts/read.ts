import { KubeError } from '../../../kube/client.ts';

export type Read<T> =
  | { readonly value: T; readonly missing?: undefined }
  | { readonly value?: undefined; readonly missing: 'absent' | 'forbidden' };

export async function settled<T extends Record<string, Promise<unknown>>>(
  parts: T,
): Promise<{ [K in keyof T]: Awaited<T[K]> }> {
  const entries = Object.entries(parts).map(async ([name, part]) => [name, await part] as const);
  return Object.fromEntries(await Promise.all(entries)) as { [K in keyof T]: Awaited<T[K]> };
}

/** Missing permissions and missing objects are results; any other error ends the command. */
export async function tolerant<T>(reading: Promise<T | undefined>): Promise<Read<T>> {
  try {
    const value = await reading;
    return value === undefined ? { missing: 'absent' } : { value };
  } catch (error) {
    if (error instanceof KubeError && error.status === 403) return { missing: 'forbidden' };
    if (error instanceof KubeError && error.status === 404) return { missing: 'absent' };
    throw error;
  }
}
