import { countText, cpusText } from '../model/amounts.ts';
import { asksForWholeCores, wantsWholeCores } from '../model/launcher/annotation.ts';
import { ALIGN_ANNOTATION, ALIGN_WHOLE_CORES, NUMA_AFFINITY_ANNOTATION } from '../model/names.ts';
import { readableNeedsOf } from '../model/placement/preferences.ts';
import type { TriedChanges } from '../model/placement/tried-changes.ts';
import type { MetaShape } from '../model/shapes.ts';
import { NO_CURRENT_REPORT, type NodeGroup, STOPPED_REPORT, type VmFacts } from './facts.ts';
import {
  addAnnotation,
  bringDpuBack,
  checkAgent,
  kubectl,
  type Named,
  plumbline,
  type Remedy,
  remedy,
  repairNetworkMap,
  verifyMask,
} from './remedies.ts';

type Waiting = Named & Pick<VmFacts, 'pod'>;
type NodeRemedy = (node: string, group: NodeGroup, facts: Waiting) => Remedy | Remedy[] | undefined;

const shortOf = (node: string, { missing }: NodeGroup) =>
  missing === undefined ? `on a node such as ${node}` : `on ${node}, which is short of ${cpusText(missing)}`;
const describe = (node: string) => kubectl('describe', 'node', node);
const top = (node: string) => plumbline('top', node);
const doctorKubelet = plumbline('doctor', 'kubelet');
const fewerText = (cpus: number) => countText(cpus, 'fewer CPU');
const PREFER = `make all but one of its networks "preferred" (${NUMA_AFFINITY_ANNOTATION})`;

const freeCores = (text: string, node: string) => remedy('free-whole-cores', text, top(node));
const setKubelet = (node: string) =>
  remedy('set-kubelet', `use a kubelet version and options that Plumbline predicts on ${node}`, doctorKubelet);
const lastRefusal = (text: string, { namespace }: Named) =>
  remedy(
    'read-events',
    `${text}; the scheduler retries it after the next change of the node, or after some minutes`,
    kubectl('-n', namespace, 'get', 'events'),
  );

/**
 * So that nodes of a group accept the pod; undefined: no remedy of its own. In the order in which groups are listed: the
 * easiest to fix first, then full nodes, then broken ones, last those never meant for the pod.
 */
export const REMEDIES: Partial<Readonly<Record<NodeGroup['kind'], NodeRemedy | undefined>>> = {
  fits: undefined,
  'not-predicted': (node, { detail }) =>
    [NO_CURRENT_REPORT, STOPPED_REPORT].includes(detail)
      ? checkAgent(node, `find out why the agent on ${node} does not report`)
      : setKubelet(node),
  'stale-report': (node, { detail }) => {
    const [, missing] = detail.split('; by its last report: ');
    const also = missing === undefined ? '' : `. By its last report, more is missing: ${missing}`;
    return checkAgent(node, `start the agent on ${node} again, which has stopped reporting${also}`);
  },
  'in-flight': () => remedy('wait', 'wait: pods in flight start on these nodes, or their reservations end'),
  'refused-by-kubelet': (node, { text }, facts) =>
    lastRefusal(`find out why the kubelet on ${node} refused its last pod (${text.split(': ').at(-1)})`, facts),
  'refused-on-host': (node, _, facts) => lastRefusal(`see why the agent on ${node} refused its last pod`, facts),
  'short-of': (node, { detail }) => remedy('free-resources', `free ${detail.split(':')[0]} on ${node}`, describe(node)),
  'too-few-whole-cores': (node, group) =>
    freeCores(`free whole cores ${shortOf(node, group)}: stop or migrate a VM there`, node),
  'too-few-cpus': (node, group) => freeCores(`free CPUs ${shortOf(node, group)}: stop or migrate a VM there`, node),
  'network-elsewhere': (node, group, facts) => [
    freeCores(`free cores near the network ${shortOf(node, group)}`, node),
    remedy('relax-networks', `allow the VM to run far from the network (${preferred(facts)})`),
  ],
  'no-common-node': (node, group) => {
    const short = shortOf(node, group);
    return freeCores(`free CPUs, memory and devices of one NUMA node ${short}: stop or migrate a VM there`, node);
  },
  'tied-by-init': (node, { detail }) => {
    const fewer = `give ${detail.split(':')[0]} a fraction of a CPU`;
    const text = `${fewer}, or as many CPUs as the container that reuses them (on ${node})`;
    return remedy('ask-for-less', text, top(node));
  },
  resources: (node) =>
    remedy('free-resources', `free what is short on ${node} (memory, huge pages or devices)`, describe(node)),
  'pages-taken': (node, { detail }) =>
    remedy('free-resources', `stop what took the pages on ${node} (${detail}), such as pods that are not Guaranteed`),
  // The webhook missed a VM that already asks for whole cores; another remedy covers that.
  misaligned: (_, __, facts) => {
    if (facts.kind === 'pod') return alignPod(facts.pod?.metadata ?? {});
    return facts.pod && wantsWholeCores(facts.pod.metadata) ? undefined : addAnnotation('opt in to whole cores', facts);
  },
  'cannot-split': () => remedy('relax-networks', PREFER),
  'may-not-span': () => remedy('relax-networks', `${PREFER}, or give the guest more CPUs than fit on one NUMA node`),
  'larger-than-cells': (node, { missing, tried }) => {
    const fewer = `give the VM ${fewerText(tried?.fewerCpus ?? missing ?? 0)} (on ${node})`;
    const networks = `or make its networks "preferred" (${NUMA_AFFINITY_ANNOTATION})`;
    return remedy('ask-for-less', `${fewer}, its own NUMA nodes (guestMappingPassthrough), ${networks}`);
  },
  'too-large': (node, { missing, tried, text }) => {
    const fewer = tried?.fewerCpus ?? missing;
    const less = fewer === undefined ? `less than ${node} has` : `${fewerText(fewer)} (on ${node})`;
    const laxer = text.includes('NUMA') ? ', use nodes with a less strict topologyManagerPolicy' : '';
    const why = 'it does not fit even with all other VMs gone';
    return remedy('ask-for-less', `give the VM ${less}${laxer}, or add a larger node: ${why}`, top(node));
  },
  'more-than-node': (node, { detail }) => {
    const text = `give the VM less ${detail.split(':')[0]} than ${node} has, or add a larger node`;
    return remedy('ask-for-less', text, describe(node));
  },
  'cpu-mask': (_, __, { namespace }) => {
    const why = 'it names CPUs that the node does not have or reserves';
    return verifyMask(namespace, `change the VM’s plumbline.dev/cpu-mask: ${why}`);
  },
  dpu: (node) => bringDpuBack(node),
  'polled-cpus': (node) =>
    remedy('reserve-cpus', `put the CPUs of pmd-cpu-mask into reservedSystemCPUs of the kubelet on ${node}`, top(node)),
  'no-report': (node) => checkAgent(node, `run the agent on ${node}: it does not report`),
  unpredictable: setKubelet,
  'not-ready': (node) => remedy('bring-node-back', `bring ${node} back`, describe(node)),
  cordoned: (node) => remedy('uncordon', `let pods go to ${node} again`, kubectl('uncordon', node)),
  'pod-affinity': undefined,
  'hangs-kubelet': (node) => {
    const text = `reserve whole cores (reservedSystemCPUs) on ${node}, or switch distribute-cpus-across-numa off`;
    return remedy('reserve-cpus', text, doctorKubelet);
  },
  'split-reservation': (node) =>
    remedy('reserve-cpus', `reserve whole cores (reservedSystemCPUs) on ${node}`, top(node)),
  'offline-threads': (node, { detail }) => {
    const online = `${detail.split(':')[0]} on ${node}: bring the offline CPUs online`;
    const offline = 'take the other threads of their cores offline as well';
    const text = `${online}, or ${offline}, and restart its kubelet without its CPU manager state`;
    return remedy('bring-cpus-online', text);
  },
  'uneven-cores': (node) =>
    remedy('other-node', `use a node whose cores have the same number of threads: those of ${node} differ`, top(node)),
  'no-exclusive-cpus': (node) => remedy('set-cpu-manager', `set cpuManagerPolicy: static on ${node}`, doctorKubelet),
  'dra-cpu': (node, _, { kind }) => {
    const [what, claims] = kind === 'pod' ? ['pod', 'its containers claim'] : ['VM', 'it claims'];
    const how = kind === 'pod' ? '' : ' (domain.cpu.dra of KubeVirt 1.10, alpha)';
    const other = 'use a node whose kubelet has cpuManagerPolicy: static and that has no dra.cpu driver';
    return remedy('other-node', `${other}; ${node} suits the ${what} if ${claims} CPUs${how}`);
  },
  tainted: (node) => remedy('tolerate', `tolerate the taint of ${node}, or remove it`, describe(node)),
  'network-map': (node, { detail }) => repairNetworkMap(node, detail),
  'no-such-network': undefined,
  'unknown-node': undefined,
  'cordoned-and-more': undefined,
  other: undefined,
  'not-selected': undefined,
  quarantined: (node) => checkAgent(node, `find out why the report of ${node} contradicts its Node`),
};

function preferred({ pod }: Waiting): string {
  const needs = pod && readableNeedsOf(pod);
  const required = (needs?.networks ?? []).filter(({ affinity }) => affinity === 'required');
  const names = required.flatMap(({ name }) => name.split(', ')).filter((name) => /^[\w.-]+$/.test(name));
  if (names.length === 0) return `"preferred" for its interface in ${NUMA_AFFINITY_ANNOTATION}`;
  const affinities = Object.fromEntries(names.map((name) => [name, 'preferred']));
  return `${NUMA_AFFINITY_ANNOTATION}: '${JSON.stringify(affinities)}'`;
}

function alignPod(metadata: MetaShape): Remedy {
  if (asksForWholeCores(metadata))
    return remedy('start-again', 'the webhook did not see this pod: delete it, and create it again');
  const annotation = `${ALIGN_ANNOTATION}: ${ALIGN_WHOLE_CORES}`;
  return remedy('add-annotation', `opt in to whole cores: annotate the pod with ${annotation} and create it again`);
}

const MAX_REMEDIES = 3;

/** The change that each remedy makes, for those that can be tried against the prediction. */
const CHANGES: Readonly<Record<string, (tried: TriedChanges) => boolean | undefined>> = {
  'free-whole-cores': ({ emptied }) => emptied,
  'add-annotation': ({ padded }) => padded,
  'relax-networks': ({ preferred: isFar }) => isFar,
  'ask-for-less': ({ fewerCpus }) => fewerCpus !== undefined,
};

/** 0: it was tried and would work; 1: it cannot be tried; 2: it would not work. */
function rank({ id }: Remedy, { kind, tried }: NodeGroup): number {
  if (kind === 'cordoned') return 0;
  const works = tried && CHANGES[id]?.(tried);
  if (works === undefined) return 1;
  return works ? 0 : 2;
}

function remediesOf(group: NodeGroup, facts: Waiting): readonly Remedy[] {
  const own = [REMEDIES[group.kind]?.(group.nodes[0] ?? '', group, facts) ?? []].flat();
  if (group.kind === 'misaligned' || group.tried?.padded !== true || facts.pod === undefined) return own;
  return [...own, ...[REMEDIES.misaligned?.('', group, facts) ?? []].flat()];
}

/** First those that would work; those that would not only if there is no other. */
export function nodeRemedies(groups: readonly NodeGroup[], facts: Waiting): Remedy[] {
  const ranked = groups
    .flatMap((group) => remediesOf(group, facts).map((item) => ({ ...item, rank: rank(item, group) })))
    .sort((a, b) => a.rank - b.rank);
  const texts = new Map<string, Remedy>();
  for (const { rank: itemRank, ...item } of ranked)
    if (itemRank < 2 || ranked[0]?.rank === 2) texts.set(item.text, item);
  if (texts.size > 0) return [...texts.values()].slice(0, MAX_REMEDIES);
  if (groups.some(({ kind }) => kind === 'fits')) return [];
  const networks = groups.filter(({ kind }) => kind === 'no-such-network');
  const unselected = groups.find(({ kind }) => kind === 'not-selected');
  if (networks.length > 0) return [networkRemedy(networks)];
  if (unselected) {
    const text = `change the pod’s selector, or label a node: ${unselected.text}`;
    return [remedy('select-nodes', text, kubectl('get', 'nodes', '--show-labels'))];
  }
  return [];
}

const NOT_ON_THE_NODE = / (?:is|are) not on the node$/;

function networkRemedy(groups: readonly NodeGroup[]): Remedy {
  const absent = groups.map(({ text }) => text.replace(NOT_ON_THE_NODE, '').split(', '));
  const [first = [], ...others] = absent;
  const everywhere = first.filter((name) => others.every((names) => names.includes(name)));
  if (everywhere.length > 0) {
    const names = `${everywhere.join(', ')} ${everywhere.length === 1 ? 'is' : 'are'}`;
    const text = `check the network’s name: ${names} not on any node that the pod may go to`;
    return remedy('check-network-name', text, plumbline('doctor', 'networks'));
  }
  const apart = groups.map(({ nodes: [node] }, i) => `${absent[i]?.join(', ')} not on ${node}`);
  return remedy('relax-networks', `no node has all of its networks (${apart.join('; ')}): ${PREFER}`);
}
