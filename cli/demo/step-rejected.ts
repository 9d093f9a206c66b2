import { EVENTS, VIRTUAL_MACHINES } from '../../sandbox/api-server/built-in-types.ts';
import type { DemoContext } from './context.ts';
import { DEMO_NAMESPACE } from './objects.ts';
import { computeOf, createVm } from './pods.ts';
import { expect, until } from './until.ts';

/** KubeVirt requests one CPU more than the guest has; a full-pcpus-only kubelet only accepts whole cores. */
export async function rejectedByKubelet({ cluster, printer }: DemoContext) {
  const created = await createVm(cluster, { name: 'plain', annotated: false, node: 'smt2' });
  const cpus = computeOf(created).limits['cpu'];
  printer.lines([
    'VM "plain": 4 cores x 2 threads, dedicated CPUs, an isolated emulator thread',
    `its launcher pod asks for ${cpus} CPUs; node smt2 has 2 threads a core and takes whole cores only`,
  ]);
  // KubeVirt deletes the launcher and its VMI at once, so only the Event is left.
  const event = await until('the kubelet to reject the launcher', 10, () =>
    cluster.client.list(EVENTS).find(({ reason }) => reason === 'SMTAlignmentError'),
  );
  // Otherwise KubeVirt would start it again and again.
  const vm = cluster.client.get(VIRTUAL_MACHINES, DEMO_NAMESPACE, 'plain');
  if (vm !== undefined) await cluster.client.delete(VIRTUAL_MACHINES, vm);
  const { reason, message } = event as unknown as { reason: string; message: string };
  printer.lines([`kubelet: ${reason}: ${message}`]);
  expect(reason === 'SMTAlignmentError', `expected SMTAlignmentError, saw ${reason}`);
  const text = 'SMT Alignment Error: requested 9 cpus not multiple cpus per core = 2';
  expect(String(message).includes(text), `expected the kubelet to say "${text}"`);
  return { node: 'smt2', cpus, reason, message };
}
