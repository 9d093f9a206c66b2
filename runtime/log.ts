import { destination, type Logger as PinoLogger, pino } from 'pino';
import { errorText } from '../model/errors.ts';
import type { LogLevel } from './config.ts';
import { cutText, printableJson } from './printable.ts';

/** Messages of a daemon by their level, each with its meaning and what to do. docs/reference/log-messages.md is made of them. */
export type LogMessages = Readonly<
  Partial<Record<'info' | 'warn' | 'error' | 'fatal', Readonly<Record<string, string>>>>
>;

/** A message of this level. One that ends with a colon and a space is the beginning of a line. */
export type MessageAt<M extends LogMessages, L extends keyof LogMessages> = keyof M[L] extends infer Text
  ? Text extends `${string}: `
    ? `${Text}${string}`
    : Text
  : never;

/** Writes lines to the log. Only at the level debug, for developers, is the message any text. */
export interface MessageLogger<M extends LogMessages> {
  debug(fields: object, message: string): void;
  info(...line: [fields: object, message: MessageAt<M, 'info'>] | [message: MessageAt<M, 'info'>]): void;
  warn(...line: [fields: object, message: MessageAt<M, 'warn'>] | [message: MessageAt<M, 'warn'>]): void;
  error(...line: [fields: object, message: MessageAt<M, 'error'>] | [message: MessageAt<M, 'error'>]): void;
  fatal(...line: [fields: object, message: MessageAt<M, 'fatal'>] | [message: MessageAt<M, 'fatal'>]): void;
}

export type Logger = MessageLogger<typeof SHARED_MESSAGES>;

const standardError = destination({ dest: 2, sync: true });

/** Writes one JSON object per line to standard error. @param component the daemon or duty, on every line */
export function createLogger(component: string, level: LogLevel = 'info'): PinoLogger {
  return pino(
    {
      level,
      base: { component },
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: describeError },
    },
    { write: (line) => standardError.write(boundedLine(line)) },
  );
}

/** Characters of a text in a log line, and of a line: other programs and users write some of them. */
const MAX_VALUE_CHARACTERS = 1024;
const MAX_LINE_CHARACTERS = 16 * 1024;

/** A line of JSON without unprintable characters, with its texts cut; if it is still too long, only its message. */
export function boundedLine(line: string): string {
  if (line.length <= MAX_VALUE_CHARACTERS) return printableJson(line);
  const cutValue = (_: string, value: unknown) =>
    typeof value === 'string' ? cutText(value, MAX_VALUE_CHARACTERS) : value;
  const entry = JSON.parse(line, cutValue);
  const text = JSON.stringify(entry);
  const { level, component, time, msg } = entry;
  const bounded = text.length <= MAX_LINE_CHARACTERS ? text : JSON.stringify({ level, component, time, msg });
  return printableJson(`${bounded}\n`);
}

/** For work that nothing awaits: `work().catch(logFailure(log))`. */
export function logFailure(log: Logger): (err: unknown) => void {
  return (err) => log.error({ err }, 'background work failed');
}

/** An error as it appears in a log line: message, code and the messages of its causes, without stacks. */
export function describeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { message: String(error) };
  const code = 'code' in error ? { code: error.code } : {};
  const cause = error.cause === undefined ? {} : { cause: describeError(error.cause) };
  return { name: error.name, message: errorText(error), ...code, ...cause };
}

export const SHARED_MESSAGES = {
  info: {
    serving: 'with its ports',
    stopping: 'a signal arrived',
    stopped: '',
    'certificate reloaded': '',
    recovered: 'what `warning` names has ended',
  },
  warn: {
    'list or watch failed; keeping the cache and retrying': 'check API server and permissions',
    'object ignored: it cannot be read': 'correct the object',
    'object cannot be read; keeping its last or its minimal form': 'correct the object, as `issues` says',
    'writing an Event failed': 'check the API server',
    'reading the new certificate failed; keeping the old one': 'correct the files',
    'connection closed: no allowed name in the client certificate': 'see `--client-names`',
  },
  error: {
    'processing an object failed': 'report it, with the object',
    'accepting a connection failed': 'read `err`',
    'the serving certificate is expired or not valid yet': 'renew it, or correct the clocks',
    'background work failed': 'report it',
    'metrics collection failed': 'report it',
    'shutdown deadline exceeded; exiting': 'report it if it repeats',
    'shutdown failed': 'report it',
  },
  fatal: {
    'startup failed': 'correct the cause; the pod restarts',
    'the daemon’s work failed; stopping': 'report it; the pod restarts',
  },
} as const;
