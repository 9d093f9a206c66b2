import { cut } from '../errors.ts';

/** One JSON patch operation, RFC 6902. */
export interface PatchOperation {
  readonly op: 'add' | 'replace' | 'remove';
  readonly path: string;
  /** Absent if `op` is remove. */
  readonly value?: unknown;
}

/** The result of a review. Without a patch the object is admitted unchanged. */
export type AdmissionAnswer =
  | { readonly allowed: true; readonly patch?: readonly PatchOperation[]; readonly warnings?: readonly string[] }
  | RefusedAnswer;

export interface RefusedAnswer {
  readonly allowed: false;
  /** HTTP status. */
  readonly code: number;
  readonly message: string;
  readonly warnings?: readonly string[];
}

const MAX_MESSAGE_CHARACTERS = 1024;

/** A refusal. `code` is an HTTP status; the message is cut to 1024 characters. */
export function refused(code: number, message: string, warnings: readonly string[] = []): RefusedAnswer {
  const text = cut(`plumbline: ${message}`, MAX_MESSAGE_CHARACTERS);
  return { allowed: false, code, message: text, ...(warnings.length === 0 ? {} : { warnings }) };
}
