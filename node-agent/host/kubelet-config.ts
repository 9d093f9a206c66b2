import { opendir, stat } from 'node:fs/promises';
import { isAbsolute, join, relative } from 'node:path';
import * as z from 'zod';
import { CpuSet } from '../../model/cpu-set.ts';
import { cut, issueText, PlumblineError } from '../../model/errors.ts';
import { applyMergePatch, isObject, type JsonObject } from '../../model/json.ts';
import { GATES } from '../../model/kubelet/versions.ts';
import { byText } from '../../model/lists.ts';
import { parseQuantity, wholeValue } from '../../model/quantity.ts';
import { readBounded } from '../files/bounded-file.ts';
import { KUBELET_YAML, MAX_YAML_BYTES, parseBoundedYaml } from '../files/bounded-yaml.ts';

/** Characters of a name, a value or a quantity; limits of NUMA nodes, resources and options of a kubelet. */
const MAX_TEXT_CHARACTERS = 120;
const MAX_CELLS = 1024;
const MAX_OPTIONS = 32;

const text = z.string().max(MAX_TEXT_CHARACTERS);
const few = (size: number) => `expected at most ${size}`;
const options = z
  .record(text, text)
  .refine((all) => Object.keys(all).length <= MAX_OPTIONS, few(MAX_OPTIONS))
  .nullish();
const quantity = z.union([text, z.number().transform(String)]);
const limits = z.record(text, quantity).refine((all) => Object.keys(all).length <= MAX_OPTIONS, few(MAX_OPTIONS));

const MAX_LIST_CHARACTERS = 32 * 1024;
/** Maximum pods of a node; each network has a device for each of them. */
const MAX_PODS = 10_000;

/** The CPU and memory settings of a KubeletConfiguration, with the kubelet's own defaults for absent fields. */
const kubeletConfiguration = z.object({
  kind: z.literal('KubeletConfiguration'),
  cpuManagerPolicy: text.nullish(),
  cpuManagerPolicyOptions: options,
  topologyManagerPolicy: text.nullish(),
  topologyManagerScope: text.nullish(),
  topologyManagerPolicyOptions: options,
  memoryManagerPolicy: text.nullish(),
  featureGates: z.record(text, z.boolean()).nullish(),
  reservedMemory: z
    .array(z.object({ numaNode: z.number().int(), limits }))
    .max(MAX_CELLS)
    .nullish(),
  reservedSystemCPUs: z.string().max(MAX_LIST_CHARACTERS).nullish(),
  maxPods: z.number().int().nullish(),
});

export const DEFAULT_MAX_PODS = 110;

export type NodeKubeletConfig = Readonly<ReturnType<typeof kubeletConfigOf>>;

/** What a file says that is newer than the kubelet is not what the kubelet read. */
export const CHANGED_SINCE_START = 'it is newer than the running kubelet; restart the kubelet';

export class KubeletConfigError extends PlumblineError {
  constructor(file: string, why: string, options?: ErrorOptions) {
    super('kubelet-config', `${file}: ${why}`, options);
  }
}

/** @param source its origin, for messages @throws KubeletConfigError if it contains impossible values */
export function kubeletConfigOf(source: string, document: unknown) {
  const result = kubeletConfiguration.safeParse(document);
  if (!result.success) {
    const issue = result.error.issues[0];
    const why = `${cut(issue?.path.join('.') ?? '', MAX_TEXT_CHARACTERS)}: ${cut(issueText(issue?.message ?? ''), MAX_TEXT_CHARACTERS)}`;
    throw new KubeletConfigError(source, `not a usable KubeletConfiguration: ${why}`);
  }
  const config = result.data;
  /** Bytes that the memory manager gives to no pod, by NUMA node and resource name. */
  const reservedMemory = new Map<number, Record<string, number>>();
  for (const { numaNode, limits } of config.reservedMemory ?? []) {
    const bytes = reservedMemory.get(numaNode) ?? {};
    for (const [resource, amount] of Object.entries(limits)) {
      bytes[resource] = inField(source, 'reservedMemory', () => wholeValue(parseQuantity(amount)));
    }
    reservedMemory.set(numaNode, bytes);
  }
  const { reservedSystemCPUs } = config;
  return {
    source,
    cpuManager: { policy: config.cpuManagerPolicy || 'none', options: config.cpuManagerPolicyOptions ?? {} },
    topologyManager: {
      policy: config.topologyManagerPolicy || 'none',
      scope: config.topologyManagerScope || 'container',
      options: config.topologyManagerPolicyOptions ?? {},
    },
    memoryManager: { policy: config.memoryManagerPolicy || 'None' },
    reservedMemory,
    /** reservedSystemCPUs; undefined where only amounts (kubeReserved, systemReserved) or nothing is set. */
    reserved: reservedSystemCPUs
      ? inField(source, 'reservedSystemCPUs', () => CpuSet.parse(reservedSystemCPUs))
      : undefined,
    featureGates: gatesOf(config.featureGates ?? {}),
    maxPods: Math.min(MAX_PODS, Math.max(0, config.maxPods ?? 0) || DEFAULT_MAX_PODS),
  };
}

/** The gates that change admission. AllAlpha and AllBeta turn on every gate of their stage that is not set itself. */
function gatesOf(gates: Readonly<Record<string, boolean>>): Record<string, boolean> {
  const all = gates['AllAlpha'] === true || gates['AllBeta'] === true;
  const names = Object.keys(GATES).filter((gate) => all || Object.hasOwn(gates, gate));
  return Object.fromEntries(names.map((gate) => [gate, gates[gate] ?? true]));
}

function inField<Value>(source: string, field: string, parse: () => Value): Value {
  try {
    return parse();
  } catch (error) {
    throw new KubeletConfigError(source, `${field}: ${(error as Error).message}`, { cause: error });
  }
}

/** Maximum files and directories below the kubelet's --config-dir. */
const MAX_ENTRIES = 256;
const MAX_MESSAGE_CHARACTERS = 300;
const API_VERSION = 'kubelet.config.k8s.io/v1beta1';
/** Not text: the kubelet's parser takes neither control characters nor bytes that are not UTF-8. */
const BINARY = /[^\t\n\r -~\u0085\u00a0-\ufffc\u{10000}-\u{10ffff}]/u;

interface SettingsSources {
  readonly config?: string | undefined;
  readonly configDir?: string | undefined;
  readonly flags?: JsonObject | undefined;
  /** When the kubelet had read its files, in milliseconds since 1970: what was written later says nothing about it. */
  readonly readBefore?: number | undefined;
  readonly root: string;
}

/**
 * Joins the settings in the kubelet's order: file, drop-ins, flags; the drop-ins need no file.
 * Source: kubernetes 1.36, cmd/kubelet/app/server.go (mergeKubeletConfigurations, kubeletConfigFlagPrecedence).
 * @throws KubeletConfigError if one of them cannot be read, or stops a kubelet
 */
export async function readSettings({ config, configDir, flags = {}, readBefore, root }: SettingsSources) {
  const sources: string[] = [];
  let settings: JsonObject = { kind: 'KubeletConfiguration' };
  if (config !== undefined) {
    settings = await withPath(config, () => readFile(root, config, readBefore));
    kubeletConfigOf(config, settings);
    sources.push(config);
  }
  const names = configDir === undefined ? [] : await withPath(configDir, () => dropInNames(join(root, configDir)));
  for (const name of names) {
    const file = join(configDir ?? '', name);
    settings = applyMergePatch(settings, await withPath(file, () => readFile(root, file, readBefore))) as JsonObject;
    sources.push(file);
  }
  // What drop-ins or flags replace must be right, too.
  kubeletConfigOf(sources.join(' + '), settings);
  if (Object.keys(flags).length > 0) sources.push('flags');
  const gates = settings['featureGates'] ?? {};
  const featureGates = isObject(gates) ? { ...gates, ...(flags['featureGates'] as object | undefined) } : gates;
  return { source: sources.join(' + ') || 'defaults', settings: { ...settings, ...flags, featureGates } };
}

async function withPath<Result>(path: string, read: () => Promise<Result>): Promise<Result> {
  try {
    if (!isAbsolute(path)) throw new Error('relative to a directory that is not known');
    return await read();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const text = message.startsWith('/') ? message.slice(message.indexOf(': ') + 2) : message;
    const why = code === 'ENOENT' ? 'does not exist, or the agent has no mount of it at this path' : text;
    throw new KubeletConfigError(path, cut(why, MAX_MESSAGE_CHARACTERS), { cause: error });
  }
}

async function readFile(root: string, file: string, readBefore = Number.POSITIVE_INFINITY): Promise<JsonObject> {
  const path = join(root, file);
  const before = await stat(path);
  const text = readBounded(path, MAX_YAML_BYTES);
  const after = await stat(path);
  if (before.ino !== after.ino || before.mtimeMs !== after.mtimeMs) throw new Error('it changed while it was read');
  if (after.mtimeMs > readBefore) throw new Error(CHANGED_SINCE_START);
  return documentOf(text);
}

/** Reads as the kubelet does, except that duplicate keys are refused everywhere. @throws Error, short */
export function documentOf(text: string): JsonObject {
  if (BINARY.test(text)) throw new Error('not text');
  const document = parseBoundedYaml(text, KUBELET_YAML);
  // A text that begins with a brace must be JSON.
  if (/^\s*\{/.test(text)) JSON.parse(text);
  if (isObject(document) && document['kind'] === 'Config') throw new Error('a kubeconfig, not a KubeletConfiguration');
  if (!isObject(document) || document['kind'] !== 'KubeletConfiguration' || document['apiVersion'] !== API_VERSION) {
    throw new Error(`not a KubeletConfiguration: expected kind KubeletConfiguration and apiVersion ${API_VERSION}`);
  }
  return document;
}

/** The `*.conf` files. It reads entries one by one, so that a directory of millions costs no more than the limit. */
async function dropInNames(path: string): Promise<string[]> {
  const names: string[] = [];
  let entries = 0;
  for await (const entry of await opendir(path, { recursive: true })) {
    if (++entries > MAX_ENTRIES) throw new Error(`more than ${MAX_ENTRIES} drop-ins`);
    if (entry.name.endsWith('.conf') && !entry.isDirectory()) {
      names.push(relative(path, join(entry.parentPath, entry.name)));
    }
  }
  // The order of Go's WalkDir: by the names of the directories on the path, then by the name of the file.
  return names.sort(byText((path) => path.replaceAll('/', '\0')));
}
