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
  const pods = ['get', 'pods', '-o', 'wide', '-l', NODE_AGENT, '--field-selector', `spec.nodeName=${node}`];
  return remedy('check-agent', text, plumbline('doctor', 'agents'), kubectl('-n', NAMESPACE, ...pods));
}

const leaseOf = (verb: 'get' | 'annotate', node: string, ...args: readonly string[]): Command =>
  kubectl('-n', DPU_LEASE_NAMESPACE, verb, 'lease', DPU_LEASE_PREFIX + node, ...args);

export function bringDpuBack(node: string): Remedy {
  const back = `bring the DPU of ${node} back (check its power, its Open vSwitch and its agent)`;
  const text = `${back}, or delete its Lease if its health check was turned off; new pods go to other nodes meanwhile`;
  return remedy('bring-dpu-back', text, plumbline('doctor', 'dpu'), leaseOf('get', node, '-o', 'yaml'));
}

export function forgetRestart(node: string): Remedy {
  const text = `if all networks on ${node} work again, let the DPU’s Lease forget the restart`;
  return remedy('forget-restart', text, leaseOf('annotate', node, `${DPU_RUN_ANNOTATION}-`));
}

export function repairNetworkMap(node: string, fault: string): Remedy {
  const text = `repair the network map of ${node}: ${fault}; VMs that run there need no restart`;
  return remedy('repair-network-map', text, plumbline('doctor', 'networks'));
}

export function bringSchedulerBack(): Remedy {
  const pods = kubectl('-n', NAMESPACE, 'get', 'pods', '-l', `app.kubernetes.io/name=${SCHEDULER}`);
  return remedy('bring-scheduler-back', `bring ${SCHEDULER} back`, plumbline('doctor', 'extender'), pods);
}

export function readEvents({ namespace }: Named, name: string, text = 'see its Events'): Remedy {
  const events = ['get', 'events', '--field-selector', `involvedObject.name=${name}`];
  return remedy('read-events', text, kubectl('-n', namespace, ...events));
}

/** No command for an instance without a VM, or for a pod, whose owner creates another one. */
export function virtctlFor({ kind, name, namespace }: Named, verb: 'migrate' | 'restart' | 'stop'): readonly Command[] {
  return kind === 'vm' ? [virtctl(verb, name, '-n', namespace)] : [];
}

/** The change of a VM by `kubectl patch`. */
export function patchOf({ kind, name, namespace }: Named, patch: object): readonly Command[] {
  const args = ['patch', 'virtualmachine', name, '--type', 'merge', '-p', JSON.stringify(patch)];
  return kind === 'vm' ? [kubectl('-n', namespace, ...args)] : [];
}

export function startAgain(named: Named, text: string, ...first: readonly Command[]): Remedy {
  return remedy('start-again', text, ...first, ...virtctlFor(named, 'restart'));
}

export const startOnceWebhookWorks = (named: Named): Remedy =>
  startAgain(named, 'start the VM again once the webhook works', plumbline('doctor', 'webhook'));

/** How a VM gets changes, or another place, that a migration would give it. */
export function placeAgain(
  named: Named & { readonly instance?: { readonly notMigratable?: string | undefined } | undefined },
): Remedy {
  const why = named.instance?.notMigratable;
  if (why === undefined) {
    return remedy('place-again', 'migrate or restart it, so that it is placed again', ...virtctlFor(named, 'migrate'));
  }
  const because = why === '' ? '' : `: ${why}`;
  const text = `restart it at a suitable time, so that it is placed again; KubeVirt cannot migrate it${because}`;
  return remedy('place-again', text, ...virtctlFor(named, 'restart'));
}

export function addAnnotation(text: string, named: Named): Remedy {
  const annotations = { [FULL_PCPUS_ANNOTATION]: FULL_PCPUS_ONLY };
  return remedy(
    'add-annotation',
    `${text}: annotate the VM’s template with ${FULL_PCPUS_ANNOTATION}: ${FULL_PCPUS_ONLY} and start it again`,
    ...patchOf(named, { spec: { template: { metadata: { annotations } } } }),
    ...virtctlFor(named, 'restart'),
  );
}

export const verifyMask = (namespace: string, text: string): Remedy =>
  remedy('correct-mask', text, plumbline('verify', '-n', namespace));

export const correctMask = ({ namespace }: Named): Remedy =>
  verifyMask(namespace, `correct ${CPU_MASK_ANNOTATION} on the VM’s template and restart the VM`);
