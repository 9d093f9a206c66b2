import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { DEVICE_CHECKPOINT_FILE } from '../../kube/kubelet-api/device-checkpoint.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';
import type { Host } from '../../model/host.ts';
import type { ContainerPlacement } from '../../model/kubelet/admission.ts';
import type { Device } from '../../model/kubelet/devices.ts';
import { createKubelet, type Kubelet } from '../../model/kubelet/kubelet.ts';
import { podRequestOf } from '../../model/kubelet/pod-request.ts';
import type { KubeletState } from '../../model/kubelet/state.ts';
import { checkState } from '../../model/kubelet/static-policy.ts';
import type { KubePod } from '../objects.ts';
import { rpcText } from './pod-worker.ts';
import {
  createStateFile,
  readDeviceCheckpoint,
  readStateFile,
  replaceFile,
  StateFileError,
  writeDeviceCheckpoint,
} from './state-files.ts';

/** The model decides; this code writes and notifies. Calls must not overlap, as in the kubelet. */
export type Managers = Awaited<ReturnType<typeof openManagers>>;

/** @throws StateFileError if a kubelet would not start with the state file */
export async function openManagers(
  settings: EmulatedKubeletSettings,
  directory: string,
  allocate: (resource: string, deviceIds: readonly string[]) => Promise<void>,
) {
  const rules = rulesOf(settings);
  const statePath = join(directory, 'cpu_manager_state');
  const devicePath = join(directory, 'device-plugins', DEVICE_CHECKPOINT_FILE);
  await mkdir(join(directory, 'device-plugins'), { recursive: true });
  const remembered = await readStateFile(statePath, settings.cpuManagerPolicy);
  const devices = await readDeviceCheckpoint(devicePath);
  let state: KubeletState = { ...rules.initialState(new Map(), remembered?.assignments), devices };
  if (rules.cpu && remembered) {
    const checked = checkState(rules.cpu, remembered.defaultSet, remembered.assignments);
    if ('error' in checked) throw new StateFileError(statePath, checked.error);
    state = { ...state, defaultSet: checked.defaultSet };
  }
  // Under policy none nothing is tracked, and the file records that policy.
  const file = await createStateFile(statePath, settings.cpuManagerPolicy, {
    defaultSet: rules.cpu ? state.defaultSet : CpuSet.EMPTY,
    assignments: state.assignments,
  });

  const noMemory = JSON.stringify({ policyName: 'None', machineState: {}, checksum: 0 });
  await replaceFile(join(directory, 'memory_manager_state'), noMemory);

  const give = async (uid: string, containers: readonly ContainerPlacement[]) => {
    for (const { name, cpus, devices: assigned } of containers) {
      const before = state.devices.get(uid)?.get(name);
      for (const [resource, ids] of assigned) if (!before?.has(resource)) await allocate(resource, [...ids]);
      if (!cpus.isEmpty && !state.assignments.get(uid)?.has(name)) await file.assign(uid, name, cpus);
    }
  };

  return {
    get state() {
      return state;
    },
    setDevices(resource: string, devices: readonly Device[]) {
      state = { ...state, pools: new Map(state.pools).set(resource, { devices }) };
    },
    /** Admits a pod and assigns its CPUs and devices. A known pod is checked again and keeps its resources. */
    async admit(pod: KubePod) {
      const uid = pod.metadata.uid ?? '';
      const admission = rules.admit(state, podRequestOf(pod, uid));
      if (!admission.admitted) return admission;
      try {
        await give(uid, admission.containers);
      } catch (error) {
        await file.release(uid);
        const message = `Allocate failed due to ${rpcText(error)}, which is unexpected`;
        return { admitted: false as const, reason: 'UnexpectedAdmissionError', message };
      }
      // Plugins may have sent lists during the admission: their newest lists stay.
      state = { ...admission.state, pools: state.pools };
      await writeDeviceCheckpoint(devicePath, state.devices);
      return { admitted: true as const };
    },
    async release(uid: string) {
      state = rules.remove(state, uid);
      await file.release(uid);
      await writeDeviceCheckpoint(devicePath, state.devices);
    },
  };
}

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
  const { reserved, cpuManagerPolicy, cpuManagerPolicyOptions, topologyManagerPolicy, topologyManagerScope } = settings;
  return stringify({
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    reservedSystemCPUs: reserved.toString(),
    cpuManagerPolicy,
    ...(Object.keys(cpuManagerPolicyOptions).length > 0 && { cpuManagerPolicyOptions }),
    topologyManagerPolicy,
    topologyManagerScope,
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
