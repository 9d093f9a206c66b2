import * as z from 'zod';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';

/** The kubelet's CPU manager state, a file in its root directory. */
export const CHECKPOINT_FILE = 'cpu_manager_state';

/** Characters of a place's name that a message shows. */
const LONGEST_PLACE = 120;

/**
 * v2 and what v3 added to it: CPUs held by a pod as a whole. The checksum covers a dump of the kubelet's own structs
 * and cannot be verified from outside; that the file is whole JSON with these fields must do.
 */
const checkpoint = z.object({
  policyName: z.string().min(1),
  defaultCpuSet: z.string(),
  entries: z.record(z.string(), z.record(z.string(), z.string())).nullish(),
  podEntries: z.record(z.string(), z.union([z.string(), z.record(z.string(), z.unknown())])).nullish(),
});

/** CPUs that one container, or a pod as a whole (container ''), holds exclusively. */
export interface CheckpointEntry {
  readonly podUID: string;
  readonly container: string;
  readonly cpus: CpuSet;
}

export interface Checkpoint {
  readonly policy: string;
  /** The shared pool. At every instant it holds no CPU that a container was promised. */
  readonly defaultCpus: CpuSet;
  readonly entries: readonly CheckpointEntry[];
  /** The union of the entries. */
  readonly owned: CpuSet;
}

/** A checkpoint that is torn or of a form unknown here. */
export class CheckpointError extends PlumblineError {
  constructor(why: string, options?: ErrorOptions) {
    super('checkpoint', why, options);
  }
}

/**
 * Reads the text of a cpu_manager_state file.
 * @throws CheckpointError
 */
export function parseCheckpoint(text: string): Checkpoint {
  const result = checkpoint.safeParse(parseJson(text));
  if (!result.success) {
    const issue = result.error.issues[0];
    throw new CheckpointError(`unknown form at ${shown(issue?.path.join('.') || 'the top')}: ${issue?.message}`);
  }
  const { policyName, defaultCpuSet, entries, podEntries } = result.data;
  const found: CheckpointEntry[] = [];
  for (const [podUID, containers] of Object.entries(entries ?? {})) {
    for (const [container, cpus] of Object.entries(containers)) {
      found.push({ podUID, container, cpus: parseCpus(cpus, `entries.${podUID}.${container}`) });
    }
  }
  for (const [podUID, entry] of Object.entries(podEntries ?? {})) {
    found.push({ podUID, container: '', cpus: parsePodEntry(entry, `podEntries.${podUID}`) });
  }
  const held = found.filter(({ cpus }) => !cpus.isEmpty).sort(byPodAndContainer);
  return {
    policy: policyName,
    defaultCpus: parseCpus(defaultCpuSet, 'defaultCpuSet'),
    entries: held,
    owned: unionOf(held.map(({ cpus }) => cpus)),
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const size = text.length === 0 ? 'it is empty' : `it ends or breaks within its ${text.length} characters`;
    throw new CheckpointError(`torn: ${size}`, { cause: error });
  }
}

/** The field's name has changed its case between versions of the kubelet; its meaning has not. */
function parsePodEntry(entry: string | Record<string, unknown>, where: string): CpuSet {
  if (typeof entry === 'string') return parseCpus(entry, where);
  const cpus = Object.entries(entry).find(([key]) => key.toLowerCase() === 'cpuset')?.[1];
  if (typeof cpus !== 'string') throw new CheckpointError(`unknown form at ${shown(where)}: no CPU set in it`);
  return parseCpus(cpus, where);
}

function parseCpus(text: string, where: string): CpuSet {
  try {
    return CpuSet.parse(text);
  } catch (error) {
    throw new CheckpointError(`${shown(where)}: ${(error as Error).message}`, { cause: error });
  }
}

/** A place's name is made of the file's own keys, which have no bound. */
function shown(where: string): string {
  return where.length > LONGEST_PLACE ? `${where.slice(0, LONGEST_PLACE)}…` : where;
}

function byPodAndContainer(a: CheckpointEntry, b: CheckpointEntry): number {
  if (a.podUID !== b.podUID) return a.podUID < b.podUID ? -1 : 1;
  return a.container < b.container ? -1 : Number(a.container > b.container);
}
