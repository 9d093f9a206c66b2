import * as z from 'zod';
import type { SHARED_MESSAGES } from '../runtime/log.ts';
import { ProblemLog } from '../runtime/problem-log.ts';
import { Backoff, createSlices, sleep } from '../runtime/time.ts';
import { isExpired, isNotFound, type KubeClient, KubeError } from './client.ts';
import { pagesOf } from './list-pages.ts';
import { type DecoderOptions, ObjectDecoder } from './object-decoder.ts';
import { objectKey } from './resources.ts';
import { followWatch, type WatchEvent } from './watch-stream.ts';

export interface Change<T> {
  readonly key: string;
  readonly before: T | undefined;
  readonly after: T | undefined;
}

interface ReflectorOptions<S extends z.ZodType, T> extends DecoderOptions<S, T> {
  readonly client: KubeClient;
  readonly query?: { readonly labelSelector?: string; readonly fieldSelector?: string };
  readonly onChange?: (change: Change<T>) => void;
  /** While another product's CRD is not installed (404), its list is empty, retried every 30 s. Default false. */
  readonly optional?: boolean;
  /** Objects in a page of a list. Default 500. Fewer create less garbage if objects are large. */
  readonly page?: number;
}

/** What a reflector of one kind needs from its daemon. */
export type WatchOptions = Pick<ReflectorOptions<z.ZodType, unknown>, 'client' | 'page' | 'log' | 'nowSeconds'>;

const PAGE_OBJECTS = 500;
const ABSENT_SECONDS = 30;
/** Seconds in which the events of a new watch may be old ones, which do not prove that the copy is current. */
const REPLAY_SECONDS = 2;
/** A watch that ends within so many seconds without an event failed: a proxy may close all watches at once. */
const SHORT_WATCH_SECONDS = 1;
const PAGE_TIMEOUT_SECONDS = 30;
/** Seconds without an event, a bookmark or a list after which a copy must not be relied on: a silent watch is older. */
const MAX_AGE_SECONDS = 150;

/** Creates a reflector of a collection. It keeps only what `project` returns for each object. */
export function createReflector<S extends z.ZodType<{ metadata: object }>, T>(
  options: ReflectorOptions<S, T> & (T extends z.output<S> ? 'project must not return the whole object' : unknown),
): Reflector<T> {
  return new Reflector<T>({ ...options, decoder: new ObjectDecoder<S, T>(options) });
}

type Settings<T> = Omit<ReflectorOptions<z.ZodType, T>, 'schema' | 'project' | 'whenUnreadable' | 'budget'> & {
  readonly decoder: Pick<ObjectDecoder<never, T>, 'decode' | 'mustListAgain'>;
};

/**
 * A reflector keeps a local copy of a list of objects, as in client-go. It lists in pages, then watches from the list's
 * resourceVersion. After a disconnect it watches again from the last version that it received. When the server no
 * longer has that version (410), or a line of the watch cannot be read, it lists again.
 *
 * Owner: the API server; only the events of lists and watches change the copy. Age: `lastHeard`, see cacheProblem; a
 * failed list or watch leaves the last copy in place. End: a deletion, or a list without the object. The copy never
 * shows an older state of an object after a newer one of the same list.
 *
 * One bad object never hides the others: see ObjectDecoder. If the listener fails on a change, the copy has that
 * change anyway, so that the listener learns of the object's next change and of its deletion.
 *
 * Limits: a large page is requested again with fewer objects, so memory does not grow with the size of objects. Objects
 * are processed in slices, so that their number never delays other work.
 */
export class Reflector<T> {
  readonly #settings: Settings<T>;
  readonly #items = new Map<string, T>();
  readonly #backoff = new Backoff();
  readonly #problems: ProblemLog<typeof SHARED_MESSAGES>;
  readonly #slices = createSlices();
  /** Where the next watch begins; undefined: with a list. */
  #version: string | undefined;
  #lastHeard: number | undefined;
  #announceSync: () => void = () => undefined;
  readonly whenSynced = new Promise<void>((resolve) => {
    this.#announceSync = resolve;
  });

  constructor(settings: Settings<T>) {
    this.#settings = settings;
    this.#problems = new ProblemLog(settings.log, { path: settings.path });
  }

  /** Objects by `namespace/name`, or `name` for cluster-scoped objects. */
  get items(): ReadonlyMap<string, T> {
    return this.#items;
  }

  get synced(): boolean {
    return this.#lastHeard !== undefined;
  }

  /** Monotonic seconds of the last event, bookmark or list; undefined before the first list. */
  get lastHeard(): number | undefined {
    return this.#lastHeard;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { path, log } = this.#settings;
    while (!signal.aborted) {
      try {
        await this.#cycle(signal);
      } catch (err) {
        if (signal.aborted) return;
        // What is not an answer of the API server is a line that cannot be read, and a new watch would bring it again.
        if (!(err instanceof KubeError) || isExpired(err) || isNotFound(err)) this.#version = undefined;
        this.#problems.failed(err, 'list or watch failed; keeping the cache and retrying');
        const wait = this.#backoff.next();
        log.debug({ path, waitSeconds: wait }, 'waiting to list or watch again');
        await sleep(wait, signal).catch(() => undefined);
      }
    }
  }

  async #cycle(signal: AbortSignal): Promise<void> {
    if (this.#version !== undefined) return this.#follow(this.#version, signal);
    try {
      this.#version = await this.#list(signal);
      this.#heardAll();
    } catch (error) {
      if (this.#settings.optional !== true || !isNotFound(error)) throw error;
      for (const key of [...this.#items.keys()]) this.#take(key, undefined);
      this.#heardAll();
      await sleep(ABSENT_SECONDS, signal);
    }
  }

  async #list(signal: AbortSignal): Promise<string> {
    const { client, path, query, page = PAGE_OBJECTS } = this.#settings;
    const listed = new Set<string>();
    let version = '';
    const timeout = PAGE_TIMEOUT_SECONDS;
    for await (const { items, metadata } of pagesOf({ client, path, query, page, signal, timeout })) {
      for (const object of items ?? []) {
        const key = keyOfListed(object);
        listed.add(key);
        await this.#slices.run(() => this.#take(key, object));
      }
      version = metadata.resourceVersion;
    }
    const gone = [...this.#items.keys()].filter((key) => !listed.has(key));
    for (const key of gone) await this.#slices.run(() => this.#take(key, undefined));
    return version;
  }

  async #follow(version: string, signal: AbortSignal): Promise<void> {
    const { client, path, query, decoder, nowSeconds } = this.#settings;
    const opened = nowSeconds();
    let hasEvents = false;
    const take = async ({ type, object }: WatchEvent) => {
      if (type !== 'BOOKMARK') {
        const key = objectKey(object.metadata ?? {});
        await this.#slices.run(() => this.#take(key, type === 'DELETED' ? undefined : object));
      }
      this.#version = object.metadata?.resourceVersion ?? this.#version;
      if (type === 'BOOKMARK' || nowSeconds() - opened >= REPLAY_SECONDS) this.#lastHeard = nowSeconds();
      hasEvents = true;
      this.#backoff.reset();
      this.#problems.recovered();
      if (!decoder.mustListAgain()) return false;
      this.#version = undefined;
      return true;
    };
    try {
      const watchQuery = { ...query, resourceVersion: version };
      if (!(await followWatch({ client, path, query: watchQuery, signal, take }))) this.#version = undefined;
    } catch (error) {
      if (!isExpired(error)) throw error;
      this.#version = undefined;
    }
    const isShort = !hasEvents && nowSeconds() - opened < SHORT_WATCH_SECONDS;
    if (isShort) throw new KubeError(0, 'Ended', 'the watch ended at once');
    this.#backoff.reset();
  }

  #heardAll(): void {
    const { path, log, nowSeconds } = this.#settings;
    const isFirst = !this.synced;
    this.#lastHeard = nowSeconds();
    this.#problems.recovered();
    if (!isFirst) return;
    this.#announceSync();
    log.debug({ path, objects: this.#items.size }, 'synced');
  }

  /** @param object undefined if it was deleted */
  #take(key: string, object: unknown): void {
    const { decoder, onChange, path, log } = this.#settings;
    const before = this.#items.get(key);
    const after = decoder.decode(key, object, before);
    if (after === undefined) this.#items.delete(key);
    else this.#items.set(key, after);
    if (before === undefined && after === undefined) return;
    try {
      onChange?.({ key, before, after });
    } catch (err) {
      log.error({ err, path, object: key }, 'processing an object failed');
    }
  }
}

/** A reflector of anything. */
export type Watch = Pick<Reflector<unknown>, 'run' | 'synced' | 'whenSynced' | 'lastHeard'>;
export type Watches = Readonly<Record<string, Watch>>;

/** Why copies must not be relied on: not listed yet, or too old. Without seconds, since Events are counted by text. */
export function cacheProblem(watches: Readonly<Record<string, Pick<Watch, 'synced' | 'lastHeard'>>>, now: number) {
  const missing = Object.keys(watches).filter((name) => !watches[name]?.synced);
  if (missing.length > 0) return `not synced yet: ${missing.join(', ')}`;
  const old = Object.entries(watches).flatMap(([name, { lastHeard = now }]) =>
    now - lastHeard > MAX_AGE_SECONDS ? [`${name} (${Math.floor((now - lastHeard) / 60)} min)`] : [],
  );
  return old.length === 0 ? undefined : `no event or bookmark from the API server: ${old.join(', ')}`;
}

const listedMetadata = z.object({ metadata: z.object({ name: z.string(), namespace: z.string().optional() }) });

/** '' for an object without a name, which is unreadable. */
function keyOfListed(object: unknown): string {
  const { data } = listedMetadata.safeParse(object);
  return data === undefined ? '' : objectKey(data.metadata);
}
