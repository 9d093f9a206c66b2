import type { ResourceType } from './built-in-types.ts';

export const FIELD_VALIDATIONS = ['Strict', 'Warn', 'Ignore'] as const;

export type FieldValidation = (typeof FIELD_VALIDATIONS)[number];

export interface User {
  readonly username: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

export interface Call {
  readonly user: User;
  readonly dryRun: boolean;
  readonly fieldManager?: string | undefined;
  /** Treatment of fields that the type does not have; undefined: no check, which is faster. */
  readonly fieldValidation?: FieldValidation | undefined;
  warn(text: string): void;
}

export interface DeleteOptions {
  readonly gracePeriodSeconds?: number;
  readonly dryRun?: readonly string[];
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
}

export interface Target {
  readonly type: ResourceType;
  readonly namespace: string | undefined;
  readonly name: string;
  readonly subresource?: string;
}
