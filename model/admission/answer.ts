import type * as z from 'zod';
import { cut } from '../brief.ts';

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

/** Characters of a message, of a path and of one key in a path. A review is not validated yet when these apply. */
const LONGEST_MESSAGE = 1024;
const LONGEST_ISSUES = 300;
const LONGEST_KEY = 80;

/** A refusal. `code` is an HTTP status; the message is cut to 1024 characters. */
export function refused(code: number, message: string, warnings: readonly string[] = []): RefusedAnswer {
  const text = cut(`plumbline: ${message}`, LONGEST_MESSAGE);
  return { allowed: false, code, message: text, ...(warnings.length === 0 ? {} : { warnings }) };
}

/** The first few places where a value does not match its schema, on one line. The caller chooses the keys in a path. */
export function issuesText(error: z.ZodError): string {
  const issues = error.issues.slice(0, 3).map(({ path, message }) => {
    const where = path.map((part) => cut(String(part), LONGEST_KEY)).join('.');
    return `${where || 'the whole'}: ${cut(message, LONGEST_KEY)}`;
  });
  return cut(issues.join('; '), LONGEST_ISSUES);
}
