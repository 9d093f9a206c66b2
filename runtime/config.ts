import { Command, CommanderError, Option } from 'commander';
import type * as z from 'zod';
import { PlumblineError } from '../model/errors.ts';
import packageJson from '../package.json' with { type: 'json' };

export interface Flag {
  readonly flag: string;
  readonly help: string;
  readonly env?: string;
}

export class ConfigError extends PlumblineError {
  constructor(message: string) {
    super('config', message);
  }
}

/** `--help` or `--version` was requested and printed; the process should exit with 0. */
export class HelpPrinted extends Error {}

export interface ConfigDefinition<S extends z.ZodObject> {
  readonly name: string;
  readonly description: string;
  readonly schema: S;
  readonly flags: { readonly [K in keyof z.input<S>]-?: Flag };
  /** Rules between settings; returns what is wrong and names the flags. */
  readonly check?: (config: z.output<S>) => string | undefined;
}

export const VERSION: string = packageJson.version;

/** Flags and environment as a frozen object. @throws ConfigError naming the flag @throws HelpPrinted */
export function parseConfig<S extends z.ZodObject>(
  definition: ConfigDefinition<S>,
  argv: readonly string[],
): Readonly<z.output<S>> {
  const fields = definition.schema.shape as Record<string, z.ZodType>;
  const options = Object.entries<Flag>(definition.flags).map(([key, flag]) => {
    return { key, option: optionOf(flag, fields[key]) };
  });
  const command = new Command(definition.name).description(definition.description).version(VERSION).exitOverride();
  command
    .configureOutput({ outputError: () => undefined })
    .allowExcessArguments(false)
    .showHelpAfterError(false);
  for (const { option } of options) command.addOption(option);
  try {
    command.parse([...argv], { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) throw new HelpPrinted();
    const message = (error as Error).message.replace(/^error: /, '').replaceAll('\n', ' ');
    throw new ConfigError(`${message}; see ${definition.name} --help`);
  }
  const parsed = command.opts<Record<string, unknown>>();
  const input = Object.fromEntries(options.map(({ key, option }) => [key, parsed[option.attributeName()]]));
  const result = definition.schema.safeParse(input);
  if (!result.success) {
    const lines = result.error.issues.map((issue) => {
      const setting = options.find(({ key }) => key === issue.path[0]);
      const value = setting === undefined ? undefined : input[setting.key];
      return `${setting?.option.long ?? issue.path.join('.')}${value === undefined ? '' : ` ${value}`}: ${issue.message}`;
    });
    throw new ConfigError(lines.join('; '));
  }
  const wrong = definition.check?.(result.data);
  if (wrong !== undefined) throw new ConfigError(wrong);
  return Object.freeze(result.data);
}

function optionOf({ flag, help, env }: Flag, field: z.ZodType | undefined): Option {
  const absent = field?.safeParse(undefined);
  // Shown in the help without making commander pass it on: the schema stays the only source.
  const hasDefault = absent?.success && absent.data !== undefined && !help.includes('default');
  const option = new Option(flag, hasDefault ? `${help} (default: ${String(absent.data)})` : help);
  return env === undefined ? option : option.env(env);
}

/** The address of the API server in a pod: Kubernetes sets it in the environment. */
export function apiServerAddress() {
  const { KUBERNETES_SERVICE_HOST: serviceHost, KUBERNETES_SERVICE_PORT: servicePort = '443' } = process.env;
  return { serviceHost, servicePort: Number(servicePort) };
}

export const API_SERVER_FLAGS = {
  kubeconfig: {
    flag: '--kubeconfig <path>',
    help: 'kubeconfig with a token or a certificate, to run outside a pod; default: the pod’s service account',
  },
} as const;

export const PROBE_FLAGS = {
  probeHost: {
    flag: '--probe-host <address>',
    help: 'address of /healthz, /readyz and /metrics, where only one may serve them',
  },
  probePort: {
    flag: '--probe-port <number>',
    help: 'port of /healthz, /readyz and /metrics (HTTP), where another program has the port',
  },
} as const;

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export const LOG_FLAGS = {
  logLevel: {
    flag: '--log-level <level>',
    help: `${LOG_LEVELS.join(', ')}; debug to report a fault`,
    env: 'PLUMBLINE_LOG_LEVEL',
  },
} as const;
