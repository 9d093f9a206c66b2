import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import * as z from 'zod';
import { PlumblineError } from '../../model/errors.ts';

/** The format of the agent's own files that this build writes and reads. A field more leaves it as it is. */
const FORMAT = 1;
const formatted = z.object({ format: z.number().default(FORMAT) });

/** A file that another version of the agent has written, in a format that this one does not know. */
export class SavedFormatError extends PlumblineError {
  constructor(format: number) {
    super(
      'saved-format',
      `it has format ${format}, and this agent reads format ${FORMAT}: a later version has written it`,
    );
  }
}

/**
 * Replaces a file of the agent's own in one step, and makes its directory where there is none: whoever reads it sees the
 * old content or the new one, whole. Not flushed to the disk: what it must outlive is this process, not the machine.
 * @throws Error of the system
 */
export function saveFile(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.tmp`, text, { mode: 0o600 });
  renameSync(`${path}.tmp`, path);
}

/**
 * What a file of the agent's own holds.
 * @throws SavedFormatError
 * @throws Error if it is no such file at all
 */
export function parseSaved<S extends z.ZodType>(text: string, schema: S): z.output<S> {
  const value: unknown = JSON.parse(text);
  const { format } = formatted.parse(value);
  if (format !== FORMAT) throw new SavedFormatError(format);
  return schema.parse(value);
}

/** Keeps a file that cannot be used out of the way, for people to look at. @returns its new path, if that worked */
export function putAside(path: string): string | undefined {
  try {
    renameSync(path, `${path}.corrupt`);
    return `${path}.corrupt`;
  } catch {
    return undefined;
  }
}
