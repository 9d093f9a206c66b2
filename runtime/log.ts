import { destination, type Logger, pino } from 'pino';

export type { Logger } from 'pino';

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/**
 * A logger that writes one JSON object per line to standard error, so that standard output stays free for a daemon's
 * own output. Levels are words, times are ISO 8601.
 *
 * @param component the name of the daemon or duty, on every line
 */
export function createLogger(component: string, level: LogLevel = 'info'): Logger {
  return pino(
    {
      level,
      base: { component },
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: describeError },
    },
    destination({ dest: 2, sync: true }),
  );
}

/** An error as it appears in a log line: message, code and the messages of its causes, without stacks. */
export function describeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { message: cut(String(error)) };
  const code = 'code' in error ? { code: error.code } : {};
  const cause = error.cause === undefined ? {} : { cause: describeError(error.cause) };
  return { name: error.name, message: cut(error.message), ...code, ...cause };
}

/** Characters of a message in a log line: other programs and users write some of them. */
const LONGEST = 1024;

function cut(text: string): string {
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST)}…`;
}
