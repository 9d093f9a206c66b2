import type { KubeObject } from '../../sandbox/objects.ts';
import { VF_RESOURCE } from './fleets.ts';
import { needOf, type StreamVm } from './stream.ts';

export const VM_NAMESPACE = 'tenants';
/** KubeVirt's own fix for odd numbers of CPUs. */
export const EVEN_PARITY = 'alpha.kubevirt.io/EmulatorThreadCompleteToEvenParity';

/** The VirtualMachine for a VM of the stream. */
export function machineOf(vm: StreamVm, annotations: Readonly<Record<string, string>>): KubeObject {
  const { name, cores, threads, isolated, ioThreads, network, vf } = vm;
  const networks = network === undefined ? [] : [{ name: 'data', multus: { networkName: network } }];
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace: VM_NAMESPACE },
    spec: {
      runStrategy: 'Always',
      template: {
        metadata: { annotations: { ...annotations } },
        spec: {
          domain: {
            cpu: {
              sockets: 1,
              cores,
              threads,
              dedicatedCpuPlacement: true,
              ...(isolated && { isolateEmulatorThread: true }),
            },
            ...(ioThreads > 0 && {
              ioThreadsPolicy: 'supplementalPool',
              ioThreads: { supplementalPoolThreadCount: ioThreads },
            }),
            memory: { guest: `${Math.max(1, Math.ceil(needOf(vm) / 4))}Gi` },
            devices: vf ? { hostDevices: [{ name: 'vf', deviceName: VF_RESOURCE }] } : {},
          },
          networks: [{ name: 'default', pod: {} }, ...networks],
        },
      },
    },
  };
}
