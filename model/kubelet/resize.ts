import { parseQuantity } from '../quantity.ts';
import { type AdmissionRules, admitPod } from './admission.ts';
import { podRequestOf } from './pod-request.ts';
import type { Pod, PodContainer } from './pod-shape.ts';
import { isGuaranteed } from './qos.ts';
import type { KubeletState } from './state.ts';

/**
 * The kubelet's reaction to new amounts for a running pod. The exclusive CPUs and the memory of its containers never
 * change.
 */
export type Resize =
  /** The new amounts are allocated. */
  | { readonly outcome: 'allocated' }
  /** The pod keeps its resources; its condition PodResizePending has this reason and message. */
  | { readonly outcome: 'pending'; readonly reason: string; readonly message: string };

/**
 * Predicts an in-place resize of a Guaranteed pod's containers under the static managers. The feature gates
 * InPlacePodVerticalScalingExclusiveCPUs and InPlacePodVerticalScalingExclusiveMemory are off, as in every release, so
 * the kubelet does not change what a static manager assigned. For other changes it checks the pod again with its
 * current resources.
 *
 * Not predicted: whether the node has room for the new amounts, which the scheduler checks, and amounts of init
 * containers that end.
 *
 * @param before the pod with its current amounts
 * @param after the pod with the requested amounts
 * @throws ParseError if an amount is not a quantity
 * Source: pkg/kubelet/kubelet.go canResizePod (1.33), pkg/kubelet/allocation/allocation_manager.go (1.34, 1.35),
 * pkg/kubelet/allocation/handlers.go (1.36).
 */
export function resizePod(rules: AdmissionRules, state: KubeletState, before: Pod, after: Pod, uid?: string): Resize {
  const { resize } = rules.behaviour;
  const changesCpu = changes(before, after, 'cpu');
  const changesMemory = changes(before, after, 'memory');
  if (!changesCpu && !changesMemory) return { outcome: 'allocated' };
  if (isGuaranteed(after)) {
    const all = resize === 'refused-whole';
    const refusal = (manager: string, policy: string) =>
      infeasible(all ? `${manager} static policy` : `${manager} policy "${policy}"`);
    if (rules.cpu && (all || changesCpu)) return refusal('CPU Manager', 'static');
    if (state.memory && (all || changesMemory)) return refusal('Memory Manager', 'Static');
  }
  const admission = admitPod(rules, state, podRequestOf(after, uid));
  if (admission.admitted) return { outcome: 'allocated' };
  return { outcome: 'pending', reason: 'Deferred', message: admission.message };
}

function infeasible(manager: string): Resize {
  const message = `Resize is infeasible for Guaranteed Pods alongside ${manager}`;
  return { outcome: 'pending', reason: 'Infeasible', message };
}

/** Whether a container that keeps running requests a different amount. */
function changes(before: Pod, after: Pod, resource: string): boolean {
  const known = new Map(lasting(before).map((container) => [container.name, amountOf(container, resource)]));
  return lasting(after).some((container) => amountOf(container, resource) !== known.get(container.name));
}

function lasting({ spec }: Pod): readonly PodContainer[] {
  const sidecars = (spec?.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always');
  return [...sidecars, ...(spec?.containers ?? [])];
}

function amountOf({ resources }: PodContainer, resource: string): bigint {
  return parseQuantity(resources?.requests?.[resource] ?? resources?.limits?.[resource] ?? '0').nano;
}
