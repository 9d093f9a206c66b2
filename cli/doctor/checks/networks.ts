import { EMPTY_CONTEXT } from '../../../model/networks/context.ts';
import { classifyNad } from '../../../model/networks/nad.ts';
import type { Facts } from '../facts/facts.ts';
import { type AreaReport, count, some } from './finding.ts';
import { createNotebook } from './notebook.ts';

/** Whether the physnet of every network definition exists on a node. */
export function checkNetworks({ nads, topologies }: Facts): AreaReport {
  const notes = createNotebook('networks');
  const reported = new Set(
    (topologies.value ?? []).flatMap(({ status }) => (status?.physnets ?? []).map(({ name }) => name)),
  );
  const unknown = new Map<string, string[]>();
  const unreadable: string[] = [];
  const all = notes.value(nads, 'NetworkAttachmentDefinitions');
  for (const nad of all ?? []) {
    const name = `${nad.metadata.namespace}/${nad.metadata.name}`;
    const found = classifyNad(nad, EMPTY_CONTEXT);
    if (found.kind === 'physnet' && !reported.has(found.physnet)) {
      unknown.set(found.physnet, [...(unknown.get(found.physnet) ?? []), name]);
    }
    if (found.kind === 'none' && found.warning === 'invalid-json') unreadable.push(name);
  }
  if ((topologies.value ?? []).some(({ status }) => status)) {
    for (const [physnet, names] of unknown) {
      notes.warning(
        `no node has physnet ${physnet}, which ${some(names)} ${names.length === 1 ? 'leads' : 'lead'} to`,
        'Plumbline aligns no VM with it, because its NUMA node is unknown',
        'check ovn-bridge-mappings on the nodes, the network map of the agents, and the name in the definition',
        { objects: names.map((name) => `network-attachment-definition/${name}`) },
      );
    }
  }
  if (unreadable.length > 0) {
    notes.error(
      `the configuration of ${some(unreadable)} is not valid JSON`,
      'pods on it do not start',
      'correct spec.config',
      { objects: unreadable.map((name) => `network-attachment-definition/${name}`) },
    );
  }
  if (all) notes.seen(`${count(all.length, 'definition')}, physnets ${[...reported].sort().join(', ') || 'none'}`);
  return notes.report;
}
