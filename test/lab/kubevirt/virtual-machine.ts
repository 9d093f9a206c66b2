import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { qemuThreadRole } from '../../../model/launcher/qemu-threads.ts';
import type { VmiShape } from '../../../model/shapes.ts';
import { NAMESPACE, unlessNotFound } from '../cluster.ts';
import type { Scene } from '../scenarios/scenario.ts';
import { GUEST_IS_UP } from './guest-kernel.ts';
import { COUNTING_KERNEL, GUEST_IMAGE, GUEST_INITRAMFS, GUEST_KERNEL } from './images.ts';

const VMS = `/apis/kubevirt.io/v1/namespaces/${NAMESPACE}/virtualmachines`;
const VMIS = `/apis/kubevirt.io/v1/namespaces/${NAMESPACE}/virtualmachineinstances`;
const PODS = `/api/v1/namespaces/${NAMESPACE}/pods`;
const LIBVIRT = 'qemu+unix:///session?socket=/var/run/libvirt/virtqemud-sock';
const GONE_WITHIN = 300;

export interface MachineOptions {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly cpu: Readonly<Record<string, number | boolean | string>>;
  /** Network attachments of the namespace; without any, the guest has no network. */
  readonly networks?: readonly string[];
  readonly schedulerName?: string;
  /** Its guest only counts (`countingKernel`), instead of booting a kernel. */
  readonly counts?: boolean;
}

/** A second of the kernel takes minutes here, so what the guest does not need is left out. */
const KERNEL_ARGS = [
  ...['console=ttyS0', 'quiet', 'panic=-1', 'mitigations=off', 'nowatchdog', 'nokaslr', 'rodata=off'],
  ...['tsc=reliable', 'no_timer_check', 'initcall_blacklist=jent_mod_init,load_system_certificate_list,init_encrypted'],
];

export function virtualMachine(name: string, options: MachineOptions) {
  const { annotations = {}, cpu, networks = [], schedulerName, counts = false } = options;
  const image = { image: GUEST_IMAGE, imagePullPolicy: 'Never' };
  const linux = { container: { ...image, kernelPath: GUEST_KERNEL, initrdPath: GUEST_INITRAMFS } };
  const kernelBoot = counts
    ? { container: { ...image, kernelPath: COUNTING_KERNEL } }
    : { ...linux, kernelArgs: KERNEL_ARGS.join(' ') };
  const names = networks.map((_, i) => `net${i + 1}`);
  const spec = {
    ...(schedulerName && { schedulerName }),
    terminationGracePeriodSeconds: 0,
    domain: {
      cpu,
      memory: { guest: '128Mi' },
      firmware: { kernelBoot },
      devices: {
        autoattachPodInterface: false,
        autoattachGraphicsDevice: false,
        autoattachMemBalloon: false,
        interfaces: names.map((one) => ({ name: one, bridge: {} })),
      },
    },
    networks: names.map((one, i) => ({ name: one, multus: { networkName: networks[i] } })),
  };
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace: NAMESPACE },
    spec: { runStrategy: 'Always', template: { metadata: { annotations }, spec } },
  };
}

export interface Thread {
  readonly tid: number;
  readonly comm: string;
  readonly role: ReturnType<typeof qemuThreadRole>;
  /** From the kernel. */
  readonly allowed: string;
}

export interface SeenVmi extends VmiShape {
  readonly status?: {
    readonly phase?: string;
    readonly nodeName?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string; readonly message?: string }[];
  };
}

interface SeenPod {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly ownerReferences?: readonly { name: string }[];
  };
  readonly spec: {
    readonly nodeName?: string;
    readonly containers: readonly {
      readonly name: string;
      readonly resources: { readonly limits?: Record<string, string> };
    }[];
  };
  readonly status: { readonly phase: string; readonly reason?: string; readonly message?: string };
}

export type Machine = ReturnType<typeof machineOn>;

export async function createMachine(scene: Scene, name: string, options: MachineOptions): Promise<Machine> {
  await scene.cluster.client.create(VMS, virtualMachine(name, options));
  const machine = machineOn(scene, name);
  scene.undo(() => machine.remove());
  return machine;
}

export function machineOn(scene: Scene, name: string) {
  const { cluster, lab, node } = scene;
  const { client } = cluster;
  /** Its launcher on that machine, or without a node. @throws Error if there is none */
  const launcher = async () => {
    const { items } = (await client.get(PODS)) as { items: SeenPod[] };
    const own = items
      .filter(({ metadata }) => metadata.ownerReferences?.some((owner) => owner.name === name))
      .filter(({ spec }) => spec.nodeName === undefined || spec.nodeName === node.name);
    const live = own.filter(({ status }) => !['Failed', 'Succeeded'].includes(status.phase));
    const found = live.at(-1) ?? own.at(-1);
    if (found === undefined) throw new Error(`VM ${name} has no launcher`);
    return found;
  };
  const pid = async () => {
    // In brackets, so that the shell that runs this is not found, too.
    const found = (await lab.run(`pgrep -f -- '[g]uest=${NAMESPACE}_${name},' || true`)).trim().split('\n');
    if (found.length !== 1 || found[0] === '') throw new Error(`VM ${name}: QEMU does not run`);
    return Number(found[0]);
  };
  const virsh = async (command: string) => {
    const enter = `nsenter -t ${await pid()} -m -n -p -S 107 -G 107`;
    return lab.run(`${enter} virsh -c '${LIBVIRT}' ${command} ${NAMESPACE}_${name}`);
  };
  const readVmi = async () => (await client.get(`${VMIS}/${name}`)) as SeenVmi;
  return {
    name,
    vmi: readVmi,
    launcher,
    async state() {
      const vmi = await readVmi().catch(() => undefined);
      const pod = await launcher().catch(() => undefined);
      const conditions = vmi?.status?.conditions?.filter(({ status, message }) => status === 'False' && message) ?? [];
      return [
        `VMI ${vmi?.status?.phase}`,
        ...conditions.map(({ type, message }) => `${type}: ${message}`),
        `launcher ${pod?.status.phase} ${pod?.status.reason ?? ''} ${pod?.status.message ?? ''}`,
      ].join('; ');
    },
    async console() {
      const { metadata } = await launcher();
      return lab.run(`cat /var/log/pods/${NAMESPACE}_${metadata.name}_${metadata.uid}/guest-console-log/*.log`);
    },
    /** The same as QEMU writes it: KubeVirt's log of a migration's target has none of it. */
    async serial() {
      return lab.run(`cat /proc/${await pid()}/root/var/run/kubevirt-private/*/virt-serial0-log`);
    },
    domain: () => virsh('dumpxml'),
    job: () => virsh('domjobinfo'),
    async threads(): Promise<readonly Thread[]> {
      const tasks = `/proc/${await pid()}/task`;
      const each = `echo "$t $(grep Cpus_allowed_list $t/status | cut -f2) $(cat $t/comm)"`;
      const listed = await lab.run(`cd ${tasks} && for t in *; do ${each}; done`);
      return listed
        .trim()
        .split('\n')
        .map((line) => {
          const [tid = '', allowed = '', ...words] = line.split(' ');
          const comm = words.join(' ');
          return { tid: Number(tid), comm, role: qemuThreadRole(comm), allowed };
        });
    },
    async remove() {
      await client.delete(`${VMS}/${name}`).catch(unlessNotFound);
      for (let waited = 0; ; waited++) {
        const there = [await exists(() => client.get(`${VMIS}/${name}`)), await exists(launcher)];
        if (there.every((one) => !one)) return;
        if (waited > GONE_WITHIN) throw new Error(`VM ${name} is not gone in ${GONE_WITHIN} s`);
        await delay(1000);
      }
    },
  };
}

export async function assertBooted(machine: Machine): Promise<string> {
  const said = await machine.console().catch(() => '');
  const line = said.split('\n').find((one) => one.includes(GUEST_IS_UP));
  assert.ok(line, await machine.state());
  return line.slice(line.indexOf(GUEST_IS_UP)).trim();
}

const exists = (get: () => Promise<unknown>) =>
  get().then(
    () => true,
    () => false,
  );
