import * as z from 'zod';
import { explainedCondition, listOf, occurrence } from '../../diagnosis/objects.ts';
import { isLauncherOf } from '../../diagnosis/vm-facts.ts';
import { isNotFound, type KubeClient, KubeError } from '../../kube/client.ts';
import { NODES_PATH } from '../../kube/cluster-view/nodes.ts';
import { instancesPath } from '../../kube/cluster-view/vmis.ts';
import { pagesOf } from '../../kube/list-pages.ts';
import { NODE_TOPOLOGY_API } from '../../kube/node-topology.ts';
import type { HistoryAnswer, HistoryEntry } from '../data/wire.ts';

/** Data that the API server has kept about nodes and VMs: conditions, and Events, by default for an hour. */
export type Histories = ReturnType<typeof createHistories>;

const MAX_ENTRIES = 100;
const MAX_EVENTS = 2000;
const PAGE_EVENTS = 500;
const MAX_TEXT_CHARACTERS = 1024;

const optional = z.string().nullish();
const event = occurrence.extend({
  series: z.object({ count: z.number().nullish(), lastObservedTime: optional }).nullish(),
  firstTimestamp: optional,
});
type Event = z.infer<typeof event>;

const conditions = listOf(explainedCondition);
const withConditions = z.object({ status: z.object({ conditions }).nullish() });
const phases = z.array(z.object({ phase: optional, phaseTransitionTimestamp: optional })).nullish();
const nodes = { sourceNode: optional, targetNode: optional };
const times = { startTimestamp: optional, endTimestamp: optional };
const migrationState = z.object({ ...nodes, ...times, failed: z.boolean().nullish() }).nullish();
const instance = z.object({
  status: z.object({ conditions, phaseTransitionTimestamps: phases, migrationState }).nullish(),
});

export function createHistories(client: Pick<KubeClient, 'get'>) {
  /** @throws KubeError if the API server does not respond */
  return {
    async ofNode(name: string) {
      const { notes, read } = createReader(client);
      const named = `metadata.name=${name}`;
      const topologies = `/apis/${NODE_TOPOLOGY_API.apiVersion}/${NODE_TOPOLOGY_API.plural}`;
      const [events, nodes, reports] = await Promise.all([
        read('Events', '/api/v1/events', `involvedObject.kind=Node,involvedObject.name=${name}`, event),
        read('conditions of Nodes', NODES_PATH, named, withConditions),
        read('conditions of reports', topologies, named, withConditions),
      ]);
      const about = [...nodes, ...reports].flatMap(({ status }) => conditionEntries(status?.conditions ?? []));
      return historyOf([...events.map((each) => eventEntry(each)), ...about], notes);
    },
    /** @param vm namespace/name */
    async ofVm(vm: string) {
      const [namespace = '', name = ''] = vm.split('/');
      const { notes, read } = createReader(client);
      const events = `/api/v1/namespaces/${namespace}/events`;
      const [ofName, ofPods, vmis] = await Promise.all([
        read('Events', events, `involvedObject.name=${name}`, event),
        read('Events of pods', events, 'involvedObject.kind=Pod', event),
        read('instances of VMs', instancesPath(namespace), `metadata.name=${name}`, instance),
      ]);
      const own = ofName.filter(({ involvedObject }) => involvedObject.kind !== 'Pod');
      const ofLaunchers = ofPods.filter(({ involvedObject }) => isLauncherOf(name, involvedObject.name ?? ''));
      const entries = [
        ...own.map((each) => eventEntry(each)),
        ...ofLaunchers.map((each) => eventEntry(each, `${each.involvedObject.kind} ${each.involvedObject.name}`)),
        ...vmis.flatMap(({ status }) => [
          ...conditionEntries(status?.conditions ?? []),
          ...phaseEntries(status?.phaseTransitionTimestamps),
          ...migrationEntries(status?.migrationState),
        ]),
      ];
      return historyOf(entries, notes);
    },
  };
}

/** `read` returns the objects of a list: none, and a note, without read permission. */
function createReader(client: Pick<KubeClient, 'get'>) {
  const notes: string[] = [];
  const read = async <T>(what: string, path: string, fieldSelector: string, schema: z.ZodType<T>): Promise<T[]> => {
    const objects: T[] = [];
    try {
      for await (const { items } of pagesOf({ client, path, query: { fieldSelector }, page: PAGE_EVENTS })) {
        objects.push(...(items ?? []).map((item) => schema.safeParse(item).data).filter((data) => data !== undefined));
        if (objects.length < MAX_EVENTS) continue;
        notes.push(`only the first ${objects.length} ${what} are read; there are more`);
        break;
      }
      return objects;
    } catch (error) {
      if (isNotFound(error)) return [];
      if (!(error instanceof KubeError) || error.status !== 403) throw error;
      notes.push(`${what} are missing: this console may not read them`);
      return [];
    }
  };
  return { notes, read };
}

function historyOf(entries: readonly HistoryEntry[], notes: readonly string[]): HistoryAnswer {
  const sorted = entries.filter(({ time }) => time !== '').sort((a, b) => Date.parse(b.time) - Date.parse(a.time));
  const left = sorted.length - MAX_ENTRIES;
  const omitted = left > 0 ? [`${left} older entries are not shown`] : [];
  return { entries: sorted.slice(0, MAX_ENTRIES), notes: [...new Set([...notes, ...omitted])] };
}

function eventEntry(occurrence: Event, about?: string): HistoryEntry {
  const { series, firstTimestamp, lastTimestamp, eventTime, metadata } = occurrence;
  const first = firstTimestamp ?? eventTime ?? metadata.creationTimestamp ?? '';
  const count = series?.count ?? occurrence.count ?? 1;
  return {
    time: series?.lastObservedTime ?? lastTimestamp ?? first,
    ...(count > 1 && { count, since: first }),
    from: 'event',
    isWarning: occurrence.type === 'Warning',
    reason: occurrence.reason ?? '',
    text: (occurrence.message ?? '').slice(0, MAX_TEXT_CHARACTERS),
    about,
  };
}

/** Conditions for which True means a problem. */
const BAD_WHEN_TRUE = /Pressure$|^NetworkUnavailable$|^Paused$/;

function conditionEntries(list: z.infer<typeof conditions>): HistoryEntry[] {
  return list.flatMap(({ type, status, reason, message, lastTransitionTime }): HistoryEntry[] => {
    if (!lastTransitionTime) return [];
    const isWarning = status !== (BAD_WHEN_TRUE.test(type) ? 'False' : 'True');
    const text = (message || reason || '').slice(0, MAX_TEXT_CHARACTERS);
    return [{ time: lastTransitionTime, from: 'condition', isWarning, reason: `${type} is ${status}`, text }];
  });
}

function phaseEntries(list: z.infer<typeof phases>): HistoryEntry[] {
  return (list ?? []).map(({ phase, phaseTransitionTimestamp }) => ({
    time: phaseTransitionTimestamp ?? '',
    from: 'phase',
    isWarning: phase === 'Failed',
    reason: phase ?? '',
    text: 'the phase of its instance, by KubeVirt',
  }));
}

function migrationEntries(state: z.infer<typeof migrationState>): HistoryEntry[] {
  if (state == null) return [];
  const { sourceNode, targetNode, startTimestamp, endTimestamp, failed } = state;
  const shared = { from: 'phase', text: `from ${sourceNode ?? '?'} to ${targetNode ?? '?'}` } as const;
  const isWarning = failed === true;
  return [
    { ...shared, time: startTimestamp ?? '', isWarning: false, reason: 'MigrationStarted' },
    { ...shared, time: endTimestamp ?? '', isWarning, reason: isWarning ? 'MigrationFailed' : 'Migrated' },
  ];
}
