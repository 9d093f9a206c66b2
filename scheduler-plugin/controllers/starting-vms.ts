import type { PinningReport } from '../../model/launcher/paused-start.ts';
import type { MaskedInstance } from '../cluster/masked-vms.ts';

/** The state of one launcher in an agent's report. */
export interface ReportedPinning extends PinningReport {
  readonly podUID: string;
}

/** The VMIs that are still starting, and the reported states of their launchers. */
export function createStartingVms() {
  const instances = new Map<string, MaskedInstance>();
  const keysByNode = new Map<string | undefined, Set<string>>();
  const pinnings = new Map<string, ReadonlyMap<string, PinningReport>>();
  return {
    instances: instances as ReadonlyMap<string, MaskedInstance>,

    /** @returns the previous instance */
    put(key: string, instance: MaskedInstance | undefined): MaskedInstance | undefined {
      const before = instances.get(key);
      instances.delete(key);
      keysByNode.get(before?.node)?.delete(key);
      if (instance?.record === undefined || instance.record.state === 'resumed') return before;
      instances.set(key, instance);
      const there = keysByNode.get(instance.node) ?? new Set();
      keysByNode.set(instance.node, there.add(key));
      return before;
    },

    /** @returns the keys of the node's VMIs */
    report(node: string, list: readonly ReportedPinning[]): ReadonlySet<string> {
      if (list.length === 0) pinnings.delete(node);
      else pinnings.set(node, new Map(list.map((one) => [one.podUID, one])));
      return keysByNode.get(node) ?? new Set();
    },

    /**
     * The state of the launcher on the node where the VM runs, by that node's agent: a migrating VM has another
     * launcher.
     */
    pinningOf({ node = '', pods }: MaskedInstance): PinningReport | undefined {
      const there = pinnings.get(node);
      const pod = Object.keys(pods).find((uid) => pods[uid] === node && there?.has(uid));
      return pod === undefined ? undefined : there?.get(pod);
    },
  };
}
