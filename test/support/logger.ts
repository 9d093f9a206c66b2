import { pino } from 'pino';
import type { AGENT_MESSAGES } from '../../node-agent/telemetry/log-messages.ts';
import { createLogger, type Logger, type MessageAt, type SHARED_MESSAGES } from '../../runtime/log.ts';
import type { EXTENDER_MESSAGES } from '../../scheduler-plugin/telemetry/log-messages.ts';
import type { WEBHOOK_MESSAGES } from '../../webhook/telemetry/log-messages.ts';

export const silent: Logger = createLogger('test', 'silent');

type Messages = typeof SHARED_MESSAGES & typeof AGENT_MESSAGES & typeof EXTENDER_MESSAGES & typeof WEBHOOK_MESSAGES;
type Message = { [Level in keyof Messages]: MessageAt<Messages, Level> }[keyof Messages];

/** @property said whether a line has the message */
interface RecordingLogger {
  readonly log: Logger;
  readonly lines: Record<string, unknown>[];
  readonly said: (message: Message) => boolean;
}

export function recordingLogger(): RecordingLogger {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: 'debug', base: null }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  return { log, lines, said: (message) => lines.some((line) => line.msg === message) };
}
