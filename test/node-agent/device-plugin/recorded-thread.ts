import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface SentMessage {
  readonly kind: string;
  readonly refusal?: string;
  readonly wholeCoresOnly?: boolean;
  readonly resources?: { name: string; slots: number; cells: number[]; healthy: boolean }[];
}

/**
 * Writes the program of a device plugin's thread that records what it is sent, and ends on request.
 * @param more runs at its start, and may use `parentPort`
 */
export function writeRecordedThread(directory: string, more = '') {
  const program = join(directory, 'thread.mjs');
  const record = join(directory, 'record');
  writeFileSync(
    program,
    `import { appendFileSync } from 'node:fs';
    import { parentPort } from 'node:worker_threads';
    parentPort.on('message', (message) => {
      appendFileSync(${JSON.stringify(record)}, JSON.stringify(message) + '\\n');
      if (message.kind === 'stop') process.exit(0);
    });
    ${more}`,
  );
  const sent = () =>
    (existsSync(record) ? readFileSync(record, 'utf8') : '')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as SentMessage);
  return { program, sent };
}
