import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

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
