/** The names that Plumbline shares with its users and among its parts. */

export const NAMESPACE = 'plumbline-system';
/** Plumbline's kube-scheduler: the name of its Deployment, of its Lease, and the schedulerName of its pods. */
export const SCHEDULER = 'plumbline-scheduler';
/** The extender behind a Service: the name of its Deployment, its Service and its Lease. */
export const SERVICE = 'plumbline-scheduler-plugin';

/** On a VM template or VMI: pad the launcher to whole cores. The value it must have is FULL_PCPUS_ONLY. */
export const FULL_PCPUS_ANNOTATION = 'kubevirt.io/CPUManagerPolicyBetaOptions';
export const FULL_PCPUS_ONLY = 'full-pcpus-only';

/** On an ordinary pod: round every container with exclusive CPUs up to whole cores. The value it must have follows. */
export const ALIGN_ANNOTATION = 'plumbline.dev/align';
export const ALIGN_WHOLE_CORES = 'whole-cores';
/** On a VM template or VMI without dedicated CPUs: which host CPUs each vCPU may run on, in Ganeti's form. */
export const CPU_MASK_ANNOTATION = 'plumbline.dev/cpu-mask';
/** With it: `true` uses `all` instead of a mask with CPUs that a host does not have. */
export const FIX_CPU_MISMATCH_ANNOTATION = 'plumbline.dev/fix-cpu-mismatch';
/**
 * With a mask: when it takes effect at a start. `paused`, the default: before the guest runs, at the price of KubeVirt's boot
 * menu of a paused start. `running`: once the vCPU threads are seen, with no pause.
 */
export const CPU_MASK_START_ANNOTATION = 'plumbline.dev/cpu-mask-start';
/** On a VMI: that the webhook had it start paused until it is pinned, and how far that is. No tenant can write it. */
export const PAUSED_START_ANNOTATION = 'plumbline.dev/paused-start';

/** What the webhook decided, for people; no component reads it. */
export const DECISION_ANNOTATION = 'plumbline.dev/decision';
/** Per interface: required, preferred or none. */
export const NUMA_AFFINITY_ANNOTATION = 'plumbline.dev/numa-affinity';
/** What the webhook passes to the extender in addition to the requests: see model/placement/preferences. Always overwritten. */
export const PLACEMENT_ANNOTATION = 'plumbline.dev/placement';
/** On a NetworkAttachmentDefinition of a plugin that Plumbline does not know: the physnet its traffic uses. */
export const NAD_PHYSNET_ANNOTATION = 'plumbline.dev/physnet';
/** On the extender's Lease: reservations that the next leader takes over. */
export const RESERVATIONS_ANNOTATION = 'plumbline.dev/reservations';
/** Touched on a Node to make kube-scheduler retry the pods it refused. */
export const RECHECK_ANNOTATION = 'plumbline.dev/recheck';

/** `physnet.plumbline.dev/<name>: 1` asks for CPUs in a NUMA node where that physnet has an uplink. */
export const PHYSNET_RESOURCE_PREFIX = 'physnet.plumbline.dev/';
/** The same for the tunnel (overlay) endpoint. */
export const TUNNEL_RESOURCE = 'plumbline.dev/tunnel';
/**
 * `near.plumbline.dev/<name>: 1` asks the kubelet for the NUMA node of a network that the pod prefers. Schedulers ignore the
 * group (ignoredResourceGroups in manifests), and a kubelet that never had the resource passes it over.
 */
export const NEAR_RESOURCE_PREFIX = 'near.plumbline.dev/';
/** Opts an ordinary pod into the scheduler extender. */
export const PLACED_RESOURCE = 'plumbline.dev/placed';
/** The scheduler asks the extender about pods that request one of these: managedResources in manifests/scheduler. */
export const MANAGED_RESOURCES: readonly string[] = [
  'devices.kubevirt.io/kvm',
  'devices.kubevirt.io/tun',
  PLACED_RESOURCE,
];

/** Pods of these namespaces go to nodes whose DPU is dead, and the CNI gate lets them pass: they repair such nodes. */
export const DPU_EXEMPT_NAMESPACES: readonly string[] = ['kube-system', 'ovn-kubernetes', NAMESPACE];
/** The Lease that a DPU renews while it is alive is DPU_LEASE_PREFIX + node name. */
export const DPU_LEASE_PREFIX = 'ovn-dpu-';
export const DPU_LEASE_NAMESPACE = 'ovn-kubernetes';
export const DPU_LEASE_HOLDER = 'ovnkube-dpu-node';
/** Present, with whatever value, on nodes whose network runs on a DPU. */
export const DPU_HOST_LABEL = 'k8s.ovn.org/dpu-host';

/** KubeVirt's, on nodes: `true` where virt-handler takes VMs. */
export const SCHEDULABLE_LABEL = 'kubevirt.io/schedulable';

/** The webhook: the name of its Deployment, its Service, its account and two of its configurations. */
export const WEBHOOK = 'plumbline-webhook';
/** Of the RoleBinding that switches on all of the webhook's entries: manifests/base/webhook/required.yaml. */
export const WEBHOOK_REQUIRED = 'plumbline-webhook-required';
/** Entries of the webhook configurations: manifests/base/webhook. */
export const LAUNCHER_WEBHOOK = 'launcher.plumbline.dev';
export const NETWORKS_WEBHOOK = 'networks.plumbline.dev';
export const FINAL_WEBHOOK = 'final.plumbline.dev';
export const SCHEDULER_WEBHOOK = 'scheduler.plumbline.dev';

export const DPU_READY_CONDITION = 'plumbline.dev/DPUReady';
export const THREADS_PER_CORE_LABEL = 'plumbline.dev/threads-per-core';
export const FULL_PCPUS_LABEL = 'plumbline.dev/full-pcpus-only';

const RESOURCE_NAME_PART = /^[a-zA-Z0-9](?:[-a-zA-Z0-9_.]{0,61}[a-zA-Z0-9])?$/;
/** Marks an encoded name. A physnet whose own name begins with it is encoded too, so decoding is never ambiguous. */
const ENCODED = 'x--';

/**
 * The device resource that stands for a physnet. A name that may not stand after the slash of a resource name (OVN
 * allows any text in bridge mappings) is written as `x--` and its UTF-8 bytes in hexadecimal.
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

/** The physnet that a resource stands for, or undefined if it is no physnet's resource. */
export function physnetOfResource(resource: string): string | undefined {
  if (!resource.startsWith(PHYSNET_RESOURCE_PREFIX)) return undefined;
  const part = resource.slice(PHYSNET_RESOURCE_PREFIX.length);
  if (!part.startsWith(ENCODED)) return part === '' ? undefined : part;
  const hex = part.slice(ENCODED.length);
  if (!/^(?:[0-9a-f]{2})+$/.test(hex)) return undefined;
  const bytes = Uint8Array.from({ length: hex.length / 2 }, (_, i) => Number.parseInt(hex.slice(i * 2, i * 2 + 2), 16));
  return new TextDecoder().decode(bytes);
}

const NEAR_TUNNEL = 'tunnel';

/** The resource by which a pod prefers the network that a device resource, of a physnet or the tunnel, stands for. */
export function nearResource(network: string): string {
  if (network === TUNNEL_RESOURCE) return NEAR_RESOURCE_PREFIX + NEAR_TUNNEL;
  const part = network.slice(PHYSNET_RESOURCE_PREFIX.length);
  // A physnet called `tunnel`: no physnet's own part has two dashes after the letter x, unless it is encoded.
  return NEAR_RESOURCE_PREFIX + (part === NEAR_TUNNEL ? `${ENCODED}${NEAR_TUNNEL}` : part);
}

/** Whether a resource only prefers a network. */
export function isNearResource(resource: string): boolean {
  return resource.startsWith(NEAR_RESOURCE_PREFIX);
}
