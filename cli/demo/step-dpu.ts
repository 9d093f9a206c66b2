import type { KubePod } from '../../sandbox/objects.ts';
import { DPU_LEASE_SECONDS } from './agent-args.ts';
import type { DemoContext } from './plumbline.ts';
import { expect, until } from './until.ts';
import { createVm, demoLauncher, eventsOf, untilRunning } from './vms.ts';

const NODE = 'dpu';
const VM = 'offloaded';

export async function dpuDies({ cluster, printer, installed }: DemoContext) {
  const { dpuSide } = installed();
  await until('the extender to see the DPU alive', 10, () => extenderSays(installed().schedulerPlugin.log(), true));
  printer.lines([
    `killing the DPU’s process (pid ${dpuSide.process?.pid ?? 0}); its lease counts for ${DPU_LEASE_SECONDS} s`,
  ]);
  const died = performance.now();
  await dpuSide.kill();
  await until('the extender to see the DPU dead', DPU_LEASE_SECONDS + 7, () =>
    extenderSays(installed().schedulerPlugin.log(), false),
  );
  const seconds = Math.round((performance.now() - died) / 100) / 10;
  printer.lines([`noticed after ${seconds} s`]);

  await createVm(cluster, { name: VM, annotated: true, node: NODE });
  const refusal = await until('the scheduler to say why the VM waits', 10, () =>
    eventsOf(cluster, VM).find(
      ({ reason, message }) => reason === 'FailedScheduling' && message.includes('DPU not ready'),
    ),
  );
  printer.lines([`VM "${VM}" waits: ${refusal.message}`]);
  const pod = demoLauncher(cluster, VM);
  expect(pod?.spec.nodeName === undefined, `expected the VM to wait, but it is on ${pod?.spec.nodeName}`);
  const direct = pod && (await askExtender(await installed().extenderPort(), pod));
  expect(direct?.includes(NODE) !== true, 'the extender still accepts the node');
  return { noticedAfterSeconds: seconds, reason: refusal.message };
}

/** No object that kube-scheduler watches changes: the extender must trigger the retry of the waiting pod. */
export async function dpuReturns({ cluster, printer, installed }: DemoContext) {
  const began = performance.now();
  await installed().dpuSide.start();
  const pod = await untilRunning(cluster, VM, 15);
  const seconds = Math.round((performance.now() - began) / 100) / 10;
  printer.lines([`VM "${VM}" runs on node ${pod.spec.nodeName}, ${seconds} s after the restart of the DPU’s process`]);
  expect(pod.spec.nodeName === NODE, `expected node ${NODE}, saw ${pod.spec.nodeName}`);
  return { node: pod.spec.nodeName, seconds };
}

function extenderSays(log: readonly Readonly<Record<string, unknown>>[], alive: boolean): true | undefined {
  const last = log.findLast((line) => typeof line['msg'] === 'string' && line['msg'].startsWith('DPU is'));
  return last?.['ready'] === alive ? true : undefined;
}

/** The names of the nodes that pass, directly from the extender's socket. */
async function askExtender(port: number, pod: KubePod): Promise<readonly string[]> {
  const body = JSON.stringify({ Pod: pod, Nodes: null, NodeNames: [NODE] });
  const answer = await fetch(`http://127.0.0.1:${port}/filter`, { method: 'POST', body });
  return ((await answer.json()) as { NodeNames: string[] | null }).NodeNames ?? [];
}
