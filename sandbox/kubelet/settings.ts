import { stringify } from 'yaml';
import type { CpuSet } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';
import type { Host } from '../../model/host.ts';
import { createKubelet, type Kubelet } from '../../model/kubelet/kubelet.ts';

export interface EmulatedKubeletSettings {
  /** As in the Node's status. Default v1.36.0. */
  readonly version: string;
  readonly host: Host;
  readonly reserved: CpuSet;
  readonly cpuManagerPolicy: 'none' | 'static';
  readonly cpuManagerPolicyOptions: Readonly<Record<string, string>>;
  readonly topologyManagerPolicy: 'none' | 'best-effort' | 'restricted' | 'single-numa-node';
  readonly topologyManagerScope: 'container' | 'pod';
}

class KubeletSettingsError extends PlumblineError {
  constructor(message: string) {
    super('kubelet-settings', message);
  }
}

export function kubeletConfiguration(settings: EmulatedKubeletSettings): string {
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
  });
}

/** @throws KubeletSettingsError if the model does not support the settings */
export function rulesOf(settings: EmulatedKubeletSettings): Kubelet {
  const rules = createKubelet({
    version: settings.version,
    host: settings.host,
    reserved: settings.reserved,
    cpuManager: { policy: settings.cpuManagerPolicy, options: settings.cpuManagerPolicyOptions },
    topologyManager: { policy: settings.topologyManagerPolicy, scope: settings.topologyManagerScope },
  });
  if ('unpredictable' in rules) throw new KubeletSettingsError(rules.unpredictable);
  return rules;
}
