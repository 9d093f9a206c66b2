import type * as z from 'zod';
import { issuesText } from '../model/errors.ts';
import type { Logger } from '../runtime/log.ts';
import { unreadableObjects } from '../runtime/metrics.ts';
import type { TenantBudget } from '../runtime/tenant-budget.ts';

export interface DecoderOptions<S extends z.ZodType, T> {
  /** The collection: `/apis/plumbline.dev/v1alpha1/nodetopologies`. */
  readonly path: string;
  readonly schema: S;
  /** Returns the part of an object to keep. Keep little: one instance holds every object of the cluster. */
  readonly project: (object: z.output<S>) => T;
  /** Limits what `project` returns, by namespace. Required where tenants create the objects and texts are kept. */
  readonly budget?: TenantBudget;
  readonly log: Logger;
  /** Monotonic seconds. */
  readonly now: () => number;
}

const RELIST_SECONDS = 60;

/**
 * Reads the objects of a collection. An object that does not match the schema or exceeds the budget is unreadable: it is
 * logged once, counts in a metric, and is absent until it becomes readable.
 */
export class ObjectDecoder<S extends z.ZodType<{ metadata: object }>, T> {
  readonly #options: DecoderOptions<S, T>;
  readonly #kind: string;
  readonly #unreadable = new Set<string>();
  readonly #overBudget = new Set<string>();
  #hasRoom = false;
  #listedAt = 0;

  constructor(options: DecoderOptions<S, T>) {
    this.#options = options;
    this.#kind = options.path.slice(options.path.lastIndexOf('/') + 1);
  }

  /** @param object undefined if it was deleted */
  decode(key: string, object: unknown): T | undefined {
    const { schema, project } = this.#options;
    const result = object === undefined ? undefined : schema.safeParse(object);
    const item = result?.success === true ? project(result.data) : undefined;
    const fits = this.#fitsBudget(key, item);
    if (result?.success === false) this.#ignore(key, issuesText(result.error));
    else if (!fits) this.#ignore(key, 'its namespace uses up the memory for objects of this kind');
    else this.#unreadable.delete(key);
    unreadableObjects.set({ kind: this.#kind }, this.#unreadable.size);
    return fits ? item : undefined;
  }

  /** Whether an object may fit the budget now that did not fit when it was received. */
  mustListAgain(): boolean {
    const now = this.#options.now();
    if (!this.#hasRoom || this.#overBudget.size === 0 || now < this.#listedAt + RELIST_SECONDS) return false;
    this.#hasRoom = false;
    this.#listedAt = now;
    return true;
  }

  #fitsBudget(key: string, item: T | undefined): boolean {
    const { budget } = this.#options;
    const slash = key.indexOf('/');
    if (budget === undefined || slash < 0) return true;
    const namespace = key.slice(0, slash);
    if (item === undefined && budget.delete(namespace, key) > 0) this.#hasRoom = true;
    const fits = item === undefined || budget.put(namespace, key, item);
    if (fits) this.#overBudget.delete(key);
    else this.#overBudget.add(key);
    return fits;
  }

  #ignore(key: string, issues: string): void {
    if (this.#unreadable.has(key)) return;
    const { path, log } = this.#options;
    log.warn({ path, object: key, issues }, 'object ignored: it cannot be read');
    this.#unreadable.add(key);
  }
}
