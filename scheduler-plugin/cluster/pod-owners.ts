import type { PodOwner } from './pod-view.ts';

/** The object that creates a pod again after its deletion. */
export interface PodMaker {
  /** Equal for all pods that it creates one after the other. */
  readonly key: string;
  readonly owner: PodOwner;
}

/** Maximum VMIs: far more than are starting, since those that have started are not learned. */
const MAX_VMIS = 5000;
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
  /** Controllers by their VMI's uid, the oldest first, of each namespace. */
  readonly #makers = new Map<string, Map<string, PodOwner>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Records the controller of a VMI that has not started. The namespace with the most VMIs makes room. */
  learn(namespace: string, vmiUid: string, owner: PodOwner | undefined): void {
    if (owner === undefined) return;
    this.#forget(namespace, vmiUid);
    if (this.#size >= MAX_VMIS) {
      const [largest = ''] = [...this.#makers].reduce((a, b) => (b[1].size > a[1].size ? b : a));
      const [oldest = ''] = this.#makers.get(largest)?.keys() ?? [];
      this.#forget(largest, oldest);
    }
    const makers = this.#makers.get(namespace) ?? new Map<string, PodOwner>();
    this.#makers.set(namespace, makers.set(vmiUid, owner));
    this.#size++;
  }

  #forget(namespace: string, vmiUid: string): void {
    const makers = this.#makers.get(namespace);
    if (makers?.delete(vmiUid) !== true) return;
    this.#size--;
    if (makers.size === 0) this.#makers.delete(namespace);
  }

  /** @param controller the pod's controller */
  makerOf(namespace: string, controller: PodOwner): PodMaker {
    const { apiVersion, kind, name, uid } = controller;
    const isVmi = kind === VMI && apiVersion.startsWith('kubevirt.io/');
    if (!isVmi) return { key: `${namespace}/${uid}`, owner: controller };
    const owner = this.#makers.get(namespace)?.get(uid) ?? controller;
    // Use the name even while the VMI is unknown, so that a delayed watch does not lead to a second key.
    return { key: `${namespace}/${owner.name === name ? `${VMI}/${name}` : owner.uid}`, owner };
  }
}
