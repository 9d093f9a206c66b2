import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import * as z from 'zod';
import { PlumblineError } from '../../model/errors.ts';

/** The format of the agent's own files that this build writes and reads. Additional fields do not change it. */
const FORMAT = 1;
const formatted = z.object({ format: z.number().default(FORMAT) });

/** A file that another version of the agent wrote in an unknown format. */
export class SavedFormatError extends PlumblineError {
  constructor(format: number) {
    super('saved-format', `it has format ${format}, this agent reads format ${FORMAT}: a later version has written it`);
  }
}

/**
 * Replaces one of the agent's own files in one step, and creates its directory if needed: a reader sees the old content
 * or the new one, never a part. It does not flush to disk: the file must survive the process, not the machine.
 *
 * @throws a system error
 */
export function saveFile(path: string, text: string, mode = 0o600): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.tmp`, text, { mode });
  renameSync(`${path}.tmp`, path);
}

/**
 * Parses the content of one of the agent's own files.
 *
 * @throws SavedFormatError
 * @throws Error if it is not such a file
 */
export function parseSaved<S extends z.ZodType>(text: string, schema: S): z.output<S> {
  const value: unknown = JSON.parse(text);
  const { format } = formatted.parse(value);
  if (format !== FORMAT) throw new SavedFormatError(format);
  return schema.parse(value);
}

/**
 * Moves an unusable file out of the way and keeps it for inspection. @returns its new path, or undefined if that failed
 */
export function putAside(path: string): string | undefined {
  try {
    renameSync(path, `${path}.corrupt`);
    return `${path}.corrupt`;
  } catch {
    return undefined;
  }
}
