import { countText } from '../../../model/amounts.ts';
import { EMPTY_CONTEXT } from '../../../model/networks/context.ts';
import { classifyNad, nadFacts } from '../../../model/networks/nad.ts';
import { someNames } from '../../support/terminal.ts';
import type { DoctorFacts } from '../facts/facts.ts';
import { type AreaRecorder, affecting, areaCheck } from './finding.ts';

export const checkNetworks = areaCheck('networks', (recorder, { nads, topologies }: DoctorFacts) => {
  const reported = new Set(
    (topologies.value ?? []).flatMap(({ status }) => (status?.physnets ?? []).map(({ name }) => name)),
  );
  const unknown = new Map<string, string[]>();
  const unreadable: string[] = [];
  const refused = new Map<string, string>();
  const all = recorder.value(nads, 'NetworkAttachmentDefinitions');
  for (const nad of all ?? []) {
    const name = `${nad.metadata.namespace}/${nad.metadata.name}`;
    const facts = nadFacts(nad);
    const network = classifyNad(facts, EMPTY_CONTEXT);
    if (facts.refusal !== undefined) refused.set(name, `${facts.refusal.by} refuses ${name}: ${facts.refusal.why}`);
    const physnet = network.kind === 'physnet' ? network.physnet : undefined;
    if (physnet !== undefined && !reported.has(physnet)) unknown.set(physnet, [...(unknown.get(physnet) ?? []), name]);
    if (network.kind === 'none' && network.warning === 'invalid-json') unreadable.push(name);
  }
  if ((topologies.value ?? []).some(({ status }) => status)) noteUnknown(recorder, unknown);
  const invalid = `the configuration of ${someNames(unreadable)} is not valid JSON`;
  noteBroken(recorder, unreadable, invalid, 'pods on it do not start');
  noteBroken(recorder, [...refused.keys()], someNames([...refused.values()]), 'pods on it stay in ContainerCreating');
  if (all)
    recorder.checked(`${countText(all.length, 'definition')}, physnets ${[...reported].sort().join(', ') || 'none'}`);
});

function noteUnknown(recorder: AreaRecorder, unknown: ReadonlyMap<string, readonly string[]>): void {
  for (const [physnet, names] of unknown) {
    recorder.warning(
      `no node has physnet ${physnet}, which ${someNames(names)} ${names.length === 1 ? 'leads' : 'lead'} to`,
      'Plumbline aligns no VM with it, because its NUMA node is unknown',
      'check ovn-bridge-mappings on the nodes, the network map of the agents, and the name in the definition',
      affecting('network-attachment-definition', names),
    );
  }
}

function noteBroken(recorder: AreaRecorder, names: readonly string[], what: string, impact: string): void {
  if (names.length > 0)
    recorder.error(what, impact, 'correct spec.config', affecting('network-attachment-definition', names));
}
