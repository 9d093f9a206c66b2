import { maskRequestKey } from '../../model/launcher/mask-request.ts';
import { selectionKey } from '../../model/launcher/node-selection.ts';
import {
  hasMaskHost,
  type MaskedVm,
  type MaskHost,
  maskHostOf,
  type SurveyedNode,
} from '../../model/placement/mask-fit.ts';
import { createSlices, sleep } from '../../runtime/time.ts';
import { type Fleet, trustedShape } from '../cluster/fleet.ts';
import type { ExtenderContext } from '../telemetry/context.ts';

const NO_MASKS = { vms: 0, withoutNode: 0 };

interface MaskSurveyOptions extends Pick<ExtenderContext, 'active'> {
  readonly fleet: Fleet;
  readonly masked: () => Iterable<MaskedVm>;
  readonly onCounted: (counts: Readonly<typeof NO_MASKS>) => void;
}

/** Seconds between two counts, and the minimum pause as a multiple of the last count's duration. */
const COUNT_INTERVAL_SECONDS = 5;
const PAUSE_FACTOR = 20;
const NODES_AT_ONCE = 64;

/** By the rules of `plumbline verify`. */
export function createMaskSurvey({ fleet, masked, active, onCounted }: MaskSurveyOptions) {
  const slices = createSlices();

  /** The nodes that report. Nodes with equal CPUs share the derived data. */
  const reportingNodes = async (): Promise<SurveyedNode[]> => {
    const hosts = new Map<string, MaskHost>();
    const nodes: SurveyedNode[] = [];
    for (const node of [...fleet.nodes()]) {
      await slices.run(() => {
        const { name, exists, load, labels } = node;
        const shape = trustedShape(node);
        if (shape === undefined || !exists) return;
        const host = hosts.get(load) ?? maskHostOf({ ...shape.empty, owned: node.owned });
        hosts.set(load, host);
        nodes.push({ name, host, label: (key: string) => labels.get(key) });
      });
    }
    return nodes;
  };

  /** Compares a mask that fits nowhere with every node, in slices: the scheduler's calls run in between. */
  const isHosted = async (vm: MaskedVm, nodes: readonly SurveyedNode[]): Promise<boolean> => {
    for (let from = 0; from < nodes.length; from += NODES_AT_ONCE)
      if (await slices.run(() => hasMaskHost(vm, nodes.slice(from, from + NODES_AT_ONCE)))) return true;
    return false;
  };

  const count = async () => {
    const vms = [...masked()];
    if (vms.length === 0) return NO_MASKS;
    const nodes = await reportingNodes();
    const hosted = new Map<string, boolean>();
    let withoutNode = 0;
    for (const vm of vms) {
      const kind = `${vm.maskRequest && maskRequestKey(vm.maskRequest)} ${selectionKey(vm.selection)}`;
      const has = hosted.get(kind) ?? (await isHosted(vm, nodes));
      hosted.set(kind, has);
      if (!has) withoutNode++;
    }
    return { vms: vms.length, withoutNode };
  };

  return {
    count,
    async run(signal: AbortSignal) {
      while (!signal.aborted) {
        const begun = performance.now();
        onCounted(active() ? await count() : NO_MASKS);
        // Tenants choose the number of masks. However many there are, counting takes a small share of the time.
        const took = (performance.now() - begun) / 1000;
        await sleep(Math.max(COUNT_INTERVAL_SECONDS, took * PAUSE_FACTOR), signal).catch(() => undefined);
      }
    },
  };
}
