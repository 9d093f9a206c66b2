import { isUtf8 } from 'node:buffer';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { cpuListText } from '../../model/amounts.ts';
import type { CpuSet } from '../../model/cpu-set.ts';
import { ParseError } from '../../model/errors.ts';
import { NAMESPACE } from '../../model/names.ts';
import type { NetworkMapEntry } from '../../model/networks/network-map.ts';
import { type ConfigFile, type NovaHost, parseOsloConfig, readNovaConf } from '../../model/nova-conf/nova-conf.ts';
import { readInput } from '../../runtime/input-file.ts';
import { usageError } from '../support/exit-status.ts';
import { type OutputFormat, print, printMessage } from '../support/output.ts';
import { yamlText } from '../support/yaml.ts';

export interface NovaConfFlags {
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly cpus?: CpuSet;
  readonly mapOnly?: true;
  readonly output?: OutputFormat;
}

/** Prints the network map of these configuration files, and the CPUs to reserve. @throws CliError */
export async function run(paths: readonly string[], flags: NovaConfFlags): Promise<void> {
  const host = novaHostOf(await readConfigFiles(paths));
  for (const warning of host.warnings) printMessage(`warning: ${warning}`);
  const { dedicated, shared } = host.cpus;
  const data = {
    networkMap: [mapEntry(host, flags.nodeSelector)],
    cpus: { dedicated: dedicated?.toString(), shared: shared?.toString() },
    warnings: host.warnings,
  };
  await print(flags.output, data, { text: () => importedLines(host, flags) });
}

function novaHostOf(files: readonly ConfigFile[]): NovaHost {
  try {
    return readNovaConf(parseOsloConfig(files));
  } catch (error) {
    if (error instanceof ParseError) throw usageError(error.message, { cause: error });
    throw error;
  }
}

/** Bytes of all files together. A nova.conf with every comment of the sample has less than half of it. */
const MAX_FILES_BYTES = 2 * 1024 * 1024;

/** A directory stands for its `*.conf` by name, as in Nova's `--config-dir`. @throws CliError naming the file */
export async function readConfigFiles(paths: readonly string[]): Promise<ConfigFile[]> {
  const files: ConfigFile[] = [];
  let left = MAX_FILES_BYTES;
  for (const path of paths) {
    const inside = await filesIn(path);
    if (inside?.length === 0) throw usageError(`there is no *.conf in the directory ${path}`);
    for (const name of inside ?? [path]) {
      const bytes = read(name);
      left -= bytes.length;
      if (left < 0) throw usageError(`${name}: the files have more than ${MAX_FILES_BYTES} bytes together`);
      files.push({ name, text: decode(name, bytes) });
    }
  }
  if (files.every(({ text }) => text.trim() === '')) throw usageError(`there is no setting in ${paths.join(', ')}`);
  return files;
}

async function filesIn(path: string): Promise<string[] | undefined> {
  try {
    const names = await readdir(path);
    return names
      .filter((name) => name.endsWith('.conf'))
      .sort()
      .map((name) => join(path, name));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return undefined;
    throw unreadable(path, error);
  }
}

function read(path: string): Buffer {
  try {
    return readInput(path, MAX_FILES_BYTES);
  } catch (error) {
    throw unreadable(path, error);
  }
}

function decode(path: string, bytes: Buffer): string {
  if (!isUtf8(bytes)) throw usageError(`${path} is not UTF-8 text`);
  return new TextDecoder().decode(bytes);
}

function unreadable(path: string, error: unknown): Error {
  return usageError(`cannot read ${path}: ${(error as Error).message}`, { cause: error });
}

function mapEntry({ networks }: NovaHost, nodeSelector: NovaConfFlags['nodeSelector']): NetworkMapEntry {
  return { ...(nodeSelector && { nodeSelector }), ...networks };
}

function importedLines(host: NovaHost, flags: NovaConfFlags): string[] {
  const entry = mapEntry(host, flags.nodeSelector);
  const entries = yamlText([entry], { collectionStyle: 'any' }).trimEnd().split('\n');
  if (flags.mapOnly === true) return entries;
  return [
    ...cpuAdvice(host, flags.cpus),
    'apiVersion: v1',
    'kind: ConfigMap',
    'metadata:',
    '  name: plumbline-network-map',
    `  namespace: ${NAMESPACE}`,
    'data:',
    '  networks.yaml: |',
    ...entries.map((line) => `    ${line}`),
  ];
}

function cpuAdvice({ cpus }: NovaHost, online: CpuSet | undefined): string[] {
  const { dedicated, shared } = cpus;
  if (dedicated === undefined) return [];
  // With these the kubelet assigns the same CPUs to pinned VMs as Nova did.
  const reserved = online?.minus(dedicated);
  const unknown = `# all CPUs of the host except ${dedicated} (give --cpus for the list)`;
  const foreign = online && dedicated.minus(online);
  return [
    `# Nova gave pinned guests ${cpuListText(dedicated)}. To give VMs the same, reserve the others in the kubelet's configuration:`,
    reserved === undefined ? unknown : `# reservedSystemCPUs: "${reserved}"`,
    '# cpuManagerPolicy: static',
    ...(shared
      ? [
          `# ${cpuListText(shared)} of the other guests ${shared.size === 1 ? 'has' : 'have'} no counterpart: their pods share the CPUs without an owner.`,
        ]
      : []),
    ...(foreign && !foreign.isEmpty
      ? [`# ${cpuListText(foreign)} ${foreign.size === 1 ? 'is' : 'are'} not in --cpus.`]
      : []),
  ];
}
