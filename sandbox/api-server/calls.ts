import type { JsonObject } from '../objects.ts';

/** As of the query parameter: refused, warned of, or accepted. */
export const FIELD_VALIDATIONS = ['Strict', 'Warn', 'Ignore'] as const;
export type FieldValidation = (typeof FIELD_VALIDATIONS)[number];

/** Who asks: what a bearer token stands for, and what webhooks receive. */
export interface User {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** What surrounds one request, whatever its verb. */
export interface Call {
  readonly user: User;
  readonly dryRun: boolean;
  /** What the client calls itself; needed for server-side apply. */
  readonly fieldManager?: string;
  /** What happens to fields that the type does not have; undefined: no check, which is faster. */
  readonly fieldValidation?: FieldValidation;
  /** Adds a Warning header to the answer. */
  warn(text: string): void;
}

/** DeleteOptions, as far as they are heeded. */
export interface DeleteOptions {
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy?: string;
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
}

/** The options object of a verb, as admission webhooks see it. */
export function optionsObject(kind: 'CreateOptions' | 'UpdateOptions' | 'DeleteOptions', call: Call): JsonObject {
  return {
    apiVersion: 'meta.k8s.io/v1',
    kind,
    ...(call.dryRun && { dryRun: ['All'] }),
    ...(call.fieldManager !== undefined && { fieldManager: call.fieldManager }),
  };
}
