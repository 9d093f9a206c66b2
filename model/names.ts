export const NAMESPACE = 'plumbline-system';
/** Plumbline's kube-scheduler: the name of its Deployment and its Lease, and the schedulerName of its pods. */
export const SCHEDULER = 'plumbline-scheduler';
/** The extender's name, also of its static pod and its account next to the cluster's own kube-scheduler. */
export const SERVICE = 'plumbline-scheduler-plugin';

/** The node agent: its account, and the source of its Events. */
export const AGENT = 'plumbline-node-agent';

/** On a VM template or VMI: pad the launcher to whole cores. The only effective value is FULL_PCPUS_ONLY. */
export const FULL_PCPUS_ANNOTATION = 'kubevirt.io/CPUManagerPolicyBetaOptions';
export const FULL_PCPUS_ONLY = 'full-pcpus-only';

/** On an ordinary pod: round every container with exclusive CPUs up to whole cores. FULL_PCPUS_ONLY is its value. */
export const ALIGN_ANNOTATION = 'plumbline.dev/align';
export const ALIGN_WHOLE_CORES = 'whole-cores';
/** On a VM template or VMI without dedicated CPUs: the host CPUs on which each vCPU may run, in Ganeti's format. */
export const CPU_MASK_ANNOTATION = 'plumbline.dev/cpu-mask';
/** For a VM with a mask: `true` uses `all` instead of a mask with CPUs that a host lacks. */
export const FIX_CPU_MISMATCH_ANNOTATION = 'plumbline.dev/fix-cpu-mismatch';
/** `paused` (default): before the guest runs, with KubeVirt's boot menu. `running`: after the vCPU threads appear. */
export const CPU_MASK_START_ANNOTATION = 'plumbline.dev/cpu-mask-start';
/** On a VMI: the webhook made it start paused until it is pinned, and the progress of that. Tenants cannot write it. */
export const PAUSED_START_ANNOTATION = 'plumbline.dev/paused-start';

/** The webhook's decision, for people. */
export const DECISION_ANNOTATION = 'plumbline.dev/decision';
export const NUMA_AFFINITY_ANNOTATION = 'plumbline.dev/numa-affinity';
/** From the webhook for the extender: see model/placement/preferences. Always overwritten. */
export const PLACEMENT_ANNOTATION = 'plumbline.dev/placement';
/** On a NetworkAttachmentDefinition of a plugin that Plumbline does not support: the physnet of its traffic. */
export const NAD_PHYSNET_ANNOTATION = 'plumbline.dev/physnet';
/** On a Node: a change makes kube-scheduler retry the pods that it rejected. */
export const RECHECK_ANNOTATION = 'plumbline.dev/recheck';

/** In the extender's Events about a pod that its kubelet would refuse now: the command recognizes them by it. */
export const PLACE_LOST = 'can no longer give the pod its reserved CPUs';
/** Reason of an Event on a pod: its kubelet did not do as predicted. */
export const PREDICTION_DIFFERS = 'PredictionDiffers';

/** `physnet.plumbline.dev/<name>: 1` requests CPUs in a NUMA node where that physnet has an uplink. */
export const PHYSNET_RESOURCE_PREFIX = 'physnet.plumbline.dev/';
export const TUNNEL_RESOURCE = 'plumbline.dev/tunnel';
/** Opts an ordinary pod into the scheduler extender. */
export const PLACED_RESOURCE = 'plumbline.dev/placed';
/** Pods that request one are scored by the extender: managedResources in manifests/scheduler/loopback. */
export const MANAGED_RESOURCES: readonly string[] = [
  'devices.kubevirt.io/kvm',
  'devices.kubevirt.io/tun',
  PLACED_RESOURCE,
];

/** Their pods may run on nodes with a dead DPU, and the CNI gate does not hold them: they repair such nodes. */
export const DPU_EXEMPT_NAMESPACES: readonly string[] = ['kube-system', 'ovn-kubernetes', NAMESPACE];
/** Prefix of the Lease that the agent of a node renews; the node's name follows. */
export const AGENT_LEASE_PREFIX = 'plumbline-agent-';
/** Prefix of the Lease that a DPU renews while it is alive; the node's name follows. */
export const DPU_LEASE_PREFIX = 'ovn-dpu-';
export const DPU_LEASE_NAMESPACE = 'ovn-kubernetes';
export const DPU_LEASE_HOLDER = 'ovnkube-dpu-node';
/** On that Lease: what runs on the DPU, and its last restart (model/lease/dpu-run.ts). Only the DPU writes it. */
export const DPU_RUN_ANNOTATION = 'plumbline.dev/dpu-run';
/** On the migrations that `--dpu-recovery migrate` asks for. */
export const DPU_RECOVERY_LABEL = 'plumbline.dev/dpu-recovery';
/** Present, with any value, on nodes whose network runs on a DPU. */
export const DPU_HOST_LABEL = 'k8s.ovn.org/dpu-host';

/** KubeVirt's label on nodes: `true` if virt-handler accepts VMs. */
export const SCHEDULABLE_LABEL = 'kubevirt.io/schedulable';

/** The webhook: the name of its Deployment, its Service, its service account and two of its configurations. */
export const WEBHOOK = 'plumbline-webhook';
/** The RoleBinding that activates all of the webhook's entries: manifests/base/webhook/required.yaml. */
export const WEBHOOK_REQUIRED = 'plumbline-webhook-required';
/** Names of entries of the webhook configurations: manifests/base/webhook. */
export const LAUNCHER_WEBHOOK = 'launcher.plumbline.dev';
export const FINAL_WEBHOOK = 'final.plumbline.dev';
export const SCHEDULER_WEBHOOK = 'scheduler.plumbline.dev';

export const KUBELET_CONFIG_CONDITION = 'KubeletConfigKnown';
/** False: facts of the running kubelet are missing or contradict each other, so nothing can be promised on its node. */
export const KUBELET_RUN_CONDITION = 'KubeletRunKnown';
export const DPU_READY_CONDITION = 'plumbline.dev/DPUReady';
/** True while pods run on the node whose network was made before the last restart of its DPU. */
export const DPU_RESTARTED_CONDITION = 'plumbline.dev/DPURestarted';
export const AGENT_READY_CONDITION = 'plumbline.dev/AgentReady';
export const THREADS_PER_CORE_LABEL = 'plumbline.dev/threads-per-core';
export const FULL_PCPUS_LABEL = 'plumbline.dev/full-pcpus-only';

const RESOURCE_NAME_PART = /^[a-zA-Z0-9](?:[-a-zA-Z0-9_.]{0,61}[a-zA-Z0-9])?$/;
/** Marks an encoded name. A physnet whose own name has this prefix is encoded too, so decoding is unambiguous. */
const ENCODED = 'x--';

/**
 * A name that is invalid in a resource name is encoded as `x--` and its UTF-8 bytes in hexadecimal.
 * @throws RangeError if the name is empty or too long to encode (over 30 bytes)
 */
export function physnetResource(physnet: string): string {
  if (RESOURCE_NAME_PART.test(physnet) && !physnet.startsWith(ENCODED)) return PHYSNET_RESOURCE_PREFIX + physnet;
  const hex = [...new TextEncoder().encode(physnet)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  if (hex === '' || ENCODED.length + hex.length > 63) {
    throw new RangeError(
      `physnet name ${JSON.stringify(physnet)}: it must have 1 to 30 bytes to become a resource name`,
    );
  }
  return PHYSNET_RESOURCE_PREFIX + ENCODED + hex;
}

/** The physnet of a resource, or undefined if the resource does not stand for a physnet. */
export function physnetOfResource(resource: string): string | undefined {
  if (!resource.startsWith(PHYSNET_RESOURCE_PREFIX)) return undefined;
  const part = resource.slice(PHYSNET_RESOURCE_PREFIX.length);
  if (!part.startsWith(ENCODED)) return part === '' ? undefined : part;
  const hex = part.slice(ENCODED.length);
  if (!/^(?:[0-9a-f]{2})+$/.test(hex)) return undefined;
  const bytes = Uint8Array.from({ length: hex.length / 2 }, (_, i) => Number.parseInt(hex.slice(i * 2, i * 2 + 2), 16));
  return new TextDecoder().decode(bytes);
}
