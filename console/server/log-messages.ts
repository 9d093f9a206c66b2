import type { MessageLogger } from '../../runtime/log.ts';
import type { SHARED_MESSAGES } from '../../runtime/log-messages.ts';

export const CONSOLE_MESSAGES = { error: { 'internal error': 'report it' } } as const;

export type ConsoleLogger = MessageLogger<typeof SHARED_MESSAGES & typeof CONSOLE_MESSAGES>;
