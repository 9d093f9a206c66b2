import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { NODE_TOPOLOGIES, PODS } from '../../../sandbox/api-server/built-in-types.ts';
import type { LocalClient } from '../../../sandbox/clients/local-client.ts';
import { at, type KubeObject, type KubePod } from '../../../sandbox/objects.ts';
import { cpusOf, type NodeView, type Ownership, type PodView, type Violation, violationsIn } from './checks.ts';

export interface ObservedNode extends Pick<NodeView, 'name' | 'cores' | 'reserved' | 'physnets'> {
  /** The directory with its kubelet's cpu_manager_state. */
  readonly kubeletDirectory: string;
  readonly vswitchPids?: () => readonly number[];
}

const INTERVAL_MILLISECONDS = 20;

export function startObserver(client: LocalClient, nodes: readonly ObservedNode[], namespace: string) {
  const violations = new Map<string, Violation>();
  const running = new Set<string>();
  const beside = new Set<string>();
  let samples = 0;

  const look = () => {
    const views = nodes.map((node) => viewOf(client, node));
    // Read last: CPUs that a pod owned before and after the masks were read, it owned in between.
    const still = nodes.map((node) => ownedIn(node.kubeletDirectory));
    const steady = views.map((view, i) => ({ ...view, owned: both(view.owned, still[i] ?? []) }));
    const pods = client
      .list(PODS)
      .filter(({ metadata }) => metadata.namespace === namespace)
      .map(podView);
    samples++;
    for (const { uid, phase, node } of pods) {
      if (phase !== 'Running') continue;
      running.add(uid);
      if (views.some((view) => view.name === node && view.vswitch !== undefined)) beside.add(uid);
    }
    for (const violation of violationsIn({ nodes: steady, pods })) violations.set(violation.text, violation);
  };
  const timer = setInterval(look, INTERVAL_MILLISECONDS);
  return {
    get violations() {
      return [...violations.values()];
    },
    get samples() {
      return samples;
    },
    get seen() {
      return { running: running.size, besideVswitch: beside.size };
    },
    stop: () => clearInterval(timer),
  };
}

function viewOf(client: LocalClient, { kubeletDirectory, vswitchPids, ...node }: ObservedNode): NodeView {
  const owned = ownedIn(kubeletDirectory);
  const vswitch = vswitchPids && masksOf(vswitchPids());
  const reported = reportedOf(client.get(NODE_TOPOLOGIES, undefined, node.name));
  return { ...node, owned, reported, ...(vswitch && { vswitch }) };
}

/** The owners in a kubelet's record. The kubelet replaces the file in one step, so the content is complete. */
export function ownedIn(kubeletDirectory: string): Ownership[] {
  const { entries = {} } = JSON.parse(readFileSync(join(kubeletDirectory, 'cpu_manager_state'), 'utf8')) as {
    entries?: Record<string, Record<string, string>>;
  };
  return Object.entries(entries).flatMap(([pod, containers]) =>
    Object.entries(containers).map(([container, cpus]) => ({ pod, container, cpus: cpusOf(cpus) })),
  );
}

function both(before: readonly Ownership[], after: readonly Ownership[]): Ownership[] {
  const key = ({ pod, container, cpus }: Ownership) => `${pod}/${container}/${cpus}`;
  const still = new Set(after.map(key));
  return before.filter((ownership) => still.has(key(ownership)));
}

function reportedOf(topology: KubeObject | undefined): Ownership[] {
  const list = at(topology, 'status', 'assignments');
  return (Array.isArray(list) ? list : []).map((one) => ({
    pod: String(at(one, 'podUID')),
    container: String(at(one, 'container')),
    cpus: cpusOf(String(at(one, 'cpus'))),
  }));
}

function masksOf(pids: readonly number[]): number[] {
  const cpus = new Set<number>();
  for (const pid of pids) {
    for (const tid of attempt(() => readdirSync(`/proc/${pid}/task`)) ?? []) {
      const status = attempt(() => readFileSync(`/proc/${pid}/task/${tid}/status`, 'utf8')) ?? '';
      for (const cpu of cpusOf(/^Cpus_allowed_list:\s*(.*)$/m.exec(status)?.[1] ?? '')) cpus.add(cpu);
    }
  }
  return [...cpus];
}

/** Threads may end during the check. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

function podView({ metadata, spec, status }: KubePod): PodView {
  const limits = spec.containers.find(({ name }) => name === 'compute')?.resources?.limits ?? {};
  const networks = String(metadata.annotations?.['k8s.v1.cni.cncf.io/networks'] ?? '');
  const physnet = /"name":"(physnet\d+)"/.exec(networks)?.[1];
  return {
    uid: metadata.uid ?? '',
    name: metadata.name,
    ...(spec.nodeName !== undefined && { node: spec.nodeName }),
    phase: status?.phase ?? 'Pending',
    leaving: metadata.deletionTimestamp !== undefined,
    cpus: Number(limits['cpu'] ?? 0),
    aligned: metadata.annotations?.['kubevirt.io/CPUManagerPolicyBetaOptions'] === 'full-pcpus-only',
    ...(physnet !== undefined && { physnet }),
    devices: Object.keys(limits).filter((name) => name.includes('plumbline.dev/')),
  };
}
