import { type ParseArgsConfig, parseArgs } from 'node:util';

type Options = NonNullable<ParseArgsConfig['options']>;

/** Unusable input of a script; the message describes the remedy. */
export class UsageError extends Error {}

/** The flags and words of a script's command line. @throws UsageError for unknown flags */
export function readArguments<const T extends Options>(args: readonly string[], options: T) {
  try {
    return parseArgs({ args: [...args], allowPositionals: true, options });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

export function required(value: string | undefined, flag: string): string {
  if (value === undefined || value === '') throw new UsageError(`--${flag} is missing`);
  return value;
}

/** Runs a script. The exit status is 1 with one line for a failure, 2 with the usage for wrong arguments. */
export async function runScript(usage: string, main: (args: readonly string[]) => unknown): Promise<void> {
  try {
    await main(process.argv.slice(2));
  } catch (error) {
    const isUsage = error instanceof UsageError;
    console.error(isUsage ? `${error.message}\nusage: ${usage}` : (error as Error).message);
    process.exitCode = isUsage ? 2 : 1;
  }
}
