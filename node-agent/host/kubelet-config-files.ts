import { opendir, stat } from 'node:fs/promises';
import { isAbsolute, join, relative } from 'node:path';
import { cut } from '../../model/errors.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import { byText } from '../../model/lists.ts';
import { readBounded } from '../files/bounded-file.ts';
import { KUBELET_YAML, MAX_YAML_BYTES, parseBoundedYaml } from '../files/bounded-yaml.ts';
import { CHANGED_SINCE_START, KubeletConfigError, kubeletConfigOf } from './kubelet-config.ts';

/** Maximum files and directories below the kubelet's --config-dir. */
const MAX_ENTRIES = 256;
const MAX_MESSAGE_CHARACTERS = 300;
const API_VERSION = 'kubelet.config.k8s.io/v1beta1';
/** Not text: the kubelet's parser takes neither control characters nor bytes that are not UTF-8. */
const BINARY = /[^\t\n\r -~\u0085\u00a0-\ufffc\u{10000}-\u{10ffff}]/u;

export interface SettingsSources {
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
    settings = mergeOver(settings, await withPath(file, () => readFile(root, file, readBefore))) as JsonObject;
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

/** A JSON merge patch (RFC 7386). */
function mergeOver(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const merged = new Map(isObject(target) ? Object.entries(target) : []);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key);
    else merged.set(key, mergeOver(merged.get(key), value));
  }
  return Object.fromEntries(merged);
}
