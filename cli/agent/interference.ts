import type { InterferencePicture } from '../../console/data/wire.ts';
import { type DisturbedVm, type InterferenceStatus, interferenceStatus } from '../../model/agent-status.ts';
import { type AskAgent, readPage } from './ask.ts';

/** @throws CliError if the agent cannot be reached, or does not measure */
export function fetchInterference(ask: AskAgent): Promise<InterferenceStatus> {
  const absent = 'this agent does not measure interrupts (--interrupts off, --mode dpu, or it is too old)';
  return readPage(ask, '/interference', interferenceStatus, absent);
}

/** The uid until PodResources has named the pod. */
export function vmNameOf({ namespace, vmi, podName, podUID }: DisturbedVm): string {
  if (namespace === '') return podUID;
  return `${namespace}/${vmi === '' ? podName : vmi}`;
}

export function sourceText({ id, name, devices, count }: DisturbedVm['sources'][number]): string {
  const what = name === '' || /^[A-Z]/.test(id) ? id : name;
  return `${what}${devices.length === 0 ? '' : ` (${devices.join(', ')})`} ${count}`;
}

export function interferencePicture({ vms }: InterferenceStatus): InterferencePicture {
  return {
    vms: vms.map((vm) => {
      return { name: vmNameOf(vm), share: vm.share, history: vm.history, sources: vm.sources.map(sourceText) };
    }),
  };
}
