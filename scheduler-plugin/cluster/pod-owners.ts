import type { PodOwner } from './pod-view.ts';

/** The object that creates a pod again after its deletion. */
export interface PodMaker {
  /** Equal for all pods that it creates one after the other. */
  readonly key: string;
  readonly owner: PodOwner;
}

/**
 * Maximum VMIs whose owner is remembered: far more than are starting, since those that have started are not learned.
 */
const REMEMBERED = 5000;
const VMI = 'VirtualMachineInstance';

/**
 * Finds the object that creates a pod again after a kubelet has refused it. For a launcher that is not its controller,
 * the VMI: KubeVirt deletes the VMI of a refused launcher at once and creates another.
 * - If the VMI belongs to a VM (alone or in a pool), the next VMI has the VM's name again, so namespace and name are
 * the key.
 * - If it belongs to a replica set, each VMI has another name, and the launcher does not contain the owner. The owner
 * is learned from the watch of VMIs while the VMI starts, and kept after its deletion.
 */
export class PodOwners {
  /** Controllers by their VMI's uid, the oldest first. */
  readonly #makers = new Map<string, PodOwner>();

  get size(): number {
    return this.#makers.size;
  }

  /** Records the controller of a VMI that has not started. */
  learn(vmiUid: string, owner: PodOwner | undefined): void {
    if (owner === undefined) return;
    this.#makers.delete(vmiUid);
    const [oldest] = this.#makers.keys();
    if (this.#makers.size >= REMEMBERED && oldest !== undefined) this.#makers.delete(oldest);
    this.#makers.set(vmiUid, owner);
  }

  /** @param controller the pod's controller */
  makerOf(namespace: string, controller: PodOwner): PodMaker {
    const { apiVersion, kind, name, uid } = controller;
    const isVmi = kind === VMI && apiVersion.startsWith('kubevirt.io/');
    if (!isVmi) return { key: `${namespace}/${uid}`, owner: controller };
    const owner = this.#makers.get(uid) ?? controller;
    // Use the name even while the VMI is unknown, so that a delayed watch does not lead to a second key.
    return { key: `${namespace}/${owner.name === name ? `${VMI}/${name}` : owner.uid}`, owner };
  }
}
