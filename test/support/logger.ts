import { createLogger, type Logger } from '../../runtime/log.ts';

/** Says nothing. */
export const silent: Logger = createLogger('test', 'silent');
