import { isObject } from './json.ts';

/** An entry of metadata.managedFields. */
export interface ManagedFields {
  readonly manager?: string | undefined;
  /** When this manager last changed one of its fields, by the API server's clock. */
  readonly time?: string | undefined;
  readonly fieldsV1?: unknown;
}

/** @param path names of fields, such as `spec` and `renewTime` */
export function ownsField({ fieldsV1 }: ManagedFields, path: readonly string[]): boolean {
  let fields = fieldsV1;
  for (const name of path) fields = isObject(fields) ? fields[`f:${name}`] : undefined;
  return fields !== undefined;
}
