import * as z from 'zod';
import { CpuSet } from '../../model/cpu-set.ts';
import { cut, issueText, PlumblineError } from '../../model/errors.ts';
import { GATES } from '../../model/kubelet/versions.ts';
import { parseQuantity, wholeValue } from '../../model/quantity.ts';

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
