import type { CpuSet } from '../../model/cpu-set.ts';
import { ParseError } from '../../model/errors.ts';
import { NAMESPACE } from '../../model/names.ts';
import { type ConfigFile, type NovaHost, parseOsloConfig, readNovaConf } from '../../model/nova-conf/nova-conf.ts';
import { usageError } from '../support/exit-status.ts';
import { type OutputFormat, print, printMessage } from '../support/output.ts';
import { readConfigFiles } from './config-files.ts';
import { importedLines, mapEntry } from './lines.ts';

export interface NovaConfFlags {
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly cpus?: CpuSet;
  readonly mapOnly?: true;
  readonly output?: OutputFormat;
}

/** Prints the network map of these configuration files, and the CPUs to reserve. @throws CliError */
export async function run(paths: readonly string[], flags: NovaConfFlags): Promise<void> {
  const found = novaHostOf(await readConfigFiles(paths));
  for (const warning of found.warnings) printMessage(`warning: ${warning}`);
  const { dedicated, shared } = found.cpus;
  const data = {
    networkMap: [mapEntry(found, flags.nodeSelector)],
    cpus: { dedicated: dedicated?.toString(), shared: shared?.toString() },
    warnings: found.warnings,
  };
  await print(flags.output, data, {
    text: () => importedLines(found, { ...flags, namespace: NAMESPACE }),
  });
}

function novaHostOf(files: readonly ConfigFile[]): NovaHost {
  try {
    return readNovaConf(parseOsloConfig(files));
  } catch (error) {
    if (error instanceof ParseError) throw usageError(error.message, { cause: error });
    throw error;
  }
}
