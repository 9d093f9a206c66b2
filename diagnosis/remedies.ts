import {
  CPU_MASK_ANNOTATION,
  DPU_LEASE_NAMESPACE,
  DPU_LEASE_PREFIX,
  DPU_RUN_ANNOTATION,
  FULL_PCPUS_ANNOTATION,
  FULL_PCPUS_ONLY,
  NAMESPACE,
  SCHEDULER,
} from '../model/names.ts';

/** A command that a user can run unchanged. `virtctl` is KubeVirt's. */
export interface Command {
  readonly program: 'kubectl' | 'plumbline' | 'virtctl' | 'helm' | 'npm';
  readonly args: readonly string[];
  /** What reads its output. */
  readonly into?: Command;
}

export interface Remedy {
  readonly id: string;
  readonly text: string;
  readonly commands: readonly Command[];
}

export const remedy = (id: string, text: string, ...commands: readonly Command[]): Remedy => ({ id, text, commands });

export const kubectl = (...args: readonly string[]): Command => ({ program: 'kubectl', args });
export const plumbline = (...args: readonly string[]): Command => ({ program: 'plumbline', args });
export const virtctl = (...args: readonly string[]): Command => ({ program: 'virtctl', args });

const PLAIN = /^[-\w./:=@,+%]+$/;

export const pipe = (from: Command, into: Command): Command => ({ ...from, into });

export function commandText({ program, args, into }: Command): string {
  const quoted = args.map((arg) => (PLAIN.test(arg) ? arg : `'${arg.replaceAll("'", String.raw`'\''`)}'`));
  return [program, ...quoted].join(' ') + (into === undefined ? '' : ` | ${commandText(into)}`);
}

export type RemedyLines = readonly [text: string, ...commands: string[]];

export function remedyLines({ text, commands }: Pick<Remedy, 'text' | 'commands'>): RemedyLines {
  return [text, ...commands.map(commandText)];
}

/** Whether it is for a VM that no migration moves yet: KubeVirt refuses a second one. */
export const migrates = ({ commands }: Remedy): boolean =>
  commands.some(({ program, args }) => program === 'virtctl' && args[0] === 'migrate');

export interface Named {
  readonly namespace: string;
  /** Name of the VM, else of its instance, else of the pod. */
  readonly name: string;
  /** The kind of object for commands; undefined: unknown whether the instance has a VM. */
  readonly kind: 'vm' | 'vmi' | 'pod' | undefined;
}

const NODE_AGENT = 'app.kubernetes.io/name=plumbline-node-agent';

export function checkAgent(node: string, text = `check the agent on ${node}`): Remedy {
  const where = `spec.nodeName=${node}`;
  return remedy(
    'check-agent',
    text,
    plumbline('doctor', 'agents'),
    kubectl('-n', NAMESPACE, 'get', 'pods', '-o', 'wide', '-l', NODE_AGENT, '--field-selector', where),
  );
}

export function bringDpuBack(node: string): Remedy {
  return remedy(
    'bring-dpu-back',
    `bring the DPU of ${node} back (check its power, its Open vSwitch and its agent), or delete its Lease if its health check was turned off; new pods go to other nodes meanwhile`,
    plumbline('doctor', 'dpu'),
    kubectl('-n', DPU_LEASE_NAMESPACE, 'get', 'lease', DPU_LEASE_PREFIX + node, '-o', 'yaml'),
  );
}

export function forgetRestart(node: string): Remedy {
  return remedy(
    'forget-restart',
    `if all networks on ${node} work again, let the DPU’s Lease forget the restart`,
    kubectl('-n', DPU_LEASE_NAMESPACE, 'annotate', 'lease', DPU_LEASE_PREFIX + node, `${DPU_RUN_ANNOTATION}-`),
  );
}

export const repairNetworkMap = (node: string, fault: string): Remedy =>
  remedy(
    'repair-network-map',
    `repair the network map of ${node}: ${fault}; VMs that run there need no restart`,
    plumbline('doctor', 'networks'),
  );

export const bringWebhookBack = (): Remedy =>
  remedy(
    'bring-webhook-back',
    'repair the webhook',
    kubectl('-n', NAMESPACE, 'get', 'pods'),
    plumbline('doctor', 'webhook', 'certificates'),
  );

export const restoreWebhook = (): Remedy =>
  remedy(
    'bring-webhook-back',
    'restore what calls the webhook: nothing is wrong with the VM',
    plumbline('doctor', 'installed', 'webhook'),
  );

export const bringSchedulerBack = (): Remedy =>
  remedy(
    'bring-scheduler-back',
    `bring ${SCHEDULER} back`,
    plumbline('doctor', 'extender'),
    kubectl('-n', NAMESPACE, 'get', 'pods', '-l', `app.kubernetes.io/name=${SCHEDULER}`),
  );

export const checkVirtController = (): Remedy =>
  remedy(
    'check-virt-controller',
    'check virt-controller',
    kubectl('-n', 'kubevirt', 'get', 'pods', '-l', 'kubevirt.io=virt-controller'),
  );

export const readEvents = ({ namespace }: Named, name: string, text: string): Remedy =>
  remedy(
    'read-events',
    text,
    kubectl('-n', namespace, 'get', 'events', '--field-selector', `involvedObject.name=${name}`),
  );

/** No command for an instance without a VM, or for a pod, whose owner creates another one. */
export function startAgain(named: Named, text: string, ...first: readonly Command[]): Remedy {
  return remedy('start-again', text, ...first, ...ofVm(named, virtctl('restart', named.name, '-n', named.namespace)));
}

/** How a VM gets changes, or another place, that a migration would give it. */
export function placeAgain(
  named: Named & { readonly instance?: { readonly notMigratable?: string | undefined } | undefined },
): Remedy {
  const { namespace, name, instance } = named;
  const why = instance?.notMigratable;
  if (why === undefined) {
    const text = 'migrate or restart it, so that it is placed again';
    return remedy('place-again', text, ...ofVm(named, virtctl('migrate', name, '-n', namespace)));
  }
  const because = why === '' ? '' : `: ${why}`;
  const text = `restart it at a suitable time, so that it is placed again; KubeVirt cannot migrate it${because}`;
  return remedy('place-again', text, ...ofVm(named, virtctl('restart', name, '-n', namespace)));
}

export function addAnnotation(text: string, named: Named): Remedy {
  const { namespace, name } = named;
  const annotations = { [FULL_PCPUS_ANNOTATION]: FULL_PCPUS_ONLY };
  const patch = JSON.stringify({ spec: { template: { metadata: { annotations } } } });
  return remedy(
    'add-annotation',
    `${text}: annotate the VM’s template with ${FULL_PCPUS_ANNOTATION}: ${FULL_PCPUS_ONLY} and start it again`,
    ...ofVm(
      named,
      kubectl('-n', namespace, 'patch', 'virtualmachine', name, '--type', 'merge', '-p', patch),
      virtctl('restart', name, '-n', namespace),
    ),
  );
}

export const verifyMask = (namespace: string, text: string): Remedy =>
  remedy('correct-mask', text, plumbline('verify', '-n', namespace));

export const correctMask = ({ namespace }: Named): Remedy =>
  verifyMask(namespace, `correct ${CPU_MASK_ANNOTATION} on the VM’s template and restart the VM`);

function ofVm({ kind }: Named, ...commands: readonly Command[]): readonly Command[] {
  return kind === 'vm' ? commands : [];
}
