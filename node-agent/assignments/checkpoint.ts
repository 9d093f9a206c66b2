import { statSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { cut, issueText, PlumblineError } from '../../model/errors.ts';
import { MAX_CPU_ID } from '../../model/host.ts';
import { isObject, resultOrNone } from '../../model/json.ts';
import { byText } from '../../model/lists.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import { readBounded } from '../files/bounded-file.ts';
import { followFiles } from '../files/watch-directory.ts';
import type { Guard } from '../lifecycle/duty.ts';
import type { AgentLogger, AgentMessages } from '../telemetry/log-messages.ts';

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

/** @param where the file's own keys, which have any length */
const unknownFormat = (where: string, why: string) =>
  new CheckpointError(`unknown format at ${cut(where, MAX_LOCATION_CHARACTERS)}: ${why}`);

/** The kubelet's file cpu_manager_state, versions 2 to 4. @throws CheckpointError */
export function parseCheckpoint(text: string) {
  const { policyName, defaultCpuSet, entries, podEntries } = contentOf(parseJson(text));
  // Collect all entries before creating the first set: a few characters can expand to a set of kilobytes.
  const written = [...containersOf(entries ?? new Map()), ...podsOf(podEntries ?? new Map())];
  if (written.length > MAX_ENTRIES) {
    throw new CheckpointError(`${written.length} containers with CPUs; the agent reads at most ${MAX_ENTRIES}`);
  }
  const owners = written
    .map(({ podUID, container, text, where }) => ({ podUID, container, cpus: parseCpus(text, where) }))
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

/** The fields of the file, or of its text `data`, which then replaces them. */
function contentOf(file: unknown) {
  const data = isObject(file) ? file['data'] : undefined;
  if (typeof data !== 'string' || data === '') return fieldsOf(file, '');
  const fields = parseJson(data);
  checkFields(file, '');
  return fieldsOf(fields, 'data.');
}

/** @param prefix of the fields in messages */
function fieldsOf(value: unknown, prefix: string) {
  checkFields(value, prefix);
  const { data, error } = content.safeParse(value);
  if (data !== undefined) return data;
  const { path, message } = error.issues[0]!;
  throw unknownFormat(`${prefix}${path.join('.')}`.replace(/\.$/, '') || 'the top', issueText(message));
}

/** `baselines`: the CPUs at the first admission, which a resize (in-place, of exclusive CPUs) never takes away. */
const FIELDS: readonly string[] = [...Object.keys(content.shape), 'data', 'baselines'];

/** A structure in another field may contain owners, without which their CPUs would look free. */
function checkFields(fields: unknown, prefix: string): void {
  for (const [name, value] of Object.entries(isObject(fields) ? fields : {})) {
    const isStructure =
      typeof value === 'object' ? value !== null : typeof value === 'string' && /^\s*[[{]/.test(value);
    if (FIELDS.includes(name) || !isStructure) continue;
    throw unknownFormat(prefix + name, 'a field of a later version of the kubelet');
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

type Written = Omit<CheckpointEntry, 'cpus'> & { readonly text: string; readonly where: string };

function* containersOf(entries: ReadonlyMap<string, unknown>): Generator<Written> {
  for (const [podUID, containers] of entries) {
    if (!isObject(containers)) throw unknownFormat(`entries.${podUID}`, 'it has no containers');
    for (const [container, text] of Object.entries(containers)) {
      const where = `entries.${podUID}.${container}`;
      if (typeof text !== 'string') throw unknownFormat(where, 'not a CPU set');
      yield { podUID, container, text, where };
    }
  }
}

/** Versions of the kubelet differ in the case of the field's name, not in its meaning. */
function* podsOf(entries: ReadonlyMap<string, unknown>): Generator<Written> {
  for (const [podUID, entry] of entries) {
    const where = `podEntries.${podUID}`;
    const text = isObject(entry) ? Object.entries(entry).find(([key]) => key.toLowerCase() === 'cpuset')?.[1] : entry;
    if (typeof text !== 'string') throw unknownFormat(where, 'it has no CPU set');
    yield { podUID, container: '', text, where };
  }
}

function parseCpus(text: string, where: string): CpuSet {
  try {
    return CpuSet.parse(text, MAX_CPU_ID);
  } catch (error) {
    throw new CheckpointError(`${cut(where, MAX_LOCATION_CHARACTERS)}: ${(error as Error).message}`, { cause: error });
  }
}

/** A source with a problem keeps its last good value: an unknown state never counts as "no CPU is held". */
export interface Reading<Value> {
  readonly value: Value | undefined;
  /** Why the source cannot be read now; undefined when `value` is current. */
  readonly problem: string | undefined;
}

export interface FileSourceDeps<Value> {
  readonly directory: string;
  readonly log: AgentLogger;
  /** Called with each new reading; `at` is when this process learned of it, in monotonic milliseconds. */
  readonly onReading: (reading: Reading<Value>, at: number) => void;
}

/**
 * The kubelet's checkpoint of CPUs. Owner: the kubelet, which renames a new file over it. Age: an event of the
 * directory, at most 10 s without one. End: the next file; while that is unusable, the last good content stays with a
 * problem.
 */
export class CheckpointSource {
  readonly #deps: FileSourceDeps<Checkpoint>;
  readonly #file: string;
  readonly #problems: ProblemLog<AgentMessages>;
  #last: Reading<Checkpoint> = { value: undefined, problem: undefined };
  /** The text of the last reading; undefined while the file cannot be read. */
  #text: string | undefined;
  /** Inode, size and time of the file at the last read. */
  #version: string | undefined;

  constructor(deps: FileSourceDeps<Checkpoint>) {
    this.#deps = deps;
    this.#file = join(deps.directory, CHECKPOINT_FILE);
    this.#problems = new ProblemLog(deps.log, { file: this.#file });
  }

  follow(guard: Guard, signal: AbortSignal): void {
    const isFile = (name: string) => name === CHECKPOINT_FILE;
    // An event may be lost.
    const isDue = () => this.#version === undefined || versionOf(this.#file) !== this.#version;
    const read = guard.wrap(() => this.read());
    followFiles({ ...this.#deps, isFile, isDue, read, signal });
  }

  /** Reads synchronously: until it is read, OVS stays on a CPU that has a new owner. */
  read(): void {
    const at = performance.now();
    let text: string;
    try {
      this.#version = versionOf(this.#file);
      text = readBounded(this.#file, MAX_CHECKPOINT_BYTES);
    } catch (error) {
      this.#version = undefined;
      this.#text = undefined;
      const problem = `cannot read ${this.#file}: ${(error as Error).message}`;
      this.#fail(problem, 'the kubelet writes it; check the mount of its directory', at);
      return;
    }
    if (text === this.#text) return;
    this.#text = text;
    let value: Checkpoint;
    try {
      value = parseCheckpoint(text);
    } catch (error) {
      const hint =
        'the agent reads the file again when the kubelet writes it; if the problem stays, restart the kubelet';
      this.#fail(`${this.#file}: ${(error as Error).message}`, hint, at);
      return;
    }
    this.#problems.recovered();
    this.#publish({ value, problem: undefined }, at);
  }

  #fail(problem: string, hint: string, at: number): void {
    if (problem === this.#last.problem) return;
    this.#problems.failed(problem, 'cpu_manager_state unusable; keeping the last known assignments', { hint });
    this.#publish({ value: this.#last.value, problem }, at);
  }

  #publish(reading: Reading<Checkpoint>, at: number): void {
    this.#last = reading;
    this.#deps.onReading(reading, at);
  }
}

/** Undefined if the file cannot be read now, for whatever reason: reading it names the reason. */
function versionOf(file: string): string | undefined {
  const stats = resultOrNone(() => statSync(file));
  return stats && `${stats.ino} ${stats.mtimeMs} ${stats.size}`;
}
