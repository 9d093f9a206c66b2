import { pino } from 'pino';
import { printMessage } from '../support/output.ts';

interface Line {
  readonly msg?: string;
  readonly path?: string;
  readonly err?: { readonly message?: string };
}

/** Warnings of the page's server as lines for a terminal. */
export function createTerminalLog() {
  return pino(
    { level: 'warn', base: null, timestamp: false },
    {
      write(text: string) {
        const { msg, path, err } = JSON.parse(text) as Line;
        printMessage(`plumbline: ${[path, msg, err?.message].filter(Boolean).join(': ')}`);
      },
    },
  );
}
