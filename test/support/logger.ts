import { pino } from 'pino';
import { createLogger, type Logger } from '../../runtime/log.ts';

/** Logs nothing. */
export const silent: Logger = createLogger('test', 'silent');

/** A logger whose lines a test can read. */
export function recordingLogger(): { log: Logger; lines: Record<string, unknown>[]; said: (msg: string) => boolean } {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: 'debug', base: null }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  return { log, lines, said: (msg) => lines.some((line) => line.msg === msg) };
}
