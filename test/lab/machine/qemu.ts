import { MASKED } from './debian.ts';
import { cpuCount, type Layout, THREADS } from './layouts.ts';
import type { Places } from './places.ts';

/** The number of first NUMA nodes with a NIC. */
const NICS = 2;
/** Bus numbers of each such node's PCI root. */
const BUSES = 32;

const kernelParameters = ({ nodes, hugePages, gigabytePages = 0 }: Layout) => [
  ...['console=ttyS0', 'quiet', 'loglevel=4', 'panic=-1', 'mitigations=off', 'audit=0'],
  // No other security modules: one that has no policy still looks enabled to virt-handler.
  'lsm=landlock,yama,bpf',
  // Watchdogs are off, because the emulation is slow.
  ...['nowatchdog', 'rcupdate.rcu_cpu_stall_suppress=1', 'systemd.show_status=1'],
  ...['systemd.unit=multi-user.target', 'systemd.wants=lab.target'],
  // On a busy machine, a device or Open vSwitch takes longer than systemd's default.
  ...['systemd.default_device_timeout_sec=900', 'systemd.default_timeout_start_sec=900'],
  ...['default_hugepagesz=2M', 'hugepagesz=2M', pagesOfNodes(nodes, hugePages)],
  ...(gigabytePages > 0 ? ['hugepagesz=1G', pagesOfNodes(nodes, gigabytePages)] : []),
  ...MASKED.map((unit) => `systemd.mask=${unit}`),
];

/** Files that the guest has as read-only disks, by serial number: at most 20 characters. */
export type Disks = Readonly<Record<string, string>>;
/** @param say reports slow steps in a few words */
export type MakeDisks = (places: Places, say: (what: string) => void) => Promise<Disks>;

/** The end of the link between two machines: the sockets of both, and the NIC's address. */
export interface Link {
  readonly own: string;
  readonly other: string;
  readonly mac: string;
}

export interface QemuOptions {
  readonly places: Places;
  readonly layout: Layout;
  /** Of this machine's loopback, forwards to the guest's ssh. */
  readonly sshPort: number;
  readonly disks: Disks;
  readonly link?: Link | undefined;
}

/**
 * QEMU's arguments. The first two NUMA nodes have their own PCI root with an unconnected NIC, `phys0` and `phys1`;
 * `mgmt0` connects to this machine and `peer0` to the other one; both are on no node. The disk is never written.
 */
export function qemuArguments({ places, layout, sshPort, disks, link }: QemuOptions): readonly string[] {
  const { nodes, sockets, dies, cores, memory } = layout;
  const drive = (id: string, file: string, rest: string) => [
    ...['-drive', `if=none,id=${id},format=raw,file=${file},${rest}`],
    ...['-device', `virtio-blk-pci,bus=pcie.0,drive=${id},serial=${id}`],
  ];
  return [
    ...['-name', 'plumbline-lab', '-display', 'none', '-no-reboot', '-nodefaults', '-no-user-config'],
    ...['-machine', 'q35,smm=off', '-accel', 'tcg,thread=multi,tb-size=1024', '-cpu', 'Nehalem,+pdpe1gb'],
    ...['-smp', `${cpuCount(layout)},sockets=${sockets},dies=${dies},cores=${cores},threads=${THREADS}`],
    ...['-m', String(nodes * memory)],
    ...numbers(nodes).flatMap((node) => numaNode(layout, node)),
    // QEMU accepts a distance only between nodes that are already defined.
    ...numbers(nodes).flatMap((node) => distancesOf(layout, node)),
    ...['-kernel', places.kernel, '-initrd', places.initramfs, '-append', kernelParameters(layout).join(' ')],
    ...drive('disk', places.disk, 'snapshot=on,cache=unsafe'),
    ...drive('parts', places.parts, 'readonly=on'),
    ...Object.entries(disks).flatMap(([id, file]) => drive(id, file, 'readonly=on')),
    ...['-netdev', `user,id=mgmt,ipv6=off,hostfwd=tcp:127.0.0.1:${sshPort}-10.0.2.15:22`],
    ...['-device', `virtio-net-pci,bus=pcie.0,netdev=mgmt,mac=${mac(0)}`, '-device', 'virtio-rng-pci,bus=pcie.0'],
    ...(link === undefined ? [] : linkNic(link)),
    ...numbers(NICS).flatMap((node) => [...nic(node), ...pluginNics(layout, node)]),
    ...['-serial', `file:${places.serialLog}`],
  ];
}

function pagesOfNodes(nodes: number, pages: number): string {
  return `hugepages=${numbers(nodes).map((node) => `${node}:${pages}`)}`;
}

function numaNode(layout: Layout, node: number): string[] {
  const cpus = cpuCount(layout) / layout.nodes;
  return [
    ...['-object', `memory-backend-ram,id=memory${node},size=${layout.memory}M`],
    ...['-numa', `node,nodeid=${node},cpus=${node * cpus}-${(node + 1) * cpus - 1},memdev=memory${node}`],
  ];
}

function distancesOf({ distances }: Layout, node: number): string[] {
  return (distances?.[node] ?? []).flatMap((distance, other) => {
    return ['-numa', `dist,src=${node},dst=${other},val=${distance}`];
  });
}

/** Frames as datagrams: the machines may start in any order, and one may start again. */
function linkNic({ own, other, mac: address }: Link): string[] {
  const ends = `local.type=unix,local.path=${own},remote.type=unix,remote.path=${other}`;
  return ['-netdev', `dgram,id=peer,${ends}`, '-device', `virtio-net-pci,bus=pcie.0,netdev=peer,mac=${address}`];
}

/** Without `bus`, QEMU would put other devices on the expander, which only accepts ports. */
function nic(node: number): string[] {
  const bus = 64 + BUSES * node;
  return [
    ...['-device', `pxb-pcie,id=root${node},bus=pcie.0,bus_nr=${bus},numa_node=${node}`],
    ...['-device', `pcie-root-port,id=port${node},bus=root${node},chassis=${node + 1}`],
    ...['-netdev', `hubport,id=phys${node},hubid=${node + 1}`],
    // sysfs does not show the NUMA node of virtio NICs.
    ...['-device', `e1000e,bus=port${node},netdev=phys${node},mac=${mac(node + 1)}`],
  ];
}

/** Functions of one device on its own port: the bus after that of `nic`. */
function pluginNics({ pluginNics: count = 0 }: Layout, node: number): string[] {
  if (count === 0) return [];
  const port = `plugin${node}`;
  return [
    ...['-device', `pcie-root-port,id=${port},bus=root${node},chassis=${NICS + node + 1}`],
    ...numbers(count).flatMap((number) => ['-device', `e1000e,bus=${port},addr=0.${number},multifunction=on`]),
  ];
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, number) => number);
const mac = (last: number): string => `52:54:00:6c:61:0${last}`;
