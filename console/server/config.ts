import * as z from 'zod';
import {
  API_SERVER_FLAGS,
  type ConfigDefinition,
  LOG_FLAGS,
  LOG_LEVELS,
  PROBE_FLAGS,
  parseConfig,
} from '../../runtime/config.ts';
import { isLoopback, parseListenAddress } from '../../runtime/http-server.ts';
import type { MessageLogger, SHARED_MESSAGES } from '../../runtime/log.ts';

const port = z.coerce.number().int().min(0).max(65_535);

const schema = z.object({
  address: z
    .string()
    .default('127.0.0.1:8083')
    .transform((text, context) => {
      const address = parseListenAddress(text);
      if (address !== undefined && isLoopback(address.host)) return address;
      context.addIssue({ code: 'custom', message: 'expected a loopback address, <host>:<port>' });
      return z.NEVER;
    }),
  probeHost: z.string().default('0.0.0.0'),
  probePort: port.default(8081),
  kubeconfig: z.string().optional(),
  logLevel: z.enum(LOG_LEVELS).default('info'),
});

export type ConsoleConfig = Readonly<z.infer<typeof schema>>;

export const consoleSettings: ConfigDefinition<typeof schema> = {
  name: 'plumbline-console',
  description: 'Serve the read-only web page inside its own pod, for use with kubectl port-forward.',
  schema,
  flags: {
    address: {
      flag: '--address <host:port>',
      help: 'loopback address of the page, which has no login, where another program has the port (default: 127.0.0.1:8083)',
    },
    ...PROBE_FLAGS,
    ...API_SERVER_FLAGS,
    ...LOG_FLAGS,
  },
};

/** Reads the console's settings from flags and environment. @throws ConfigError, HelpPrinted */
export function parseConsoleConfig(argv: readonly string[]): ConsoleConfig {
  return parseConfig(consoleSettings, argv);
}

export const CONSOLE_MESSAGES = { error: { 'internal error': 'report it' } } as const;

export type ConsoleLogger = MessageLogger<typeof SHARED_MESSAGES & typeof CONSOLE_MESSAGES>;
