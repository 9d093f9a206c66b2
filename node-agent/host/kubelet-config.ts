import { parse } from 'yaml';
import * as z from 'zod';
import { CpuSet } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';
import { parseQuantity, wholeValue } from '../../model/quantity.ts';

const options = z.record(z.string(), z.union([z.string(), z.boolean(), z.number()]).transform(String)).nullish();
const quantity = z.union([z.string(), z.number().transform(String)]);

/** What a KubeletConfiguration says about CPUs and memory; the kubelet's own defaults fill what it does not say. */
const kubeletConfiguration = z.object({
  kind: z.literal('KubeletConfiguration'),
  cpuManagerPolicy: z.string().nullish(),
  cpuManagerPolicyOptions: options,
  topologyManagerPolicy: z.string().nullish(),
  topologyManagerScope: z.string().nullish(),
  topologyManagerPolicyOptions: options,
  memoryManagerPolicy: z.string().nullish(),
  reservedMemory: z.array(z.object({ numaNode: z.number().int(), limits: z.record(z.string(), quantity) })).nullish(),
  reservedSystemCPUs: z.string().nullish(),
  maxPods: z.number().int().nullish(),
});

/** The kubelet's own default. */
export const DEFAULT_MAX_PODS = 110;

export interface KubeletConfig {
  /** Where it was read from. */
  readonly source: string;
  readonly cpuManager: { readonly policy: string; readonly options: Readonly<Record<string, string>> };
  readonly topologyManager: {
    readonly policy: string;
    readonly scope: string;
    readonly options: Readonly<Record<string, string>>;
  };
  readonly memoryManager: { readonly policy: string };
  /** Bytes by NUMA node and resource name that the memory manager gives to nobody. */
  readonly reservedMemory: ReadonlyMap<number, Readonly<Record<string, number>>>;
  /** reservedSystemCPUs; undefined where only amounts (kubeReserved, systemReserved) are given, or nothing is. */
  readonly reserved: CpuSet | undefined;
  readonly maxPods: number;
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
  return isKubeconfig(document) ? undefined : kubeletConfigOf(file, document);
}

/**
 * Reads a decoded KubeletConfiguration.
 * @param source where it is from, for messages
 * @throws KubeletConfigError if it is none, or says something that cannot be
 */
export function kubeletConfigOf(source: string, document: unknown): KubeletConfig {
  const result = kubeletConfiguration.safeParse(document);
  if (!result.success) {
    const issue = result.error.issues[0];
    throw new KubeletConfigError(source, `no usable KubeletConfiguration: ${issue?.path.join('.')}: ${issue?.message}`);
  }
  const config = result.data;
  return {
    source,
    cpuManager: { policy: config.cpuManagerPolicy || 'none', options: config.cpuManagerPolicyOptions ?? {} },
    topologyManager: {
      policy: config.topologyManagerPolicy || 'none',
      scope: config.topologyManagerScope || 'container',
      options: config.topologyManagerPolicyOptions ?? {},
    },
    memoryManager: { policy: config.memoryManagerPolicy || 'None' },
    reservedMemory: parseReservedMemory(source, config.reservedMemory ?? []),
    reserved: parseReserved(source, config.reservedSystemCPUs ?? ''),
    maxPods: config.maxPods || DEFAULT_MAX_PODS,
  };
}

/** @throws KubeletConfigError */
export function parseYaml(file: string, text: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    throw new KubeletConfigError(file, `not YAML: ${(error as Error).message.split('\n')[0]}`, { cause: error });
  }
}

export function isKubeconfig(document: unknown): boolean {
  return typeof document === 'object' && document !== null && 'kind' in document && document.kind === 'Config';
}

function parseReserved(source: string, text: string): CpuSet | undefined {
  if (text === '') return undefined;
  try {
    return CpuSet.parse(text);
  } catch (error) {
    throw new KubeletConfigError(source, `reservedSystemCPUs: ${(error as Error).message}`, { cause: error });
  }
}

function parseReservedMemory(
  source: string,
  entries: readonly { numaNode: number; limits: Readonly<Record<string, string>> }[],
): KubeletConfig['reservedMemory'] {
  const byNode = new Map<number, Record<string, number>>();
  for (const { numaNode, limits } of entries) {
    const bytes = byNode.get(numaNode) ?? {};
    for (const [resource, amount] of Object.entries(limits)) bytes[resource] = parseBytes(source, amount);
    byNode.set(numaNode, bytes);
  }
  return byNode;
}

function parseBytes(source: string, amount: string): number {
  try {
    return wholeValue(parseQuantity(amount));
  } catch (error) {
    throw new KubeletConfigError(source, `reservedMemory: ${(error as Error).message}`, { cause: error });
  }
}
