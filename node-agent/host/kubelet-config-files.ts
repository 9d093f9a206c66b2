import { opendir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { readBoundedAsync } from '../files/bounded-file.ts';
import { MOST_YAML } from '../files/bounded-yaml.ts';
import { isKubeconfig, type KubeletConfig, KubeletConfigError, kubeletConfigOf, parseYaml } from './kubelet-config.ts';

/** Maximum bytes of a file, equal to the limit of YAML in characters. */
const MOST_CONFIG = MOST_YAML;
/** Maximum files and directories below the kubelet's --config-dir. */
const MOST_ENTRIES = 256;

/** The result for one candidate file. */
export type KubeletConfigFinding =
  | { readonly kind: 'found'; readonly config: KubeletConfig }
  | { readonly kind: 'kubeconfig' | 'absent'; readonly file: string }
  | { readonly kind: 'invalid'; readonly file: string; readonly error: Error };

/**
 * Checks the candidates in order up to the first KubeletConfiguration; returns the result for each.
 *
 * @param dropIns the kubelet's --config-dir, whose files override the file
 */
export async function findKubeletConfig(
  candidates: readonly string[],
  dropIns?: string,
): Promise<readonly KubeletConfigFinding[]> {
  const findings: KubeletConfigFinding[] = [];
  for (const file of candidates) {
    const finding = await examine(file, dropIns);
    findings.push(finding);
    if (finding.kind === 'found') break;
  }
  return findings;
}

async function readYaml(file: string): Promise<unknown> {
  return parseYaml(file, await readBoundedAsync(file, MOST_CONFIG));
}

async function examine(file: string, dropIns: string | undefined): Promise<KubeletConfigFinding> {
  try {
    const document = await readYaml(file);
    if (isKubeconfig(document)) return { kind: 'kubeconfig', file };
    const base = kubeletConfigOf(file, document);
    if (dropIns === undefined) return { kind: 'found', config: base };
    const { merged, files } = await withDropIns(document, dropIns);
    const source = [file, ...files].join(' + ');
    return { kind: 'found', config: files.length === 0 ? base : kubeletConfigOf(source, merged) };
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' && path === file) return { kind: 'absent', file };
    return { kind: 'invalid', file, error: error as Error };
  }
}

/**
 * Merges the `*.conf` files of the directory in the order of their names, each as a JSON merge patch (RFC 7386).
 * Source: https://kubernetes.io/docs/tasks/administer-cluster/kubelet-config-file/.
 */
async function withDropIns(document: unknown, directory: string): Promise<{ merged: unknown; files: string[] }> {
  const files = (await dropInNames(directory)).sort(byWalk).map((name) => join(directory, name));
  let merged = document;
  for (const file of files) {
    const patch = await readYaml(file);
    // A drop-in that is not a KubeletConfiguration stops the kubelet; here it makes the whole configuration unusable.
    if (!isObject(patch) || patch['kind'] !== 'KubeletConfiguration') {
      throw new KubeletConfigError(file, 'a drop-in must have the kind KubeletConfiguration');
    }
    merged = mergeOver(merged, patch);
  }
  return { merged, files };
}

/**
 * Reads entries one by one, so that a directory of millions costs no more than the limit.
 *
 * @throws KubeletConfigError
 */
async function dropInNames(directory: string): Promise<string[]> {
  const names: string[] = [];
  let entries = 0;
  for await (const entry of await opendir(directory, { recursive: true })) {
    if (++entries > MOST_ENTRIES) throw new KubeletConfigError(directory, `more than ${MOST_ENTRIES} drop-ins`);
    if (entry.name.endsWith('.conf')) names.push(relative(directory, join(entry.parentPath, entry.name)));
  }
  return names;
}

/** The order of Go's WalkDir: by the names of the directories on the path, then by the name of the file. */
function byWalk(a: string, b: string): number {
  const [one, other] = [a, b].map((path) => path.replaceAll('/', '\0')) as [string, string];
  return one < other ? -1 : Number(one > other);
}

function mergeOver(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const merged: Record<string, unknown> = isObject(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete merged[key];
    else merged[key] = mergeOver(merged[key], value);
  }
  return merged;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
