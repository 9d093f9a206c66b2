import * as objects from '../../diagnosis/objects.ts';
import { isLauncherOf } from '../../diagnosis/vm-facts.ts';
import { vmiOwner } from '../../diagnosis/vms.ts';
import type { KubeClient } from '../../kube/client.ts';
import { machinesPath } from '../../kube/cluster-view/vmis.ts';
import { REJECTIONS } from '../../model/kubelet/provider.ts';
import { CliError, EXIT, notFound } from '../support/exit-status.ts';
import { instanceNamed, launchersOf, MIGRATIONS, machineNamed, within } from '../support/kinds.ts';
import { readAll, readIfAllowed, readOne } from '../support/lists.ts';
import type { Reference } from './reference.ts';

export interface Subject {
  readonly kind: 'pod' | 'vm';
  readonly namespace: string;
  readonly name: string;
  readonly vm: objects.ExplainedVm | undefined;
  readonly vmi: objects.ExplainedVmi | undefined;
  /** One, if a pod is explained. */
  readonly launchers: readonly objects.ExplainedPod[];
  /** Of the instance; undefined: not readable. */
  readonly migrations: readonly objects.ExplainedMigration[] | undefined;
  readonly events: readonly objects.Occurrence[];
  /** For a VM: its launchers that kubelets rejected, most of which are deleted; newest first. */
  readonly rejections: readonly objects.Occurrence[];
}

const CORE = '/api/v1/namespaces';
const about = (name: string) => `involvedObject.name=${name}`;
const because = (reason: string) => `reason=${reason}`;

const isMissing = (error: unknown) => error instanceof CliError && error.status === EXIT.notFound;

/** @param namespace used if the reference has none @throws CliError if nothing has that name; KubeError */
export async function readSubject(client: KubeClient, reference: Reference, namespace: string): Promise<Subject> {
  const { kind, name } = reference;
  const where = reference.namespace ?? namespace;
  if (kind === 'pod') return readPodSubject(client, where, name);
  try {
    return await readVmSubject(client, where, name);
  } catch (error) {
    if (kind === 'vm' || !isMissing(error)) throw error;
    // If neither a VM nor a pod has the name, the error is about VMs.
    return await readPodSubject(client, where, name).catch((other: unknown) => {
      throw isMissing(other) ? error : other;
    });
  }
}

/** @throws CliError if nothing has that name; KubeError */
async function readPodSubject(client: KubeClient, namespace: string, name: string): Promise<Subject> {
  const path = `${CORE}/${namespace}/pods/${encodeURIComponent(name)}`;
  const [pod, events] = await Promise.all([
    readOne(client, path, objects.explainedPod),
    readEvents(client, namespace, [about(name)]),
  ]);
  if (pod === undefined) throw await missing(client, 'pod', namespace, name, `${CORE}/${namespace}/pods`);
  const owner = vmiOwner(pod);
  const vmi = owner && (await readOne(client, ...instanceNamed(namespace, owner.name)).catch(() => undefined));
  return { kind: 'pod', namespace, name, vm: undefined, vmi, launchers: [pod], migrations: [], events, rejections: [] };
}

/** @throws CliError if nothing has that name; KubeError */
async function readVmSubject(client: KubeClient, namespace: string, name: string): Promise<Subject> {
  const [vm, vmi] = await Promise.all([
    readOne(client, ...machineNamed(namespace, name)),
    readOne(client, ...instanceNamed(namespace, name)),
  ]);
  if (vm === undefined && vmi === undefined) {
    throw await missing(client, 'VM', namespace, name, machinesPath(namespace));
  }
  const [launchers, migrations] =
    vmi === undefined
      ? [[], []]
      : await Promise.all([
          readAll(client, ...launchersOf(namespace, vmi.metadata.uid ?? '')),
          readIfAllowed(client, ...within(MIGRATIONS, namespace)),
        ]);
  const names = [name, ...launchers.flatMap(({ metadata }) => metadata.name ?? [])];
  // KubeVirt deletes a rejected launcher and its VMI at once: only these Events are left.
  const [events, rejected] = await Promise.all([
    readEvents(client, namespace, names.map(about)),
    readEvents(client, namespace, REJECTIONS.map(because)),
  ]);
  const rejections = rejected.filter(({ involvedObject }) => isLauncherOf(name, involvedObject.name ?? ''));
  const vmMigrations = migrations?.filter(({ spec }) => spec.vmiName === name);
  return { kind: 'vm', namespace, name, vm, vmi, launchers, migrations: vmMigrations, events, rejections };
}

/** By any of these field selectors, newest first. Optional: users who may not read Events get the rest. @throws KubeError */
async function readEvents(client: Pick<KubeClient, 'get'>, namespace: string, selectors: readonly string[]) {
  const path = `${CORE}/${namespace}/events`;
  const lists = selectors.map((fieldSelector) => readIfAllowed(client, path, objects.occurrence, { fieldSelector }));
  return (await Promise.all(lists)).flatMap((list) => list ?? []).sort((a, b) => objects.timeOf(b) - objects.timeOf(a));
}

/** An error with existing names, so that a typing error or a wrong namespace is obvious. */
async function missing(client: KubeClient, what: string, namespace: string, name: string, path: string) {
  const all = await readIfAllowed(client, path, objects.explainedVm.pick({ metadata: true }));
  const names = (all ?? []).map(({ metadata }) => metadata.name ?? '');
  const close = names.filter((other) => other.includes(name) || name.includes(other));
  const examples = (close.length > 0 ? close : names).slice(0, 5);
  const more = names.length > examples.length ? ' …' : '';
  const there =
    all === undefined
      ? ''
      : names.length === 0
        ? ' (the namespace has none)'
        : ` (it has ${examples.join(', ')}${more})`;
  return notFound(`there is no ${what} ${name} in namespace ${namespace}${there}; choose another namespace with -n`);
}
