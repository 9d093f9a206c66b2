import type { JsonObject } from '../objects.ts';

/** Values of the query parameter: unknown fields are refused, cause a warning, or are accepted. */
export const FIELD_VALIDATIONS = ['Strict', 'Warn', 'Ignore'] as const;
export type FieldValidation = (typeof FIELD_VALIDATIONS)[number];

/** The caller: the user of a bearer token, as webhooks receive it. */
export interface User {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** Properties of a request that do not depend on its verb. */
export interface Call {
  readonly user: User;
  readonly dryRun: boolean;
  /** The client's name as field manager; required for server-side apply. */
  readonly fieldManager?: string;
  /** Treatment of fields that the type does not have; undefined: no check, which is faster. */
  readonly fieldValidation?: FieldValidation;
  /** Adds a Warning header to the response. */
  warn(text: string): void;
}

/** The supported fields of DeleteOptions. */
export interface DeleteOptions {
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy?: string;
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
}

/** The options object of a verb, for admission webhooks. */
export function optionsObject(kind: 'CreateOptions' | 'UpdateOptions' | 'DeleteOptions', call: Call): JsonObject {
  return {
    apiVersion: 'meta.k8s.io/v1',
    kind,
    ...(call.dryRun && { dryRun: ['All'] }),
    ...(call.fieldManager !== undefined && { fieldManager: call.fieldManager }),
  };
}
