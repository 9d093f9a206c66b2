import * as z from 'zod';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { cut, issueText, PlumblineError } from '../../model/errors.ts';
import { MAX_CPU_ID } from '../../model/host.ts';
import { isObject } from '../../model/json.ts';
import { byText } from '../../model/lists.ts';

export const CHECKPOINT_FILE = 'cpu_manager_state';

/** The largest file that is read, in bytes. A container with CPUs takes about a hundred. */
export const MAX_CHECKPOINT_BYTES = 1024 * 1024;
/** Maximum number of containers with exclusive CPUs: as many as a report can name. A node has a few hundred pods. */
export const MAX_ENTRIES = 2048;

const MAX_LOCATION_CHARACTERS = 120;

/** An object whose keys others choose: a record of zod drops the key `__proto__`. */
export const byName = z
  .custom<Readonly<Record<string, unknown>>>(isObject, 'expected an object')
  .transform((object): ReadonlyMap<string, unknown> => new Map(Object.entries(object)));

/**
 * Version 2, and the addition of version 3: CPUs held by a pod as a whole. Version 4 has the same as JSON in the text
 * `data`. The checksum covers a dump of the kubelet's own structs and cannot be verified from outside, so the check is
 * that the file is complete JSON with these fields.
 */
const content = z.object({
  policyName: z.string().min(1),
  defaultCpuSet: z.string(),
  entries: byName.nullish(),
  podEntries: byName.nullish(),
});

/** CPUs that one container, or a pod as a whole (container ''), holds exclusively. */
export interface CheckpointEntry {
  readonly podUID: string;
  readonly container: string;
  readonly cpus: CpuSet;
}

export type Checkpoint = Readonly<ReturnType<typeof parseCheckpoint>>;

class CheckpointError extends PlumblineError {
  constructor(why: string, options?: ErrorOptions) {
    super('checkpoint', why, options);
  }
}

/** The kubelet's file cpu_manager_state, versions 2 to 4. @throws CheckpointError */
export function parseCheckpoint(text: string) {
  const { policyName, defaultCpuSet, entries, podEntries } = contentOf(parseJson(text));
  // Collect all entries before creating the first set: a few characters can expand to a set of kilobytes.
  const written = [...containersOf(entries ?? new Map()), ...podsOf(podEntries ?? new Map())];
  if (written.length > MAX_ENTRIES) {
    throw new CheckpointError(`${written.length} containers with CPUs; the agent reads at most ${MAX_ENTRIES}`);
  }
  const allEntries = written.map(({ podUID, container, text, where }) => {
    return { podUID, container, cpus: parseCpus(text, where) };
  });
  const owners = allEntries
    .filter(({ cpus }) => !cpus.isEmpty)
    .sort(byText(({ podUID, container }) => `${podUID}\0${container}`));
  return {
    policy: policyName,
    /** The shared pool. It never contains a CPU that a container was promised. */
    defaultCpus: parseCpus(defaultCpuSet, 'defaultCpuSet'),
    entries: owners as readonly CheckpointEntry[],
    owned: unionOf(owners.map(({ cpus }) => cpus)),
  };
}

/** A location consists of the file's own keys, which have any length. */
const quoted = (where: string) => cut(where, MAX_LOCATION_CHARACTERS);

/** The fields of the file, or of its text `data`, which then replaces them. */
function contentOf(file: unknown) {
  const data = isObject(file) ? file['data'] : undefined;
  const isEmbedded = typeof data === 'string' && data !== '';
  const fields = isEmbedded ? parseJson(data) : file;
  const prefix = isEmbedded ? 'data.' : '';
  for (const at of isEmbedded ? [file, fields] : [file]) if (isObject(at)) checkFields(at, at === file ? '' : prefix);
  const result = content.safeParse(fields);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const path = `${prefix}${issue?.path.join('.') ?? ''}`.replace(/\.$/, '');
  throw new CheckpointError(`unknown format at ${quoted(path || 'the top')}: ${issueText(issue?.message ?? '')}`);
}

/** `baselines`: the CPUs at the first admission, which a resize (in-place, of exclusive CPUs) never takes away. */
const FIELDS: readonly string[] = [...Object.keys(content.shape), 'data', 'baselines'];

/** A structure in another field may contain owners, without which their CPUs would look free. */
function checkFields(fields: Readonly<Record<string, unknown>>, prefix: string): void {
  for (const [name, value] of Object.entries(fields)) {
    const isStructure =
      typeof value === 'object' ? value !== null : typeof value === 'string' && /^\s*[[{]/.test(value);
    if (FIELDS.includes(name) || !isStructure) continue;
    throw new CheckpointError(`unknown format at ${quoted(prefix + name)}: a field of a later version of the kubelet`);
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const size = text.length === 0 ? 'it is empty' : `its ${text.length} characters are not complete JSON`;
    throw new CheckpointError(`torn: ${size}`, { cause: error });
  }
}

interface Written {
  readonly podUID: string;
  readonly container: string;
  readonly text: string;
  readonly where: string;
}

function* containersOf(entries: ReadonlyMap<string, unknown>): Generator<Written> {
  for (const [podUID, containers] of entries) {
    const path = `entries.${podUID}`;
    if (!isObject(containers)) throw new CheckpointError(`unknown format at ${quoted(path)}: it has no containers`);
    for (const [container, text] of Object.entries(containers)) {
      const where = `${path}.${container}`;
      if (typeof text !== 'string') throw new CheckpointError(`unknown format at ${quoted(where)}: not a CPU set`);
      yield { podUID, container, text, where };
    }
  }
}

/** Versions of the kubelet differ in the case of the field's name, not in its meaning. */
function* podsOf(entries: ReadonlyMap<string, unknown>): Generator<Written> {
  for (const [podUID, entry] of entries) {
    const where = `podEntries.${podUID}`;
    const cpuset = isObject(entry) ? Object.entries(entry).find(([key]) => key.toLowerCase() === 'cpuset')?.[1] : entry;
    if (typeof cpuset !== 'string') throw new CheckpointError(`unknown format at ${quoted(where)}: it has no CPU set`);
    yield { podUID, container: '', text: cpuset, where };
  }
}

function parseCpus(text: string, where: string): CpuSet {
  try {
    return CpuSet.parse(text, MAX_CPU_ID);
  } catch (error) {
    throw new CheckpointError(`${quoted(where)}: ${(error as Error).message}`, { cause: error });
  }
}
