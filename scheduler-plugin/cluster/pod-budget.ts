import { TenantBudget } from '../../runtime/tenant-budget.ts';
import type { PodView } from './pod-view.ts';

/** The memory of pods by namespace. Needs that pods of a namespace share count once: its launchers have a few shapes. */
export class PodBudget extends TenantBudget {
  /** A key for each list of containers, which is the same object in shared needs. */
  readonly #shapeKeys = new WeakMap<object, string>();
  /** The shape of each pod, and the number of pods by namespace and shape. */
  readonly #shapeOf = new Map<string, string>();
  readonly #pods = new Map<string, number>();
  #lastShape = 0;

  override put(namespace: string, key: string, { needs, ...view }: PodView): boolean {
    const { containers } = needs.request;
    const shape = this.#shapeKeys.get(containers) ?? `shape ${++this.#lastShape}`;
    this.#shapeKeys.set(containers, shape);
    if (this.#shapeOf.get(key) !== shape) {
      this.#leaveShape(namespace, key);
      const pods = this.#pods.get(`${namespace} ${shape}`) ?? 0;
      if (pods === 0 && !super.put(namespace, shape, needs)) {
        super.delete(namespace, key);
        return false;
      }
      this.#pods.set(`${namespace} ${shape}`, pods + 1);
      this.#shapeOf.set(key, shape);
    }
    const fits = super.put(namespace, key, view);
    if (!fits) this.#leaveShape(namespace, key);
    return fits;
  }

  override delete(namespace: string, key: string): number {
    this.#leaveShape(namespace, key);
    return super.delete(namespace, key);
  }

  #leaveShape(namespace: string, key: string): void {
    const shape = this.#shapeOf.get(key);
    if (shape === undefined) return;
    this.#shapeOf.delete(key);
    const pods = (this.#pods.get(`${namespace} ${shape}`) ?? 0) - 1;
    if (pods > 0) {
      this.#pods.set(`${namespace} ${shape}`, pods);
      return;
    }
    this.#pods.delete(`${namespace} ${shape}`);
    super.delete(namespace, shape);
  }
}
