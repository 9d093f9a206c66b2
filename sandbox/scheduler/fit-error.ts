import type { Misfit } from './node-filters.ts';

/**
 * The message of a pod that fits no node: reasons with their counts, sorted as text.
 * Source: pkg/scheduler/framework/types.go, FitError.Error. The text of the post-filter plugins starts with that of the
 * plugin for device claims, which the sandbox does not have (as in kube-scheduler 1.36).
 */
export function fitErrorMessage(nodes: number, misfits: ReadonlyMap<string, Misfit>): string {
  if (nodes === 0) return '0/0 nodes are available: no nodes available to schedule pods.';
  const reasons = counted([...misfits.values()].flatMap((misfit) => misfit.reasons));
  const preemption = counted(
    [...misfits.values()].map(({ unresolvable }) =>
      unresolvable ? 'Preemption is not helpful for scheduling' : 'No preemption victims found for incoming pod',
    ),
  );
  const head = `0/${nodes} nodes are available`;
  return `${head}: ${reasons}. no new claims to deallocate, preemption: ${head}: ${preemption}.`;
}

function counted(texts: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return [...counts]
    .map(([text, count]) => `${count} ${text}`)
    .sort()
    .join(', ');
}
