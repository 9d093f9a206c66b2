import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import * as z from 'zod';
import { CpuSet } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';

const options = z.record(z.string(), z.union([z.string(), z.boolean(), z.number()]).transform(String)).nullish();

/** What a KubeletConfiguration says about CPUs; the kubelet's own defaults fill what it does not say. */
const kubeletConfiguration = z.object({
  kind: z.literal('KubeletConfiguration'),
  cpuManagerPolicy: z.string().nullish(),
  cpuManagerPolicyOptions: options,
  topologyManagerPolicy: z.string().nullish(),
  topologyManagerScope: z.string().nullish(),
  topologyManagerPolicyOptions: options,
  memoryManagerPolicy: z.string().nullish(),
  reservedSystemCPUs: z.string().nullish(),
});

export interface KubeletConfig {
  /** The file it was read from. */
  readonly source: string;
  readonly cpuManager: { readonly policy: string; readonly options: Readonly<Record<string, string>> };
  readonly topologyManager: {
    readonly policy: string;
    readonly scope: string;
    readonly options: Readonly<Record<string, string>>;
  };
  readonly memoryManager: { readonly policy: string };
  /** reservedSystemCPUs; undefined where only amounts (kubeReserved, systemReserved) are given, or nothing is. */
  readonly reserved: CpuSet | undefined;
}

export class KubeletConfigError extends PlumblineError {
  constructor(file: string, why: string, options?: ErrorOptions) {
    super('kubelet-config', `${file}: ${why}`, options);
  }
}

/**
 * Reads the text of a file that should be a KubeletConfiguration. A kubeconfig in that place (kubeadm's
 * /etc/kubernetes/kubelet.conf is one) is no error but says nothing: undefined.
 * @throws KubeletConfigError if it is neither, or says something that cannot be
 */
export function parseKubeletConfig(file: string, text: string): KubeletConfig | undefined {
  const document = parseYaml(file, text);
  if (isKubeconfig(document)) return undefined;
  const result = kubeletConfiguration.safeParse(document);
  if (!result.success) {
    const issue = result.error.issues[0];
    throw new KubeletConfigError(file, `no usable KubeletConfiguration: ${issue?.path.join('.')}: ${issue?.message}`);
  }
  const config = result.data;
  return {
    source: file,
    cpuManager: { policy: config.cpuManagerPolicy || 'none', options: config.cpuManagerPolicyOptions ?? {} },
    topologyManager: {
      policy: config.topologyManagerPolicy || 'none',
      scope: config.topologyManagerScope || 'container',
      options: config.topologyManagerPolicyOptions ?? {},
    },
    memoryManager: { policy: config.memoryManagerPolicy || 'None' },
    reserved: parseReserved(file, config.reservedSystemCPUs ?? ''),
  };
}

/** What became of one candidate file. */
export type KubeletConfigFinding =
  | { readonly kind: 'found'; readonly config: KubeletConfig }
  | { readonly kind: 'kubeconfig' | 'absent'; readonly file: string }
  | { readonly kind: 'invalid'; readonly file: string; readonly error: Error };

/** Looks at the candidates in order up to the first KubeletConfiguration; tells what each of them was. */
export async function findKubeletConfig(candidates: readonly string[]): Promise<readonly KubeletConfigFinding[]> {
  const findings: KubeletConfigFinding[] = [];
  for (const file of candidates) {
    const finding = await examine(file);
    findings.push(finding);
    if (finding.kind === 'found') break;
  }
  return findings;
}

async function examine(file: string): Promise<KubeletConfigFinding> {
  try {
    const config = parseKubeletConfig(file, await readFile(file, 'utf8'));
    return config === undefined ? { kind: 'kubeconfig', file } : { kind: 'found', config };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { kind: 'absent', file };
    return { kind: 'invalid', file, error: error as Error };
  }
}

function parseYaml(file: string, text: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    throw new KubeletConfigError(file, `not YAML: ${(error as Error).message.split('\n')[0]}`, { cause: error });
  }
}

function isKubeconfig(document: unknown): boolean {
  return typeof document === 'object' && document !== null && 'kind' in document && document.kind === 'Config';
}

function parseReserved(file: string, text: string): CpuSet | undefined {
  if (text === '') return undefined;
  try {
    return CpuSet.parse(text);
  } catch (error) {
    throw new KubeletConfigError(file, `reservedSystemCPUs: ${(error as Error).message}`, { cause: error });
  }
}
