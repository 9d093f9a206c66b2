import type { DemoContext } from './context.ts';
import { dpuDies, dpuReturns } from './step-dpu.ts';
import { installPlumbline } from './step-install.ts';
import { maskedVmPinned } from './step-masked.ts';
import { paddedAndPlaced } from './step-padded.ts';
import { rejectedByKubelet } from './step-rejected.ts';
import { switchMovesOff } from './step-switch.ts';

/** One step of the demo. `run` throws if the step fails; its result is part of the JSON document. */
export interface Step {
  readonly name: string;
  readonly title: string;
  readonly run: (context: DemoContext) => Promise<Readonly<Record<string, unknown>>>;
}

export const STEPS: readonly Step[] = [
  { name: 'rejected', title: 'Without Plumbline: the kubelet rejects the VM', run: rejectedByKubelet },
  {
    name: 'installed',
    title: 'Plumbline starts: webhook, scheduler extender, a node agent on each node',
    run: installPlumbline,
  },
  {
    name: 'placed',
    title: 'The same VM, annotated: padded to whole cores and placed near its NIC',
    run: paddedAndPlaced,
  },
  { name: 'switched', title: 'Open vSwitch leaves the CPUs of the VM', run: switchMovesOff },
  { name: 'pinned', title: 'A VM with a CPU mask: started paused, pinned, resumed', run: maskedVmPinned },
  { name: 'dpu-dead', title: 'A DPU dies: the extender refuses its node, and says why', run: dpuDies },
  { name: 'dpu-back', title: 'The DPU is back: the waiting VM starts', run: dpuReturns },
];
