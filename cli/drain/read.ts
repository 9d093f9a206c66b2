import type * as z from 'zod';
import { type Drain, planDrain } from '../../diagnosis/drain.ts';
import { hostsOf } from '../../diagnosis/hosts.ts';
import type { ExplainedPod } from '../../diagnosis/objects.ts';
import { vmiOwner, vmsOf } from '../../diagnosis/vms.ts';
import type { KubeClient } from '../../kube/client.ts';
import { isFinalPhase } from '../../kube/cluster-view/pods.ts';
import { isLauncher } from '../../model/launcher/recognize.ts';
import { readTerms } from '../explain/search.ts';
import { notFound } from '../support/exit-status.ts';
import {
  instanceNamed,
  KUBEVIRTS,
  launchersOf,
  MIGRATIONS,
  machineNamed,
  NODES,
  PENDING_PODS,
  podsOn,
  within,
} from '../support/kinds.ts';
import * as lists from '../support/lists.ts';

export interface PlannedDrain extends Drain {
  readonly nodes: readonly string[];
  readonly notes: readonly string[];
}

/** Nodes of which the pods are read: one list call each. */
const MAX_READ_NODES = 64;

/** What a drain of these nodes would do now. @param now milliseconds since 1970 @throws CliError, KubeError */
export async function readDrain(client: KubeClient, names: readonly string[], now: number): Promise<PlannedDrain> {
  const [nodes, topologies, pending, agents, kubevirt, ...onNodes] = await Promise.all([
    lists.readAll(client, ...NODES),
    lists.readTopologies(client),
    lists.readIfAllowed(client, ...PENDING_PODS),
    lists.readAgentLeases(client, now),
    lists.readIfAllowed(client, ...KUBEVIRTS),
    ...names.map((name) => lists.readAll(client, ...podsOn(name))),
  ]);
  lists.assertReported(topologies);
  for (const name of names) {
    if (!nodes.some(({ metadata }) => metadata.name === name)) throw notFound(`there is no node ${name}`);
  }
  const without = new Set(names);
  const reported = hostsOf(topologies);
  const silent = agents?.silent ?? new Set<string>();
  const launchers = onNodes.flat().filter((pod) => isLauncher(pod.metadata) && !isFinalPhase(pod.status?.phase));
  const objects = await readObjects(client, launchers);
  const vms = vmsOf({ ...objects, nodes, hosts: reported.hosts, silent, now }).filter(
    ({ state, launchers: vmLaunchers }) => {
      const guest = vmLaunchers.find(({ metadata }) => metadata.uid === state.launcher);
      return without.has(guest?.spec.nodeName ?? '');
    },
  );
  const read = new Map<string, Promise<readonly ExplainedPod[] | undefined>>();
  const plan = await planDrain({
    vms,
    nodes: nodes.filter(({ metadata }) => !without.has(metadata.name ?? '')),
    reported,
    silent,
    pending: pending ?? [],
    defaultStrategy: kubevirt?.[0]?.spec?.configuration?.evictionStrategy ?? undefined,
    termsOf: (pod) => readTerms(client, pod),
    podsOn(node) {
      const earlier = read.get(node);
      if (earlier !== undefined || read.size >= MAX_READ_NODES) return earlier ?? Promise.resolve(undefined);
      const pods = lists.readAll(client, ...podsOn(node));
      const live = pods.then((list) => list.filter(({ status }) => !isFinalPhase(status?.phase)));
      read.set(node, live);
      return live;
    },
  });
  const notes = [
    kubevirt === undefined &&
      vms.some(({ instance }) => instance?.spec.evictionStrategy == null) &&
      'KubeVirt’s configuration is not readable: VMs without an evictionStrategy count as None',
    agents === undefined && 'you may not read the agents’ Leases: reports of silent agents count as current',
    read.size >= MAX_READ_NODES && `memory and devices were compared on ${MAX_READ_NODES} nodes only`,
  ];
  return { ...plan, nodes: names, notes: notes.filter((note) => note !== false) };
}

/** The VMs and instances of these launchers, the instances' other launchers, and their migrations. */
async function readObjects(client: KubeClient, launchers: readonly ExplainedPod[]) {
  const owned = launchers.flatMap((pod) => {
    const owner = vmiOwner(pod);
    return owner === undefined ? [] : [{ namespace: pod.metadata.namespace ?? '', name: owner.name, uid: owner.uid }];
  });
  const namespaces = [...new Set(owned.map(({ namespace }) => namespace))];
  const readEach = <Item>(named: (namespace: string, name: string) => readonly [string, z.ZodType<Item>]) =>
    Promise.all(
      owned.map(({ namespace, name }) =>
        lists.readOne(client, ...named(namespace, name)).catch(lists.undefinedIfForbidden),
      ),
    );
  const [machines, instances, siblings, migrations] = await Promise.all([
    readEach(machineNamed),
    readEach(instanceNamed),
    Promise.all(owned.map(({ namespace, uid }) => lists.readIfAllowed(client, ...launchersOf(namespace, uid)))),
    Promise.all(namespaces.map((namespace) => lists.readIfAllowed(client, ...within(MIGRATIONS, namespace)))),
  ]);
  const byUid = new Map(
    [...launchers, ...siblings.flatMap((list) => list ?? [])].map((pod) => [pod.metadata.uid, pod]),
  );
  return {
    machines: machines.filter((vm) => vm !== undefined),
    instances: instances.filter((vmi) => vmi !== undefined),
    launchers: [...byUid.values()],
    migrations: migrations.flatMap((list) => list ?? []),
  };
}
