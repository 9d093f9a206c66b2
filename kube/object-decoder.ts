import type * as z from 'zod';
import { issuesText } from '../model/errors.ts';
import type { Logger } from '../runtime/log.ts';
import type { TenantBudget } from '../runtime/tenant-budget.ts';
import { unreadableObjects } from '../runtime/unreadable-objects.ts';

export interface DecoderOptions<S extends z.ZodType, T> {
  /** The collection: `/apis/plumbline.dev/v1alpha1/nodetopologies`. */
  readonly path: string;
  readonly schema: S;
  /** Returns the part of an object to keep. Keep little: one instance holds every object of the cluster. */
  readonly project: (object: z.output<S>) => T;
  /**
   * What to keep of an object that cannot be read, or that no longer fits the budget. Required where an object holds a
   * resource, which it does not lose by being odd. Default: nothing; the object is absent until it becomes readable.
   * @param before what is kept of the object until now
   */
  readonly whenUnreadable?: (object: unknown, before: NoInfer<T> | undefined) => NoInfer<T> | undefined;
  /** Limits what `project` returns, by namespace. Required where tenants create the objects and texts are kept. */
  readonly budget?: TenantBudget;
  readonly log: Logger;
  /** Monotonic seconds. */
  readonly nowSeconds: () => number;
}

const RELIST_SECONDS = 60;

/**
 * Reads the objects of a collection. An object is unreadable if it does not match the schema, if `project` fails on it,
 * or if it exceeds the budget: it is logged once, and counts in a metric until it becomes readable or is deleted.
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

  /** Never throws. @param object undefined if it was deleted @param before what this method returned for it last */
  decode(key: string, object: unknown, before: T | undefined): T | undefined {
    const item = object === undefined ? this.#forget(key) : this.#read(key, object, before);
    unreadableObjects.set(this.#kind, this.#unreadable.size);
    return item;
  }

  /** Whether an object may fit the budget now that did not fit when it was received. */
  mustListAgain(): boolean {
    const now = this.#options.nowSeconds();
    if (!this.#hasRoom || this.#overBudget.size === 0 || now < this.#listedAt + RELIST_SECONDS) return false;
    this.#hasRoom = false;
    this.#listedAt = now;
    return true;
  }

  #read(key: string, object: unknown, before: T | undefined): T | undefined {
    const { path, schema, project, log } = this.#options;
    try {
      const result = schema.safeParse(object);
      if (!result.success) return this.#keep(key, this.#unreadableForm(key, object, before), issuesText(result.error));
      const item = project(result.data);
      if (!this.#fits(key, item)) return this.#keepOverBudget(key, object, before);
      this.#unreadable.delete(key);
      return item;
    } catch (err) {
      log.error({ err, path, object: key }, 'processing an object failed');
      return this.#keep(key, this.#unreadableForm(key, object, before), 'processing it failed');
    }
  }

  #keepOverBudget(key: string, object: unknown, before: T | undefined): T | undefined {
    this.#overBudget.add(key);
    const form = this.#options.whenUnreadable === undefined ? before : this.#unreadableForm(key, object, before);
    return this.#keep(key, form, 'its namespace uses up the memory for objects of this kind');
  }

  #unreadableForm(key: string, object: unknown, before: T | undefined): T | undefined {
    const { path, whenUnreadable, log } = this.#options;
    try {
      return whenUnreadable?.(object, before);
    } catch (err) {
      log.error({ err, path, object: key }, 'processing an object failed');
      return before;
    }
  }

  #keep(key: string, form: T | undefined, issues: string): T | undefined {
    const { path, budget, log } = this.#options;
    const namespace = namespaceOf(key);
    if (form === undefined) this.#release(key);
    else if (namespace !== undefined) budget?.keep(namespace, key, form);
    if (this.#unreadable.has(key)) return form;
    this.#unreadable.add(key);
    const fields = { path, object: key, issues };
    if (form === undefined) log.warn(fields, 'object ignored: it cannot be read');
    else log.warn(fields, 'object cannot be read; keeping its last or its minimal form');
    return form;
  }

  #fits(key: string, item: T): boolean {
    const namespace = namespaceOf(key);
    if (namespace !== undefined && this.#options.budget?.put(namespace, key, item) === false) return false;
    this.#overBudget.delete(key);
    return true;
  }

  #forget(key: string): undefined {
    this.#release(key);
    this.#unreadable.delete(key);
    this.#overBudget.delete(key);
  }

  #release(key: string): void {
    const namespace = namespaceOf(key);
    if (namespace !== undefined && (this.#options.budget?.delete(namespace, key) ?? 0) > 0) this.#hasRoom = true;
  }
}

/** Undefined for a cluster-scoped object. */
function namespaceOf(key: string): string | undefined {
  const slash = key.indexOf('/');
  return slash < 0 ? undefined : key.slice(0, slash);
}
