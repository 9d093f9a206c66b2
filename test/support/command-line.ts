import { type ParseArgsConfig, parseArgs } from 'node:util';

type Options = NonNullable<ParseArgsConfig['options']>;
type Values<T extends Options> = ReturnType<typeof parseArgs<{ options: T; allowPositionals: true }>>['values'];

export interface CommandLine<T extends Options> {
  readonly values: Values<T>;
  readonly positionals: readonly string[];
  refuse(problem: string): never;
  /** Undefined if the flag is not given. A value that is not an integer of at least `least` is refused. */
  wholeNumber(flag: keyof T & string, least: number): number | undefined;
}

/** Reads the flags; `--help` prints the usage and exits with 0. @param positionals whether words are allowed */
export function commandLine<const T extends Options>(usage: string, options: T, positionals = false): CommandLine<T> {
  const refuse = (problem: string): never => {
    console.error(`${problem}\n\n${usage}`);
    process.exit(2);
  };
  const parse = () => {
    try {
      return parseArgs({ allowPositionals: positionals, options: { ...options, help: { type: 'boolean' } } });
    } catch (error) {
      return refuse((error as Error).message);
    }
  };
  const parsed = parse();
  const values = parsed.values as Values<T>;
  if ((parsed.values as { help?: boolean }).help) {
    console.log(usage);
    process.exit(0);
  }
  return {
    values,
    positionals: parsed.positionals,
    refuse,
    wholeNumber(flag, least) {
      const text = (parsed.values as Record<string, unknown>)[flag] as string | undefined;
      if (text === undefined) return undefined;
      if (!/^\d{1,15}$/.test(text) || Number(text) < least) {
        return refuse(`--${flag} ${text}: expected a whole number from ${least}`);
      }
      return Number(text);
    },
  };
}

export const newSeed = (): number => Date.now() % 2 ** 31;

/** Makes SIGINT and SIGTERM end this process like an exit, so that its cleanup runs. */
export function exitOnSignals(): void {
  for (const [signal, status] of [['SIGINT', 130] as const, ['SIGTERM', 143] as const]) {
    // Not once: a second signal must not interrupt the cleanup.
    process.on(signal, () => process.exit(status));
  }
}
