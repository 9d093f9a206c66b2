import type { PodOwner } from './pod-view.ts';

/** Who makes a pod again when it is gone. */
export interface PodMaker {
  /** The same for all pods that it makes one after the other. */
  readonly key: string;
  readonly owner: PodOwner;
}

/** VMIs whose owner is remembered. Those that have started are not learned, so it is far more than are on their way. */
const REMEMBERED = 5000;
const VMI = 'VirtualMachineInstance';

/**
 * Which object makes a pod again when a kubelet has refused it. For a launcher that is not its controller, the VMI:
 * KubeVirt deletes the VMI of a refused launcher at once and makes another.
 * - Of a VM (alone or of a pool) the next VMI has the VM's name again, so namespace and name are the key.
 * - Of a replica set each VMI has another name, and no launcher says whose it is. The VMI does: it is learned from the
 *   watch of VMIs while it starts, and kept when it is gone.
 */
export class PodOwners {
  /** Controllers by their VMI's uid; the one that was learned longest ago is first. */
  readonly #makers = new Map<string, PodOwner>();

  get size(): number {
    return this.#makers.size;
  }

  /** A VMI that has not started has this controller. */
  learn(vmiUid: string, owner: PodOwner | undefined): void {
    if (owner === undefined) return;
    this.#makers.delete(vmiUid);
    const [oldest] = this.#makers.keys();
    if (this.#makers.size >= REMEMBERED && oldest !== undefined) this.#makers.delete(oldest);
    this.#makers.set(vmiUid, owner);
  }

  /** @param controller of the pod */
  makerOf(namespace: string, controller: PodOwner): PodMaker {
    const { apiVersion, kind, name, uid } = controller;
    const isVmi = kind === VMI && apiVersion.startsWith('kubevirt.io/');
    if (!isVmi) return { key: `${namespace}/${uid}`, owner: controller };
    const owner = this.#makers.get(uid) ?? controller;
    // The name also while the VMI is not known, so that a watch that is behind makes no second key.
    return { key: `${namespace}/${owner.name === name ? `${VMI}/${name}` : owner.uid}`, owner };
  }
}
