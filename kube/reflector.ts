import * as z from 'zod';
import { ProblemLog } from '../runtime/problem-log.ts';
import { Backoff, createSlices, sleep } from '../runtime/time.ts';
import { isExpired, isNotFound, type KubeClient } from './client.ts';
import { pagesOf } from './list-pages.ts';
import { type DecoderOptions, ObjectDecoder } from './object-decoder.ts';
import type { ObjectMeta } from './resources.ts';
import { followWatch, type WatchEvent } from './watch-stream.ts';

/**
 * A reflector keeps a local copy of a list of objects, as in client-go. It lists in pages, then watches from the list's
 * resourceVersion. After a disconnect it watches again from the last version that it received. When the server no
 * longer has that version (410), it lists again.
 *
 * Invariants: the copy never shows an older state of an object after a newer one of the same list. A failed list or
 * watch leaves the last copy in place (`lastHeard` gives its age, see cacheProblem). A new list removes deleted objects
 * and calls the listener. An object that does not match the schema, or on which `project` or the listener fails, is
 * logged and counts as absent: one bad object never hides the others. The same applies to one that exceeds the budget
 * of its namespace.
 *
 * Limits: a large page is requested again with fewer objects, so memory does not grow with the size of objects. Objects
 * are processed in slices, so that their number never delays other work.
 */
export interface Reflector<T> {
  run(signal: AbortSignal): Promise<void>;
  /** Objects by `namespace/name`, or `name` for cluster-scoped objects. */
  readonly items: ReadonlyMap<string, T>;
  readonly synced: boolean;
  readonly whenSynced: Promise<void>;
  /** Monotonic seconds of the last event, bookmark or list; undefined before the first. */
  readonly lastHeard: number | undefined;
}

export interface Change<T> {
  readonly key: string;
  readonly before: T | undefined;
  readonly after: T | undefined;
}

export interface ReflectorOptions<S extends z.ZodType, T> extends DecoderOptions<S, T> {
  readonly client: KubeClient;
  readonly query?: { readonly labelSelector?: string; readonly fieldSelector?: string };
  readonly onChange?: (change: Change<T>) => void;
  /**
   * While the CRD of another product is not installed (404), its list is empty and retried every 30 s. Default false.
   */
  readonly optional?: boolean;
  /** Objects in a page of a list. Default 500. Fewer create less garbage if objects are large. */
  readonly page?: number;
}

const PAGE_OBJECTS = 500;
const ABSENT_SECONDS = 30;
/** Seconds in which the events of a new watch may be old ones, which do not prove that the copy is current. */
const REPLAY_SECONDS = 2;
/** A watch that ends within so many seconds without an event failed: a proxy may close all watches at once. */
const SHORT_WATCH_SECONDS = 1;
const PAGE_TIMEOUT_SECONDS = 30;
/** Seconds without an event, a bookmark or a list after which a copy must not be relied on: a silent watch is older. */
const MAX_AGE_SECONDS = 150;

/** The key of an object in its collection: `namespace/name`, or the name where it has no namespace. */
export function objectKey(meta: Pick<ObjectMeta, 'name' | 'namespace'>): string {
  return meta.namespace === undefined ? (meta.name ?? '') : `${meta.namespace}/${meta.name ?? ''}`;
}

/** Creates a reflector of a collection. It keeps only what `project` returns for each object. */
export function createReflector<S extends z.ZodType<{ metadata: object }>, T>(
  options: ReflectorOptions<S, T> & (T extends z.output<S> ? 'project must not return the whole object' : unknown),
): Reflector<T> {
  const { client, path, query = {}, onChange, optional = false, page = PAGE_OBJECTS, log, now } = options;
  const decoder = new ObjectDecoder(options);
  const items = new Map<string, T>();
  const backoff = new Backoff();
  const problems = new ProblemLog(log, { path });
  let synced = false;
  let lastHeard: number | undefined;
  let version: string | undefined;
  let announce: () => void = () => undefined;
  const whenSynced = new Promise<void>((resolve) => {
    announce = resolve;
  });

  const slices = createSlices();

  const put = (key: string, after: T | undefined): void => {
    const before = items.get(key);
    if (after === undefined) items.delete(key);
    else items.set(key, after);
    if (before !== undefined || after !== undefined) onChange?.({ key, before, after });
  };

  /** @param object undefined if it was deleted */
  const take = (key: string, object: unknown): void => {
    try {
      put(key, decoder.decode(key, object));
    } catch (err) {
      log.error({ err, path, object: key }, 'object ignored: processing failed');
      items.delete(key);
    }
  };

  const list = async (signal: AbortSignal): Promise<string> => {
    const seen = new Set<string>();
    let listed = '';
    const timeout = PAGE_TIMEOUT_SECONDS;
    for await (const { items: objects, metadata } of pagesOf({ client, path, query, page, signal, timeout })) {
      for (const object of objects ?? []) {
        const key = objectKey(metadataOf(object));
        seen.add(key);
        await slices.run(() => take(key, object));
      }
      listed = metadata.resourceVersion;
    }
    for (const key of [...items.keys()]) if (!seen.has(key)) await slices.run(() => take(key, undefined));
    return listed;
  };

  const follow = async (signal: AbortSignal): Promise<void> => {
    const opened = now();
    let hasEvents = false;
    const takeEvent = async ({ type, object }: WatchEvent) => {
      if (type !== 'BOOKMARK') {
        const key = objectKey(object.metadata ?? {});
        await slices.run(() => take(key, type === 'DELETED' ? undefined : object));
      }
      version = object.metadata?.resourceVersion ?? version;
      if (type === 'BOOKMARK' || now() - opened >= REPLAY_SECONDS) lastHeard = now();
      hasEvents = true;
      backoff.reset();
      problems.recovered();
      if (!decoder.mustListAgain()) return false;
      version = undefined;
      return true;
    };
    try {
      const watchQuery = { ...query, resourceVersion: version };
      if (!(await followWatch({ client, path, query: watchQuery, signal, take: takeEvent }))) version = undefined;
    } catch (error) {
      if (!isExpired(error)) throw error;
      version = undefined;
    }
    if (!hasEvents && now() - opened < SHORT_WATCH_SECONDS) throw new Error('the watch ended at once');
    backoff.reset();
  };

  const heardAll = (): void => {
    lastHeard = now();
    problems.recovered();
    if (synced) return;
    synced = true;
    announce();
    log.debug({ path, objects: items.size }, 'synced');
  };

  const cycle = async (signal: AbortSignal): Promise<void> => {
    if (version !== undefined) return follow(signal);
    try {
      version = await list(signal);
      heardAll();
    } catch (error) {
      if (!optional || !isNotFound(error)) throw error;
      for (const key of [...items.keys()]) take(key, undefined);
      heardAll();
      await sleep(ABSENT_SECONDS, signal);
    }
  };

  return {
    items,
    whenSynced,
    get synced() {
      return synced;
    },
    get lastHeard() {
      return lastHeard;
    },
    async run(signal) {
      while (!signal.aborted) {
        try {
          await cycle(signal);
        } catch (err) {
          if (signal.aborted) return;
          if (isExpired(err) || isNotFound(err)) version = undefined;
          problems.failed(err, 'list or watch failed; keeping the cache and retrying');
          const wait = backoff.next();
          log.debug({ path, waitSeconds: wait }, 'waiting to list or watch again');
          await sleep(wait, signal).catch(() => undefined);
        }
      }
    },
  };
}

export type Watches = Readonly<Record<string, Reflector<unknown>>>;

/** Why copies must not be relied on: not listed yet, or too old. Without seconds, since Events are counted by text. */
export function cacheProblem(
  watches: Readonly<Record<string, Pick<Reflector<unknown>, 'synced' | 'lastHeard'>>>,
  now: number,
): string | undefined {
  const missing = Object.keys(watches).filter((name) => !watches[name]?.synced);
  if (missing.length > 0) return `not synced yet: ${missing.join(', ')}`;
  const old = Object.entries(watches).flatMap(([name, { lastHeard = now }]) =>
    now - lastHeard > MAX_AGE_SECONDS ? [`${name} (${Math.floor((now - lastHeard) / 60)} min)`] : [],
  );
  return old.length === 0 ? undefined : `no event or bookmark from the API server: ${old.join(', ')}`;
}

function metadataOf(object: unknown): Pick<ObjectMeta, 'name' | 'namespace'> {
  return z.object({ metadata: z.object({ name: z.string(), namespace: z.string().optional() }) }).parse(object)
    .metadata;
}
