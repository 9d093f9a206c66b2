import { stringify } from 'yaml';
import type { CpuSet } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';
import type { Host } from '../../model/host.ts';
import { createKubelet, type Kubelet } from '../../model/kubelet/kubelet.ts';
import type { CellMemory } from '../../model/kubelet/memory-state.ts';

/** Configuration of an emulated node's kubelet. */
export interface KubeletSettings {
  /** As in the Node's status. Default v1.36.0. */
  readonly version: string;
  readonly host: Host;
  readonly reserved: CpuSet;
  readonly cpuManagerPolicy: 'none' | 'static';
  readonly cpuManagerPolicyOptions: Readonly<Record<string, string>>;
  readonly topologyManagerPolicy: 'none' | 'best-effort' | 'restricted' | 'single-numa-node';
  readonly topologyManagerScope: 'container' | 'pod';
  /** The memory of each NUMA node, under the static memory manager. Default: policy None. */
  readonly staticMemory?: readonly CellMemory[];
}

/** Settings with which a kubelet does not start. */
class KubeletSettingsError extends PlumblineError {
  constructor(message: string) {
    super('kubelet-settings', message);
  }
}

/** The configuration file for a kubelet with these settings. */
export function kubeletConfiguration(settings: KubeletSettings): string {
  return stringify({
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    reservedSystemCPUs: settings.reserved.toString(),
    cpuManagerPolicy: settings.cpuManagerPolicy,
    ...(Object.keys(settings.cpuManagerPolicyOptions).length > 0 && {
      cpuManagerPolicyOptions: settings.cpuManagerPolicyOptions,
    }),
    topologyManagerPolicy: settings.topologyManagerPolicy,
    topologyManagerScope: settings.topologyManagerScope,
    ...(settings.staticMemory && {
      memoryManagerPolicy: 'Static',
      reservedMemory: settings.staticMemory.map(({ id, reserved = {} }) => ({ numaNode: id, limits: reserved })),
    }),
  });
}

/**
 * The model of a kubelet with these settings.
 * @throws KubeletSettingsError if the model does not support it
 */
export function rulesOf(settings: KubeletSettings): Kubelet {
  const rules = createKubelet({
    version: settings.version,
    host: settings.host,
    reserved: settings.reserved,
    cpuManager: { policy: settings.cpuManagerPolicy, options: settings.cpuManagerPolicyOptions },
    topologyManager: { policy: settings.topologyManagerPolicy, scope: settings.topologyManagerScope },
    memoryManager: settings.staticMemory && { policy: 'Static', cells: settings.staticMemory },
  });
  if ('unpredictable' in rules) throw new KubeletSettingsError(rules.unpredictable);
  return rules;
}
