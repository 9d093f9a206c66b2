import { guestVcpus, launcherCpus } from '../../model/launcher/cpus.ts';
import { MIGRATION_LABEL } from '../../model/launcher/recognize.ts';
import { parseQuantity, wholeValue } from '../../model/quantity.ts';
import type { VmiShape } from '../../model/shapes.ts';
import {
  at,
  type Container,
  isRecord,
  type JsonRecord,
  type JsonValue,
  type KubeMigration,
  type KubePod,
  type KubeVmi,
  listAt,
} from '../objects.ts';

/** As in KubeVirt's renderer (pkg/virt-controller/services), limited to scheduling, CPU placement and networks. */

const NOT_COPIED = /^(?:kubectl\.kubernetes\.io|kubevirt\.io\/(?:storage|latest)-observed-api-version)/;

const text = (value: JsonValue | undefined) => (typeof value === 'string' && value !== '' ? value : undefined);

export function renderLauncherPod(vmi: KubeVmi): KubePod {
  const { name, namespace = 'default', uid = '' } = vmi.metadata;
  const hostname = text(at(vmi, 'spec', 'hostname')) ?? name;
  const networks = multusNetworks(vmi);
  const kubevirt = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance' };
  const owner = { ...kubevirt, name, uid, controller: true, blockOwnerDeletion: true };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: '',
      generateName: `virt-launcher-${name}-`,
      namespace,
      labels: {
        ...vmi.metadata.labels,
        'kubevirt.io': 'virt-launcher',
        'kubevirt.io/created-by': uid,
        'vm.kubevirt.io/name': hostname,
      },
      annotations: {
        ...copiedAnnotations(vmi),
        'kubevirt.io/domain': name,
        'kubectl.kubernetes.io/default-container': 'compute',
        ...(networks.length > 0 && { 'k8s.v1.cni.cncf.io/networks': JSON.stringify(networks) }),
      },
      ownerReferences: [owner],
    },
    spec: {
      hostname,
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 210,
      schedulerName: text(at(vmi, 'spec', 'schedulerName')) ?? 'default-scheduler',
      nodeSelector: nodeSelector(vmi),
      ...affinity(vmi),
      tolerations: (at(vmi, 'spec', 'tolerations') ?? []) as { key?: string }[],
      readinessGates: [{ conditionType: 'kubevirt.io/virtual-machine-unpaused' }],
      initContainers: initContainersOf(vmi),
      containers: containersOf(vmi),
    },
  };
}

/** A launcher that may not run on the node of the instance's other launchers. */
export function renderMigrationTarget(vmi: KubeVmi, { metadata }: KubeMigration): KubePod {
  const pod = renderLauncherPod(vmi);
  pod.metadata.labels = { ...pod.metadata.labels, [MIGRATION_LABEL]: metadata.uid ?? '' };
  pod.metadata.annotations = { ...pod.metadata.annotations, 'kubevirt.io/migrationJobName': metadata.name };
  const matchLabels = { 'kubevirt.io/created-by': vmi.metadata.uid ?? '' };
  const apart = { labelSelector: { matchLabels }, topologyKey: 'kubernetes.io/hostname' };
  const { podAntiAffinity } = pod.spec.affinity ?? {};
  const required = [...(podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []), apart];
  pod.spec.affinity = {
    ...pod.spec.affinity,
    podAntiAffinity: { ...podAntiAffinity, requiredDuringSchedulingIgnoredDuringExecution: required },
  };
  return pod;
}

function copiedAnnotations({ metadata }: KubeVmi): Record<string, string> {
  const entries = Object.entries(metadata.annotations ?? {});
  return Object.fromEntries(entries.filter(([key]) => !NOT_COPIED.test(key)));
}

const isDedicated = (vmi: KubeVmi) => at(vmi, 'spec', 'domain', 'cpu', 'dedicatedCpuPlacement') === true;

/** Source: pkg/virt-controller/services/nodeselectorrenderer.go */
function nodeSelector(vmi: KubeVmi): Record<string, string> {
  const machine = text(at(vmi, 'spec', 'domain', 'machine', 'type')) ?? 'q35';
  const features = launchSecurity(vmi);
  if (isRecord(at(vmi, 'spec', 'domain', 'cpu', 'realtime'))) features.push('realtime');
  return {
    'kubernetes.io/arch': 'amd64',
    'kubevirt.io/schedulable': 'true',
    [`machine-type.node.kubevirt.io/${machine}`]: 'true',
    ...(isDedicated(vmi) && { 'kubevirt.io/cpumanager': 'true' }),
    ...Object.fromEntries(features.map((feature) => [`kubevirt.io/${feature}`, 'true'])),
    ...(at(vmi, 'spec', 'nodeSelector') as Record<string, string> | undefined),
  };
}

const OBSOLETE = { key: 'node-labeller.kubevirt.io/obsolete-host-model', operator: 'DoesNotExist' };

/** Keeps a guest with the host's CPU model off nodes whose model libvirt considers obsolete. */
function affinity(vmi: KubeVmi): Pick<KubePod['spec'], 'affinity'> {
  const vmiAffinity = at(vmi, 'spec', 'affinity') as KubePod['spec']['affinity'];
  const model = text(at(vmi, 'spec', 'domain', 'cpu', 'model')) ?? 'host-model';
  if (model !== 'host-model') return vmiAffinity === undefined ? {} : { affinity: vmiAffinity };
  const terms = vmiAffinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [{}];
  const nodeSelectorTerms = terms.map((term) => {
    return { ...term, matchExpressions: [...(term.matchExpressions ?? []), OBSOLETE] };
  });
  const required = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } };
  return { affinity: { ...vmiAffinity, nodeAffinity: { ...vmiAffinity?.nodeAffinity, ...required } } };
}

/** The networks that multus attaches, each with a unique interface name; the pod network is not among them. */
function multusNetworks(vmi: KubeVmi): JsonRecord[] {
  return listAt(vmi, 'spec', 'networks').flatMap((network) => {
    const networkName = text(at(network, 'multus', 'networkName'));
    if (networkName === undefined) return [];
    const [name = '', namespace = vmi.metadata.namespace ?? 'default'] = networkName.split('/', 2).toReversed();
    return [{ name, namespace, interface: interfaceName(String(at(network, 'name'))) }];
  });
}

/** `pod` and eleven digits that only depend on the network's name, similar to KubeVirt's hashed interface names. */
function interfaceName(network: string): string {
  let hash = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(network)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return `pod${hash.toString(16).padStart(16, '0').slice(0, 11)}`;
}

/** Of containers only names and amounts, with the sidecars of features: no commands, environments and mounts. */

const IMAGE = 'quay.io/kubevirt/virt-launcher:sandbox';
const OVERHEAD_MIB = 400;

const both = (amounts: Record<string, string>) => ({ requests: amounts, limits: amounts });

const side = (name: string, cpu: string, memory: string): Container => {
  return { name, image: IMAGE, resources: both({ cpu, memory }) };
};

function containersOf(vmi: KubeVmi): Container[] {
  const virtiofs = listAt(vmi, 'spec', 'domain', 'devices', 'filesystems')
    .filter((filesystem) => isRecord(at(filesystem, 'virtiofs')) && !isContainerPath(vmi, at(filesystem, 'name')))
    .map((filesystem) => side(`virtiofs-${at(filesystem, 'name')}`, '100m', '80M'));
  return [
    { name: 'compute', image: IMAGE, resources: computeResources(vmi) },
    ...hookSidecars(vmi).map((_, index) => side(`hook-sidecar-${index}`, '200m', '64M')),
    ...virtiofs,
  ];
}

function initContainersOf(vmi: KubeVmi): Container[] {
  const isLogged = at(vmi, 'spec', 'domain', 'devices', 'logSerialConsole') !== false;
  const disks = listAt(vmi, 'spec', 'volumes').filter((volume) => isRecord(at(volume, 'containerDisk')));
  return [
    ...(isLogged ? [{ ...consoleLog(isDedicated(vmi)), restartPolicy: 'Always' }] : []),
    ...disks.map((disk) => side(`volume${at(disk, 'name')}`, '10m', '40M')),
  ];
}

/** It requests less than its limit if the pod need not be Guaranteed. */
function consoleLog(guaranteed: boolean): Container {
  const log = side('guest-console-log', '15m', '60M');
  return guaranteed ? log : { ...log, resources: { ...log.resources, requests: { cpu: '5m', memory: '35M' } } };
}

function hookSidecars({ metadata, spec }: KubeVmi): readonly JsonValue[] {
  const annotated = JSON.parse(metadata.annotations?.['hooks.kubevirt.io/hookSidecars'] ?? '[]') as JsonValue;
  const interfaces = listAt(spec, 'domain', 'devices', 'interfaces');
  return [...listAt(annotated), ...interfaces.filter((vmInterface) => isRecord(at(vmInterface, 'binding')))];
}

/** Whether a volume is a directory of the launcher itself, which needs no container. */
function isContainerPath(vmi: KubeVmi, name: JsonValue | undefined): boolean {
  const volumes = listAt(vmi, 'spec', 'volumes').filter((volume) => isRecord(at(volume, 'containerPath')));
  return volumes.some((volume) => at(volume, 'name') === name);
}

/** With dedicated CPUs: vCPUs, supplemental IO threads and the emulator thread, request and limit equal. */
function computeResources(vmi: KubeVmi) {
  const memory = `${guestMemoryMib(vmi) + OVERHEAD_MIB}Mi`;
  const ofKubeVirt = ['kvm', 'tun', 'vhost-net', ...launchSecurity(vmi)].map((name) => `devices.kubevirt.io/${name}`);
  const hostDevices = listAt(vmi, 'spec', 'domain', 'devices', 'hostDevices');
  const names = [...ofKubeVirt, ...hostDevices.map((device) => String(at(device, 'deviceName')))];
  const devices = Object.fromEntries(names.map((name) => [name, `${names.filter((other) => other === name).length}`]));
  if (isDedicated(vmi)) return both({ cpu: String(launcherCpus(shapeOf(vmi)).total), memory, ...devices });
  // Without pinning each vCPU requests a tenth of a CPU (cpuAllocationRatio 10) and has no limit.
  return { requests: { cpu: `${vcpusOf(vmi) * 100}m`, memory, ...devices }, limits: devices };
}

function launchSecurity(vmi: KubeVmi): string[] {
  return ['sev', 'tdx'].filter((kind) => isRecord(at(vmi, 'spec', 'domain', 'launchSecurity', kind)));
}

/** What the model reads of an instance. */
function shapeOf({ metadata, spec }: KubeVmi): VmiShape {
  return { metadata, spec: { domain: {}, ...spec } } as VmiShape;
}

export function vcpusOf(vmi: KubeVmi): number {
  return guestVcpus(shapeOf(vmi));
}

function guestMemoryMib(vmi: KubeVmi): number {
  const guest = text(at(vmi, 'spec', 'domain', 'memory', 'guest'));
  const amount = guest ?? text(at(vmi, 'spec', 'domain', 'resources', 'requests', 'memory')) ?? '1Gi';
  return Math.ceil(wholeValue(parseQuantity(amount)) / 2 ** 20);
}
